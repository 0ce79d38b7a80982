"""Plays the games of a match in threads of this process, or in processes of their own.

Searches release Python's lock while they think, but the referee, and agents written in Python, hold
it. So threads are good for one game, and processes for several. A worker takes a fixture and
returns a game. Only the caller writes to a store."""

from __future__ import annotations

import multiprocessing
import pickle
import signal
import sys
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection
from typing import TypeVar

from agents.measure.tournament.game import BrokenOffError, Fixture, play_game, ready_players
from agents.measure.tournament.settings import Game, Match
from agents.parallel import WorkerLostError
from envs.common.errors import ProcsnakeError

W = TypeVar("W", bound="GameWorkers")
_MOST_TRIES = 3
"""How often a game is tried. If its worker dies each time, it's the game's fault and not the
worker's.
"""
_SPAWN = multiprocessing.get_context("spawn")


class WorkerError(ProcsnakeError):
    """An agent raised something in a worker that can't be sent to this process. The message has its
    type and its text.
    """


class GameWorkers(ABC):
    """Plays games of a match, up to `count` at the same time. This is a context manager that breaks
    off running games at its end.

    If a worker is lost, its game is played anew, and `say` is called with a line about it. A game
    is a function of its fixture, so nothing but time is lost."""

    def __init__(self, match: Match, count: int, say: Callable[[str], None] | None = None) -> None:
        self.match = match
        self.count = count
        self._say = say or _say_on_stderr

    def __enter__(self: W) -> W:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def play(self, fixture: Fixture) -> Game:
        """Play a game; up to `count` threads may wait for one at the same time.

        Raises what the agents raise, `WorkerLostError` if the game's workers are lost again and
        again, and `BrokenOffError` after `stop`."""
        for number in range(1, _MOST_TRIES + 1):
            try:
                return self._play_once(fixture)
            except WorkerLostError as error:
                if number == _MOST_TRIES:
                    raise
                self._say(f"{error}; game {fixture.round}/{fixture.number} is played anew")
        raise AssertionError("the last try returns or raises")

    @abstractmethod
    def _play_once(self, fixture: Fixture) -> Game:
        """Play a game as `play` does, but raise `WorkerLostError` as soon as the game's worker is
        lost.
        """

    @abstractmethod
    def stop(self) -> None:
        """Break off the running games. Afterwards no game can be played."""


MakeWorkers = Callable[[Match, int], GameWorkers]
"""A function that makes a match's workers, for that many games at the same time. It raises what
`agents.make` raises.
"""


class InThreads(GameWorkers):
    """Plays games in threads of this process, for agents that only this process knows."""

    def __init__(self, match: Match, count: int) -> None:
        super().__init__(match, count)
        self._seated = ready_players(match)
        self._stop = threading.Event()

    def _play_once(self, fixture: Fixture) -> Game:
        return play_game(self.match, fixture, self._seated, self._stop)

    def stop(self) -> None:
        self._stop.set()


class InProcesses(GameWorkers):
    """Plays games in processes, each of which makes the players itself. Processes are started when
    they are needed.
    """

    def __init__(self, match: Match, count: int, say: Callable[[str], None] | None = None) -> None:
        super().__init__(match, count, say)
        # Made here first, so that a player that can't be made is reported by this process, and the
        # workers find all kernels compiled.
        ready_players(match)
        self._lock = threading.Lock()
        self._stopped = False
        self._idle: list[_Worker] = []
        self._all: set[_Worker] = set()

    def _play_once(self, fixture: Fixture) -> Game:
        worker = self._borrow()
        try:
            answer = worker.play(fixture)
        except (EOFError, OSError) as error:
            self._bury(worker)
            if self._stopped:
                raise BrokenOffError("its worker was stopped") from error
            raise WorkerLostError(f"a worker process died ({worker.fate()})") from error
        with self._lock:
            self._idle.append(worker)
        if isinstance(answer, Exception):
            raise answer
        return answer

    def _borrow(self) -> _Worker:
        with self._lock:
            if self._stopped:
                raise BrokenOffError("the workers were stopped")
            if self._idle:
                return self._idle.pop()
            worker = _Worker(self.match)
            self._all.add(worker)
            return worker

    def _bury(self, worker: _Worker) -> None:
        with self._lock:
            self._all.discard(worker)
        worker.kill()

    def stop(self) -> None:
        with self._lock:
            self._stopped = True
            workers = list(self._all)
        # The thread that waits for a killed worker sees the end of its pipe.
        for worker in workers:
            worker.kill()


class _Worker:
    """This process's end of a worker."""

    def __init__(self, match: Match) -> None:
        self._pipe, theirs = _SPAWN.Pipe()
        self._process = _SPAWN.Process(target=_serve, args=(theirs, match), daemon=True)
        with _deaf_to_ctrl_c():
            self._process.start()
        theirs.close()

    def play(self, fixture: Fixture) -> Game | Exception:
        """Return the game, or the error that was raised. Raises `EOFError` or `OSError` if the
        process dies.
        """
        self._pipe.send(fixture)
        answer: Game | Exception = self._pipe.recv()
        return answer

    def kill(self) -> None:
        self._process.kill()
        self._process.join()

    def fate(self) -> str:
        """Return in words how the process ended."""
        code = self._process.exitcode
        if code is not None and code < 0:
            return f"signal {-code}"
        return f"exit code {code}"


def _serve(pipe: Connection, match: Match) -> None:
    """Play the games that come through the pipe, until the parent closes it."""
    seated = None
    with suppress(EOFError, OSError):
        while True:
            fixture = pipe.recv()
            try:
                seated = seated or ready_players(match)
                pipe.send(play_game(match, fixture, seated))
            except (EOFError, OSError):
                raise
            except Exception as error:
                pipe.send(portable(error))


def portable(error: Exception) -> Exception:
    """Return the error if it can be sent to another process, or else one with its type and text."""
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        return WorkerError(f"{type(error).__name__}: {error}")
    return error


@contextmanager
def _deaf_to_ctrl_c() -> Iterator[None]:
    """Have the processes that are started meanwhile ignore Ctrl-C, which a terminal sends to them
    as well. Their parent ends them.
    """
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    # The first process would start the tracker, whose start lets Ctrl-C through again.
    resource_tracker.ensure_running()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _say_on_stderr(text: str) -> None:
    print(f"procsnake: {text}", file=sys.stderr, flush=True)
