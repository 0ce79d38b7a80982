"""The connection between the head and every other machine.

It reports who has joined, who is lost, and how the run ended, in lines of text. Both sides prove
that they know the token without sending it: each answers the other's random challenge with an HMAC.
Then the worker says JOINED once its Ray node is up, both say PING, and at last the head says END
with the exit code. If a connection breaks without END, the machine was lost; a worker that can
still give a reason first says FAILED."""

from __future__ import annotations

import hmac
import secrets
import socket
import socketserver
import threading
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any

from train.cluster.hosts import ClusterError

PORT = 6378
_PING_SECONDS = 5.0
_MOST_SILENCES = 5
_LONGEST_LINE = 512
_LONGEST_REASON = 400


class Refused(ClusterError):
    """The other side doesn't know the token."""


def _proof(token: str, *parts: str) -> str:
    return hmac.digest(token.encode(), "\n".join(parts).encode(), "sha256").hex()


class _Lines:
    """A socket as lines, with a silence after which it counts as broken."""

    def __init__(self, connection: socket.socket) -> None:
        connection.settimeout(_PING_SECONDS)
        self._socket = connection
        self._lock = threading.Lock()
        self._heard = b""

    def send(self, *words: str) -> None:
        with self._lock:
            self._socket.sendall(" ".join(words).encode() + b"\n")

    def receive(self) -> list[str]:
        """Return the words of a line. Raises `OSError` once the connection has ended or has been
        silent too long.
        """
        silences = 0
        while b"\n" not in self._heard:
            if len(self._heard) > _LONGEST_LINE:
                raise ConnectionError("something else than a line was sent")
            try:
                part = self._socket.recv(_LONGEST_LINE)
            except TimeoutError:
                # Counted in pings rather than seconds: a machine that stood still itself has not
                # missed many.
                silences += 1
                if silences >= _MOST_SILENCES:
                    raise
                continue
            if not part:
                raise ConnectionError("the connection was closed")
            self._heard += part
        line, _, self._heard = self._heard.partition(b"\n")
        return line.decode("ascii").split()

    def close(self) -> None:
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()


