"""The command line of a person who plays."""

from __future__ import annotations

import shlex
import webbrowser
from pathlib import Path

import pytest

import procsnake
from procsnake.cli.start import play as commands
from serve.browser.by_hand.table import OPPONENTS
from tests.serve.browser.by_hand.games import circle


@pytest.fixture
def played(monkeypatch):
    """Every game that a command begins in the browser, and its clock; the person quits at once."""
    begun = []

    def quits(game, options):
        begun.append((game, options.clock))
        raise KeyboardInterrupt

    monkeypatch.setattr(commands, "_in_the_browser", quits)
    monkeypatch.setattr(commands, "finds_browser", lambda: True)
    return begun


def run(*words):
    return procsnake.main(["play", *words])


def test_without_more_words_it_is_battlesnake_against_good_snakes(played):
    assert run("--seed", "3") == 0
    ((game, clock),) = played
    assert game.setup.opponents == OPPONENTS == ("champion-standard", "flood")
    assert (game.setup.seed, game.setup.width, clock) == (3, 11, None)


def test_it_is_the_game_that_is_asked_for(played, capsys):
    words = shlex.split("--against me=greedy alphabeta --nodes 50 --ruleset wrapped")
    assert (
        run(
            *words,
            *shlex.split("--map empty --width 9 --height 7 --minimumFood 3 --clock 0.4"),
        )
        == 0
    )
    ((game, clock),) = played
    assert (game.referee.names, clock) == (["you", "me", "alphabeta"], 0.4)
    setup = game.setup
    told = (
        setup.settings.ruleset,
        setup.settings.map,
        setup.width,
        setup.height,
        setup.settings.minimum_food,
    )
    assert told == ("wrapped", "empty", 9, 7, 3)
    assert game.referee.seats[2].nodes == 50
    said = capsys.readouterr().err
    assert "note: me keeps its own effort" in said
    assert "alphabeta evaluates positions by: hand-written, because" in said


@pytest.mark.parametrize("words", [["--against"], ["--ruleset", "solo"]], ids=" ".join)
def test_one_may_play_alone(played, words):
    assert run(*words) == 0
    assert played[0][0].referee.names == ["you"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--against", "flod"], "Did you mean 'flood'"),
        (
            ["--against", "flood", "--width", "2"],
            "width is 2; it must be an integer from 3 to 25",
        ),
        (["--against", "http://127.0.0.1:9"], "no snake answers at http://127.0.0.1:9"),
        (["--hint", "alfabeta"], "Did you mean 'alphabeta'"),
        (
            ["--against", "flood", "--record", "/proc/nowhere/game.jsonl"],
            "can't be written",
        ),
    ],
)
def test_what_cannot_be_played_is_said_in_a_line(played, capsys, words, said):
    assert run(*words) == 2
    error = capsys.readouterr().err.removeprefix("warming up …\n")
    assert said in error
    assert error.count("\n") == 1
    assert played == []


@pytest.mark.parametrize("clock", ["0", "0.05", "61", "nan", "soon"])
def test_a_clock_has_bounds(clock, capsys):
    with pytest.raises(SystemExit):
        run("--clock", clock)
    assert "--clock" in capsys.readouterr().err


def test_every_games_recording_is_told_and_kept(monkeypatch, capsys, tmp_path):
    def plays(game, options):
        while not game.is_over:
            game.move(None, turn=game.turn)
        game.new()
        circle(game, 2)

    monkeypatch.setattr(commands, "_in_the_browser", plays)
    record = tmp_path / "mine.jsonl"
    assert (
        run(
            *shlex.split("--browser --against flood --width 7 --height 7 --record"),
            str(record),
        )
        == 0
    )
    told = capsys.readouterr().out.splitlines()
    second = tmp_path / "mine-2.jsonl.part"
    assert told == [
        "The game was left on turn 2.",
        f"recording: {record}",
        f"recording of a game that isn't over: {second}",
    ]
    assert record.is_file()
    assert second.is_file()


def test_without_a_record_nothing_is_left(played, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert run("--against", "flood") == 0
    assert list(tmp_path.iterdir()) == []
    assert not Path(played[0][0].path).exists()
    assert "recording" not in capsys.readouterr().out


class Named:
    def __init__(self, name):
        self.name = name


@pytest.mark.parametrize(
    ("found", "variable", "is_one"),
    [
        (Named("chromium"), None, True),
        (Named("/usr/bin/w3m"), None, False),
        (Named("www-browser"), None, False),
        (Named("w3m"), "w3m", True),
        (None, None, False),
    ],
)
def test_a_browser_is_one_that_shows_pages(monkeypatch, found, variable, is_one):
    def get():
        if found is None:
            raise webbrowser.Error("could not locate runnable browser")
        return found

    monkeypatch.setattr(webbrowser, "get", get)
    monkeypatch.delenv("BROWSER", raising=False)
    if variable:
        monkeypatch.setenv("BROWSER", variable)
    assert commands.finds_browser() == is_one


def test_without_a_browser_and_a_terminal_it_says_what_to_do(monkeypatch, capsys):
    monkeypatch.setattr(commands, "finds_browser", lambda: False)
    assert run("--against", "flood") == 2
    assert (
        "no terminal to play in, and no browser was found; --browser serves the page"
        in capsys.readouterr().err
    )
