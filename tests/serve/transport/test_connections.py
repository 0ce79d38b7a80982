"""Requests that never become whole, that are none, and connections that nobody uses: none of them
keeps a thread or a place.
"""

from __future__ import annotations

import asyncio
import http.client
import json
import logging
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager, suppress
from itertools import count

import pytest
from flask import Flask, Response, request
from uvicorn.protocols.http import httptools_impl

import agents
from serve.arena import create_app
from serve.server import running
from serve.transport import connections, front
from serve.transport.connections import Connections
from serve.transport.exchange import Exchange
from serve.transport.request_body import MAX_OTHER_BYTES
from tests.envs.battlesnake.positions import board
from tests.envs.battlesnake.webhook.test_requests import plain_request

PATIENCE_S = 30
MOVE = json.dumps(
    plain_request(board(11, 11, [(0, 0), (1, 0), (2, 0)], [(5, 5), (5, 4), (5, 3)]))
).encode()
HEAD = b"POST /move HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
SLOW = {
    "silent": b"",
    "a byte": b"P",
    "blank lines": b"\r\n\r\n",
    "half a header": HEAD,
    "half a body": HEAD + b"Content-Length: 100\r\n\r\n{",
    "half a chunked body": HEAD + b"Transfer-Encoding: chunked\r\n\r\n5\r\n{",
    "half a second request": b"GET /health HTTP/1.1\r\nHost: x\r\n\r\nGET /health HT",
}


@contextmanager
def connected(url, text=b""):
    host, port = url.removeprefix("http://").split(":")
    with closing(socket.create_connection((host, int(port)), timeout=PATIENCE_S)) as client:
        client.sendall(text)
        yield client


def everything(client):
    """What comes until the server hangs up."""
    parts = []
    try:
        while part := client.recv(65536):
            parts.append(part)
    except ConnectionResetError:
        pass
    return b"".join(parts)


def await_text(client, text):
    """Receive until this text has come. An answer may come in several pieces."""
    received = b""
    while text not in received:
        part = client.recv(4096)
        assert part, received
        received += part


def ask(url, path="/health", body=None):
    """Status of an answer on a connection of its own."""
    connection = http.client.HTTPConnection(url.removeprefix("http://"), timeout=PATIENCE_S)
    try:
        connection.request("GET" if body is None else "POST", path, body)
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


@pytest.fixture(scope="module")
def snake():
    with running(create_app(agents.make("flood"))) as url:
        yield url


@pytest.mark.parametrize("kind", SLOW)
def test_a_request_that_does_not_become_whole_is_hung_up_on(kind, monkeypatch):
    monkeypatch.setattr(connections, "READ_S", 0.3)
    with running(create_app(agents.make("flood"))) as url, connected(url, SLOW[kind]) as client:
        assert b"408 Request Timeout" in everything(client)


def test_a_byte_at_a_time_does_not_buy_time(monkeypatch):
    monkeypatch.setattr(connections, "READ_S", 0.5)
    with running(create_app(agents.make("flood"))) as url, connected(url) as client:
        sent = 0
        with suppress(OSError):
            while sent < 200:
                client.sendall(HEAD[sent % len(HEAD) :][:1])
                sent += 1
                time.sleep(0.1)
        assert sent < 200


def test_more_slow_requests_than_threads_delay_nobody(monkeypatch):
    """If each half-sent request had a thread, all would be taken, and no answer would come for an
    hour.
    """
    monkeypatch.setattr(connections, "READ_S", 3600)
    monkeypatch.setattr(front, "THREADS", 64)
    with running(create_app(agents.make("flood"))) as url, ExitStack() as slow:
        for text in (SLOW["half a header"], SLOW["half a body"]) * front.THREADS:
            slow.enter_context(connected(url, text))
        assert ask(url, "/move", MOVE)[0] == 200


