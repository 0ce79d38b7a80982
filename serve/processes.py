"""Listening in worker processes: gunicorn, for servers that run for months. A worker that dies is replaced.

The master listens and forks; a worker makes its own agents and answers in threads. The master makes none: onnxruntime has
threads of its own from its import on, and what is forked after that hangs.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import tempfile
import threading
import time
import traceback
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any, NoReturn

from flask import Flask

from envs.errors import ConfigError, ProcsnakeError
from serve.arena import ARRIVED, GAMES
from serve.metrics import SHARED_FOLDER
from serve.server import THREADS

_KEEP_ALIVE_S, _STOP_S = 60, 10


def can_fork() -> bool:
    """Whether this machine has what worker processes need."""
    return hasattr(os, "fork") and find_spec("gunicorn") is not None


def share_metrics() -> str:
    """Have the processes to come count together; the folder they do it in. Before anything is counted, or nothing is shared."""
    if SHARED_FOLDER not in os.environ:
        os.environ[SHARED_FOLDER] = tempfile.mkdtemp(prefix="procsnake-metrics-")
    return os.environ[SHARED_FOLDER]


def in_child(work: Callable[[], list[str]]) -> list[str]:
    """What `work` returns, done in a child process, so that nothing it imports or starts is left here.

    Raises `ConfigError` with the message of a `ProcsnakeError`, `SystemExit` if the child ends in any other way.
    """
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        _tell_parent(work, writer)
    os.close(writer)
    with open(reader, encoding="utf-8") as pipe:
        told = pipe.read()
    os.waitpid(child, 0)
    if not told:
        raise SystemExit("the agents can't be made; what went wrong is said above")
    answer = json.loads(told)
    if isinstance(answer, str):
        raise ConfigError(answer)
    return answer


def _tell_parent(work: Callable[[], list[str]], writer: int) -> NoReturn:
    try:
        try:
            answer: Any = work()
        except ProcsnakeError as error:
            answer = str(error)
        os.write(writer, json.dumps(answer).encode())
    except BaseException:
        traceback.print_exc()
    finally:
        # No clean-up: all that could be cleaned up is the parent's.
        os._exit(0)


def run(make_app: Callable[[], Flask], listener: socket.socket, *, workers: int = 1) -> None:
    """Serve on a bound socket, whose owner gunicorn becomes, until a signal ends it. `make_app` is called in each worker.

    Raises `SystemExit` at the end, as gunicorn does.
    """
    from gunicorn.app.base import BaseApplication

    folder = share_metrics()

    class Application(BaseApplication):
        def load_config(self) -> None:
            for name, value in _settings(listener.detach(), workers, folder).items():
                self.cfg.set(name, value)

        def load(self) -> Flask:
            return make_app()

    Application().run()


def _settings(fd: int, workers: int, folder: str) -> dict[str, Any]:
    return {
        "bind": f"fd://{fd}",
        "workers": workers,
        "worker_class": _worker_class(),
        "threads": THREADS,
        "keepalive": _KEEP_ALIVE_S,
        "graceful_timeout": _STOP_S,
        "loglevel": "warning",
        "proc_name": "procsnake",
        # Nothing else may steer the server, and nobody's word is taken for where a request came from.
        "control_socket_disable": True,
        "forwarded_allow_ips": "",
        "worker_exit": _close_games,
        "child_exit": _forget_worker,
        "on_exit": lambda _: shutil.rmtree(folder, ignore_errors=True),
    }


def _worker_class() -> type:
    from gunicorn.workers.gthread import TConn, ThreadWorker

    class Worker(ThreadWorker):
        """Tells the application when a request came: it may wait for a thread after that, and the game's clock runs."""

        _now = threading.local()

        def enqueue_req(self, conn: TConn) -> None:
            conn.queued = time.monotonic()
            super().enqueue_req(conn)

        def handle(self, conn: TConn) -> Any:
            # A connection may be made long before anything is asked on it.
            self._now.arrived = conn.queued if conn.wait_for_data(0) else None
            stays = super().handle(conn)
            if stays is False:
                # The main loop would wait up to two seconds for a client that doesn't hang up, and take no requests meanwhile.
                conn.close(graceful=True)
                conn.close = lambda graceful=False: None
            return stays

        def load_wsgi(self) -> None:
            super().load_wsgi()
            app, now = self.wsgi, self._now

            def timed(environ: dict[str, Any], start: Any) -> Any:
                environ[ARRIVED] = now.arrived
                return app(environ, start)

            self.wsgi = timed

    return Worker


def _close_games(_: Any, worker: Any) -> None:
    """A worker that ends in peace writes what it still holds."""
    store = worker.app.callable.extensions[GAMES] if worker.app.callable else None
    if store is not None:
        store.close()


def _forget_worker(_: Any, worker: Any) -> None:
    from prometheus_client.multiprocess import mark_process_dead

    mark_process_dead(worker.pid)
