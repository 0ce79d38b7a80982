"""An HTTP connection that is kept open: to a snake, as engines do it, or to a platform.

It takes one request at a time, each with its own time limit.
"""

from __future__ import annotations

import base64
import codecs
import http.client
import json
import socket
import ssl
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any
from urllib.parse import SplitResult, quote, unquote, urlsplit

from envs.battlesnake.state import MOVE_NAMES
from envs.common.errors import ConfigError

MAX_ANSWER_BYTES = 64 * 1024
_MAX_SHOWN = 60
_IN_A_PATH = "/%:@!$&'()*+,;=~"
_IN_A_QUERY = "/?%:@!$&'()*+,;=~"
"""The characters that may stand unquoted in a URL's query, and in its path, besides letters,
digits, "_", "." and "-" (RFC 3986).
"""
CALL_ERRORS = (OSError, http.client.HTTPException, ValueError)
"""The errors in which a call can end."""


class BadAnswerError(ValueError):
    """An answer is unusable for any engine. The message says what it was."""


class AnswerTooLargeError(BadAnswerError):
    """An answer has more bytes than the connection allows, by default `MAX_ANSWER_BYTES`."""


@dataclass(frozen=True)
class Answer:
    """The answer to a request."""

    status: int
    body: bytes
    headers: Mapping[str, str]
    keeps_connection: bool
    """Whether the server lets the next request use the same connection."""


class Connection:
    """A connection to the snake at `url`, which is opened when it is first needed.

    The URL's path and query are part of every request; its user name and password are sent as basic
    authentication (RFC 7617). `headers` are sent with every request. An answer of more than
    `max_answer_bytes` is refused. Redirects aren't followed. Raises `ConfigError` if `url` is no
    HTTP URL."""

    def __init__(
        self,
        url: str,
        *,
        headers: Mapping[str, str] | None = None,
        max_answer_bytes: int = MAX_ANSWER_BYTES,
    ) -> None:
        self._max_answer_bytes = max_answer_bytes
        try:
            parts = urlsplit(url)
            self._host = parts.hostname or ""
            port = parts.port
        except ValueError as error:
            raise ConfigError(f"{url!r} is not the URL of a snake: {error}") from error
        if parts.scheme not in ("http", "https") or not self._host:
            raise ConfigError(
                f"{url!r} is not the URL of a snake; it looks like http://127.0.0.1:8000"
            )
        self._kind: type[http.client.HTTPConnection] = http.client.HTTPConnection
        if parts.scheme == "https":
            self._kind = http.client.HTTPSConnection
        # Without a port, http.client would take the last part of an IPv6 address for one.
        self._port = self._kind.default_port if port is None else port
        self._path = quote(parts.path, safe=_IN_A_PATH)
        self._query = quote(parts.query, safe=_IN_A_QUERY)
        self._headers = {**_authorization(parts), **(headers or {})}
        self._connection: http.client.HTTPConnection | None = None

    def target(self, path: str) -> str:
        """Return the request's target for `path` below the URL, joined as engines join them; for ""
        the URL itself.
        """
        target = self._path or "/"
        if path:
            target = f"{self._path.rstrip('/')}/{path}"
        if not self._query:
            return target
        separator = "&" if "?" in target else "?"
        return f"{target}{separator}{self._query}"

    def exchange(
        self, method: str, path: str, body: Mapping[str, Any] | bytes | None, timeout: float
    ) -> Answer:
        """Send one request and return the answer, within `timeout` seconds from the first to the
        last byte.

        If the server has closed the connection in the meantime, a new one is opened, as engines'
        HTTP clients do. Raises one of `CALL_ERRORS`, which is `TimeoutError` for an answer that is
        late."""
        was_kept = self._connection is not None and self._connection.sock is not None
        began = time.monotonic()
        try:
            return self._exchange_once(method, path, body, timeout)
        except ConnectionError:
            remaining = timeout - (time.monotonic() - began)
            if not was_kept or remaining <= 0:
                raise
        return self._exchange_once(method, path, body, remaining)

    def _exchange_once(
        self, method: str, path: str, body: Mapping[str, Any] | bytes | None, timeout: float
    ) -> Answer:
        if self._connection is None:
            self._connection = self._kind(self._host, self._port)
        connection = self._connection
        watchdog = _Watchdog(connection, timeout)
        try:
            if connection.sock is None:
                connection.timeout = timeout
                connection.connect()
            else:
                connection.sock.settimeout(timeout)
            watchdog.watch(connection.sock)
            data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
            headers = dict(self._headers)
            if data is not None:
                headers["Content-Type"] = "application/json"
            connection.request(method, self.target(path), data, headers)
            response = connection.getresponse()
            answer = response.read(self._max_answer_bytes + 1)
            if len(answer) > self._max_answer_bytes:
                raise AnswerTooLargeError(
                    f"the answer is larger than {self._max_answer_bytes} bytes"
                )
            if response.length:
                # `read` with a limit doesn't raise if fewer bytes came than the header announced.
                raise http.client.IncompleteRead(answer, response.length)
            watchdog.check()
        except BaseException as error:
            self.close()
            if isinstance(error, CALL_ERRORS):
                watchdog.check()
            raise
        finally:
            watchdog.cancel()
        return Answer(response.status, answer, dict(response.headers), not response.will_close)

    def close(self) -> None:
        """Close the connection. The next request opens it again."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None


class _Watchdog:
    """Ends an exchange once its time is up. A socket's own timeout isn't enough, because it starts
    anew with each byte and with each address.
    """

    def __init__(self, connection: http.client.HTTPConnection, timeout: float) -> None:
        self._connection = connection
        self._socket = connection.sock
        self._has_cut = False
        self._timer = threading.Timer(timeout, self._cut)
        self._timer.start()

    def watch(self, opened: socket.socket) -> None:
        """Watch this socket, which the connection itself forgets if the answer says that the server
        closes it. Raises `TimeoutError` if the time is up.
        """
        self._socket = opened
        self.check()

    def check(self) -> None:
        """Raise `TimeoutError` if the time is up."""
        if self._has_cut:
            raise TimeoutError("the answer was not complete in time")

    def cancel(self) -> None:
        self._timer.cancel()

    def _cut(self) -> None:
        self._has_cut = True
        # While a socket is being opened, only the connection knows it.
        watched = self._socket or self._connection.sock
        with suppress(OSError):
            if watched is not None:
                watched.shutdown(socket.SHUT_RDWR)


def _authorization(parts: SplitResult) -> dict[str, str]:
    """The header for a URL's user name and password, as HTTP clients send it."""
    if parts.username is None:
        return {}
    user_and_password = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
    return {"Authorization": f"Basic {base64.b64encode(user_and_password.encode()).decode()}"}


