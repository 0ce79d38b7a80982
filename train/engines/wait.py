"""Waits until a Ray cluster has all its machines: `python -m train.engines.wait 3`, on one of them.

Ray's own launcher on EC2 returns once the head is up, while the others still start.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence

_NAP_SECONDS = 5.0


def main(arguments: Sequence[str] | None = None) -> int:
    """Wait. Returns 0 once the machines are there, and 1 if they aren't in time."""
    parser = argparse.ArgumentParser(prog="train.engines.wait", description=__doc__)
    parser.add_argument("machines", type=int, help="how many machines, with the head")
    parser.add_argument(
        "--minutes", type=float, default=20.0, help="how long at most (default: %(default)s)"
    )
    options = parser.parse_args(arguments)
    import ray

    ray.init("auto", log_to_driver=False)
    num_alive = 0
    deadline = time.monotonic() + 60 * options.minutes
    while True:
        before = num_alive
        num_alive = sum(bool(node["Alive"]) for node in ray.nodes())
        if num_alive != before:
            print(f"{num_alive} of {options.machines} machines are there", flush=True)
        if num_alive >= options.machines:
            return 0
        if time.monotonic() > deadline:
            print(
                f"only {num_alive} of {options.machines} machines came within {options.minutes:g}"
                " minutes",
                file=sys.stderr,
            )
            return 1
        time.sleep(_NAP_SECONDS)


if __name__ == "__main__":
    sys.exit(main())
