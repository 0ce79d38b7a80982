"""One request and its one answer, as the event loop and the application know them.

The loop puts an `Exchange` into the WSGI environment of each request (`Exchange.attach`), and the
application reads it there (`Exchange.of`). WSGI passes on only the environment, and this is our
only key in it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Mapping, MutableMapping
from typing import Any

from werkzeug.wrappers import Response

from serve.transport.spectators import Spectator

_KEY = "procsnake.exchange"


class Exchange:
    """A request, and the one answer to it.

    Either the working thread answers, or the event loop when time is up: the first to claim the
    answer."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        *,
        arrived: float,
        spectator: Spectator | None = None,
    ) -> None:
        self.arrived = arrived
        """When the request was complete, by `time.monotonic()`."""
        self.spectator = spectator
        """Who asked for a WebSocket; None for a request that asks for none."""
        self.answer: asyncio.Future[Response] = loop.create_future()
        """The answer, for the loop to wait for."""
        self._loop = loop
        self._unclaimed = threading.Lock()

    @staticmethod
    def of(environ: Mapping[str, Any]) -> Exchange | None:
        """Return the exchange that a WSGI environment belongs to.

        It is None under a server without our event loop, as in Flask's test client.
        """
        return environ.get(_KEY)

    def attach(self, environ: MutableMapping[str, Any]) -> None:
        """Put this exchange where `of` finds it."""
        environ[_KEY] = self

    def answer_at(self, due: float, answer: Response) -> None:
        """Let the loop give this answer at `due` (`time.monotonic()`), unless it is claimed before.

        Any thread may call this.
        """
        self._loop.call_soon_threadsafe(self._loop.call_at, due, self._time_is_up, answer)

    def claim(self) -> bool:
        """Claim the answer. Returns True only to the first caller.

        Any thread may call this.
        """
        return self._unclaimed.acquire(blocking=False)

    def give(self, answer: Response) -> None:
        """Give the thread's answer, which is dropped if the loop has already answered.

        Any thread may call this.
        """
        self._loop.call_soon_threadsafe(self._settle, answer)

    def fail(self, error: BaseException) -> None:
        """Raise this error where the answer is awaited, unless the loop has already answered.

        Any thread may call this.
        """
        self._loop.call_soon_threadsafe(self._settle_failed, error)

    def _time_is_up(self, answer: Response) -> None:
        if self.claim():
            self._settle(answer)

    def _settle(self, answer: Response) -> None:
        if not self.answer.done():
            self.answer.set_result(answer)

    def _settle_failed(self, error: BaseException) -> None:
        if not self.answer.done():
            self.answer.set_exception(error)