def read_object(body: bytes) -> dict[str, Any]:
    """Return the JSON object of an answer. Raises `BadAnswerError` if it isn't one by RFC 8259.

    Python's own reader is laxer than those of the engines, which are written in Go and Rust: it
    takes a byte order mark, UTF-16 and UTF-32, and NaN and Infinity."""
    try:
        answer = json.loads(body.decode("utf-8"), parse_constant=_refuse_constant)
        # JSON can spell half of a surrogate pair, which no UTF-8 can hold.
        json.dumps(answer, ensure_ascii=False).encode()
    except UnicodeDecodeError as error:
        raise BadAnswerError(
            f"the answer {_shown(body)} is not in UTF-8, as JSON must be"
        ) from error
    except UnicodeEncodeError as error:
        raise BadAnswerError(
            f"the answer {_shown(body)} holds half of a surrogate pair, which is not valid text"
        ) from error
    except (ValueError, RecursionError) as error:
        if body.startswith(codecs.BOM_UTF8):
            raise BadAnswerError(
                f"the answer {_shown(body)} begins with a byte order mark, which JSON must not"
            ) from error
        raise BadAnswerError(f"the answer {_shown(body)} is not a JSON object") from error
    if not isinstance(answer, dict):
        raise BadAnswerError(f"the answer {_shown(body)} is not a JSON object")
    return answer


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def read_move(answer: Mapping[str, Any]) -> int:
    """Return the move of an answer to `/move` as a number, 0 to 3. Raises `BadAnswerError` if the
    answer has none.
    """
    if answer.get("move") is None:
        raise BadAnswerError('the answer has no "move"')
    move = answer["move"]
    names = ", ".join(MOVE_NAMES)
    if move in MOVE_NAMES:
        return MOVE_NAMES.index(move)
    if isinstance(move, str) and move.strip().lower() in MOVE_NAMES:
        raise BadAnswerError(f"the move is {_shown(move)}, but moves are in lower case: {names}")
    raise BadAnswerError(f"the move is {_shown(move)}, not one of {names}")


def in_words(error: Exception) -> str:
    """Return one of `CALL_ERRORS` as a sentence for people."""
    if isinstance(error, BadAnswerError):
        return str(error)
    for kinds, sentence in _IN_WORDS:
        if isinstance(error, kinds):
            return sentence
    return f"{type(error).__name__}: {error}"


_IN_WORDS: tuple[tuple[type[Exception] | tuple[type[Exception], ...], str], ...] = (
    (ConnectionRefusedError, "the connection was refused: nothing listens at this address"),
    (socket.gaierror, "nobody knows a host of this name"),
    (ssl.SSLCertVerificationError, "its certificate is not valid"),
    (ssl.SSLError, "it doesn't speak HTTPS"),
    (TimeoutError, "no answer came in time"),
    (
        (ConnectionError, http.client.IncompleteRead),
        "the connection was closed before the answer was complete",
    ),
    (http.client.BadStatusLine, "the answer is not HTTP"),
)


def _shown(value: Any) -> str:
    """A stranger's value, short enough to be printed."""
    if isinstance(value, str | bytes):
        return repr(value[:_MAX_SHOWN])
    return str(value)[:_MAX_SHOWN]
