"""Fetched games in a server's archive."""

from __future__ import annotations

import json

import pytest

from envs.battlesnake.recording import Recording
from tests.command_line import run
from tests.serve.ladder.frames import frames_of, long_game


@pytest.fixture
def game(arena):
    return arena.add_game(frames_of(long_game()), [arena.add_snake("Snake s1")], board="19x19")


def test_the_archive_shows_it_as_ones_own_game(command, game, capsys, tmp_path):
    archive = f"sqlite:///{tmp_path / 'games.db'}"
    code, out, _ = command("fetch", game, "--database", archive)
    assert code == 0
    assert "kept as the game of Snake s1" in out
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
        assert command("fetch", game, "--database", archive)[0] == 0
    assert len(json.loads(run(capsys, "games", "list", "--database", archive, "--json")[1])) == 1


@pytest.mark.parametrize("url", ["mysql://x", "sqlite:////proc/none/games.db"])
def test_an_archive_that_cannot_be_is_one_line(command, game, url):
    code, _, err = command("fetch", game, "--database", url)
    assert code == 2
    assert err.count("\n") == 1
