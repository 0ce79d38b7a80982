"""Fetched games in a server's archive."""

from __future__ import annotations

import json
from urllib.parse import quote

import pytest

import agents
from envs.battlesnake.recording import Recording
from serve.archive.store import GameStore
from serve.arena import create_app
from serve.ladder.keeping import keep
from tests.command_line import run
from tests.serve.ladder.frames import frames_of, long_game


@pytest.fixture
def game(arena):
    return arena.add_game(frames_of(long_game()), [arena.add_snake("Snake s1")], board="19x19")


def test_the_archive_shows_it_as_ones_own_game(command, game, capsys, tmp_path):
    archive = f"sqlite:///{tmp_path / 'games.db'}"
    code, out, _ = command("fetch", game, "--keep", "--database", archive)
    assert code == 0
    assert "archived as a game of Snake s1" in out
    (row,) = json.loads(run(capsys, "games", "list", "--database", archive, "--json")[1])
    last = long_game()[-1]["snakes"][1]
    assert (row["id"], row["snake"]) == (game, "Snake s1")
    assert row["result"] == ("lost" if last["eliminatedCause"] else "won")
    assert row["timeouts"] == 0
    run(capsys, "games", "export", "exported", "--database", archive)
    (file,) = (tmp_path / "exported").iterdir()
    lived = [board for board in long_game() if not board["snakes"][1]["eliminatedCause"]]
    exported = Recording.read(file).boards()
    for board, expected in zip(exported[: len(lived)], lived, strict=True):
        bodies = {snake["id"]: snake["body"] for snake in board["snakes"]}
        assert bodies["entry-s1"] == expected["snakes"][1]["body"]


def test_what_was_fetched_before_is_kept_too_and_once(command, game, capsys, tmp_path):
    archive = f"sqlite:///{tmp_path / 'games.db'}"
    assert command("fetch", game)[0] == 0
    for _ in range(2):
        assert command("fetch", game, "--keep", "--database", archive)[0] == 0
    assert len(json.loads(run(capsys, "games", "list", "--database", archive, "--json")[1])) == 1


def test_what_a_server_recorded_by_another_name_is_not_there_twice(command, game, capsys, tmp_path):
    """A server names a game's snake as it serves it, and Arena as it is registered there."""
    archive = f"sqlite:///{tmp_path / 'games.db'}"
    assert command("fetch", game, "--out", str(tmp_path))[0] == 0
    recorded = Recording.read(tmp_path / f"{game}.jsonl")
    other = recorded.boards()[0]["snakes"][0]["name"]
    assert keep(recorded, archive, frozenset({other})) == [other] != ["Snake s1"]
    assert command("fetch", game, "--keep", "--database", archive)[0] == 0
    (row,) = json.loads(run(capsys, "games", "list", "--database", archive, "--json")[1])
    assert row["snake"] == other


def test_a_game_that_is_there_does_not_move_to_the_top_again(
    command, arena, game, capsys, tmp_path
):
    archive = f"sqlite:///{tmp_path / 'games.db'}"
    later = arena.add_game(frames_of(long_game()), [arena.add_snake("Snake s1")], board="19x19")
    for one in (game, later, game):
        assert command("fetch", one, "--keep", "--database", archive)[0] == 0
    games = json.loads(run(capsys, "games", "list", "--database", archive, "--json")[1])
    assert [one["id"] for one in games] == [later, game]


@pytest.mark.parametrize(
    ("name", "kept"),
    [
        ("Ada's Würger #1", "Ada's Würger #1"),
        ("a/b", "a_b"),
        ("//", "__"),
        ("..", "_"),
        (".", "_"),
        ("nul\0", "nul\ufffd"),
    ],
)
def test_it_can_be_watched_whatever_the_snake_is_called(command, arena, tmp_path, name, kept):
    frames = json.loads(
        json.dumps(frames_of(long_game()[:5])).replace('"Snake s1"', json.dumps(name))
    )
    game = arena.add_game(frames, [arena.add_snake(name)], board="19x19")
    archive = f"sqlite:///{tmp_path / 'games.db'}"
    assert command("fetch", game, "--keep", "--database", archive)[0] == 0
    store = GameStore(archive)
    client = create_app({"flood": agents.make("flood")}, store=store).test_client()
    (listed,) = client.get("/api/games").get_json()["games"]
    assert listed["snake"] == kept
    shown = client.get(f"/api/games/{game}/{quote(kept, safe='')}/turns").get_json()
    assert (shown["game"]["snake"], len(shown["turns"])) == (kept, 5)
    store.close()


@pytest.mark.parametrize("url", ["mysql://x", "sqlite:////proc/none/games.db"])
def test_an_archive_that_cannot_be_is_one_line(command, game, url):
    code, _, err = command("fetch", game, "--keep", "--database", url)
    assert code == 2
    assert err.count("\n") == 1
