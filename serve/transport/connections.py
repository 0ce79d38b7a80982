"""Limits connections before they use a thread: who may keep one open, and how long and how large a
request may be.

uvicorn parses requests; this module adds the limits that it lacks. A request must be whole, headers
and body, `READ_S` seconds after its first byte (or after the connection was made). When too many
connections are open, the one that has been quiet the longest is closed for the newcomer. The
silence of one that never completed a request counts tenfold. One that is being answered, or that is
a WebSocket, is never closed; WebSockets are few.

Exceeding a limit ends the parsing at once; the rest of the packet is ignored.
"""

from __future__ import annotations

import asyncio
import json
import logging
import socket
import time
from collections import Counter, OrderedDict
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol
from uvicorn.protocols.websockets.wsproto_impl import WSProtocol

from serve.monitoring.logs import Seldom
from serve.transport.rate_limit import caller_of
from serve.transport.trusted_proxies import TrustedProxies

try:
    import resource
except ImportError:  # Windows has no such limits.
    resource = None  # type: ignore[assignment]

READ_S = 5.0
"""How many seconds a request may take to arrive, headers and body."""
WRITE_S = 5.0
"""How many seconds a client may leave an answer unread that doesn't fit into the buffers between
us.
"""
MAX_CONNECTIONS = 2048
MAX_PER_ADDRESS = 1024
MAX_HEAD_BYTES = 16 << 10
MAX_HEADERS = 100
"""How large a request's line and headers may be together, and how many headers there may be; the
same for trailers.
"""
MAX_ADDRESS_BYTES = 4 << 10
MAX_PIPELINED = 8
MAX_WEB_SOCKETS = 32
"""How many WebSockets one process keeps open. More of them than there are places for spectators are
told so, and closed.
"""
MAX_HEARD_AT_ONCE = 2 << 10
MAX_HEARD = 64 << 10
"""How many bytes a spectator may send at once, and in all: it has nothing to say but that it is
there, or that it leaves.
"""
_FED_AT_ONCE = 16 << 10
_LONGEST_HOST = len(":65535") + 253
_RESERVED_FILES = 200
_STRANGERS_IMPATIENCE = 10
"""How many seconds of an idle player's silence weigh as much as one of somebody who never completed
a request.
"""


log = logging.getLogger(__name__)
_seldom = Seldom()


class _Quiet(NamedTuple):
    address: str
    since: float


