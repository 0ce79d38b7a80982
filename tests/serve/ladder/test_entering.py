"""`procsnake arena enter`, `leave` and `play` against the stand-in."""

from __future__ import annotations

import json
import shlex

import pytest

from envs.common.errors import ConfigError
from serve.ladder.entering import check_entry
from tests.serve.ladder.stand_in import MISSING, fails_with, hangs_up
from tests.serve.snakes import Answer, good_snake, served


@pytest.fixture
def snake_url():
    with served(good_snake) as url:
        yield url


def posts(arena):
    return [path for method, path, _ in arena.asked if method == "POST"]


def test_enter_examines_registers_and_joins(arena, command, snake_url):
    arena.add_ladder("Standard")
    code, out, _ = command(
        "enter", snake_url, "--name", " Hisser ", "--public", "--ladder", "standard"
    )
    assert code == 0
    assert "ready to play" in out
    assert "Hisser is registered" in out
    (snake,) = arena.snakes.values()
    assert (snake["name"], snake["url"], snake["is_public"], snake["owner"]) == (
        "Hisser",
        snake_url,
        True,
        "ada",
    )
    assert [entry["battlesnake_id"] for entry in arena.entries.values()] == [snake["id"]]


def test_entering_again_moves_the_same_snake_and_keeps_it_public(arena, command, snake_url):
    mine = arena.add_snake("Hisser", is_public=True)
    code, out, _ = command("enter", snake_url, "--name", "Hisser", "--json")
    assert code == 0
    assert json.loads(out) == {"id": mine, "name": "Hisser", "url": snake_url, "ladder": None}
    assert arena.snakes[mine]["url"] == snake_url
    assert arena.snakes[mine]["is_public"] is True


def test_a_snake_that_is_not_ready_is_not_entered(arena, command):
    def mute(path, body):
        return Answer(500) if path == "/move" else good_snake(path, body)

    with served(mute) as url:
        code, out, err = command("enter", url, "--name", "Hisser")
    assert code == 1
    assert "server-error" in out
    assert "was not entered" in err
    assert not arena.snakes


def test_a_private_snake_is_kept_off_a_ladder_before_anything_happens(arena, command, snake_url):
    arena.add_ladder("Standard")
    code, _, err = command("enter", snake_url, "--name", "Hisser", "--ladder", "Standard")
    assert code == 2
    assert "add --public" in err
    assert not posts(arena)


def test_an_unknown_ladder_is_said_with_what_was_meant(arena, command, snake_url):
    arena.add_ladder("Standard")
    code, _, err = command(
        "enter", snake_url, "--name", "Hisser", "--public", "--ladder", "Standart"
    )
    assert code == 2
    assert "Did you mean 'Standard'?" in err
    assert not posts(arena)


def test_a_name_that_was_taken_meanwhile(arena, command, snake_url):
    arena.disturb += [None, fails_with(409, "a battlesnake of this name exists")]
    code, _, err = command("enter", snake_url, "--name", "Hisser")
    assert code == 2
    assert "choose another --name" in err.splitlines()[-1]


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1:8000",
        "http://localhost",
        "http://192.168.0.7:8000",
        "http://[::1]:8",
        "ftp://h",
        "h",
        "http://[",
    ],
)
def test_what_arena_cannot_reach_is_refused(url):
    with pytest.raises(ConfigError):
        check_entry("Hisser", url, arena="https://arena.example")


@pytest.mark.parametrize("name", ["", "  ", "x" * 65])
def test_a_name_has_1_to_64_characters(name):
    with pytest.raises(ConfigError, match="1 to 64"):
        check_entry(name, "https://snake.example", arena="https://arena.example")


@pytest.mark.parametrize(
    ("name", "arena_is_here", "said"),
    [("x" * 65, True, "1 to 64"), ("Hisser", False, "Arena can't reach 127.0.0.1")],
)
def test_what_arena_would_refuse_is_refused_before_anybody_is_asked(
    arena, command, monkeypatch, name, arena_is_here, said
):
    monkeypatch.setattr("serve.ladder.entering.is_here", lambda host: arena_is_here)
    called = []

    def remembers(path, body):
        called.append(path)
        return good_snake(path, body)

    with served(remembers) as url:
        code, _, err = command("enter", url, "--name", name)
    assert code == 2
    assert said in err
    assert (arena.asked, called) == ([], [])


def test_leave_pauses_on_every_ladder_and_enter_brings_back(arena, command, snake_url):
    ladders = [arena.add_ladder(name) for name in ("Standard", "Royale")]
    for name in ("Standard", "Royale"):
        command("enter", snake_url, "--name", "Hisser", "--public", "--ladder", name)
    code, out, _ = command("leave", "hisser")
    assert code == 0
    assert "Standard, Royale" in out
    assert [entry["active"] for entry in arena.entries.values()] == [False, False]
    command("enter", snake_url, "--name", "Hisser", "--ladder", "Royale")
    assert [arena.entries[ladder, next(iter(arena.snakes))]["active"] for ladder in ladders] == [
        False,
        True,
    ]


