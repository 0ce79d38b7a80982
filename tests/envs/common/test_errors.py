"""Errors keep their kind and message on the way from another process."""

from __future__ import annotations

import copy
import pickle
import shlex
from pathlib import Path

import pytest

from envs.common import errors
from envs.common.errors import (
    ConfigError,
    MissingDependencyError,
    ProcsnakeError,
    UnknownNameError,
    install_beside,
    make_environment,
)


@pytest.mark.parametrize(
    "error",
    [
        UnknownNameError("game", "coinrum", ["coinrun", "maze"]),
        MissingDependencyError("glue", feature="Sticking", install="pip install glue"),
        ConfigError("width is 0; it must be at least 1"),
        ConfigError("there is no run.", next_commands={"train one": ("train", "battlesnake-ppo")}),
    ],
    ids=lambda error: type(error).__name__,
)
def test_a_copy_is_the_same_error(error: ProcsnakeError) -> None:
    for again in (pickle.loads(pickle.dumps(error)), copy.copy(error)):
        assert type(again) is type(error)
        assert str(again) == str(error)
        assert vars(again) == vars(error)


def test_the_message_goes_on_with_commands_that_a_shell_takes_apart_again() -> None:
    error = ConfigError(
        "nothing is here.",
        next_commands={"train one": ("train", Path("my runs")), "or play": ("match", "it's")},
    )
    assert str(error).startswith("nothing is here. Train one: procsnake train ")
    first, second = str(error).removeprefix("nothing is here. Train one: ").split("; or play: ")
    assert shlex.split(first) == ["procsnake", "train", "my runs"]
    assert shlex.split(second) == ["procsnake", "match", "it's"]
    assert error.with_commands(lambda *words: f"<{'|'.join(words)}>") == (
        "nothing is here. Train one: <train|my runs>; or play: <match|it's>"
    )


def test_an_error_of_whatever_arguments_has_a_text() -> None:
    class Own(ProcsnakeError):
        def __init__(self) -> None:
            pass

    assert str(ProcsnakeError(ValueError("x"))) == "x"  # type: ignore[arg-type]
    assert str(Own()) == ""


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
        (place / "Makefile").touch()
    assert (
        shlex.split(install_beside("mxnet"))[-1]
        == f"{place if is_clone else 'procsnake'}[train,mxnet]"
    )


def test_a_clone_names_the_environment_that_its_makefile_makes(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(errors, "_HOME", tmp_path)
    assert make_environment("tensorflow") is None
    (tmp_path / "Makefile").touch()
    said = make_environment("tensorflow")
    assert said is not None
    make, use = said.split(" && ")
    assert shlex.split(make) == ["make", "-C", str(tmp_path), ".venv-tensorflow/.installed"]
    assert use == f"{tmp_path}/.venv-tensorflow/bin/python -m procsnake …"


@pytest.mark.parametrize("extra", ["mxnet", "tensorflow"])
def test_the_makefile_makes_the_environments_that_errors_name(extra: str) -> None:
    makefile = (Path(errors.__file__).parents[2] / "Makefile").read_text(encoding="utf-8")
    assert f"{extra.upper()} := .venv-{extra}\n" in makefile
    assert f"\n$({extra.upper()})/.installed:" in makefile