def test_hundreds_of_requests_that_wait_for_a_core_keep_no_other_from_a_thread():
    app = Flask("waits")
    release = threading.Event()
    app.config["MAX_CONTENT_LENGTH"] = 100
    app.get("/wait", endpoint="wait")(lambda: str(release.wait(2 * PATIENCE_S)))
    app.get("/", endpoint="other")(lambda: "at once")
    with running(app) as url, ExitStack() as waiting:
        for _ in range(220):
            waiting.enter_context(connected(url, b"GET /wait HTTP/1.1\r\nHost: x\r\n\r\n"))
        try:
            assert ask(url, "/") == (200, b"at once")
        finally:
            release.set()


class Known:
    """A connection as `Connections` sees it."""

    def __init__(self):
        self.is_open = True

    def hang_up(self):
        self.is_open = False


def test_no_more_connections_are_kept_open_than_there_are_files():
    resource = pytest.importorskip("resource", reason="Windows has no limit of files")
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    files = connections._RESERVED_FILES + 40
    resource.setrlimit(resource.RLIMIT_NOFILE, (files, before[1]))
    try:
        most = Connections(most=10_000).most
        raised, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        assert files < raised
        assert most == raised - connections._RESERVED_FILES
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


def test_of_one_address_the_quietest_gives_way():
    now = count()
    kept = Connections(per_address=3, clock=lambda: next(now))
    idle, busy, stranger, other, newcomer = (Known() for _ in range(5))
    kept.add(other, "b")
    for connection in (idle, busy):
        kept.add(connection, "a")
        kept.answering(connection)
    kept.idle(idle, "a")
    kept.add(stranger, "a")
    kept.add(newcomer, "a")
    assert [c.is_open for c in (idle, busy, stranger, other, newcomer)] == [
        True,
        True,
        False,
        True,
        True,
    ]
    kept.remove(stranger, "a")
    kept.answering(newcomer)
    last = Known()
    kept.add(last, "a")
    assert [c.is_open for c in (idle, busy, newcomer, last)] == [False, True, True, True]
    kept.remove(idle, "a")
    kept.answering(last)
    refused = Known()
    kept.add(refused, "a")
    assert [c.is_open for c in (busy, newcomer, last, refused)] == [True, True, True, False]


@pytest.mark.parametrize(("idle_for", "stranger_goes"), [(9.0, True), (11.0, False)])
def test_a_strangers_silence_counts_tenfold(idle_for, stranger_goes):
    """Many who ask and then stay do not push out one who has just connected and is about to ask."""
    times = {"now": 0.0}
    kept = Connections(per_address=2, clock=lambda: times["now"])
    idle = Known()
    stranger = Known()
    newcomer = Known()
    kept.add(idle, "a")
    kept.answering(idle)
    kept.idle(idle, "a")
    times["now"] = idle_for - 1.0
    kept.add(stranger, "a")
    times["now"] = idle_for
    kept.add(newcomer, "a")
    assert (stranger.is_open, idle.is_open) == (not stranger_goes, stranger_goes)


def test_in_all_there_are_no_more_than_fit():
    kept = Connections(most=10, per_address=100)
    made = [Known() for _ in range(30)]
    for number, connection in enumerate(made):
        kept.add(connection, str(number))
        for gone in [c for c in made[:number] if c.is_open is False]:
            kept.remove(gone, str(made.index(gone)))
            gone.is_open = None
        assert len(kept) <= 11
    assert [c.is_open for c in made[-10:]] == [True] * 10


