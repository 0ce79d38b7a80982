"""A server that was asked to end answers on while it tells its proxy to move on."""

from __future__ import annotations

import http.client
import json
import os
import signal
from urllib.parse import urlsplit

import pytest

import agents
from serve.arena import create_app
from serve.background import Background
from serve.monitoring.draining import Draining
from serve.server import running
from tests.envs.battlesnake.positions import board
from tests.envs.battlesnake.webhook.test_requests import plain_request
from tests.waiting import until

CORNER = plain_request(board(7, 7, [(0, 0), (1, 0), (2, 0)], [(5, 5), (5, 4), (5, 3)]))


def status_of(url: str, method: str, path: str, body: object = None) -> int:
    connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=30)
    try:
        connection.request(
            method, path, body and json.dumps(body), {"Content-Type": "application/json"}
        )
        return connection.getresponse().status
    finally:
        connection.close()


def test_a_draining_server_takes_new_connections_and_says_that_it_ends_until_it_is_told_again() -> (
    None
):
    with Background("random", "--no-games", "--drain", "300") as server:
        assert status_of(server.url, "GET", "/health") == 200
        server._process.send_signal(signal.SIGTERM)
        until(lambda: status_of(server.url, "GET", "/health") == 503, seconds=30)
        assert status_of(server.url, "POST", "/move", CORNER) == 200
        # The server and its worker hear it, as from a terminal.
        for pid in server.pids():
            os.kill(pid, signal.SIGTERM)
        assert server._process.wait(60) == 0


def test_a_server_ends_by_itself_once_it_has_drained() -> None:
    with running(create_app(agents.make("random"), drain_s=0.5)) as url:
        assert status_of(url, "GET", "/health") == 200
    with pytest.raises(OSError, match="refused"):
        status_of(url, "GET", "/health")


def test_without_seconds_it_is_over_at_once() -> None:
    drained = Draining()
    assert not drained.has_begun
    drained.begin()
    assert drained.is_over
    slow = Draining(300)
    slow.begin()
    assert slow.has_begun
    assert not slow.is_over
    slow.begin()
    assert slow.is_over
