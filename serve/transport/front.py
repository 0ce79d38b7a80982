"""Puts the application behind an event loop, which reads a request whole before it takes a thread
for it.

The loop also has the last word. What works on a request may leave an answer with it
(`PendingReply.at`) for the moment when time is up; that answer then goes out from the loop,
whatever the threads are doing."""

from __future__ import annotations

import asyncio
import io
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from flask import Flask
from werkzeug.wrappers import Response

from serve.arena import ARRIVED, REPLY
from serve.browser.viewer.spectators import MAX_SPECTATORS, SPECTATE, Spectator
from serve.transport.request_body import MAX_OTHER_BYTES
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


class PendingReply:
    """The one answer to a request. Whoever claims it first gives it: the thread at work, or the
    loop when time is up.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self.answer = loop.create_future()
        self._unclaimed = threading.Lock()

    def at(self, due: float, answer: Response) -> None:
        """Have the loop give this answer at `due`, by `time.monotonic()`, unless somebody claims it
        before.

        Any thread may call this.
        """
        self._loop.call_soon_threadsafe(self._loop.call_at, due, self._time_is_up, answer)

    def claim(self) -> bool:
        """Whether the caller is to answer. It is True once."""
        return self._unclaimed.acquire(blocking=False)

    def give(self, answer: Response | None, error: BaseException | None = None) -> None:
        """Give the thread's answer, or the reason why there is none. It is dropped if time was up
        before.

        Any thread may call this.
        """
        self._loop.call_soon_threadsafe(self._settle, answer, error)

    def _time_is_up(self, answer: Response) -> None:
        if self.claim():
            self._settle(answer, None)

    def _settle(self, answer: Response | None, error: BaseException | None) -> None:
        if not self.answer.done():
            self.answer.set_exception(error) if error else self.answer.set_result(answer)


class Front:
    """An ASGI application that answers with a Flask one on `THREADS` threads. Spectators have
    threads of their own.
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
                answer = await self._work(_environ(scope, bytes(body), length)).answer
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

    def _work(self, environ: dict[str, Any]) -> PendingReply:
        reply = PendingReply(asyncio.get_running_loop())
        environ[REPLY] = reply
        environ["REMOTE_ADDR"] = self._proxies.caller(
            environ["REMOTE_ADDR"], environ.get("HTTP_X_FORWARDED_FOR", "")
        )
        self._threads.submit(self._call, environ, reply)
        return reply

    def _call(self, environ: dict[str, Any], reply: PendingReply) -> None:
        try:
            reply.give(Response.from_app(self._app, environ, buffered=True))
        except BaseException as error:
            reply.give(None, error)

    async def _spectate(self, scope: Message, receive: Receive, send: Send) -> None:
        """The application says who may watch, and what; a spectator's events then come from a
        thread of its own.
        """
        environ = _environ({**scope, "method": "GET"}, b"", 0)
        spectator = environ[SPECTATE] = Spectator(asyncio.get_running_loop(), self._shows)
        answer = await self._work(environ).answer
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
    return MAX_HELD_BYTES // (2 if size <= MAX_OTHER_BYTES else 4)


def _environ(scope: Message, body: bytes, length: int) -> dict[str, Any]:
    """The request as WSGI (PEP 3333) tells it. `body` may be cut, `length` is what came."""
    host, port = scope["server"] or ("localhost", 80)
    environ: dict[str, Any] = {
        "REQUEST_METHOD": scope["method"],
        "SCRIPT_NAME": "",
        "PATH_INFO": scope["path"].encode("utf-8", "surrogateescape").decode("latin-1"),
        "QUERY_STRING": scope["query_string"].decode("latin-1"),
        "SERVER_NAME": host,
        "SERVER_PORT": str(port),
        "SERVER_PROTOCOL": f"HTTP/{scope['http_version']}",
        "REMOTE_ADDR": scope["client"][0] if scope["client"] else "",
        "wsgi.version": (1, 0),
        "wsgi.url_scheme": "http",
        "wsgi.input": io.BytesIO(body),
        "wsgi.errors": sys.stderr,
        "wsgi.multithread": True,
        "wsgi.multiprocess": False,
        "wsgi.run_once": False,
        ARRIVED: time.monotonic(),
        SPECTATE: None,
    }
    for name, value in _wsgi_headers(scope["headers"]):
        environ[name] = f"{environ[name]},{value}" if name in environ else value
    environ["CONTENT_LENGTH"] = str(length)
    return environ


def _wsgi_headers(headers: list[tuple[bytes, bytes]]) -> Iterator[tuple[str, str]]:
    for name, value in headers:
        # In WSGI "a_b" and "a-b" look the same, and a proxy vouches for one of them only.
        if b"_" not in name and name not in (b"content-length", b"transfer-encoding"):
            key = name.decode("latin-1").upper().replace("-", "_")
            yield key if key == "CONTENT_TYPE" else f"HTTP_{key}", value.decode("latin-1")


def _headers(answer: Response) -> list[tuple[bytes, bytes]]:
    return [
        (name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in answer.headers
    ]


def _plain(status: int, reason: str) -> Response:
    """A refusal after which the connection ends, because of what may still come on it."""
    answer = Response(f'{{"error": "{reason}"}}', status, content_type="application/json")
    answer.headers["Connection"] = "close"
    return answer
