"""The walk of docs/ladder.md, typed: from nothing to reading a lost game of the ladder."""

from __future__ import annotations

import io
import json
from contextlib import closing

import agents
from agents.measure.evaluation.connection import Connection
from serve.archive.store import GameStore
from serve.arena import create_app
from serve.server import running
from tests.command_line import run
from tests.envs.battlesnake.arena_shape import (
    arena_game,
    end_request,
    is_alive,
    move_requests,
    played_games,
)
from tests.serve.ladder.frames import frames_of
from tests.serve.ladder.stand_in import TOKEN
from tests.serve.snakes import good_snake, served

GAME = "3b241101-e2bb-4255-8caf-4136c566a962"
LADDERS_GAME = arena_game(GAME)


def lost_game():
    """The turns of a game of two that the first loses."""
    games = played_games(100, seed=2, side=7, num_snakes=2)
    fates = ((turns, [is_alive(snake) for snake in turns[-1].board["snakes"]]) for turns in games)
    return next(turns for turns, alive in fates if alive == [False, True] and len(turns) > 8)


def plays(url, turns):
    """What Arena's runner sends to the first snake."""
    requests = [
        request for request, _ in move_requests(turns, LADDERS_GAME) if request["you"]["id"] == "s0"
    ]
    with closing(Connection(url)) as connection:
        connection.exchange("POST", "start", requests[0], 5)
        for request in requests:
            assert connection.exchange("POST", "move", request, 5).status == 200
        connection.exchange("POST", "end", end_request(turns, LADDERS_GAME, "s0").request, 5)


def test_from_nothing_to_reading_a_lost_game_of_the_ladder(arena, capsys, monkeypatch, tmp_path):
    turns = lost_game()
    store = GameStore(f"sqlite:///{tmp_path}/outputs/games.db")
    arena.add_ladder("Standard")

    def typed(*words):
        code, out, err = run(capsys, *words)
        assert code == 0, (words, out, err)
        return out

    monkeypatch.setattr("sys.stdin", io.StringIO(f"{TOKEN}\n"))
    typed("arena", "login")
    with served(good_snake) as url:
        typed("arena", "enter", url, "--name", "s0", "--public", "--ladder", "Standard")
        assert "Standard: no rank yet" in typed("arena", "status")
    with running(create_app({"flood": agents.make("flood")}, store=store)) as url:
        plays(url, turns)
        assert store.flush(20)
    # The ladder keeps its game to itself, but for whoever knows its id.
    mine = next(iter(arena.snakes))
    frames = frames_of([turn.board for turn in turns])
    arena.add_game(
        frames,
        [mine, arena.add_snake("s1", owner="bob")],
        game_id=GAME,
        board="7x7",
        is_ladders=True,
    )
    (listed,) = json.loads(typed("arena", "games", "--lost", "--since", "12h", "--json"))
    assert (listed["id"], listed["source"]) == (GAME, "archive")
    assert "turns follow the rules" in typed("arena", "fetch", "--all", "--lost", "--since", "12h")
    report = typed("analyse", GAME, "--snake", "Snake s0", "--nodes", "200", "--jobs", "1")
    assert "cause: Snake s0 died" in report
    assert typed("replay", "show", f"outputs/arena-games/{GAME}.jsonl", "--turn", "5")
    store.close()
