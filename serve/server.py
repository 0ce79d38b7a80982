"""Serves the application with uvicorn in this process, warmed up before the first connection is
taken.

Uvicorn is an event loop that reads slow requests without blocking. It runs on every platform and
accepts a bound socket. `serve.transport.connections` limits what may arrive,
`serve.transport.front` gives requests to threads, and `serve.processes` runs all this in worker
processes."""

from __future__ import annotations

import asyncio
import errno
import gc
import itertools
import logging
import os
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

import uvicorn
from flask import Flask

from agents.agent import Agent
from agents.measure.evaluation.connection import CALL_ERRORS, Connection
from envs.battlesnake.plain import setup_board, state_from_board
from envs.battlesnake.state import UP
from envs.battlesnake.webhook import game_object, move_request, read_move_request
from envs.common.errors import ProcsnakeError
from serve.archive.outcome import cause_of_death
from serve.monitoring.draining import DRAINING, Draining
from serve.monitoring.logs import Seldom
from serve.timing.deadline import safest_move
from serve.transport.connections import Connections, protocols
from serve.transport.front import Front
from serve.transport.trusted_proxies import TRUSTED_PROXIES

log = logging.getLogger(__name__)

KEEP_ALIVE_S = 60
STOP_S = 8
"""How long an idle connection is kept, and how long running requests may take once the server
stops, in seconds.
"""
_BACKLOG = 1024
_TICK_S = 0.1
_TICKS_PER_BEAT = 10
_NAP_S = 0.02
_ASK_S = 2.0
_WARM_UP_S = 0.1
ARENA_SIDES = (11, 7, 19)
"""Sides of the boards that are played online, the ladder's first."""


class PortInUseError(ProcsnakeError):
    """Another program already listens there, or this machine may not listen on that address."""


class Loop(uvicorn.Server):
    """Uvicorn with our limits, for one application. It calls `on_beat` once per second, and doesn't
    handle signals.
    """

    def __init__(self, app: Flask, *, on_beat: Callable[[], None] | None = None) -> None:
        self._front = Front(app)
        self._on_beat = on_beat
        self._draining: Draining = app.extensions.get(DRAINING, Draining())
        self._wake: Callable[[], object] | None = None
        config = uvicorn.Config(
            self._front,
            **protocols(Connections(proxies=app.extensions.get(TRUSTED_PROXIES))),
            loop="asyncio",
            interface="asgi3",
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            # `serve.transport.front` knows whose word is taken for where a request came from.
            proxy_headers=False,
            timeout_keep_alive=KEEP_ALIVE_S,
            timeout_graceful_shutdown=STOP_S,
            ws_max_size=1024,
            # Spectators say nothing that would be worth the work and the memory.
            ws_per_message_deflate=False,
            ws_ping_interval=25,
        )
        super().__init__(config)

    def stop(self) -> None:
        """Drain, then take no more requests, answer the running ones, and end. A second call ends
        the draining.

        Any thread and any signal handler may call this.
        """
        self._draining.begin()
        self.should_exit = self._draining.is_over
        if (wake := self._wake) is not None:
            with suppress(RuntimeError):  # the loop has ended
                wake()

    async def main_loop(self) -> None:
        stopping = asyncio.Event()
        loop = asyncio.get_running_loop()
        self._wake = lambda: loop.call_soon_threadsafe(stopping.set)
        for counter in itertools.count():
            # Uvicorn would call by the wall clock, and not at all once that is set back; gunicorn
            # kills whoever is silent.
            if self._on_beat is not None and counter % _TICKS_PER_BEAT == 0:
                self._on_beat()
            self.should_exit = self.should_exit or self._draining.is_over
            if await self.on_tick(counter):
                return
            with suppress(asyncio.TimeoutError):
                await asyncio.wait_for(stopping.wait(), _TICK_S)
            stopping.clear()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        await super().shutdown(sockets)
        self._front.close()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


class Server:
    """An application with a port of its own (`bind`).

    `run()` serves it at `url` until it is interrupted or `close()` is called.

    Until `open` or `run`, connections are refused, so there is time to warm up.
    """

    def __init__(self, app: Flask, listener: socket.socket) -> None:
        self._app = app
        self._listener = listener
        self._loop: Loop | None = None
        self.port = int(self._listener.getsockname()[1])
        self.url = url_of(self._listener)

    def open(self) -> None:
        """Begin to take connections, which `run` answers. Raises `PortInUseError` if another
        program was faster.
        """
        if self._loop is not None:
            return
        begin_to_listen(self._listener)
        self._loop = Loop(self._app)

    def run(self) -> None:
        """Serve until `close`, SIGTERM, Ctrl-C or the terminal's end. Running requests are answered
        first.
        """
        self.open()
        assert self._loop is not None
        with _stopping(self._loop):
            self._loop.run(sockets=[self._listener])

    def announce(self, text: str) -> None:
        """Print a line once `run` has answered a first request."""
        threading.Thread(
            target=say_when_answering, args=(self.url, text), name="announcer", daemon=True
        ).start()

    def close(self) -> None:
        """Stop listening. Running requests are answered; then all connections are closed, and `run`
        returns.
        """
        if self._loop is None:
            self._listener.close()
        else:
            self._loop.stop()


