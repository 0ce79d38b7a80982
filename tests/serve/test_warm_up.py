"""After `procsnake warm-up` nothing is left to compile, and it tells what it does and how long it
will take.
"""

from __future__ import annotations

import json
import subprocess
import sys

import numba
import pytest

import procsnake
from serve import warm_up
from serve.warm_up import Part, compile_parts, parts_of

LATE = """
import contextlib, io, json, sys
import numpy as np
from numba.core.dispatcher import Dispatcher
import envs, procsnake
from serve.warm_up import parts_of, step_worlds

def compiled():
    modules = [m for name, m in sys.modules.items() if name.startswith(("envs", "agents"))]
    kernels = {id(k): k for m in modules for k in vars(m).values() if isinstance(k, Dispatcher)}
    return {(k.__module__, k.__name__, str(s)) for k in kernels.values() for s in k.signatures}

players, commands = json.loads(sys.argv[1])
for part in parts_of(players):
    part.run()
step_worlds()
before = compiled()
with contextlib.redirect_stdout(io.StringIO()):
    for words in commands:
        assert procsnake.main(words) == 0, words
window = {"view": "window", "radius": 5, "rotate": True}
world = envs.make("battlesnake", num_games=8, num_snakes=4, observation=window)
world.restart(1)
for _ in range(3):
    world.advance(np.zeros(world.num_envs, np.int32))
print(len(before), sorted(compiled() - before))
"""


@pytest.mark.parametrize(
    ("players", "commands"),
    [
        (
            ["flood", "greedy"],
            [
                ["match", "flood", "greedy", "flood", "greedy", "--seed", "1"],
                ["match", "flood", "greedy", "--ruleset", "wrapped", "--seed", "2"],
                ["evaluate", "flood", "--against", "greedy", "--games", "5"],
            ],
        ),
        (
            ["alphabeta?nodes=200"],
            [["match", *["alphabeta?nodes=200"] * 2, "--width", "7", "--height", "7"]],
        ),
    ],
    ids=["heuristics", "search"],
)
def test_afterwards_nothing_is_compiled_for_matches_evaluations_and_training(players, commands):
    command = [sys.executable, "-c", LATE, json.dumps([players, commands])]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    functions, compiled_late = done.stdout.strip().split(" ", 1)
    assert int(functions) > 3
    assert compiled_late == "[]"


def test_what_is_compiled_is_counted_and_what_was_compiled_before_is_not():
    function = numba.njit(lambda number: number + 1)
    parts = [Part(name=name, cost=1.0, run=lambda: function(1)) for name in ("first", "again")]
    assert [(one.name, one.functions) for one in compile_parts(parts, say=lambda text: None)] == [
        ("first", 1),
        ("again", 0),
    ]


def test_the_estimate_goes_by_what_this_machine_took_so_far(monkeypatch):
    clock = [0.0]
    monkeypatch.setattr(warm_up.time, "monotonic", lambda: clock[0])

    def take(seconds: float) -> None:
        clock[0] += seconds

    costs = {"flood": 40.0, "greedy": 10.0, "mcts": 30.0}
    parts = [
        Part(name=name, cost=cost, run=lambda cost=cost: take(cost / 2))
        for name, cost in costs.items()
    ]
    said: list[str] = []
    compile_parts(parts, said.append)
    assert said == [
        "1 of 3: flood, at most about 80 s of processor time for all",
        "2 of 3: greedy, about 20 s left",
        "3 of 3: mcts, about 15 s left",
    ]


def test_without_names_all_built_in_players_and_the_training_are_meant():
    assert {"flood", "alphabeta", "mcts", "training"} <= {part.name for part in parts_of([])}
    assert [part.name for part in parts_of(["flood"])] == ["flood"]
    assert [(part.name, part.run) for part in parts_of(["training"])] == [
        ("training", warm_up.step_worlds)
    ]


def test_the_command_tells_each_part(capsys):
    assert procsnake.main(["warm-up", "me=random", "--json"]) == 0
    printed = capsys.readouterr()
    (part,) = json.loads(printed.out)
    assert (part["name"], set(part)) == ("me=random", {"name", "functions", "seconds"})
    assert "1 of 1: me=random" in printed.err


def test_an_unknown_player_is_refused_with_the_nearest_name(capsys):
    assert procsnake.main(["warm-up", "flod"]) == 2
    assert "Did you mean 'flood'" in capsys.readouterr().err
