"""Puts the application behind an event loop, which reads a whole request before it uses a thread.

The loop also answers when time is up: a thread may leave an answer with it
(`Exchange.answer_at`), which the loop then sends, whatever the threads are doing."""

from __future__ import annotations

import asyncio
import io
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from flask import Flask
from werkzeug.wrappers import Response

from serve.transport.exchange import Exchange
from serve.transport.request_body import MAX_OTHER_BYTES
from serve.transport.spectators import MAX_SPECTATORS, Spectator
from serve.transport.trusted_proxies import TRUSTED_PROXIES, TrustedProxies

THREADS = 512
"""How many requests are worked on at a time.

Most of them only wait for a core or for an agent, some for a second. So there are many: whoever
finds no thread is late. A thread that waits costs little memory. """
MAX_HELD_BYTES = 128 << 20
"""How many bytes of bodies may be held at a time, over all requests that are being read or
answered.

Bodies of more than `MAX_SMALL_BYTES` may fill half of it, and those of more than `MAX_OTHER_BYTES`
a quarter. The other half has room for a small body on each connection that may be open. So
strangers' large bodies can't keep out moves, which are small unless hazards are stacked. """
MAX_SMALL_BYTES = 32 << 10

Message = dict[str, Any]
Receive = Callable[[], Any]
Send = Callable[[Message], Any]


class Front:
    """An ASGI application that runs a Flask one on `THREADS` threads. Spectators have their own
    threads.
    """

    def __init__(self, app: Flask) -> None:
        self._app = app
        self._limit = app.config["MAX_CONTENT_LENGTH"]
        self._held = 0
        self._proxies = app.extensions.get(TRUSTED_PROXIES, TrustedProxies())
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="request")
        self._shows = ThreadPoolExecutor(MAX_SPECTATORS, thread_name_prefix="spectator")

    def close(self) -> None:
        """End the threads."""
        self._threads.shutdown(wait=False)
        self._shows.shutdown(wait=False)

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket":
            await self._spectate(scope, receive, send)
        else:
            await self._answer(scope, receive, send)

    async def _answer(self, scope: Message, receive: Receive, send: Send) -> None:
        """Read a request whole, have a thread answer it, and send the answer."""
        body = bytearray()
        try:
            length = await self._read(body, receive)
            if length is None:
                return
            if length < 0:
                answer = _plain(503, "too much is being sent to this server at the moment")
            elif length > 2 * self._limit:
                answer = _plain(413, "the body is too large")
            else:
                exchange = Exchange(asyncio.get_running_loop(), arrived=time.monotonic())
                self._begin_work(_environ(scope, bytes(body), length), exchange)
                answer = await exchange.answer
        finally:
            self._held -= len(body)
        await send(
            {
                "type": "http.response.start",
                "status": answer.status_code,
                "headers": _headers(answer),
            }
        )
        await send({"type": "http.response.body", "body": answer.get_data()})

    async def _read(self, body: bytearray, receive: Receive) -> int | None:
        """Read the body and return its length. No more is kept than the application takes.

        None: the client left. -1: there is no room for it.
        """
        length = 0
        more = True
        while more:
            message = await receive()
            if message["type"] != "http.request":
                return None
            part = message["body"]
            more = message["more_body"]
            length += len(part)
            part = part[: max(0, self._limit + 1 - len(body))]
            body += part
            self._held += len(part)
            if length > 2 * self._limit:
                break
            if self._held > _room(len(body)):
                return -1
        return length

    def _begin_work(self, environ: dict[str, Any], exchange: Exchange) -> None:
        """Have a thread work out the exchange's answer."""
        exchange.attach(environ)
        environ["REMOTE_ADDR"] = self._proxies.caller(
            environ["REMOTE_ADDR"], environ.get("HTTP_X_FORWARDED_FOR", "")
        )
        self._threads.submit(self._call, environ, exchange)

    def _call(self, environ: dict[str, Any], exchange: Exchange) -> None:
        try:
            exchange.give(Response.from_app(self._app, environ, buffered=True))
        except BaseException as error:
            exchange.fail(error)

    async def _spectate(self, scope: Message, receive: Receive, send: Send) -> None:
        """Ask the application whether this spectator may watch, and what. Then send it those
        events, which come from a thread of its own.
        """
        loop = asyncio.get_running_loop()
        spectator = Spectator(loop, self._shows)
        exchange = Exchange(loop, arrived=time.monotonic(), spectator=spectator)
        self._begin_work(_environ({**scope, "method": "GET"}, b"", 0), exchange)
        answer = await exchange.answer
        if spectator.events is not None:
            await spectator.watch(receive, send)
            return
        await send(
            {
                "type": "websocket.http.response.start",
                "status": answer.status_code,
                "headers": _headers(answer),
            }
        )
        await send({"type": "websocket.http.response.body", "body": answer.get_data()})


def _room(size: int) -> int:
    """How many bytes may be held in all when a body of this size is among them."""
    if size <= MAX_SMALL_BYTES:
        return MAX_HELD_BYTES
    if size <= MAX_OTHER_BYTES:
        return MAX_HELD_BYTES // 2
    return MAX_HELD_BYTES // 4


def _environ(scope: Message, body: bytes, length: int) -> dict[str, Any]:
    """The request as WSGI (PEP 3333) tells it. `body` may be cut, `length` is what came."""
    host, port = scope["server"] or ("localhost", 80)
    client = scope["client"] or ("", 0)
    environ: dict[str, Any] = {
        "REQUEST_METHOD": scope["method"],
        "SCRIPT_NAME": "",
        "PATH_INFO": scope["path"].encode("utf-8", "surrogateescape").decode("latin-1"),
        "QUERY_STRING": scope["query_string"].decode("latin-1"),
        "SERVER_NAME": host,
        "SERVER_PORT": str(port),
        "SERVER_PROTOCOL": f"HTTP/{scope['http_version']}",
        "REMOTE_ADDR": client[0],
        "wsgi.version": (1, 0),
        "wsgi.url_scheme": "http",
        "wsgi.input": io.BytesIO(body),
        "wsgi.errors": sys.stderr,
        "wsgi.multithread": True,
        "wsgi.multiprocess": False,
        "wsgi.run_once": False,
    }
    for name, value in _wsgi_headers(scope["headers"]):
        if name in environ:
            value = f"{environ[name]},{value}"
        environ[name] = value
    environ["CONTENT_LENGTH"] = str(length)
    return environ


def _wsgi_headers(headers: list[tuple[bytes, bytes]]) -> Iterator[tuple[str, str]]:
    for name, value in headers:
        # In WSGI "a_b" and "a-b" look the same, and a proxy vouches for one of them only.
        if b"_" not in name and name not in (b"content-length", b"transfer-encoding"):
            key = name.decode("latin-1").upper().replace("-", "_")
            if key != "CONTENT_TYPE":
                key = f"HTTP_{key}"
            yield key, value.decode("latin-1")


def _headers(answer: Response) -> list[tuple[bytes, bytes]]:
    return [
        (name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in answer.headers
    ]


def _plain(status: int, reason: str) -> Response:
    """A refusal after which the connection ends, because of what may still come on it."""
    answer = Response(f'{{"error": "{reason}"}}', status, content_type="application/json")
    answer.headers["Connection"] = "close"
    return answer