def test_idle_connections_are_recycled_and_those_who_play_stay(monkeypatch):
    monkeypatch.setitem(connections.Connections.__init__.__kwdefaults__, "per_address", 20)
    with running(create_app(agents.make("flood"))) as url, ExitStack() as idle:
        player = http.client.HTTPConnection(url.removeprefix("http://"), timeout=PATIENCE_S)
        for _ in range(60):
            client = idle.enter_context(connected(url, b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n"))
            assert b"200" in client.recv(4096)
            player.request("POST", "/move", MOVE)
            answer = player.getresponse()
            assert answer.status == 200
            answer.read()
            assert player.sock is not None
        player.close()


def test_a_connection_that_is_owed_an_answer_stays(monkeypatch):
    """Of two requests in one packet the first is answered, and then somebody else connects."""
    monkeypatch.setitem(connections.Connections.__init__.__kwdefaults__, "per_address", 1)
    app = Flask("owes")
    app.config["MAX_CONTENT_LENGTH"] = 100
    release = threading.Event()
    app.get("/", endpoint="first")(lambda: "at once")
    app.get("/wait", endpoint="second")(lambda: f"waited: {release.wait(PATIENCE_S)}")
    both = b"".join(b"GET %b HTTP/1.1\r\nHost: x\r\n\r\n" % path for path in (b"/", b"/wait"))
    with running(app) as url, connected(url, both) as client:
        await_text(client, b"at once")
        with connected(url) as newcomer:
            assert everything(newcomer) == b""
        release.set()
        await_text(client, b"waited: True")


def test_a_network_of_ipv6_is_one_address(monkeypatch):
    """Whoever has one takes a new address of it for each connection."""
    monkeypatch.setitem(connections.Connections.__init__.__kwdefaults__, "per_address", 1)
    callers = iter([("2001:db8::1", 1), ("2001:db8::2", 2)])
    monkeypatch.setattr(httptools_impl, "get_remote_addr", lambda transport: next(callers))
    asked = b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n"
    with running(create_app(agents.make("flood"))) as url, connected(url, asked) as first:
        assert b"200" in first.recv(4096)
        with connected(url, asked) as second:
            assert b"200" in second.recv(4096)
            everything(first)  # ends: the first was hung up on


@pytest.mark.parametrize("kind", ["chunk", "header", "version", "nonsense"])
def test_what_is_no_http_gets_400_and_is_logged_once(kind, snake, caplog):
    text = {
        "chunk": HEAD + b"Transfer-Encoding: chunked\r\n\r\nxyz\r\n{}\r\n",
        "header": b"GET / HTTP/1.1\r\nHost x\r\n\r\n",
        "version": b"GET / HTTP/9.9\r\n\r\n",
        "nonsense": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
    }[kind]
    for _ in range(3):
        with connected(snake, text) as client:
            answer = everything(client)
        assert answer.startswith(b"HTTP/1.1 400 ")
        assert set(json.loads(answer.partition(b"\r\n\r\n")[2])) == {"error"}
    assert sum(record.levelno >= logging.WARNING for record in caplog.records) <= 1
    assert "Traceback" not in caplog.text
    assert ask(snake)[0] == 200


CHUNKED = HEAD + b"Transfer-Encoding: chunked\r\n\r\n"
LINE = b"X: " + b"x" * 4096 + b"\r\n"


@pytest.mark.parametrize(
    ("begin", "piece"),
    [(HEAD, LINE), (CHUNKED + b"0\r\n", LINE), (CHUNKED + b"2\r\n{}\r\n0\r\nX: ", b"x" * 4096)],
    ids=["headers", "trailers", "a trailer"],
)
def test_endless_headers_and_trailers_are_refused(snake, begin, piece):
    with connected(snake, begin) as client:
        with suppress(OSError):
            for _ in range(200):
                client.sendall(piece)
        assert b" 431 " in everything(client)[:20]


def test_endless_bodies_are_refused(snake):
    with connected(snake, CHUNKED) as client:
        sent = 0
        with suppress(OSError):
            while sent < 100 << 20:
                client.sendall(b"10000\r\n" + b" " * 0x10000 + b"\r\n")
                sent += 0x10000
        assert sent < 20 << 20


def test_trailers_are_no_headers_and_the_chunks_before_them_have_room():
    app = Flask("told")
    app.config["MAX_CONTENT_LENGTH"] = 1 << 20
    app.post("/move")(
        lambda: {"headers": list(request.headers.keys()), "length": len(request.get_data())}
    )
    with (
        running(app) as url,
        connected(url, CHUNKED.replace(b"Host: x", b"Host: x\r\nConnection: close")) as client,
    ):
        for _ in range(100):
            client.sendall(b"400\r\n")
            client.sendall(b" " * 0x400 + b"\r\n")
        client.sendall(b"0\r\nX-Forwarded-For: 10.0.0.1\r\n\r\n")
        told = json.loads(everything(client).partition(b"\r\n\r\n")[2])
    assert told["length"] == 100 * 0x400
    assert "Content-Type" in told["headers"]
    assert "X-Forwarded-For" not in told["headers"]


def test_requests_that_run_ahead_are_not_collected(snake):
    with connected(snake, b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n" * 5000) as client:
        assert everything(client).count(b"200 OK") < 100


def test_answers_do_not_wait_for_a_full_packet(monkeypatch):
    """Without TCP_NODELAY the second write of an answer waits 40 ms for the client's delayed
    acknowledgement.
    """
    seen = []
    complete = connections._Protocol.on_message_complete

    def look(self):
        seen.append(
            self.transport.get_extra_info("socket").getsockopt(
                socket.IPPROTO_TCP, socket.TCP_NODELAY
            )
        )
        complete(self)

    monkeypatch.setattr(connections._Protocol, "on_message_complete", look)
    with running(create_app(agents.make("flood"))) as url:
        assert ask(url)[0] == 200
    assert seen
    assert all(seen)


def test_whoever_leaves_an_answer_unread_is_given_up(monkeypatch):
    monkeypatch.setattr(connections, "WRITE_S", 0.3)
    is_gone = threading.Event()
    lose = connections._Protocol.connection_lost
    monkeypatch.setattr(
        connections._Protocol, "connection_lost", lambda *words: (lose(*words), is_gone.set())
    )
    app = Flask("large")
    app.config["MAX_CONTENT_LENGTH"] = 100
    app.get("/")(lambda: b"x" * (64 << 20))
    with running(app) as url, connected(url, b"GET / HTTP/1.1\r\nHost: x\r\n\r\n") as client:
        assert is_gone.wait(PATIENCE_S)
        assert len(everything(client)) < 64 << 20


def test_when_time_is_up_the_loop_answers_while_the_thread_still_works():
    app = Flask("slow")
    release = threading.Event()
    is_done = threading.Event()
    claimed = []
    app.config["MAX_CONTENT_LENGTH"] = 100

    @app.get("/")
    def slow() -> str:
        exchange = Exchange.of(request.environ)
        exchange.answer_at(time.monotonic() + 0.1, Response("the last word"))
        release.wait(PATIENCE_S)
        claimed.append(exchange.claim())
        is_done.set()
        return "too late"

    with running(app) as url:
        assert ask(url, "/") == (200, b"the last word")
        release.set()
        assert is_done.wait(PATIENCE_S)
    assert claimed == [False]


def test_an_answer_that_is_claimed_in_time_is_the_threads():
    app = Flask("quick")
    app.config["MAX_CONTENT_LENGTH"] = 100

    @app.get("/")
    def quick() -> str:
        exchange = Exchange.of(request.environ)
        assert exchange.claim()
        assert not exchange.claim()
        exchange.answer_at(time.monotonic(), Response("the last word"))
        time.sleep(0.2)
        return "in time"

    with running(app) as url, ThreadPoolExecutor(4) as pool:
        assert set(pool.map(lambda _: ask(url, "/"), range(8))) == {(200, b"in time")}


@pytest.mark.parametrize(
    ("held", "size", "is_taken"),
    [
        (1 / 4, MAX_OTHER_BYTES, True),
        (1 / 4, 1 << 20, False),
        (1 / 2, front.MAX_SMALL_BYTES, True),
        (1 / 2, MAX_OTHER_BYTES, False),
        (3 / 4, front.MAX_SMALL_BYTES, True),
        (1, 1 << 10, False),
    ],
)
def test_strangers_large_bodies_leave_room_for_moves(held, size, is_taken):
    """The more is held already, the smaller a body must be."""
    made = front.Front(create_app(agents.make("flood")))
    made._held = int(held * front.MAX_HELD_BYTES)

    async def receive():
        return {"type": "http.request", "body": b"x" * size, "more_body": False}

    try:
        assert asyncio.run(made._read(bytearray(), receive)) == (size if is_taken else -1)
    finally:
        made.close()


def test_all_connections_together_leave_room_for_a_move():
    """Bodies of any size fill half of the room at most; what may go beyond that is small."""
    assert connections.MAX_CONNECTIONS * front.MAX_SMALL_BYTES <= front.MAX_HELD_BYTES // 2
