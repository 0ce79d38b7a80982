"""Packets made to be costly, and WebSockets that nobody counts: what one caller sends keeps the
event loop from nobody else.
"""

from __future__ import annotations

import base64
import time
from contextlib import ExitStack, suppress

import pytest

import agents
from serve.arena import create_app
from serve.server import running
from serve.transport import connections
from serve.transport.connections import MAX_ADDRESS_BYTES, MAX_HEADERS, MAX_HEARD_AT_ONCE
from tests.serve.agents import Raises
from tests.serve.archive.played import play, tell
from tests.serve.transport.test_connections import ask, connected, everything
from tests.waiting import until

LINE = b"GET / HTTP/1.1\r\nHost: x\r\n"
OFFER = (
    b"GET /games/%b/events HTTP/1.1\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
    b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: " + base64.b64encode(bytes(16)) + b"\r\n"
)
MASKED_PING = b"\x89\x80" + bytes(4)


@pytest.fixture(scope="module")
def snake():
    with running(create_app(agents.make("flood"))) as url:
        yield url


@pytest.fixture
def live_game(store):
    """URL of a server, and a request for the WebSocket of a game there that goes on."""
    played = play(seed=1)
    for event in list(played.events(0))[:2]:
        tell(store, "raises", event)
    assert store.flush()
    with running(create_app({"raises": Raises()}, store=store)) as url:
        host = url.removeprefix("http://").encode()
        yield url, OFFER % played.game_id.encode() + b"Host: %b\r\n\r\n" % host


def test_requests_that_run_ahead_are_not_even_parsed(snake, monkeypatch):
    begun = []
    begin = connections._Protocol.on_message_begin
    monkeypatch.setattr(
        connections._Protocol, "on_message_begin", lambda self: (begun.append(self), begin(self))[1]
    )
    with connected(snake, b"GET / HTTP/1.1\r\n\r\n" * 13_000) as client:
        everything(client)
    assert 1 <= len(begun) <= 2 * connections.MAX_PIPELINED
    assert ask(snake)[0] == 200


@pytest.mark.parametrize(
    "head",
    [
        LINE + b"Accept: " + b"text/html;q=0.5," * 4000 + b"\r\n",
        LINE + b"Accept: " + b"text/html;q=0.5," * 4000,
        LINE + b"x" * 60_000,
        LINE + b"a: \r\n" * (MAX_HEADERS + 1),
        b"GET /" + b"x" * MAX_ADDRESS_BYTES + b" HTTP/1.1\r\n",
    ],
    ids=["one packet", "half a header", "half a name", "many headers", "address"],
)
def test_a_large_head_is_refused_in_whatever_pieces_it_comes(snake, head):
    for pieces in (
        [head + b"\r\n"],
        [head[start : start + 5000] for start in range(0, len(head) + 1, 5000)],
    ):
        with connected(snake) as client:
            with suppress(OSError):
                for piece in pieces:
                    client.sendall(piece)
            # Whoever goes on sending after the refusal may not get to read it.
            assert everything(client)[:13] in (b"", b"HTTP/1.1 431 ")


def test_a_head_as_large_as_may_be_is_read(snake):
    names = b"".join(b"x-%d: %b\r\n" % (number, b"v" * 150) for number in range(MAX_HEADERS - 2))
    with connected(snake, LINE + names + b"Connection: close\r\n\r\n") as client:
        assert everything(client).startswith(b"HTTP/1.1 200 ")


@pytest.mark.parametrize(
    "header",
    [
        b"Host: \xff\r\n",
        b"Host: xn--\xff\r\n",
        b"Host: xn--999999b\r\n",
        b"Host: xn--" + b"9" * 9000 + b"\r\n",
        b"Host: x\r\nSec-WebSocket-Protocol: \xff\r\n",
        b"Host: x\r\nSec-WebSocket-Extensions: permessage-deflate; \xe9\r\n",
        b"Host: x\r\nHost: y\r\n",
        b"",
    ],
)
def test_a_malformed_request_for_a_websocket_is_refused_and_leaves_nothing(header, caplog):
    with running(create_app(agents.make("flood"))) as url:
        for _ in range(3):
            with connected(url, OFFER % b"x" + header + b"\r\n") as client:
                assert everything(client).startswith(b"HTTP/1.1 400 ")
        assert ask(url)[0] == 200
        began = time.monotonic()
    # A connection that uvicorn can't forget would be waited for until `STOP_S`, or `running` would
    # give up after 5 s.
    assert time.monotonic() - began < 4
    assert "Traceback" not in caplog.text


def test_websockets_are_counted(live_game, monkeypatch):
    url, offer = live_game
    monkeypatch.setattr(connections, "MAX_WEB_SOCKETS", 2)
    with ExitStack() as watching:
        for _ in range(2):
            assert (
                watching.enter_context(connected(url, offer))
                .recv(4096)
                .startswith(b"HTTP/1.1 101 ")
            )
        with connected(url, offer) as third:
            assert everything(third).startswith(b"HTTP/1.1 503 ")

    def has_room():
        with connected(url, offer) as client:
            return client.recv(4096).startswith(b"HTTP/1.1 101 ")

    until(has_room)


def test_a_websocket_goes_on_counting_as_a_connection(monkeypatch, request):
    monkeypatch.setitem(connections.Connections.__init__.__kwdefaults__, "per_address", 1)
    url, offer = request.getfixturevalue("live_game")
    with connected(url, offer) as watching:
        assert watching.recv(4096).startswith(b"HTTP/1.1 101 ")
        with connected(url) as newcomer:
            assert everything(newcomer) == b""


@pytest.mark.parametrize("sent", [MASKED_PING * 40_000, MASKED_PING * (MAX_HEARD_AT_ONCE // 6 + 1)])
def test_a_spectator_who_talks_is_hung_up_on(live_game, sent):
    url, offer = live_game
    with connected(url, offer) as client:
        assert client.recv(4096).startswith(b"HTTP/1.1 101 ")
        client.sendall(sent)
        assert everything(client).count(b"\x8a\x00") <= MAX_HEARD_AT_ONCE // 6
    assert ask(url)[0] == 200
