"""Spreads work over processes, in order, and reports progress."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, suppress
from multiprocessing import get_context
from multiprocessing.connection import Connection
from typing import TypeVar

from envs.common.errors import ProcsnakeError

T = TypeVar("T")
R = TypeVar("R")
Tell = Callable[[int, int], None]
"""Is called with how many pieces of work are done, and how many there are."""


class WorkerLostError(ProcsnakeError):
    """A process or machine that did a part of the work has died."""


@contextmanager
def processes(jobs: int) -> Iterator[ProcessPoolExecutor | None]:
    """Provide `jobs` processes within the context, or None for one job, which this process does.

    They end with the context, at once after an exception such as Ctrl-C's, and when this process
    is killed."""
    if jobs < 2:
        yield None
        return
    context = get_context("spawn")
    # Nothing is ever sent. The processes see its end when this one closes it or is killed.
    theirs, ours = context.Pipe(duplex=False)
    with (
        theirs,
        ours,
        ProcessPoolExecutor(
            jobs, mp_context=context, initializer=_begin, initargs=(theirs,)
        ) as pool,
    ):
        try:
            yield pool
        except BaseException:
            ours.close()
            raise
        finally:
            pool.shutdown(cancel_futures=True)


def _begin(until: Connection) -> None:
    """Prepare a process that was started, which ends when `until` does."""
    # Ctrl-C reaches it, too, but what is done about it is decided where the work was given out.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with, args=(until,), daemon=True).start()


def _end_with(until: Connection) -> None:
    with suppress(OSError):
        until.poll(None)
    os._exit(1)


def spread(
    pool: ProcessPoolExecutor | None, work: Callable[[T], R], pieces: Sequence[T], tell: Tell
) -> list[R]:
    """Apply `work` to each piece, and return the results in order. Exceptions are raised here.

    Raises `WorkerLostError` if a process of the pool dies.
    """
    tell(0, len(pieces))
    if pool is None:
        results = []
        for piece in pieces:
            results.append(work(piece))
            tell(len(results), len(pieces))
        return results
    pending: list[Future[R]] = []
    try:
        pending += (pool.submit(work, piece) for piece in pieces)
        for done, future in enumerate(as_completed(pending), 1):
            future.result()
            tell(done, len(pieces))
        return [future.result() for future in pending]
    except BrokenProcessPool as error:
        raise WorkerLostError(
            "a process that did a part of the work was killed, perhaps for lack of memory. Try"
            " again with fewer processes"
        ) from error
    finally:
        # If a piece or `tell` raises, nobody waits for the rest.
        for future in pending:
            future.cancel()
