"""WebSockets to people who watch, on the threads of gunicorn: few, and never in the way of those who play.

Gunicorn hands out a request's connection and forgets about it for as long as its thread is busy; waitress doesn't, so it has no
WebSockets. Each spectator keeps a thread that could answer moves; who doesn't read loses its place.
"""

from __future__ import annotations

import json
import logging
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from typing import Any

from flask import Response, abort, request
from simple_websocket import ConnectionClosed, Server
from wsproto.frame_protocol import CloseReason
from wsproto.utilities import RemoteProtocolError

from envs.errors import ProcsnakeError

log = logging.getLogger(__name__)

MAX_SPECTATORS = 4
SEND_SECONDS, GOODBYE_SECONDS = 5, 2
_CONNECTION = "gunicorn.socket"
_OPTIONS = {"ping_interval": 25, "max_message_size": 1024}
_MAX_REASON = 100


class Spectators:
    """The places of one process: `MAX_SPECTATORS` at a time, whoever comes later is told to try again."""

    def __init__(self) -> None:
        self._places = threading.BoundedSemaphore(MAX_SPECTATORS)

    def show(self, events: Callable[[Callable[[float], None]], Iterator[Any]]) -> Response:
        """Turn the request at hand into a WebSocket and send it each of `events(wait)` as JSON, then say goodbye.

        `wait(seconds)` sleeps and leaves when the spectator does. For a request that is no proper WebSocket's: 400.
        """
        viewer = _shake_hands()
        code, reason = CloseReason.NORMAL_CLOSURE, ""
        is_admitted = self._places.acquire(blocking=False)
        try:
            if is_admitted:
                for event in events(partial(_wait, viewer)):
                    viewer.send(json.dumps(event, separators=(",", ":")))
            else:
                code, reason = CloseReason.TRY_AGAIN_LATER, f"{MAX_SPECTATORS} people are watching already"
        except ProcsnakeError as error:
            code, reason = CloseReason.INTERNAL_ERROR, str(error)[:_MAX_REASON]
        except (ConnectionClosed, OSError):
            log.info("a spectator left, or stopped reading")
        finally:
            if is_admitted:
                self._places.release()
            _part(viewer, code, reason)
        return _UsedUp()


def has_websockets() -> bool:
    """Whether the server under us hands out the connection, which WebSockets need."""
    return _CONNECTION in request.environ


def _shake_hands() -> Server:
    """The request's connection as a WebSocket: a duplicate of it, because gunicorn closes its own."""
    connection = request.environ[_CONNECTION].dup()
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("ll", SEND_SECONDS, 0))
    try:
        return Server({**request.environ, _CONNECTION: connection}, **_OPTIONS)
    except RemoteProtocolError as error:
        connection.close()
        abort(400, f"that is no WebSocket's handshake: {error}")


def _wait(viewer: Server, seconds: float) -> None:
    """Wait, and drop what a spectator sends meanwhile: there is nothing to say. Raises `ConnectionClosed` if it left."""
    end = time.monotonic() + seconds
    while (left := end - time.monotonic()) > 0:
        viewer.receive(timeout=left)


def _part(viewer: Server, code: CloseReason, reason: str) -> None:
    """Say goodbye and see the other side off, here: gunicorn would wait for it where it takes requests, everybody's."""
    with suppress(ConnectionClosed, OSError):
        viewer.close(code, reason)
    viewer.thread.join(GOODBYE_SECONDS)
    with suppress(OSError):
        viewer.sock.shutdown(socket.SHUT_RDWR)
    viewer.thread.join(GOODBYE_SECONDS)


class _UsedUp(Response):
    """What gunicorn takes for "there is nothing more to answer on this connection"."""

    def __call__(self, *_: Any) -> Any:
        raise StopIteration
