"""A death is read from the fields of the official engine, and written into them."""

from __future__ import annotations

import pytest

from envs.battlesnake.plain import Death, is_dead
from envs.battlesnake.plain.board import UNKNOWN_CAUSE, as_dead, as_living, end_of

SNAKE = {"id": "a", "health": 90, "body": [{"x": 1, "y": 1}]}
HEAD_ON = {"eliminatedCause": "head-collision", "eliminatedBy": "b", "eliminatedOnTurn": 7}


def test_a_death_is_read_from_the_engines_fields():
    assert Death.of({**SNAKE, **HEAD_ON}) == Death("head-collision", killer="b", turn=7)


@pytest.mark.parametrize("snake", [SNAKE, as_living(SNAKE)])
def test_a_living_snake_has_no_death(snake):
    assert Death.of(snake) is None


def test_what_a_file_leaves_out_of_a_death_is_empty():
    dead = {**SNAKE, "eliminatedCause": UNKNOWN_CAUSE, "eliminatedBy": None}
    assert Death.of(dead) == Death(UNKNOWN_CAUSE, killer="", turn=0)


def test_a_snake_is_marked_as_dead_in_the_engines_fields():
    dead = as_dead(as_living(SNAKE), Death("head-collision", killer="b", turn=7))
    assert dead == {**SNAKE, **HEAD_ON}
    assert is_dead(dead)
    assert end_of(dead) == {"id": "a", **HEAD_ON}
