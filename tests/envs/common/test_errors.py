"""Errors keep their kind and message on the way from another process."""

from __future__ import annotations

import copy
import pickle

import pytest

from envs.common.errors import ConfigError, MissingDependencyError, ProcsnakeError, UnknownNameError


@pytest.mark.parametrize(
    "error",
    [
        UnknownNameError("game", "coinrum", ["coinrun", "maze"]),
        MissingDependencyError("glue", feature="Sticking", install="pip install glue"),
        ConfigError("width is 0; it must be at least 1"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_a_copy_is_the_same_error(error: ProcsnakeError) -> None:
    for again in (pickle.loads(pickle.dumps(error)), copy.copy(error)):
        assert type(again) is type(error)
        assert str(again) == str(error)
        assert vars(again) == vars(error)
