"""Listening: the application on waitress in this process, warmed up before the first connection is taken.

Waitress is a production WSGI server in pure Python: threads, keep-alive, bounded buffers, the same on every platform, and a
library call that takes a socket we bound. It needs no fork. `serve.processes` has gunicorn for where there is one.
"""

from __future__ import annotations

import errno
import logging
import socket
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import waitress
from flask import Flask
from waitress import wasyncore
from waitress.channel import HTTPChannel
from waitress.parser import HTTPRequestParser
from waitress.task import WSGITask

from agents.agent import Agent
from envs.battlesnake.plain import setup_board, state_from_board
from envs.battlesnake.state import UP
from envs.battlesnake.webhook import game_object, move_request, read_move_request
from envs.errors import ProcsnakeError
from serve.arena import ARRIVED
from serve.deadline import safest_move
from serve.game_outcome import cause_of_death

log = logging.getLogger(__name__)

THREADS = 64
"""Requests that are worked on at a time. Most of them only wait: for a core, or for an agent."""
_WARM_UP_S = 0.1
ARENA_SIDES = (11, 7, 19)
"""Sides of the boards that are played online, the ladder's first."""


class PortInUseError(ProcsnakeError):
    """Somebody else listens there already, or the address is not ours to listen on."""


class Server:
    """An application with a port of its own (`bind`): `url`, `run()` until interrupted, `close()`.

    Until `open` or `run`, connections are refused, so there is time to warm up.
    """

    def __init__(self, app: Flask, listener: socket.socket) -> None:
        self._app, self._listener = app, listener
        self._sockets: dict[int, Any] = {}
        self._server: Any = None
        self.port = int(self._listener.getsockname()[1])
        self.url = url_of(self._listener)

    def open(self) -> None:
        """Take connections; `run` answers them. Raises `PortInUseError` if another program was faster."""
        if self._server is not None:
            return
        try:
            self._listener.listen()
        except OSError as error:
            raise _port_error(error, *self._listener.getsockname()[:2]) from error
        self._server = waitress.create_server(
            self._app,
            map=self._sockets,
            sockets=[self._listener],
            threads=THREADS,
            ident=None,
            channel_timeout=60,
            # The application refuses what is too large in JSON; this bounds what is read to be refused.
            max_request_body_size=2 * self._app.config["MAX_CONTENT_LENGTH"],
            # Nobody's word is taken for anything; but that a proxy has been at work shows that a request isn't from here.
            clear_untrusted_proxy_headers=False,
        )
        self._server.channel_class = _Channel

    def run(self) -> None:
        """Serve until `close` or Ctrl-C."""
        self.open()
        try:
            self._server.run()
        finally:
            wasyncore.close_all(self._sockets, ignore_all=True)

    def close(self) -> None:
        """Stop listening: requests under way are answered, then all connections are closed and `run` returns."""
        if self._server is None:
            self._listener.close()
        elif self._sockets:
            self._server.task_dispatcher.shutdown()
            # Sockets belong to the thread that is in `run`.
            self._server.trigger.pull_trigger(lambda: wasyncore.close_all(self._sockets, ignore_all=True))


class _Request(HTTPRequestParser):
    """A request that knows when it was complete: it may wait for a thread after that, and the game's clock runs."""

    arrived: float | None = None

    def received(self, data: bytes) -> int:
        consumed = super().received(data)
        if self.completed and self.arrived is None:
            self.arrived = time.monotonic()
        return consumed


class _Task(WSGITask):
    def get_environment(self) -> dict[str, Any]:
        return {**super().get_environment(), ARRIVED: self.request.arrived}


class _Channel(HTTPChannel):
    parser_class, task_class = _Request, _Task


def listen(app: Flask, *, host: str = "127.0.0.1", port: int = 0) -> Server:
    """Take a port for the application; port 0 is any free one. Raises `PortInUseError`."""
    return Server(app, bind(host, port))


def bind(host: str, port: int) -> socket.socket:
    """A socket with this address that doesn't listen yet; port 0 is any free one. Raises `PortInUseError`."""
    listener = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port))
    except (OSError, OverflowError) as error:
        listener.close()
        raise _port_error(error, host, port) from error
    return listener


def _port_error(error: Exception, host: str, port: int) -> PortInUseError:
    in_use = isinstance(error, OSError) and error.errno == errno.EADDRINUSE
    why = "another program listens there" if in_use else str(error)
    return PortInUseError(f"can't listen on {host} port {port}: {why}. Try another port, or --port 0 for any")


def url_of(listener: socket.socket) -> str:
    """The URL that a socket's address has from here: "any address" is none that can be called."""
    host, port = listener.getsockname()[:2]
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


@contextmanager
def running(app: Flask) -> Iterator[str]:
    """The application in a thread on a free port of this machine only; gives its URL."""
    server = listen(app)
    server.open()
    thread = threading.Thread(target=server.run, name="server", daemon=True)
    thread.start()
    try:
        yield server.url
    finally:
        server.close()
        thread.join(timeout=5)


def warm_up(agents: Mapping[str, Agent]) -> None:
    """Have every agent play one move, and answer once in its stead, so that no game waits for kernels to be compiled."""
    request = _opening(ARENA_SIDES[0])
    safest_move(read_move_request(request).state, 0)
    cause_of_death(request["board"], request["you"]["id"], [UP], ruleset="standard", hazard_damage=0)
    for name, agent in agents.items():
        _play_one_move(name, agent)


def _play_one_move(name: str, agent: Agent) -> None:
    """A policy may know boards of one size only, perhaps none of the arena's."""
    for side in ARENA_SIDES:
        try:
            agent.act(read_move_request(_opening(side)).state, 0, time.monotonic() + _WARM_UP_S)
            return
        except ProcsnakeError as error:
            problem = error
    log.warning("agent %s plays on no board of the arena: %s", name, problem)


def _opening(side: int) -> dict[str, Any]:
    """A request for the first move of a game."""
    ids = ("a", "b", "c", "d")
    state = state_from_board(setup_board(width=side, height=side, snake_ids=ids))
    game = game_object(state.settings, "warm-up")
    return move_request(state, 0, game=game, ids=ids, names=ids, you=0)
