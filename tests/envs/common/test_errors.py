"""Errors keep their kind and message on the way from another process."""

from __future__ import annotations

import copy
import pickle
import shlex

import pytest

from envs.common import errors
from envs.common.errors import (
    ConfigError,
    MissingDependencyError,
    ProcsnakeError,
    UnknownNameError,
    install_beside,
)


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


@pytest.mark.parametrize("is_clone", [True, False])
def test_a_new_environment_gets_the_clone_that_runs_where_there_is_one(
    tmp_path, monkeypatch, is_clone: bool
) -> None:
    """A new environment has no procsnake yet, and where pip looks there is none as long as none is
    published.
    """
    place = tmp_path / "a clone"
    place.mkdir()
    monkeypatch.setattr(errors, "_HOME", place)
    if is_clone:
        (place / "setup.py").touch()
    assert (
        shlex.split(install_beside("mxnet"))[-1]
        == f"{place if is_clone else 'procsnake'}[train,mxnet]"
    )