def test_leave_finds_a_snake_beyond_the_first_100(arena, command):
    mine = arena.add_snake("Hisser")
    ladder = arena.add_ladder("Standard")
    counts = {"games_played": 50, "active": True}
    for number in range(100):
        rival = arena.add_snake(f"rival {number}", owner="bob")
        arena.entries[ladder, rival] = {
            "battlesnake_id": rival,
            "display_score": 20.0 + number,
            **counts,
        }
    arena.entries[ladder, mine] = {"battlesnake_id": mine, "display_score": 1.0, **counts}
    assert "Standard: not among the first 100" in command("status", "--no-sweep")[1]
    assert "Standard" in command("leave", "Hisser")[1]
    assert not arena.entries[ladder, mine]["active"]


def test_waiting_ends_with_a_game_that_fails(arena, command):
    arena.add_snake("Hisser")

    def fail(request):
        next(iter(arena.games.values()))["status"] = "failed"

    arena.disturb += [None, None, None, fail]
    _, out, _ = command("play", "Hisser", "--type", "solo", "--wait", "30")
    assert out.splitlines()[-1].endswith("failed")
    assert sum(arena.pauses) <= 5


def test_leave_knows_only_ones_own_snakes(arena, command):
    arena.add_snake("Hisser")
    arena.add_snake("Rival", owner="bob")
    code, _, err = command("leave", "Rival")
    assert code == 2
    assert "unknown snake 'Rival'" in err


def test_leave_where_the_snake_never_was(arena, command):
    arena.add_snake("Hisser")
    arena.add_ladder("Standard")
    code, _, err = command("leave", "Hisser")
    assert code == 2
    assert "on no ladder" in err
    code, _, err = command("leave", "Hisser", "--ladder", "Standard")
    assert code == 2
    assert "404" in err


def test_play_names_ones_own_a_rival_on_a_ladder_and_an_id(arena, command):
    mine = arena.add_snake("Hisser", is_public=False)
    rival = arena.add_snake("Rival", owner="bob")
    third = arena.add_snake("x")
    arena.entries[arena.add_ladder("Standard"), rival] = {
        "battlesnake_id": rival,
        "display_score": 1.0,
        "games_played": 50,
        "active": True,
    }
    code, out, _ = command(
        "play",
        "Hisser",
        "Rival",
        third,
        *shlex.split("Hisser --board 7x7 --type royale --games 2 --json"),
    )
    assert code == 0
    games = list(arena.games.values())
    assert [game["id"] for game in json.loads(out)] == [game["id"] for game in games]
    assert [(g["snakes"], g["board"], g["game_type"]) for g in games] == [
        ([mine, rival, third, mine], "7x7", "Royale")
    ] * 2


def test_play_waits_for_the_21st_game_as_long_as_arena_says(arena, command):
    arena.add_snake("Hisser")
    code, out, err = command("play", "Hisser", "--type", "solo", "--games", "25")
    assert code == 0
    assert len(arena.games) == 25
    assert out.splitlines()[-1].startswith("25/25")
    assert arena.pauses == [600.0]
    assert "too many requests; the next try in 600 s" in err


def test_play_says_what_had_begun_when_the_site_went_down(arena, command):
    arena.add_snake("Hisser")
    arena.disturb += [None, None, None, hangs_up]
    code, out, err = command("play", "Hisser", "--type", "solo", "--games", "5")
    assert code == 2
    assert len(out.splitlines()) == 2 == len(arena.games)
    assert "2 of 5 games started" in err
    assert "may have been done" in err


def test_a_game_that_never_ends_is_waited_for_no_longer_than_said(arena, command):
    arena.add_snake("Hisser")
    code, out, _ = command("play", "Hisser", "--type", "solo", "--wait", "30")
    assert code == 0
    assert out.splitlines()[-1].endswith("waiting")
    assert sum(arena.pauses) == 30
    assert min(arena.pauses) >= 2


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["Hiser"], "Did you mean 'Hisser'?"),
        (["Hisser"] * 5, "1 to 4"),
        (["Twin"], "2 snakes on the ladders are called 'Twin'"),
        ([MISSING], "not accessible"),
        (["Hisser", "--board", "8x8"], "unknown board '8x8'"),
        (["Hisser", "--type", "wrapped"], "unknown type 'wrapped'"),
        (["Hisser", "--games", "0"], "less than 1"),
    ],
)
def test_games_that_cannot_be(arena, command, words, said):
    arena.add_snake("Hisser")
    ladder = arena.add_ladder("Standard")
    for twin in (arena.add_snake("Twin", owner="bob"), arena.add_snake("Twin", owner="cy")):
        arena.entries[ladder, twin] = {
            "battlesnake_id": twin,
            "display_score": 1.0,
            "games_played": 50,
            "active": True,
        }
    code, out, err = command("play", *words)
    assert (code, out) == (2, "")
    assert said in err
    assert not arena.games
