"""Figures and names in the pages' claims are those of the code."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from packaging.specifiers import SpecifierSet

import agents
import procsnake
from serve import processes
from serve.timing import deadline, margins
from tests.docs.commands import PAGES
from tests.envs.battlesnake.positions import board
from train.config import Experiment, list_experiments
from train.keys.experiment_keys import keys

ROOT = Path(__file__).parents[2]


def page(name):
    return " ".join((ROOT / name).read_text(encoding="utf-8").split())


def numbers(pattern, name):
    """The numbers in the one place of a page that the pattern finds."""
    (found,) = re.findall(pattern, page(name))
    return tuple(
        float(number.replace(" ", "")) for number in ([found] if isinstance(found, str) else found)
    )


def test_when_an_answer_is_due_is_said_as_it_is_reckoned():
    least, most = numbers(r"takes as at least (\d+) ms and at most (\d+) s", "docs/arena.md")
    assert (least, 1000 * most) == (deadline.MIN_TIMEOUT_MS, deadline.MAX_TIMEOUT_MS)
    first, reserve = numbers(
        r"it is (\d+) ms at first, then the observed overhead plus (\d+) ms",
        "docs/arena.md",
    )
    assert first == margins.START_MS
    game = margins.GameMargin()
    for turn in range(60):
        margin_ms = game.margin_ms(turn, "30" if turn else "0", 500)
        game.answered(turn, 10.0)
    assert margin_ms == pytest.approx(20 + reserve)
    assert numbers(r"network takes at most the timeout less (\d+) ms", "docs/arena.md") == (
        margins.REACH_MS,
    )
    assert "No call thinks for longer than a second" in page("docs/arena.md")
    assert deadline.MAX_THINK_MS == 1000


def test_how_requests_are_drained_is_said_as_it_is_set():
    assert "first answers the requests under way, for up to eight seconds" in page("docs/arena.md")
    assert processes.STOP_S == 8


@pytest.mark.parametrize("name", [str(path.relative_to(ROOT)) for path in PAGES])
def test_no_page_promises_to_be_in_time_without_saying_when(name):
    """A machine that gives the server no processor makes it late; that was measured."""
    promises = [
        one
        for one in re.split(r"(?<=[.:|])\s", page(name))
        if re.search(r"answers? .*in time\b|move in time\b", one)
    ]
    assert not [
        one
        for one in promises
        if re.search(r"whatever|always|even when", one) and "machine" not in one
    ]


@pytest.mark.parametrize("name", ["flood", "alphabeta?nodes=200", "champion-duel"])
def test_without_a_deadline_an_answer_depends_on_the_board_alone(name):
    """As docs/design.md says: whoever answered other boards before answers this one as somebody new
    does.
    """
    boards = [
        board(11, 11, [(x, 2), (x, 1), (x, 0)], [(5, y), (6, y), (6, y - 1)])
        for x, y in ((2, 5), (3, 8), (8, 3), (1, 1))
    ]
    used = agents.make(name)
    forth = [used.act(state, 0).move for state in boards]
    back = [used.act(state, 0).move for state in boards[::-1]][::-1]
    assert forth == back == [agents.make(name).act(state, 0).move for state in boards]


def test_the_share_of_late_moves_that_is_admitted_is_the_tables_highest():
    (admitted,) = numbers(r"up to ([\d.]+) % of the moves came late", "docs/arena.md")
    rows = re.findall(
        r"([\d ]+) of ([\d ]+)",
        page("docs/lab/arena.md").partition("## Under load")[2].partition("## ")[0],
    )
    shares = [
        100 * float(late.replace(" ", "")) / float(moves.replace(" ", "")) for late, moves in rows
    ]
    assert round(max(shares), 1) == admitted


@pytest.fixture(scope="module")
def known_keys():
    return {key.key for name in list_experiments() for key in keys(Experiment.load(name))}


@pytest.mark.parametrize("name", ["docs/ppo.md", "docs/lab/ppo.md", "docs/sagemaker.md"])
def test_keys_that_a_page_sets_exist(known_keys, name):
    named = set(re.findall(r"--set ([a-z_]+(?:\.[a-z_]+)*)=", page(name)))
    assert named - known_keys == set()
    assert named


def test_every_experiment_that_comes_along_is_in_the_table_of_what_was_learned():
    table = (
        page("docs/lab/benchmarks.md")
        .partition("## What each experiment has learned here")[2]
        .partition("## ")[0]
    )
    assert (
        sorted(re.findall(r"`((?:battlesnake|procgen|aicrowd)-[\w-]+)`[,| ]", table))
        == list_experiments()
    )


def test_the_page_that_ppo_names_for_several_machines_is_about_them(capsys):
    (target,) = re.findall(
        r"several machines: yes, see \[several machines\]\((\w+\.md)\)", page("docs/ppo.md")
    )
    told = page(f"docs/{target}")
    assert told.startswith("# Training on several machines")
    assert "--cluster" in told
    with pytest.raises(SystemExit):
        procsnake.main(["train", "--help"])
    assert "--cluster" in capsys.readouterr().out


def test_the_readme_names_the_pythons_that_can_install_it():
    first, last = re.findall(r"Python (3\.\d+) to (3\.\d+)", page("README.md"))[0]
    (required,) = re.findall(
        r'python_requires="([^"]+)"', (ROOT / "setup.py").read_text(encoding="utf-8")
    )
    allowed = [
        f"3.{minor}" for minor in range(30) if SpecifierSet(required).contains(f"3.{minor}.0")
    ]
    assert (allowed[0], allowed[-1]) == (first, last)
