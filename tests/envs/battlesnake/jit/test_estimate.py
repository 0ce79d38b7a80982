"""What is said of how long compiling takes."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from envs.battlesnake import games, observations, vector_env
from envs.battlesnake.jit import estimate as estimate_module
from envs.battlesnake.jit.estimate import PARTS, Estimate
from envs.battlesnake.maps import catalogue


@pytest.fixture
def compile_part(monkeypatch):
    """Makes the events that Numba makes of a part's compiling, which takes so many seconds."""
    clock = [0.0]
    monkeypatch.setattr(estimate_module.time, "monotonic", lambda: clock[0])

    def run(estimate, name, seconds, *inner):
        event = SimpleNamespace(
            data={"dispatcher": SimpleNamespace(py_func=SimpleNamespace(__name__=name))}
        )
        estimate.on_start(event)
        for part in inner:
            run(estimate, part, 0.0)
        clock[0] += seconds
        estimate.on_end(event)

    return run


def test_each_part_is_estimated_at_the_pace_of_those_before(compile_part, capsys):
    estimate = Estimate()
    estimate.is_wanted = True
    usual = {name: seconds for name, (_, seconds) in PARTS.items()}
    first = usual["_set_up_standard_boards"]
    compile_part(estimate, "_set_up_standard_boards", 3 * first, "_observe_rows")
    compile_part(estimate, "a small one", 100.0)
    compile_part(estimate, "advance_boards", 1.0)
    assert capsys.readouterr().err.splitlines() == [
        f"procsnake: … how a game begins: about {first:.0f} s",
        "procsnake: … a turn of many games, for training:"
        f" about {3 * usual['advance_boards']:.0f} s",
    ]


def test_who_isnt_asked_says_nothing(compile_part, capsys):
    compile_part(Estimate(), "advance_boards", 1.0)
    assert capsys.readouterr().err == ""


def test_the_parts_are_functions_of_the_engine():
    named = {
        name for module in (games, observations, vector_env, catalogue) for name in vars(module)
    }
    assert set(PARTS) <= named
