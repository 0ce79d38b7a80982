"""What a server that is killed outright has kept."""

from __future__ import annotations

import http.client
import json
import os
import random
import signal
import threading
import time
from contextlib import suppress
from urllib.parse import urlsplit

import pytest

from serve.archive.store import GameArchive
from serve.background import Background
from tests.serve.archive.played import play


def told(url, events):
    """Tell a server these events as fast as it answers; the number of moves."""
    connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=60)
    moves = 0
    for kind, body, _ in events:
        connection.request(
            "POST", f"/{kind}", json.dumps(body), {"Content-Type": "application/json"}
        )
        answer = connection.getresponse()
        answer.read()
        assert answer.status == 200
        moves += kind == "move"
    connection.close()
    return moves


def kill(server):
    """SIGKILL to all its processes, those that hold turns first."""
    for pid in reversed(server.pids()):
        os.kill(pid, signal.SIGKILL)
    server._process.wait()


def test_an_end_that_was_answered_outlives_a_kill(tmp_path):
    url = f"sqlite:///{tmp_path}/games.db"
    game = play(seed=0, agent="flood", side=11)
    with Background("random", "--database", url) as server:
        moves = told(server.url, game.events(0))
        kill(server)
    archive = GameArchive(url)
    assert archive.game(game.game_id, "random")["ended"]
    assert [turn["turn"] for turn in archive.turns(game.game_id, "random") if turn["move"]] == list(
        range(moves)
    )
    archive.close()


def test_turns_that_were_answered_a_while_ago_outlive_a_kill(tmp_path):
    url = f"sqlite:///{tmp_path}/games.db"
    game = play(seed=1, agent="flood", side=11)
    with Background("random", "--database", url) as server:
        moves = told(server.url, list(game.events(0))[:-1])
        time.sleep(2)  # promised is a tenth of a second, on a machine that isn't busy
        kill(server)
    archive = GameArchive(url)
    assert len(archive.turns(game.game_id, "random")) == moves
    archive.close()


def moves_until_killed(url, game, answered):
    """Tell the moves of a game, 20 a second at most; `answered` gets when each was answered, by its
    turn.
    """
    connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=60)
    with suppress(OSError, http.client.HTTPException):  # It was killed.
        for kind, body, _ in game.events(0):
            if kind == "end":
                break
            connection.request(
                "POST", f"/{kind}", json.dumps(body), {"Content-Type": "application/json"}
            )
            connection.getresponse().read()
            if kind == "move":
                answered[body["turn"]] = time.monotonic()
            time.sleep(0.05)
    connection.close()


@pytest.mark.long
@pytest.mark.parametrize("seed", range(5))
def test_what_a_kill_at_any_moment_costs_is_the_newest_turns_alone(tmp_path, seed):
    """Four games at once, killed at a random moment. How long before the lost turns were answered
    is printed, not judged.
    """
    url = f"sqlite:///{tmp_path}/games.db"
    games = [play(seed=10 * seed + k, agent="flood", side=11) for k in range(4)]
    answered = [{} for _ in games]
    with Background("random", "--database", url) as server:
        players = [
            threading.Thread(target=moves_until_killed, args=(server.url, game, seen))
            for game, seen in zip(games, answered, strict=True)
        ]
        for player in players:
            player.start()
        time.sleep(random.Random(seed).uniform(1.0, 3.0))
        killed = time.monotonic()
        kill(server)
        for player in players:
            player.join()
    archive = GameArchive(url)
    ages = []
    for game, seen in zip(games, answered, strict=True):
        told = sorted(turn for turn, at in seen.items() if at < killed)
        kept = {turn["turn"] for turn in archive.turns(game.game_id, "random") if turn["move"]}
        lost = [turn for turn in told if turn not in kept]
        assert lost == told[len(told) - len(lost) :]
        ages += [1000 * (killed - seen[turn]) for turn in lost]
    archive.close()
    print(
        f"lost {len(ages)} of {sum(map(len, answered))} turns, the oldest answered"
        f" {max(ages, default=0):.0f} ms before"
    )
