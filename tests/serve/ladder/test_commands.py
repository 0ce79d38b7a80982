"""`procsnake arena` as its user sees it."""

from __future__ import annotations

import argparse
import io
import json
import shlex

import pytest

from procsnake.cli.compete.arena_entries import add_enter
from serve.ladder.records import Snake
from serve.ladder.standing import way_back
from serve.ladder.token import VARIABLE, token_path
from tests.command_line import run
from tests.serve.ladder.frames import frames_of, long_game
from tests.serve.ladder.stand_in import TOKEN, fails_with
from tests.serve.snakes import INFO, Answer, as_json, good_snake, served


@pytest.fixture
def piped(monkeypatch):
    return lambda text: monkeypatch.setattr("sys.stdin", io.StringIO(text))


def test_login_keeps_a_token_that_works(arena, capsys, piped):
    arena.add_snake("Hisser")
    piped(f"{TOKEN}\n")
    code, out, err = run(capsys, "arena", "login")
    assert code == 0
    assert "your snakes: Hisser" in out
    assert TOKEN not in out + err
    assert json.loads(token_path().read_text()) == {"arena": arena.url, "token": TOKEN}
    assert run(capsys, "arena", "status", "--no-sweep")[0] == 0


@pytest.mark.parametrize("text", ["wrong\n", "", "\n"])
def test_login_keeps_no_token_that_is_wrong(arena, capsys, piped, text):
    piped(text)
    code, out, err = run(capsys, "arena", "login")
    assert (code, out) == (2, "")
    assert "token" in err
    assert err.count("\n") == 1
    assert not token_path().exists()


def test_login_leaves_the_environments_token_where_it_is(arena, command):
    code, out, _ = command("login", "--json")
    assert code == 0
    assert json.loads(out) == {"arena": arena.url, "token_file": None, "snakes": []}
    assert not token_path().exists()


def test_there_is_no_option_for_a_token(arena, capsys):
    code, _, err = run(capsys, "arena", "login", "--token", TOKEN)
    assert code == 2
    assert "unknown option" in err


def test_status_shows_rank_and_health(arena, command):
    ladder = arena.add_ladder("Main")
    with served(good_snake) as url:
        mine = arena.add_snake("Hisser", url=url)
        entry = {
            "battlesnake_id": mine,
            "display_score": 21.46,
            "games_played": 31,
            "first_place_finishes": 9,
            "active": True,
        }
        arena.entries[ladder, mine] = entry
        code, out, _ = command("status")
    assert code == 0
    assert "Main: rank 1, score 21.46 (μ − 3σ), 31 games, first in 9" in out
    assert "all four calls answered" in out


@pytest.mark.parametrize("name", ["Hisser", "Ada's #1", "a; b", "-x"])
def test_the_way_back_can_be_pasted_for_any_name(name):
    url = "https://snake.example.org/?a=1&b=$2"
    told = way_back(Snake("id", name, url, True))
    assert shlex.quote(url) in told
    words = shlex.split(told, comments=True)
    parser = argparse.ArgumentParser()
    add_enter(parser)
    read = parser.parse_args(words[words.index("enter") + 1 :])
    assert (read.url, read.name, read.public, read.ladder) == (url, name, True, "LADDER")


def test_status_says_how_to_get_back(arena, command):
    arena.add_ladder("Main")

    def ill(path, body):
        return Answer(500) if path == "/move" else good_snake(path, body)

    with served(ill) as url:
        arena.add_snake("Hisser", url=url)
        code, out, _ = command("status")
        told = json.loads(command("status", "--json")[1])
    assert code == 1
    assert "on no ladder" in out
    assert f"arena enter {url} --name=Hisser --public --ladder LADDER" in out
    assert "POST /move failed from here: HTTP status 500" in out
    assert "2 good ones" in out
    assert told[0]["sweep"]["passed"] is False
    assert told[0]["standings"] == []


@pytest.mark.parametrize(
    ("path", "answer", "said"),
    [
        ("/", as_json(INFO | {"apiversion": "2"}), "GET / tells apiversion '2'"),
        ("/", as_json({"color": "#00aa11"}), "GET / tells apiversion None"),
        ("/", Answer(500), "GET / failed from here: HTTP status 500"),
        ("/start", Answer(500), "POST /start failed from here: HTTP status 500"),
        ("/end", Answer(500), "POST /end failed from here: HTTP status 500"),
    ],
)
def test_the_sweep_names_the_call_that_failed(arena, command, path, answer, said):
    with served(lambda asked, body: answer if asked == path else good_snake(asked, body)) as url:
        arena.add_snake("Hisser", url=url)
        code, out, _ = command("status")
    assert code == 1
    assert said in out
    assert "2 good ones" in out


def test_a_move_that_is_too_slow_for_a_game_passes_the_sweep(arena, command, monkeypatch):
    monkeypatch.setattr("serve.ladder.standing.SWEEP_TIMEOUT_MS", 0)
    with served(good_snake) as url:
        arena.add_snake("Hisser", url=url)
        code, out, _ = command("status")
    assert code == 0
    assert "all four calls answered from here within 5 s" in out


@pytest.mark.parametrize(
    "words",
    [
        ["fetch", "--all"],
        ["status", "--no-sweep"],
        ["play", "Hisser", "--type", "solo", "--games", "2", "--wait", "10"],
    ],
)
def test_arena_is_asked_one_thing_at_a_time(arena, command, words):
    mine = [arena.add_snake(name) for name in ("Hisser", "Rattler")]
    for name in ("Main", "Royale"):
        arena.add_ladder(name)
    for _ in range(2):
        arena.add_game(frames_of(long_game()[:120]), mine, board="19x19")
    arena.lingers_s = 0.02
    assert command(*words)[0] == 0
    assert len(arena.asked) > 3
    assert arena.most_at_once == 1


def test_status_counts_the_games_to_a_rank(arena, command):
    ladder = arena.add_ladder("Main")
    mine = arena.add_snake("Hisser")
    arena.entries[ladder, mine] = {
        "battlesnake_id": mine,
        "display_score": 2,
        "games_played": 4,
        "active": True,
    }
    assert "Main: no rank yet, 4 of 10 games, score 2.00" in command("status", "--no-sweep")[1]


@pytest.mark.parametrize(
    ("status", "said"),
    [
        (401, "token is wrong"),
        (403, "public snake"),
        (404, "deleted"),
        (422, "check the values"),
        (503, "repeat the command later"),
    ],
)
def test_what_goes_wrong_is_one_line(arena, command, status, said):
    arena.disturb += [fails_with(status, "because\x1b[2J\nof this")] * 4
    code, out, err = command("status")
    assert (code, out) == (2, "")
    last = err.splitlines()[-1]
    assert last.startswith("procsnake arena status: ")
    assert said in last
    assert "\x1b" not in err
    assert TOKEN not in err


def test_a_wrong_token_of_the_environment(arena, command, monkeypatch):
    monkeypatch.setenv(VARIABLE, "wrong")
    code, _, err = command("status")
    assert code == 2
    assert "procsnake arena login" in err
    assert "wrong\n" not in err


def test_a_terminal_obeys_no_name(arena, command):
    arena.add_snake("\x1b[2JHisser")
    assert "\x1b" not in command("status", "--no-sweep")[1]