class ControlServer:
    """The head's side, a context manager."""

    def __init__(
        self, address: str, token: str, say: Callable[[str], None], *, port: int = PORT
    ) -> None:
        self._token = token
        self._say = say
        self._links: dict[str, _Lines] = {}
        self._joined: set[str] = set()
        self._lost: list[str] = []
        self._reasons: dict[str, str] = {}
        self._changed = threading.Condition()
        self._ended = False
        control = self

        class Link(socketserver.BaseRequestHandler):
            def handle(self) -> None:
                control._serve(self.request)

        class Server(socketserver.ThreadingTCPServer):
            allow_reuse_address = daemon_threads = True

        self._server = Server((address, port), Link)
        self.port: int = self._server.server_address[1]

    def __enter__(self) -> ControlServer:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        threading.Thread(target=self._ping, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        for link in list(self._links.values()):
            link.close()

    def lost(self) -> list[str]:
        """Return the machines that joined and whose connection broke, each with its reason if it
        gave one.
        """
        with self._changed:
            return list(self._lost)

    def wait(
        self, expected: Iterable[str], guests: int, seconds: float, stop: threading.Event
    ) -> None:
        """Wait until the machines `expected` and this number of `guests` have joined.

        Raises `ClusterError`, naming the machines, if some are missing after `seconds` or were
        lost, and if `stop` is set in the meantime."""
        names = set(expected)
        deadline = time.monotonic() + seconds
        with self._changed:
            while not (names <= self._joined and len(self._joined - names) >= guests):
                if stop.is_set():
                    raise ClusterError("stopped while waiting for the other machines")
                if self._lost:
                    raise ClusterError(
                        f"lost {', '.join(self._lost)} while waiting for the other machines"
                    )
                if time.monotonic() > deadline:
                    raise ClusterError(f"{self._missing(names, guests)} after {seconds:.0f} s")
                self._changed.wait(0.2)

    def end(self, code: int) -> None:
        """Tell all machines how the run ended."""
        with self._changed:
            self._ended = True
            links = list(self._links.values())
        for link in links:
            with suppress(OSError):
                link.send("END", str(code))

    def _missing(self, names: set[str], guests: int) -> str:
        parts = []
        for name in sorted(names - self._joined):
            if name in self._links:
                parts.append(f"{name} called, but its Ray node has not joined")
            else:
                parts.append(f"{name} has not called")
        missing_guests = guests - len(self._joined - names)
        if missing_guests > 0:
            parts.append(
                f"{missing_guests} of the {guests} machines of the job that plays have not joined"
            )
        return "; ".join(parts)

    def _ping(self) -> None:
        while not self._ended:
            time.sleep(_PING_SECONDS)
            for link in list(self._links.values()):
                with suppress(OSError):
                    link.send("PING")

    def _serve(self, connection: socket.socket) -> None:
        link = _Lines(connection)
        name = ""
        try:
            name = self._admit(link)
            while True:
                words = link.receive()
                if words == ["JOINED"]:
                    with self._changed:
                        self._joined.add(name)
                        self._changed.notify_all()
                elif words[:1] == ["FAILED"]:
                    self._reasons[name] = " ".join(words[1:])
        except Refused as error:
            self._say(str(error))
        except (OSError, ValueError):
            pass
        finally:
            self._forget(name, link)
            link.close()

    def _admit(self, link: _Lines) -> str:
        challenge = secrets.token_hex(16)
        link.send("WHO", challenge)
        name, theirs, proof = link.receive()
        if not hmac.compare_digest(proof, _proof(self._token, "worker", challenge, theirs, name)):
            link.send("NO")
            raise Refused(f"refused {name}: it doesn't know this run's token")
        # Under the lock: a worker that breaks off after this answer and calls again must be noted
        # behind its first call.
        with self._changed:
            link.send("GO", _proof(self._token, "head", theirs, challenge, name))
            self._links[name] = link
        self._say(f"{name} called")
        return name

    def _forget(self, name: str, link: _Lines) -> None:
        with self._changed:
            if self._links.get(name) is not link:
                return
            del self._links[name]
            if name in self._joined and not self._ended:
                self._joined.discard(name)
                if name in self._reasons:
                    name += f" ({self._reasons[name]})"
                self._lost.append(name)
            self._changed.notify_all()


class ControlLink:
    """A worker's side."""

    def __init__(self, head: str, token: str, name: str, *, port: int = PORT) -> None:
        """Call the head at address `head`.

        Raises `OSError` if it isn't there, and `Refused` if the two have different tokens."""
        connection = socket.create_connection((head, port), timeout=_PING_SECONDS)
        self._lines = _Lines(connection)
        try:
            self._prove(token, name)
        except BaseException:
            self._lines.close()
            raise
        self.ending: int | None = None
        self.broken = ""
        threading.Thread(target=self._listen, daemon=True).start()
        threading.Thread(target=self._ping, daemon=True).start()

    def joined(self) -> None:
        """Say that this machine's Ray node is up."""
        self._lines.send("JOINED")

    def failed(self, reason: str) -> None:
        """Say why this machine leaves, cut to the length of a line."""
        words = reason.encode("ascii", "replace").decode()[:_LONGEST_REASON].split()
        with suppress(OSError):
            self._lines.send("FAILED", *words)

    def close(self) -> None:
        """Close the connection."""
        self._lines.close()

    def _prove(self, token: str, name: str) -> None:
        who, challenge = self._two_words()
        own = secrets.token_hex(16)
        self._lines.send(name, own, _proof(token, "worker", challenge, own, name))
        answer = self._lines.receive()
        expected = _proof(token, "head", own, challenge, name)
        if who != "WHO" or answer[:1] != ["GO"] or not hmac.compare_digest(answer[-1], expected):
            raise Refused(
                "the head and this machine have different tokens; every machine of a run needs the"
                " same one"
            )

    def _two_words(self) -> list[Any]:
        words = self._lines.receive()
        if len(words) != 2:
            raise ConnectionError(f"something else than a head answered: {' '.join(words)[:80]!r}")
        return words

    def _listen(self) -> None:
        try:
            while self.ending is None:
                words = self._lines.receive()
                if words[:1] == ["END"]:
                    self.ending = int(words[1])
        except (OSError, ValueError) as error:
            self.broken = str(error) or type(error).__name__

    def _ping(self) -> None:
        while self.ending is None and not self.broken:
            time.sleep(_PING_SECONDS)
            try:
                self._lines.send("PING")
            except (OSError, ValueError):
                return
