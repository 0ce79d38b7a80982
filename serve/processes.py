"""Serves from worker processes under gunicorn, for servers that run for months. A worker that dies
is replaced.

The master listens and forks. A worker makes its own agents and answers from an event loop
(`serve.server`). The master makes no agents, because onnxruntime starts threads when it is
imported, and a process that is forked after that hangs."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import tempfile
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from importlib.util import find_spec
from typing import Any, NoReturn

from flask import Flask

from envs.common.errors import ConfigError, ProcsnakeError
from serve.arena import GAMES
from serve.monitoring.logs import gunicorn_logger
from serve.monitoring.metrics import SHARED_FOLDER
from serve.server import STOP_S, Loop, keep_from_garbage_search, say_when_answering

_MEMORY = "/dev/shm"


def can_fork() -> bool:
    """Whether this machine has what worker processes need."""
    return hasattr(os, "fork") and find_spec("gunicorn") is not None


@contextmanager
def _shared_metrics() -> Iterator[None]:
    """Have the processes that are started within count together: in the user's folder, or in one
    that is removed at the end.

    Enter it before anything is counted; otherwise nothing is shared. The folder lies in memory
    where that can be: the files are mapped, and on a full disk whoever touches a page of one is
    killed."""
    if SHARED_FOLDER in os.environ:
        yield
        return
    owner = os.getpid()
    in_memory = os.access(_MEMORY, os.W_OK | os.X_OK)
    folder = tempfile.mkdtemp(
        prefix=f"procsnake-metrics-{owner}-", dir=_MEMORY if in_memory else None
    )
    os.environ[SHARED_FOLDER] = folder
    try:
        yield
    finally:
        # A worker that ends leaves this block, too.
        if os.getpid() == owner:
            del os.environ[SHARED_FOLDER]
            shutil.rmtree(folder, ignore_errors=True)


def in_child(work: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """Call `work` in a child process and return its result, so that its imports and threads don't
    stay in this process.

    The result is JSON-able.

    Raises `ConfigError` with the message of a `ProcsnakeError`, and `SystemExit` if the child ends
    in any other way."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        _tell_parent(work, writer)
    os.close(writer)
    with open(reader, encoding="utf-8") as pipe:
        text = pipe.read()
    os.waitpid(child, 0)
    if not text:
        raise SystemExit("the agents can't be made; what went wrong is said above")
    answer = json.loads(text)
    if "problem" in answer:
        raise ConfigError(answer["problem"], next_commands=answer["next_commands"])
    return answer


def _tell_parent(work: Callable[[], dict[str, Any]], writer: int) -> NoReturn:
    try:
        try:
            answer = work()
        except ProcsnakeError as error:
            answer = {"problem": error.message, "next_commands": error.next_commands}
        os.write(writer, json.dumps(answer).encode())
    except KeyboardInterrupt:
        pass  # A terminal sends Ctrl-C to the parent, too, which reports it.
    except BaseException:
        traceback.print_exc()
    finally:
        # No clean-up: all that could be cleaned up is the parent's.
        os._exit(0)


def announce(url: str, text: str) -> None:
    """Start a process that prints a line once the server that this process will run has
    answered.
    """
    parent = os.getpid()
    if os.fork() == 0:
        try:
            say_when_answering(url, text, is_wanted=lambda: os.getppid() == parent)
        finally:
            os._exit(0)


def run(
    make_app: Callable[[], Flask],
    listener: socket.socket,
    *,
    workers: int = 1,
    drain_s: float = 0.0,
) -> None:
    """Serve on a bound socket, which gunicorn takes over, until a signal ends it. Each worker calls
    `make_app`.

    The workers may take `drain_s` seconds to drain (`serve.monitoring.draining`).

    A closed terminal ends it, too, unless this process ignores SIGHUP. Raises `SystemExit` at the
    end, as gunicorn does."""
    from gunicorn.app.base import BaseApplication

    class Application(BaseApplication):
        def load_config(self) -> None:
            for name, value in _settings(listener.detach(), workers, drain_s).items():
                self.cfg.set(name, value)

        def load(self) -> Flask:
            return make_app()

    with _shared_metrics() if workers > 1 else nullcontext():
        Application().run()


def _settings(fd: int, workers: int, drain_s: float) -> dict[str, Any]:
    return {
        "bind": f"fd://{fd}",
        "workers": workers,
        "worker_class": _worker_class(),
        "graceful_timeout": STOP_S + 2 + int(drain_s),
        "logger_class": gunicorn_logger(),
        "proc_name": "procsnake",
        # Nothing else may steer the server.
        "control_socket_disable": True,
        "on_starting": _hear_of_a_closed_terminal,
        "worker_exit": _close_games,
        "child_exit": _forget_worker,
    }


def _hear_of_a_closed_terminal(arbiter: Any) -> None:
    """Have SIGHUP end the server as SIGTERM does, or do nothing where it was ignored before, as it
    is under `nohup`.

    Gunicorn would set itself up anew, with a socket that it has taken over already.
    """
    if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
        arbiter.handle_hup = lambda: None
    else:
        arbiter.handle_hup = arbiter.handle_term


def _worker_class() -> type:
    """Return the worker, a class only where gunicorn is installed."""
    from gunicorn.workers.base import Worker as Base

    class Worker(Base):
        """An event loop of ours under gunicorn's master, which is told that it lives."""

        def run(self) -> None:
            self._loop = Loop(self.wsgi, on_beat=self._beat)
            if not self.alive:
                return
            keep_from_garbage_search()
            self._loop.run(sockets=[listener.sock for listener in self.sockets])

        def handle_exit(self, *_: Any) -> None:
            self.alive = False
            if (loop := getattr(self, "_loop", None)) is not None:
                loop.stop()

        def init_signals(self) -> None:
            super().init_signals()
            # A terminal that is closed tells all processes; the master says what comes of it.
            signal.signal(signal.SIGHUP, signal.SIG_IGN)

        # What a terminal sends for Ctrl-C, and the master for it, ends a worker as gently as
        # SIGTERM does.
        handle_quit = handle_exit

        def _beat(self) -> None:
            self.notify()
            if self.ppid != os.getppid():
                self._loop.stop()

    return Worker


def _close_games(_: Any, worker: Any) -> None:
    """A worker that ends in peace writes what it still holds."""
    app = worker.app.callable
    if app and app.extensions[GAMES] is not None:
        app.extensions[GAMES].close()


def _forget_worker(_: Any, worker: Any) -> None:
    from prometheus_client.multiprocess import mark_process_dead

    if SHARED_FOLDER in os.environ:
        mark_process_dead(worker.pid)
