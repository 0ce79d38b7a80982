"""Spreads work over processes, in order, and tells how far it has come."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import ExitStack, contextmanager
from multiprocessing import get_context, parent_process
from typing import TypeVar

T = TypeVar("T")
R = TypeVar("R")
Tell = Callable[[int, int], None]
"""Is called with how many pieces of work are done, and how many there are."""


@contextmanager
def processes(jobs: int) -> Iterator[ProcessPoolExecutor | None]:
    """Lend `jobs` processes, or None for one job, which this process does.

    They end with the context, and when this process is killed.
    """
    if jobs < 2:
        yield None
        return
    pool = ProcessPoolExecutor(jobs, mp_context=get_context("spawn"), initializer=_begin)
    with ExitStack() as stack:
        stack.callback(pool.shutdown, cancel_futures=True)
        yield pool


def _begin() -> None:
    """Prepare a process that was started."""
    # Ctrl-C reaches it, too: it finishes the piece that it is at, and what waits is given up.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_the_parent, daemon=True).start()


def _end_with_the_parent() -> None:
    parent = parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def spread(pool: ProcessPoolExecutor | None, work: Callable[[T], R], pieces: Sequence[T], tell: Tell) -> list[R]:
    """Return `work` of each piece, in the order of the pieces. What a piece raises is raised here."""
    tell(0, len(pieces))
    if pool is None:
        found = []
        for piece in pieces:
            found.append(work(piece))
            tell(len(found), len(pieces))
        return found
    pending = [pool.submit(work, piece) for piece in pieces]
    try:
        for done, future in enumerate(as_completed(pending), 1):
            future.result()
            tell(done, len(pieces))
        return [future.result() for future in pending]
    finally:
        # If a piece or `tell` raises, nobody waits for the rest.
        for future in pending:
            future.cancel()
