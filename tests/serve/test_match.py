from __future__ import annotations

import argparse
import json
import re
import shlex
import sys
from functools import partial

import pytest

import procsnake
from agents.measure.evaluation.referee import Referee
from agents.registry import make
from envs.battlesnake.recording import Recording
from envs.battlesnake.settings import Settings
from envs.battlesnake.state import CAUSE_NAMES
from envs.common import terminal
from procsnake.cli.command_line import add_game_options, game_settings
from serve.archive.store import GameStore
from serve.arena import create_app
from serve.browser.viewer import engine
from serve.browser.viewer.hosted_game import SNAKE, HostedGame
from serve.server import running
from tests.command_line import Terminal
from tests.serve.archive.played import play, tell_all
from tests.serve.snakes import INFO, as_json, good_snake, served

SMALL = ["--width", "7", "--height", "7", "--seed", "3"]


def test_a_match_is_told_and_repeats_with_its_seed(capsys):
    told = []
    for _ in range(2):
        assert procsnake.main(["match", "random", "greedy", "flood", *SMALL]) == 0
        told.append(capsys.readouterr().out)
    assert told[0] == told[1]
    lines = told[0].splitlines()
    assert [line.split()[0] for line in lines[:4]] == ["snake", "random", "greedy", "flood"]
    assert lines[4].endswith("turns")


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["flood"], "alphabeta evaluates positions by: learned (duel-units)"),
        (
            ["flood", "greedy"],
            "by: hand-written, because the game has 3 snakes, and duel-units is for duels",
        ),
        (
            ["flood", "--width", "7"],
            "by: hand-written, because the board is 7×11, and duel-units is for 11×11",
        ),
        (
            ["flood", "--ruleset", "wrapped"],
            "by: hand-written, because wrapped isn't the standard game",
        ),
    ],
    ids=str,
)
def test_which_evaluation_plays_on_this_board_is_told_in_one_line(capsys, words, told):
    assert procsnake.main(["match", "alphabeta?nodes=20", *words, "--seed", "3", "--json"]) == 0
    lines = [
        line for line in capsys.readouterr().err.splitlines() if "evaluates positions by" in line
    ]
    assert len(lines) == 1
    assert lines[0].endswith(told)


def test_it_plays_rules_of_ones_own_against_a_server_and_draws_the_end(capsys, tmp_path):
    rule = tmp_path / "mine.py"
    rule.write_text("def right(me): return [0, 0, 0, 1]")
    with running(create_app(make("greedy"))) as url:
        assert procsnake.main(["match", str(rule), url, "--watch", *SMALL]) == 0
    out = capsys.readouterr().out
    assert "mine" in out
    assert out.splitlines()[-1].endswith("turns")


@pytest.mark.parametrize("players", [["flod", "greedy"], ["http://127.0.0.1:9", "greedy"]])
def test_who_cannot_play_is_said_on_one_line(capsys, players):
    assert procsnake.main(["match", *players]) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_the_end_of_a_game_played_alone_is_no_draw(capsys):
    for shown in ([], ["--watch", "--delay", "0"]):
        assert procsnake.main(["match", "random", *shown, *SMALL]) == 0
        assert re.fullmatch(
            r"the game ended after \d+ turns", capsys.readouterr().out.splitlines()[-1]
        )


@pytest.mark.parametrize("is_terminal", [True, False])
@pytest.mark.parametrize("json_too", [True, False])
def test_a_terminal_shows_on_which_turn_the_game_is(monkeypatch, is_terminal, json_too):
    monkeypatch.setattr(terminal, "_QUIET_S", 0.0)
    monkeypatch.setenv("TERM", "xterm")
    stderr = Terminal()
    if not is_terminal:
        stderr.isatty = lambda: False
    monkeypatch.setattr(sys, "stderr", stderr)
    assert procsnake.main(["match", "random", "greedy", *SMALL, *["--json"] * json_too]) == 0
    shown = stderr.getvalue()
    for turn in (1, 2):
        assert (f"turn {turn}, 0 s" in shown) == (is_terminal and not json_too)


