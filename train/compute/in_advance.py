"""Makes things before they are needed, on another thread."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import TypeVar

import torch

T = TypeVar("T")
U = TypeVar("U")


def in_advance(make: Callable[[T], U], items: Iterable[T]) -> Iterator[U]:
    """Yield `make(item)` for each item. While the caller uses one result, the next one is made, on
    a single thread of torch.

    What `make` raises is raised here."""
    with ThreadPoolExecutor(1, initializer=partial(torch.set_num_threads, 1)) as pool:
        ahead: Future[U] | None = None
        for item in items:
            following = pool.submit(make, item)
            if ahead is not None:
                yield ahead.result()
            ahead = following
        if ahead is not None:
            yield ahead.result()
