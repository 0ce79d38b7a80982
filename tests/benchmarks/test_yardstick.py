from __future__ import annotations

import json
import sys
from types import SimpleNamespace

import numpy as np
import pytest

from agents import registry
from agents.measure.sprt.play import SprtProgress
from agents.measure.sprt.statistics import log_likelihood_ratio, possible_scores
from agents.search import AlphaBeta
from tests.agents.boards import board
from tests.benchmarks import yardstick
from tests.benchmarks.yardstick import TODAY, Elsewhere

FAKE = """
from types import SimpleNamespace

def make(name, *, nodes):
    def act(state, you):
        return SimpleNamespace(move=(nodes + you + state.body(0, 0)[0][0]) % 4)

    return SimpleNamespace(act=act)
"""


@pytest.fixture
def elsewhere():
    started = []

    def start(tree, nodes):
        started.append(Elsewhere(tree, nodes))
        return started[-1]

    yield start
    for each in started:
        each.close()


def test_the_version_in_the_folder_answers_for_the_board_that_is_shown(tmp_path, elsewhere):
    (tmp_path / "agents").mkdir()
    (tmp_path / "agents" / "__init__.py").write_text(FAKE)
    (tmp_path / "agents" / "agent.py").write_text("Agent = object\n")
    (tmp_path / "envs").symlink_to(TODAY / "envs")
    version = elsewhere(tmp_path, 7)
    for x, you in ((0, 0), (2, 0), (2, 1)):
        state = board([(x, 3), (x, 2), (x, 1)], [(5, 5), (5, 4), (5, 3)])
        assert version.act(state, you).move == (7 + you + x) % 4


@pytest.mark.long
@pytest.mark.parametrize("settings", [{}, {"ruleset": "wrapped"}], ids=str)
def test_todays_version_in_another_process_moves_as_it_does_here(settings, elsewhere):
    there = elsewhere(TODAY, 300)
    here = AlphaBeta(nodes=300)
    for x in range(5):
        state = board(
            [(x, 1), (x, 0), (x + 1, 0)],
            [(5, 5), (5, 4), (5, 3)],
            [(x, 6), (x, 7), (x, 8)],
            size=(11, 11),
            **settings,
        )
        slots = np.arange(3)
        assert (
            there.act_batch(state, slots * 0, slots).tolist()
            == here.act_batch(state, slots * 0, slots).tolist()
        )
        assert there.cpu_ms > 0


@pytest.fixture
def run_command(tmp_path, monkeypatch):
    """Runs the command, with today's version in the place of the old one, and its games in an empty
    folder.
    """
    monkeypatch.setattr(registry, "_FACTORIES", dict(registry._FACTORIES))
    monkeypatch.setattr(yardstick, "unpack", lambda commit, folder: TODAY)
    monkeypatch.setattr(yardstick, "equal_nodes", lambda old, snakes, runs: 2 * old.nodes)
    monkeypatch.setattr(yardstick, "TODAY", tmp_path)

    def run(*options):
        monkeypatch.setattr(sys, "argv", ["yardstick", *options])
        yardstick.main()

    return run


@pytest.mark.long
def test_one_command_plays_the_test(run_command, capsys):
    run_command("--nodes", "20", "--games", "2", "--json")
    told = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert told["games"] == 2
    assert [player["name"] for player in told["players"]] == ["today", yardstick.YARDSTICK]
    assert told["players"][0]["spec"] == "alphabeta?nodes=40"


@pytest.mark.parametrize("seats", [2, 4])
@pytest.mark.parametrize(("option", "verdict"), [((), "H1"), (("--fixed",), None)])
def test_only_a_test_of_fixed_length_plays_on_after_a_thousand_games_won(
    seats, option, verdict, run_command, monkeypatch
):
    found = []

    def play_sprt(test, store, **_):
        counts = np.zeros(len(possible_scores(seats)), np.int64)
        counts[-1] = 1000 // seats
        found.append(
            test.hypotheses.verdict(float(log_likelihood_ratio(counts, seats, test.hypotheses)))
        )
        return SprtProgress(test)

    monkeypatch.setattr(
        yardstick,
        "Elsewhere",
        lambda tree, nodes: SimpleNamespace(name="old", nodes=nodes, close=list),
    )
    monkeypatch.setattr(yardstick, "play_sprt", play_sprt)
    run_command("--snakes", str(seats), *option)
    assert found == [verdict]