@pytest.mark.parametrize(
    ("record", "said"),
    [
        ("film.mp4", "as JSON lines, not as .mp4. Record film.jsonl, and make the film of it: "),
        ("film.GIF", "replay animate film.jsonl --out film.GIF"),
        ("film.webp", "replay animate film.jsonl --out film.gif"),
        ("folder", "it is a folder"),
    ],
)
def test_a_recording_that_cannot_be_is_refused_before_the_game(
    capsys, monkeypatch, tmp_path, record, said
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    snakes = ["random", "greedy"]
    commands = (["match", *snakes], ["play", "--browser", "--against", *snakes])
    monkeypatch.setattr("webbrowser.open", None)
    for command in commands:
        assert procsnake.main([*command, *SMALL, "--record", record]) == 2
        told = capsys.readouterr()
        assert said in told.err
        assert "turns" not in told.out
        assert [path.name for path in tmp_path.iterdir()] == ["folder"]


@pytest.mark.parametrize("shown", [[], ["--watch", "--delay", "0"]], ids=["told", "watched"])
def test_a_game_that_is_interrupted_leaves_no_part_of_a_recording(
    capsys, monkeypatch, tmp_path, shown
):
    def interrupt(*_):
        assert (tmp_path / "game.jsonl.part").is_file()
        raise KeyboardInterrupt

    monkeypatch.setattr("agents.measure.evaluation.referee.play_turn", interrupt)
    record = ["--record", str(tmp_path / "game.jsonl")]
    assert procsnake.main(["match", "random", "greedy", *shown, *SMALL, *record]) == 130
    assert list(tmp_path.iterdir()) == []


def test_players_have_the_names_that_they_are_given(capsys):
    for shown in ([], ["--watch", "--delay", "0"]):
        assert procsnake.main(["match", "mine=greedy", "flood", *shown, *SMALL]) == 0
        assert "mine" in capsys.readouterr().out
    assert procsnake.main(["match", "a=greedy", "a=flood"]) == 2
    assert "two players are called 'a'" in capsys.readouterr().err


@pytest.mark.parametrize("spelling", [0, 1], ids=["dashed", "official"])
def test_games_have_the_official_settings(capsys, tmp_path, spelling):
    options = {
        ("--food-spawn-chance", "--foodSpawnChance"): 40,
        ("--minimum-food", "--minimumFood"): 6,
        ("--hazard-damage-per-turn", "--hazardDamagePerTurn"): 30,
        ("--shrink-every-n-turns", "--shrinkEveryNTurns"): 3,
    }
    flags = [word for names, value in options.items() for word in (names[spelling], str(value))]
    path = tmp_path / "game.jsonl"
    assert (
        procsnake.main(
            ["match", "greedy", "flood", "--map", "royale", *SMALL, *flags, "--record", str(path)]
        )
        == 0
    )
    recording = Recording.read(path)
    assert recording.settings == Settings(
        map="royale", food_spawn_chance=40, minimum_food=6, hazard_damage=30, shrink_every_n_turns=3
    )
    assert len(recording.board(3)["food"]) >= 6
    assert [bool(recording.board(turn)["hazards"]) for turn in (2, 4)] == [False, True]


def test_searches_play_at_the_effort_that_is_asked_for(capsys):
    def end_of(*words):
        assert (
            procsnake.main(
                ["match", "alphabeta", "flood", "--seed", "3", "--json", "--nodes", "40", *words]
            )
            == 0
        )
        told = capsys.readouterr()
        assert "note: flood keeps its own effort, not 40 nodes per move" in told.err
        return json.loads(told.out)

    # By nodes it is a function of the seed; no timeout cuts a search short.
    assert end_of() == end_of("--timeout", "1")
    assert procsnake.main(["match", "alphabeta", "flood", "--nodes", "40", "--time", "5"]) == 2
    assert "one way" in capsys.readouterr().err


def test_without_them_they_are_the_defaults():
    parser = argparse.ArgumentParser()
    add_game_options(parser)
    assert game_settings(parser.parse_args([])) == Settings()


def test_a_setting_that_cannot_be_is_said(capsys):
    assert procsnake.main(["match", "greedy", "flood", "--foodSpawnChance", "150"]) == 2
    assert "food_spawn_chance is 150; it must be an integer from 0 to" in capsys.readouterr().err


def test_moves_that_failed_are_told(capsys):
    def shouted(path, body):
        return as_json({"move": "UP"}) if path == "/move" else good_snake(path, body)

    with served(shouted) as url:
        for shown in ([], ["--watch", "--delay", "0"]):
            assert (
                procsnake.main(
                    ["match", f"loud={url}", "flood", *shown, "--timeout", "4000", *SMALL]
                )
                == 0
            )
            told = capsys.readouterr().out
            assert re.search(
                r"^loud: \d+ moves? failed, .* the move is 'UP', but moves are in lower case",
                told,
                re.MULTILINE,
            )


def test_the_colour_a_snake_declares_is_drawn(capsys, monkeypatch):
    monkeypatch.setattr("procsnake.cli.start.watching.wants_color", lambda: True)

    def colourful(path, body):
        return (
            as_json(INFO | {"color": "#0a141e", "head": "evil"})
            if path == "/"
            else good_snake(path, body)
        )

    with served(colourful) as url:
        assert (
            procsnake.main(
                [
                    "match",
                    f"me={url}",
                    *shlex.split("flood --watch --delay 0 --timeout 4000"),
                    *SMALL,
                ]
            )
            == 0
        )
    out = capsys.readouterr().out
    assert "\x1b[38;2;10;20;30m me" in out
    assert "head evil" in out


def test_the_browser_shows_games_among_urls_too(tmp_path):
    """What the page asks for, while a game goes on and after it: all boards and deaths, though one
    of two died early.
    """
    with running(create_app(make("flood"))) as url:
        seats = [url, f"{url}/snakes/flood", make("greedy"), make("random")]
        referee = Referee(
            seats, width=9, height=9, seed=3, timeout_ms=5000, recording=tmp_path / "game.jsonl"
        )
        game = HostedGame(referee, tmp_path / "game.jsonl")
        frames = game.play()
        assert game.games() == []
        next(frames)
        assert (game.games(live=True)[0]["ended"], game.games(live=False)) == (None, [])
        assert game.turns(referee.game["id"], SNAKE) == []
        for _ in range(3):
            next(frames)
        assert [turn["turn"] for turn in game.turns(referee.game["id"], SNAKE)] == [0, 1, 2]
        assert [
            turn["turn"] for turn in game.turns(referee.game["id"], SNAKE, since=1, limit=1)
        ] == [1]
        assert game.recording(referee.game["id"], SNAKE).result is None
        for _ in frames:
            pass
    recording = Recording.read(tmp_path / "game.jsonl")
    for slot, you in enumerate(referee.ids):
        turns = game.turns(referee.game["id"], SNAKE, you=you)
        assert [turn["turn"] for turn in turns] == recording.turns
        moves = [recording.decisions(turn).get(you, {}).get("move") for turn in recording.turns]
        assert [turn["move"] for turn in turns] == moves
        fates = {fate["id"]: fate for turn in turns for fate in turn["eliminated"]}
        entry = game.game(referee.game["id"], SNAKE, you)
        assert entry["cause"] == (CAUSE_NAMES[referee.result.causes[slot]] or None)
        assert fates.get(you, {}).get("eliminatedCause") == entry["cause"]
        assert entry["result"] == (
            "won" if referee.result.winner == referee.names[slot] else "lost"
        )
        assert entry["is_whole"]
    *shown, end = engine.events(
        partial(game.game, referee.game["id"], SNAKE),
        partial(game.turns, referee.game["id"], SNAKE),
        wait,
    )
    assert [frame["Data"]["Turn"] for frame in shown] == recording.turns
    deaths = {
        snake["ID"]: (snake["Death"] or {}).get("Cause", "")
        for snake in shown[-1]["Data"]["Snakes"]
    }
    assert deaths == {
        you: CAUSE_NAMES[cause]
        for you, cause in zip(referee.ids, referee.result.causes, strict=True)
    }
    assert end["Type"] == "game_end"
    assert game.game(referee.game["id"], SNAKE)["you"] == referee.ids[2]
    assert game.turns(referee.game["id"], SNAKE, since=10**6) == []
    assert game.game("another", SNAKE) is None
    assert game.game(referee.game["id"], SNAKE, "nobody") is None
    assert game.statistics()["games"] == 1
    assert set(game.game(referee.game["id"], SNAKE)) == set(an_archived_game(tmp_path))


def wait(seconds):
    raise AssertionError("nobody waits for a game that is over")


def an_archived_game(folder):
    """The same of a store."""
    store = GameStore(f"sqlite:///{folder}/games.db")
    played = play(seed=1)
    tell_all(store, "s", played, 0)
    assert store.flush()
    found = store.game(played.game_id, "s")
    store.close()
    return found
