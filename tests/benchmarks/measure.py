"""How benchmarks measure: CPU time beside wall time, medians of several runs, and what machine it
was.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numba
import numpy as np


class Rate(NamedTuple):
    """Things done a second: medians over the runs, and the spread by CPU time."""

    per_cpu_s: float
    per_wall_s: float
    lowest: float
    highest: float
    runs: int

    def __str__(self) -> str:
        spread = f"{self.lowest / 1e6:7.2f} … {self.highest / 1e6:6.2f}"
        return (
            f"{self.per_cpu_s / 1e6:9.3f} M/CPU-s ({spread}) {self.per_wall_s / 1e6:9.3f} M/s "
            f" {self.runs} runs"
        )


def rate(work: Callable[[], int], *, runs: int, seconds: float) -> Rate:
    """Call `work`, which returns how many things it did, for about `seconds` a run. The first call
    isn't counted.
    """
    work()
    by_cpu = []
    by_wall = []
    for _ in range(runs):
        done = 0
        cpu = time.process_time()
        wall = time.perf_counter()
        while time.perf_counter() - wall < seconds:
            done += work()
        by_cpu.append(done / (time.process_time() - cpu))
        by_wall.append(done / (time.perf_counter() - wall))
    return Rate(
        statistics.median(by_cpu), statistics.median(by_wall), min(by_cpu), max(by_cpu), runs
    )


def machine() -> dict[str, Any]:
    """What the figures were measured on."""
    with open("/proc/cpuinfo") as info:
        cpu = next(
            (line.split(":", 1)[1].strip() for line in info if line.startswith("model name")),
            platform.processor(),
        )
    return {
        "cpu": cpu,
        "cores": os.cpu_count(),
        "load": round(os.getloadavg()[0], 2),
        "python": platform.python_version(),
        "numpy": np.__version__,
        "numba": numba.__version__,
    }


def arguments(doc: str | None, *, with_json: bool = True) -> argparse.ArgumentParser:
    """A parser that shows a module's docstring as it is, and that knows the --json of `tell`."""
    parser = argparse.ArgumentParser(
        description=doc, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    if with_json:
        parser.add_argument(
            "--json",
            action="store_true",
            help="print the figures as one JSON object in the last line",
        )
    return parser


def tell(options: argparse.Namespace, figures: dict[str, Any]) -> None:
    """With --json, print the figures, what they were measured on, and the day."""
    if options.json:
        print(json.dumps({**figures, "machine": machine(), "time": time.strftime("%Y-%m-%d")}))
