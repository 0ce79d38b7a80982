"""`procsnake arena` as its user sees it."""

from __future__ import annotations

import io
import json

import pytest

from serve.ladder.token import VARIABLE, token_path
from tests.command_line import run
from tests.serve.ladder.stand_in import TOKEN, fails_with
from tests.serve.snakes import Answer, good_snake, served


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
        entry = {"battlesnake_id": mine, "display_score": 21.46, "games_played": 31, "first_place_finishes": 9, "active": True}
        arena.entries[ladder, mine] = entry
        code, out, _ = command("status")
    assert code == 0
    assert "Main: rank 1, score 21.46 (μ − 3σ), 31 games, first in 9" in out
    assert "all four calls answered" in out


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
    assert f"procsnake arena enter {url} --name 'Hisser' --public --ladder LADDER" in out
    assert "POST /move failed from here: HTTP status 500" in out
    assert "2 good ones" in out
    assert told[0]["sweep"]["passed"] is False
    assert told[0]["standings"] == []


def test_status_counts_the_games_to_a_rank(arena, command):
    ladder, mine = arena.add_ladder("Main"), arena.add_snake("Hisser")
    arena.entries[ladder, mine] = {"battlesnake_id": mine, "display_score": 2, "games_played": 4, "active": True}
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
