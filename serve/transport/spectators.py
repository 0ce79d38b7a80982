"""WebSockets for spectators. They are few and have their own threads, so that they never delay
moves.
"""

from __future__ import annotations

import asyncio
import json
import logging
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Executor
from contextlib import suppress
from typing import Any

from werkzeug.wrappers import Response

from envs.common.errors import ProcsnakeError

log = logging.getLogger(__name__)

MAX_SPECTATORS = 4
_NORMAL = 1000
_INTERNAL_ERROR = 1011
_TRY_AGAIN_LATER = 1013
_MAX_REASON = 100
_PAUSE_S = 0.1

Events = Callable[[Callable[[float], None]], Iterator[Any]]


class _LeftError(Exception):
    """The spectator has left, or the server ends."""


class SpectatorSlots:
    """One process's slots for spectators, `MAX_SPECTATORS` at a time. Further ones are asked to try
    again later.
    """

    def __init__(self) -> None:
        self._free = threading.BoundedSemaphore(MAX_SPECTATORS)

    def show(self, spectator: Spectator, events: Events) -> Response:
        """Answer the spectator's request with a WebSocket, send each of `events(wait)` over it as
        JSON, and close it.

        `wait(seconds)` sleeps, and ends the events when the spectator leaves.
        """
        spectator.show(events, self._free)
        return Response(status=101)


class Spectator:
    """One WebSocket, between the event loop, which has the connection, and the thread that produces
    the events.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, threads: Executor) -> None:
        self._loop = loop
        self._threads = threads
        self._has_left = threading.Event()
        self.events: Events | None = None
        """The events to show; None if the application has refused."""

    def show(self, events: Events, places: threading.BoundedSemaphore) -> None:
        """Show these events, if there is a place."""
        self.events = events
        self._places = places

    async def watch(self, receive: Callable[[], Any], send: Callable[[Any], Any]) -> None:
        """Open the WebSocket, send the events and close it. Returns when the spectator has gone."""
        await receive()
        await send({"type": "websocket.accept"})
        if not self._places.acquire(blocking=False):
            # Some clients don't notice a close that comes together with the handshake.
            await asyncio.sleep(_PAUSE_S)
            await send(_close(_TRY_AGAIN_LATER, f"{MAX_SPECTATORS} people are watching already"))
            return
        listening = asyncio.create_task(self._listen(receive))
        try:
            code, reason = await self._loop.run_in_executor(self._threads, self._tell, send)
            with suppress(OSError):
                await send(_close(code, reason))
        finally:
            self._places.release()
            listening.cancel()

    async def _listen(self, receive: Callable[[], Any]) -> None:
        """Drop what a spectator says until it leaves."""
        while (await receive())["type"] != "websocket.disconnect":
            pass
        self._has_left.set()

    def _tell(self, send: Callable[[Any], Any]) -> tuple[int, str]:
        assert self.events is not None
        try:
            for event in self.events(self._wait):
                text = json.dumps(event, separators=(",", ":"))
                asyncio.run_coroutine_threadsafe(
                    send({"type": "websocket.send", "text": text}), self._loop
                ).result()
        except ProcsnakeError as error:
            return _INTERNAL_ERROR, str(error)[:_MAX_REASON]
        except (_LeftError, OSError):
            log.info("a spectator left, or stopped reading")
        return _NORMAL, ""

    def _wait(self, seconds: float) -> None:
        if self._has_left.wait(seconds):
            raise _LeftError


def _close(code: int, reason: str) -> dict[str, Any]:
    return {"type": "websocket.close", "code": code, "reason": reason}