class Connections:
    """The connections of one process: at most `most` in all and `per_address` of one address.
    `clock` counts seconds.

    Addresses are those that `caller_of` gives. Those of `proxies` are "" and may have as many
    connections as there are."""

    def __init__(
        self,
        *,
        most: int = MAX_CONNECTIONS,
        per_address: int = MAX_PER_ADDRESS,
        proxies: TrustedProxies | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._proxies = proxies or TrustedProxies()
        self.most = min(most, _files() - _RESERVED_FILES)
        self.per_address = per_address
        self.web_sockets = 0
        self._counts: Counter[str] = Counter()
        self._strangers: OrderedDict[_Protocol, _Quiet] = OrderedDict()
        self._idle: OrderedDict[_Protocol, _Quiet] = OrderedDict()
        self._clock = clock

    def __len__(self) -> int:
        return self._counts.total()

    def address_of(self, client: tuple[str, int] | None) -> str:
        """Return the address by which a client's connections are counted."""
        if client is None or client[0] in self._proxies:
            return ""
        return caller_of(client[0])

    def add(self, connection: _Protocol, address: str) -> None:
        """Add a new connection. If there are too many, another is closed, or this one if all others
        are being answered.
        """
        self._counts[address] += 1
        self._strangers[connection] = _Quiet(address, self._clock())
        if address and self._counts[address] > self.per_address:
            self._quietest(connection, address).hang_up()
        elif len(self) > self.most:
            self._quietest(connection, None).hang_up()

    def answering(self, connection: _Protocol) -> None:
        """Note that a connection's request is complete."""
        self._strangers.pop(connection, None)
        self._idle.pop(connection, None)

    def idle(self, connection: _Protocol, address: str) -> None:
        """Note that a connection's request was answered."""
        self._idle[connection] = _Quiet(address, self._clock())

    def remove(self, connection: _Protocol, address: str) -> None:
        """Remove a connection that was closed, or that is no longer HTTP."""
        self.answering(connection)
        self._counts[address] -= 1
        if not self._counts[address]:
            del self._counts[address]

    def _quietest(self, newcomer: _Protocol, address: str | None) -> _Protocol:
        now = self._clock()
        weight = 0.0
        quietest = newcomer
        for connections, impatience in ((self._strangers, _STRANGERS_IMPATIENCE), (self._idle, 1)):
            for connection, quiet in connections.items():
                if connection is not newcomer and address in (None, quiet.address):
                    if impatience * (now - quiet.since) > weight:
                        weight = impatience * (now - quiet.since)
                        quietest = connection
                    break
        return quietest


class _WriteDeadline:
    """Gives up a client that leaves its answer unread."""

    transport: asyncio.Transport
    loop: asyncio.AbstractEventLoop
    _unread: asyncio.TimerHandle | None = None

    def pause_writing(self) -> None:
        self._unread = self.loop.call_later(WRITE_S, self.transport.abort)
        super().pause_writing()  # type: ignore[misc]

    def resume_writing(self) -> None:
        self._taken()
        super().resume_writing()  # type: ignore[misc]

    def connection_lost(self, exc: Exception | None) -> None:
        self._taken()
        super().connection_lost(exc)  # type: ignore[misc]

    def _taken(self) -> None:
        if self._unread is not None:
            self._unread.cancel()
            self._unread = None


class _WebSocket(_WriteDeadline, WSProtocol):
    """A spectator's connection after the handshake. `on_lost` is called when it has ended."""

    def __init__(self, *args: Any, on_lost: Callable[[], None], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._on_lost = on_lost
        self._heard = 0

    def begin(self, request_head: bytes) -> None:
        """Read the request for the WebSocket, which was parsed before. A fault in it ends this
        connection and nothing else.
        """
        try:
            super().data_received(request_head)
        except Exception as error:
            if _seldom.allows(type(error).__name__):
                log.warning("a request for a WebSocket can't be read: %s", type(error).__name__)
            self.transport.abort()

    def data_received(self, data: bytes) -> None:
        self._heard += len(data)
        if len(data) > MAX_HEARD_AT_ONCE or self._heard > MAX_HEARD:
            self.transport.abort()
            return
        super().data_received(data)

    def connection_lost(self, exc: Exception | None) -> None:
        self._on_lost()
        super().connection_lost(exc)


class _Refusal(Exception):
    """Ends the parsing of what came, after which the connection is closed."""


class _Head:
    """A request's line and headers, or the trailers behind its chunks, while they arrive.

    `field_bytes` counts whole headers. `piece_bytes` counts the pieces that came after the one in
    which the head began."""

    def __init__(self, *, is_trailer: bool = False) -> None:
        self.address_bytes = 0
        self.field_bytes = 0
        self.piece_bytes = 0
        self.headers = 0
        self.is_trailer = is_trailer

    def add_address(self, size: int) -> None:
        """Count a part of the address. Raises `_Refusal` if the head is too large."""
        self.address_bytes += size
        self._check()

    def add_header(self, size: int) -> None:
        """Count a whole header. Raises `_Refusal` if the head is too large."""
        self.headers += 1
        self.field_bytes += size
        self._check()

    @property
    def is_too_large(self) -> bool:
        size = max(self.address_bytes + self.field_bytes, self.piece_bytes)
        return (
            size > MAX_HEAD_BYTES
            or self.headers > MAX_HEADERS
            or self.address_bytes > MAX_ADDRESS_BYTES
        )

    def _check(self) -> None:
        if self.is_too_large:
            raise _Refusal


class _Protocol(_WriteDeadline, HttpToolsProtocol):
    """One connection. `connections` is shared by all of a server."""

    def __init__(self, *args: Any, connections: Connections, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._connections = connections
        self._is_counted = False
        self._address = ""
        self._deadline: asyncio.TimerHandle | None = None
        self._head: _Head | None = _Head()
        self._unanswered = 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        # An answer is two writes; asyncio sees to it only where the listening socket's protocol is
        # named, gunicorn's isn't.
        transport.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._is_counted = True
        self._address = self._connections.address_of(self.client)
        self._begin_reading()
        self._connections.add(self, self._address)

    def connection_lost(self, exc: Exception | None) -> None:
        self._end_reading()
        self._uncount()
        super().connection_lost(exc)

    def hang_up(self) -> None:
        """Close this connection to make room for another one."""
        self._uncount()
        self.transport.abort()

    def handle_websocket_upgrade(self) -> None:
        self._end_reading()
        if not _can_be_upgraded(self.headers):
            self._refuse(400, "this is not a WebSocket request as in RFC 6455")
        elif self._connections.web_sockets >= MAX_WEB_SOCKETS:
            self._refuse(503, "too many people are watching")
        else:
            self._become_web_socket()

    def _become_web_socket(self) -> None:
        """Hand the connection over to a WebSocket, which goes on being counted as a connection."""
        self._connections.answering(self)
        self._connections.web_sockets += 1
        self.connections.discard(self)
        lines = [b"%b %b HTTP/1.1" % (self.scope["method"].encode(), self.url)]
        lines += [b"%b: %b" % header for header in self.headers]
        web_socket = _WebSocket(
            self.config, self.server_state, self.app_state, on_lost=self._web_socket_lost
        )
        web_socket.connection_made(self.transport)
        self.transport.set_protocol(web_socket)
        web_socket.begin(b"\r\n".join([*lines, b"", b""]))

    def _web_socket_lost(self) -> None:
        self._connections.web_sockets -= 1
        self._uncount()

    def data_received(self, data: bytes) -> None:
        # Limits are looked at between these pieces, and what comes behind a request for a WebSocket
        # is dropped.
        for start in range(0, len(data), _FED_AT_ONCE):
            if self.transport.is_closing() or self.transport.get_protocol() is not self:
                return
            self._piece_received(data[start : start + _FED_AT_ONCE])

    def _piece_received(self, piece: bytes) -> None:
        if self._deadline is None and not self._unanswered:
            self._begin_reading()
        head = self._head
        super().data_received(piece)
        if head is not None and head is self._head:
            head.piece_bytes += len(piece)
            if head.is_too_large:
                self._refuse_head()

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._head = _Head()
        if self._deadline is None:
            self._begin_reading()

    def on_url(self, url: bytes) -> None:
        if self._head is not None:
            self._head.add_address(len(url))
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        head = self._head
        if head is not None:
            head.add_header(len(name) + len(value))
        # uvicorn would add a trailer to the headers, and keep it while the request is answered.
        if head is not None and not head.is_trailer:
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        self._head = None
        self._unanswered += 1
        super().on_headers_complete()
        if len(self.pipeline) > MAX_PIPELINED:
            self.transport.abort()
            raise _Refusal

    def on_chunk_header(self) -> None:
        """Expect trailers: the last chunk has no body, and nothing else tells that it is the
        last.
        """
        self._head = _Head(is_trailer=True)

    def on_body(self, body: bytes) -> None:
        self._head = None
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._head = None
        super().on_message_complete()
        self._end_reading()
        self._connections.answering(self)
        if not self._unanswered:
            self._connections.idle(self, self._address)

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._unanswered -= 1
        if not self._unanswered and self._is_counted:
            self._connections.idle(self, self._address)

    def send_400_response(self, msg: str) -> None:
        """Answer what can't be parsed, and what was refused while it was parsed."""
        if self._head is not None and self._head.is_too_large:
            self._refuse_head()
        else:
            self._refuse(400, "this is not HTTP as RFC 9112 has it")

    def _refuse_head(self) -> None:
        self._refuse(431, "the request's headers or trailers are too large, or too many")

    def _begin_reading(self) -> None:
        self._deadline = self.loop.call_later(READ_S, self._too_slow)

    def _end_reading(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _too_slow(self) -> None:
        self._refuse(408, f"the request was not complete after {READ_S:g} seconds")

    def _refuse(self, status: int, reason: str) -> None:
        """Say why, unless an answer has begun, and close."""
        if self.transport.is_closing():
            return
        if self.cycle is None or self.cycle.response_complete or not self.cycle.response_started:
            text = json.dumps({"error": reason}).encode()
            head = (
                b"content-type: application/json\r\nconnection: close\r\ncontent-length: %d\r\n\r\n"
                % len(text)
            )
            self.transport.write(STATUS_LINE[status] + head + text)
        self.transport.close()

    def _uncount(self) -> None:
        if self._is_counted:
            self._is_counted = False
            self._connections.remove(self, self._address)


def _can_be_upgraded(headers: list[tuple[bytes, bytes]]) -> bool:
    """Whether wsproto can decode these headers, which it does without a guard and, for a long host,
    in quadratic time.
    """
    try:
        for name, value in headers:
            if name == b"host":
                if len(value) > _LONGEST_HOST:
                    return False
                value.decode("idna")
            elif name == b"connection" or name.startswith(b"sec-websocket-"):
                value.decode("ascii")
    except UnicodeError:
        return False
    return True


def protocols(connections: Connections) -> dict[str, Any]:
    """Return the protocol classes for uvicorn's configuration."""
    return {"http": partial(_Protocol, connections=connections), "ws": _WebSocket}


def _files() -> int:
    """How many files this process may open, raised as far as it may be."""
    if resource is None:
        return MAX_CONNECTIONS + _RESERVED_FILES
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    enough = 2 * MAX_CONNECTIONS
    if soft == resource.RLIM_INFINITY:
        return enough
    if soft < enough:
        soft = enough if hard == resource.RLIM_INFINITY else min(enough, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    return soft
