"""The program that a batch script runs by srun on every machine of a job on Slurm.

The first machine leads, the others join it.
"""

from __future__ import annotations

import argparse
import os
import shutil
import socket
import sys
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from envs.common.errors import ProcsnakeError, reason
from train.cluster import ray_node
from train.cluster.hosts import ClusterError, Hosts
from train.cluster.launcher import Launch, launch
from train.cluster.node import own_address
from train.engines.plan import EXPERIMENT_FILE
from train.runs.folder import CONFIG
from train.runs.lock import forget_lock

_FAILED = 1
_GRACE_SECONDS = 240.0


@dataclass(frozen=True)
class Nodes(Hosts):
    """The machines of a job on Slurm. Their network device is unknown, so addresses are found by
    the route to another machine.
    """

    def address(self) -> str:
        """Return the address from which this machine reaches the head, or the head its first
        worker.
        """
        peers = self.others if self.leads else [self.head]
        if not peers:
            return own_address(None)
        return own_address(socket.gethostbyname(peers[0]))


def main(arguments: Sequence[str] | None = None) -> int:
    """Do this machine's part. Returns the training's exit code on the head, 0 on the others."""
    parser = argparse.ArgumentParser(prog="train.engines.slurm_node")
    parser.add_argument(
        "folder",
        type=Path,
        help="the job's folder, with the experiment and the token; gets the run",
    )
    parser.add_argument(
        "--group",
        action="append",
        required=True,
        metavar="NAME=HOST,HOST",
        help="the first host leads",
    )
    options = parser.parse_args(arguments)
    # What another user's Ray left in /tmp/ray can't be written to.
    os.environ["RAY_TMPDIR"] = f"/tmp/procsnake-{os.environ['SLURM_JOB_ID']}"
    Path(os.environ["RAY_TMPDIR"]).mkdir(mode=0o700, exist_ok=True)
    # A start of this job that Slurm has killed may have left its Ray: not every Slurm tracks
    # processes by control groups.
    ray_node.stop({})
    try:
        stop = _stop_when_asked(options.folder / "stop")
        return launch(plan(options.folder, options.group), stop)
    except (ProcsnakeError, OSError) as error:
        print(f"procsnake: {reason(error)}", file=sys.stderr, flush=True)
        return _FAILED
    finally:
        shutil.rmtree(os.environ["RAY_TMPDIR"], ignore_errors=True)


def plan(folder: Path, groups: Sequence[str]) -> Launch:
    """Return this machine's part. Raises `ClusterError` if it belongs to no group."""
    by_host: dict[str, str] = {}
    for group in groups:
        name, _, names = group.partition("=")
        by_host |= dict.fromkeys(names.split(","), name)
    me = os.environ.get("SLURMD_NODENAME", "")
    if me not in by_host:
        raise ClusterError(
            f"this machine is {me!r} for Slurm, but the job has {', '.join(by_host)}"
        )
    hosts = Nodes(me, by_host, next(iter(by_host)))
    command: tuple[str, ...] = ()
    if hosts.leads:
        train = (sys.executable, "-m", "procsnake", "train", "--cluster", "auto")
        command = (*train, *_what(folder))
    return Launch(
        hosts=hosts,
        token_path=(folder / "token").absolute(),
        command=command,
        grace_seconds=_GRACE_SECONDS,
    )


def _what(folder: Path) -> list[str]:
    """The words after which `procsnake train` begins a run, or continues it if Slurm starts the job
    once more.
    """
    runs = sorted(config.parent for config in folder.glob(f"*/{CONFIG}"))
    if not runs:
        return ["--config", str(folder / EXPERIMENT_FILE), "--runs", str(folder)]
    # The job's own earlier life wrote it, perhaps on another machine, and has ended.
    forget_lock(runs[-1])
    return ["--resume", str(runs[-1]), "--trust"]


def _stop_when_asked(file: Path) -> threading.Event:
    """Return an event that is set once the file is there."""
    stop = threading.Event()

    def look() -> None:
        while not stop.wait(1.0):
            if file.exists():
                stop.set()

    threading.Thread(target=look, daemon=True).start()
    return stop


if __name__ == "__main__":
    sys.exit(main())
