"""One request and its one answer, as the event loop and the application know them.

The loop puts an `Exchange` into the WSGI environment of each request (`Exchange.attach`), and the
application reads it there (`Exchange.of`). The environment is all that WSGI lets through, and this
is the only key in it that is ours."""

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

    Two may answer: the thread at work, and the event loop when time is up. Whoever claims the
    answer first gives it."""

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
        """Have the loop give this answer at `due`, by `time.monotonic()`, unless somebody claims it
        before.

        Any thread may call this.
        """
        self._loop.call_soon_threadsafe(self._loop.call_at, due, self._time_is_up, answer)

    def claim(self) -> bool:
        """Claim the answer. Returns True once, to whoever claims it first.

        Any thread may call this.
        """
        return self._unclaimed.acquire(blocking=False)

    def give(self, answer: Response) -> None:
        """Give the thread's answer. It is dropped if the loop has answered before.

        Any thread may call this.
        """
        self._loop.call_soon_threadsafe(self._settle, answer)

    def fail(self, error: BaseException) -> None:
        """Raise this error where the answer is awaited, unless the loop has answered before.

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