@contextmanager
def _stopping(loop: Loop) -> Iterator[None]:
    """Have the signals that end programs end this one in peace. Only the main thread hears
    signals.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.signal(number, lambda *_: loop.stop()) for number in _ending_signals()}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _ending_signals() -> list[signal.Signals]:
    signals = [signal.SIGINT, signal.SIGTERM]
    # Windows has no SIGHUP, and `nohup` has it ignored.
    if hasattr(signal, "SIGHUP") and signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        signals.append(signal.SIGHUP)
    return signals


logging.getLogger("uvicorn.error").addFilter(Seldom())


def say_when_answering(
    url: str, text: str, *, is_wanted: Callable[[], bool] = lambda: True
) -> None:
    """Print a line once the server at `url` has answered a first request, unless cancelled
    before.
    """
    while is_wanted():
        if answers(url):
            print(text, flush=True)
            return
        time.sleep(_NAP_S)


def answers(url: str) -> bool:
    """Return whether one of our servers answers at `url`."""
    connection = Connection(url)
    try:
        return connection.exchange("GET", "health", None, _ASK_S).status == 200
    except CALL_ERRORS:
        return False
    finally:
        connection.close()


def listen(app: Flask, *, host: str = "127.0.0.1", port: int = 0) -> Server:
    """Take a port for the application. Port 0 means any free one. Raises `PortInUseError`."""
    return Server(app, bind(host, port))


def bind(host: str, port: int) -> socket.socket:
    """Return a socket with this address that doesn't listen yet. Port 0 means any free one. Raises
    `PortInUseError`.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family)
    try:
        # On Windows this option would share the port with a server that listens there.
        if os.name == "posix":
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port))
    except (
        OSError,
        OverflowError,
        TypeError,
    ) as error:  # A TypeError is one of the host's letters.
        listener.close()
        raise _port_error(error, host, port) from error
    return listener


def begin_to_listen(listener: socket.socket) -> None:
    """Begin to take connections on a bound socket. Raises `PortInUseError` if another program was
    faster.
    """
    try:
        listener.listen(_BACKLOG)
    except OSError as error:
        raise _port_error(error, *listener.getsockname()[:2]) from error


def _port_error(error: Exception, host: str, port: int) -> PortInUseError:
    why = str(error)
    if isinstance(error, OSError) and error.errno == errno.EADDRINUSE:
        why = "another program listens there"
    fix = "Try another port, or --port 0 for any"
    if isinstance(error, TypeError | socket.gaierror):
        fix = "Name an address of this machine with --host"
    return PortInUseError(f"can't listen on {host} port {port}: {why}. {fix}")


def url_of(listener: socket.socket) -> str:
    """Return a URL at which a socket can be called from here, even if it is bound to "any"
    address.
    """
    host, port = listener.getsockname()[:2]
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)
    if ":" in host:
        return f"http://[{host}]:{port}"
    return f"http://{host}:{port}"


@contextmanager
def running(app: Flask) -> Iterator[str]:
    """Run the application in a thread, on a free port that only this machine can reach. Yields its
    URL.
    """
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
    """Let every agent play a move among four and one in a duel, and the watchdog answer once for
    it, so that no game waits for compilation.
    """
    request = _opening(ARENA_SIDES[0], 4)
    safest_move(read_move_request(request).state, 0)
    cause_of_death(
        request["board"], request["you"]["id"], [UP], ruleset="standard", hazard_damage=0
    )
    for name, agent in agents.items():
        _play_a_move(name, agent)


def keep_from_garbage_search() -> None:
    """Make Python's garbage collector ignore all existing objects.

    A collection over the agents and the application stops all threads, including the event
    loop's, for a tenth of a second. Call this once everything is set up, in a process that only
    serves."""
    gc.collect()
    gc.freeze()


def _play_a_move(name: str, agent: Agent) -> None:
    """Have an agent play a move among four and one in a duel, on the first of the arena's boards on
    which it can. Some searches are compiled anew for duels.

    A policy may know boards of one size only, perhaps none of the arena's; then the log says so.
    """
    for side in ARENA_SIDES:
        try:
            for num_snakes in (4, 2):
                state = read_move_request(_opening(side, num_snakes)).state
                agent.act(state, 0, time.monotonic() + _WARM_UP_S)
            return
        except ProcsnakeError as error:
            problem = error
    log.warning("agent %s plays on no board of the arena: %s", name, problem)


def _opening(side: int, num_snakes: int) -> dict[str, Any]:
    """A request for the first move of a game."""
    ids = tuple("abcd"[:num_snakes])
    state = state_from_board(setup_board(width=side, height=side, snake_ids=ids))
    game = game_object(state.settings, "warm-up")
    return move_request(state, 0, game=game, ids=ids, names=ids, you=0)
