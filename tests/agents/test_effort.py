"""Effort: one limit, whom it reaches, and how it is asked for."""

from __future__ import annotations

import argparse
import json

import pytest

import agents
from agents.effort import Effort
from agents.options_file import OptionsFile
from envs.battlesnake.games import start_games
from envs.battlesnake.state import State
from envs.common.errors import ConfigError, UnknownNameError
from procsnake import main
from procsnake.cli.effort_options import add_effort, effort_of


def asked(*words):
    parser = argparse.ArgumentParser()
    add_effort(parser)
    return effort_of(parser.parse_args(words))


def test_it_is_asked_for_in_one_vocabulary():
    assert asked() == Effort()
    assert asked("--nodes", "70") == Effort(nodes=70)
    assert asked("--time", "2.5") == asked("--cpu-ms", "2.5") == Effort(cpu_ms=2.5)
    assert asked("--time", "50", "--wall") == Effort()


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--wall",), "how long"),
        (("--nodes", "5", "--time", "5"), "one way"),
        (("--nodes", "5", "--time", "5", "--wall"), "one way"),
    ],
)
def test_two_limits_and_half_a_limit_are_refused(words, told):
    with pytest.raises(ConfigError, match=told):
        asked(*words)


@pytest.mark.parametrize("text", ["nan", "inf", "0", "-5"])
@pytest.mark.parametrize("more", [[], ["--wall"]])
def test_a_time_that_is_no_positive_number_is_refused(capsys, text, more):
    with pytest.raises(SystemExit) as ended:
        main(["sprt", "flood", "greedy", f"--time={text}", *more])
    assert ended.value.code == 2
    assert f"--time/--cpu-ms: {text} is" in capsys.readouterr().err


def test_a_search_spends_as_many_nodes_as_it_is_given():
    board = State(1, width=11, height=11, num_snakes=2)
    board.seed(0)
    start_games(board)
    spent = [
        Effort(nodes=nodes).make("alphabeta").act(board, 0).note["nodes"] for nodes in (300, 3000)
    ]
    assert 300 <= spent[0] < 1000 < 3000 <= spent[1]


@pytest.mark.parametrize(
    ("spec", "reached"),
    [
        ("alphabeta", True),
        ("alphabeta?near=3", True),
        ("alphabeta?nodes=9", False),
        ("alphabeta?cpu_ms=9", False),
        ("mcts", False),
        ("flood", False),
        ("http://127.0.0.1:8000/?nodes", False),
    ],
)
def test_it_reaches_whom_it_can_limit_and_who_brings_no_limit_along(spec, reached):
    assert Effort(nodes=70).reaches(spec) is reached


@pytest.mark.parametrize(
    ("spec", "reached"), [("mcts", True), ("mcts?near=3", True), ("mcts?simulations=9", False)]
)
def test_simulations_in_the_name_are_a_limit_of_ones_own(spec, reached):
    effort = Effort(cpu_ms=20.0)
    assert effort.reaches(spec) is reached
    assert effort.exceptions_in_words([("a", spec)]) == (
        "" if reached else "a keeps its own effort, not 20 ms of processor time per move"
    )
    assert effort.make(spec).cpu_ms == (20.0 if reached else None)


def test_a_limit_in_the_name_is_the_only_one():
    agent = Effort(nodes=70).make("alphabeta?cpu_ms=9")
    assert isinstance(agent, agents.search.alphabeta.agent.AlphaBeta)
    assert (agent.nodes, agent.cpu_ms) == (None, 9)


@pytest.mark.parametrize(("options", "reached"), [({"near": 3}, True), ({"cpu_ms": 9}, False)])
def test_a_limit_in_a_file_of_options_counts_as_one_in_the_name(tmp_path, options, reached):
    path = tmp_path / "own.yaml"
    OptionsFile(agent="alphabeta", options=options, against="alphabeta").write(path)
    agent = Effort(nodes=70).make(f"alphabeta?options={path}")
    assert (agent.nodes, agent.cpu_ms) == ((70, None) if reached else (None, 9))


def test_what_it_cannot_make_is_said():
    with pytest.raises(UnknownNameError, match="alphabeta"):
        Effort(nodes=70).make("alphabetta")


def test_evaluations_take_it_too(capsys):
    def scores(agent, *words):
        small = ["--num-snakes", "2", "--games", "4", "--width", "7", "--height", "7", "--json"]
        assert main(["evaluate", agent, "--against", "flood", *small, *words]) == 0
        return capsys.readouterr()

    asked = scores("alphabeta", "--nodes", "25")
    named = scores("alphabeta?nodes=25")
    assert json.loads(asked.out) == json.loads(named.out)
    assert "note: flood keeps its own effort, not 25 nodes per move" in asked.err
