"""The steps on plain dicts: boards that no game can have are refused by the name of the field."""

from __future__ import annotations

import pytest

from envs.battlesnake.plain import state_from_board
from envs.common.errors import InvalidStateError


@pytest.mark.parametrize("cause", ["absent", "boredom"])
def test_a_cause_of_which_no_snake_dies_is_refused(cause):
    snake = {"id": "a", "health": 90, "body": [{"x": 1, "y": 1}], "eliminatedCause": cause}
    with pytest.raises(
        InvalidStateError,
        match=rf"snakes\[0\]\.eliminatedCause is '{cause}'; known: snake-coll.* hazard$",
    ):
        state_from_board({"width": 7, "height": 7, "snakes": [snake]})
