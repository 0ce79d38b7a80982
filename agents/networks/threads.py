"""Divides work of kernels among threads."""

from __future__ import annotations

import functools
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import torch

from envs.common.cores import usable_cores


def in_parts(work: Callable[[slice], None], count: int, size: int) -> None:
    """Call `work` with slices of up to `size` that cover `count` things, on as many threads as
    torch uses.

    `work` must release Python's lock. A thread that is held up (torch's own wait awake) takes fewer
    parts."""
    parts = iter([slice(start, min(start + size, count)) for start in range(0, count, size)])

    def work_on() -> None:
        for part in parts:
            work(part)

    if count > size:
        helpers = [_threads().submit(work_on) for _ in range(1, torch.get_num_threads())]
    else:
        helpers = []
    work_on()
    for helper in helpers:
        helper.result()


@functools.cache
def _threads() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(usable_cores())
