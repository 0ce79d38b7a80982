"""Listening: the application on waitress, warmed up before the first request can arrive.

Waitress is a production WSGI server in pure Python: threads, keep-alive, bounded buffers, the same on every platform, and a
library call that tells which port it got. It needs no fork, so kernels and networks that are warm stay warm.
"""

from __future__ import annotations

import errno
import socket
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import waitress
from flask import Flask

from agents.agent import Agent
from envs.battlesnake.plain import setup_board, state_from_board
from envs.errors import ProcsnakeError

THREADS = 16


class PortInUseError(ProcsnakeError):
    """Somebody else listens there already, or the address is not ours to listen on."""


class Server:
    """An application that is bound to its port: `url`, `run()` until interrupted, `close()`."""

    def __init__(self, app: Flask, host: str, port: int) -> None:
        listener = _bind(host, port)
        self._server = waitress.create_server(
            app,
            sockets=[listener],
            threads=THREADS,
            ident=None,
            channel_timeout=60,
            max_request_body_size=app.config["MAX_CONTENT_LENGTH"] + 1,
            clear_untrusted_proxy_headers=True,
        )
        self.port = int(listener.getsockname()[1])
        self.url = f"http://{'127.0.0.1' if host == '0.0.0.0' else host}:{self.port}"

    def run(self) -> None:
        """Serve until `close` or Ctrl-C."""
        self._server.run()

    def close(self) -> None:
        """Stop listening and let the threads go."""
        self._server.close()
        self._server.task_dispatcher.shutdown(timeout=1)


def listen(app: Flask, *, host: str = "127.0.0.1", port: int = 0) -> Server:
    """Bind the application; port 0 is any free one. Raises `PortInUseError`."""
    return Server(app, host, port)


def _bind(host: str, port: int) -> socket.socket:
    try:
        return socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET)
    except (OSError, OverflowError) as error:
        in_use = isinstance(error, OSError) and error.errno == errno.EADDRINUSE
        why = "another program listens there" if in_use else str(error)
        raise PortInUseError(f"can't listen on {host} port {port}: {why}. Try another port, or --port 0 for any") from error


@contextmanager
def running(app: Flask) -> Iterator[str]:
    """The application in a thread on a free port of this machine only; gives its URL."""
    server = listen(app)
    thread = threading.Thread(target=server.run, name="server", daemon=True)
    thread.start()
    try:
        yield server.url
    finally:
        server.close()
        thread.join(timeout=5)


def warm_up(agents: Mapping[str, Agent]) -> None:
    """Have every agent play one move, so that no game waits for kernels to be compiled."""
    state = state_from_board(setup_board(snake_ids=("a", "b", "c", "d")))
    for agent in agents.values():
        agent.act(state, 0)
