"""A kept HTTP connection to a snake, as engines hold one: one request at a time, each within a time of its own."""

from __future__ import annotations

import http.client
import json
import socket
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from envs.errors import ConfigError

MAX_ANSWER_BYTES = 64 * 1024
CALL_ERRORS = (OSError, http.client.HTTPException, ValueError)
"""What a call can end in, other than an answer."""


class AnswerTooLargeError(ValueError):
    """An answer of more than `MAX_ANSWER_BYTES`."""


@dataclass(frozen=True)
class Answer:
    """What came back."""

    status: int
    body: bytes
    headers: Mapping[str, str]
    keeps_connection: bool
    """Whether the server lets the next request use the same connection."""


class Connection:
    """A connection to the snake at `url`, opened when it is first needed. Raises `ConfigError` for what is no HTTP URL."""

    def __init__(self, url: str) -> None:
        try:
            parts = urlsplit(url)
            self._host, self._port = parts.hostname or "", parts.port
        except ValueError as error:
            raise ConfigError(f"{url!r} is not the URL of a snake: {error}") from error
        if parts.scheme not in ("http", "https") or not self._host:
            raise ConfigError(f"{url!r} is not the URL of a snake; it looks like http://127.0.0.1:8000")
        self._kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
        self._path = parts.path.rstrip("/")
        self._connection: http.client.HTTPConnection | None = None

    def exchange(self, method: str, path: str, body: Mapping[str, Any] | bytes | None, timeout: float) -> Answer:
        """One request within `timeout` seconds in all, the answer's last byte included. Raises one of `CALL_ERRORS`.

        A kept connection that the server has closed meanwhile is replaced, as engines' HTTP clients do.
        """
        was_kept, began = self._connection is not None, time.monotonic()
        try:
            return self._exchange_once(method, path, body, timeout)
        except ConnectionError:
            left = timeout - (time.monotonic() - began)
            if not was_kept or left <= 0:
                raise
        return self._exchange_once(method, path, body, left)

    def _exchange_once(self, method: str, path: str, body: Mapping[str, Any] | bytes | None, timeout: float) -> Answer:
        if self._connection is None:
            self._connection = self._kind(self._host, self._port, timeout=timeout)
        connection = self._connection
        if connection.sock is not None:
            connection.sock.settimeout(timeout)
        # A socket's time-out starts anew with each byte; the watchdog's doesn't.
        watchdog = threading.Timer(timeout, self._cut, (connection,))
        watchdog.start()
        try:
            data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
            headers = {"Content-Type": "application/json"} if data is not None else {}
            connection.request(method, f"{self._path}/{path}", data, headers)
            response = connection.getresponse()
            answer = response.read(MAX_ANSWER_BYTES + 1)
            if len(answer) > MAX_ANSWER_BYTES:
                raise AnswerTooLargeError(f"the answer is larger than {MAX_ANSWER_BYTES} bytes")
        except BaseException:
            self.close()
            raise
        finally:
            watchdog.cancel()
        return Answer(response.status, answer, dict(response.headers), not response.will_close)

    def close(self) -> None:
        """Close it; the next request opens it again."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    @staticmethod
    def _cut(connection: http.client.HTTPConnection) -> None:
        with suppress(OSError):
            if connection.sock is not None:
                connection.sock.shutdown(socket.SHUT_RDWR)
