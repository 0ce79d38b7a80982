"""What a batch script runs on every machine of a job on Slurm, by srun: the first machine leads,
the others join it.
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
    """The machines of a job on Slurm. Which network device leads to the others isn't known, and so
    the way there is asked.
    """

    def address(self) -> str:
        """The address from which this machine reaches the head, or the head its first worker."""
        peer = self.head if not self.leads else next(iter(self.others), None)
        return own_address(socket.gethostbyname(peer) if peer else None)


def main(arguments: Sequence[str] | None = None) -> int:
    """Do this machine's part. Returns the exit code: that of the training at the head, 0 at the
    others.
    """
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
        return launch(
            plan(options.folder, options.group), _stop_when_asked(options.folder / "stop")
        )
    except (ProcsnakeError, OSError) as error:
        print(f"procsnake: {reason(error)}", file=sys.stderr, flush=True)
        return _FAILED
    finally:
        shutil.rmtree(os.environ["RAY_TMPDIR"], ignore_errors=True)


def plan(folder: Path, groups: Sequence[str]) -> Launch:
    """Return this machine's part. Raises `ClusterError` if it is in none of the groups."""
    named = [
        (name, hosts.split(",")) for name, _, hosts in (group.partition("=") for group in groups)
    ]
    by_host = {host: name for name, hosts in named for host in hosts}
    me = os.environ.get("SLURMD_NODENAME", "")
    if me not in by_host:
        raise ClusterError(
            f"this machine is {me!r} for Slurm, but the job has {', '.join(by_host)}"
        )
    hosts = Nodes(me, by_host, named[0][1][0])
    return Launch(
        hosts=hosts,
        token_path=(folder / "token").absolute(),
        command=(
            (sys.executable, "-m", "procsnake", "train", "--cluster", "auto", *_what(folder))
            if hosts.leads
            else ()
        ),
        grace_seconds=_GRACE_SECONDS,
    )


def _what(folder: Path) -> list[str]:
    """Which run `procsnake train` is to begin, or to continue if Slurm starts the job once more."""
    runs = sorted(config.parent for config in folder.glob(f"*/{CONFIG}"))
    if not runs:
        return ["--config", str(folder / EXPERIMENT_FILE), "--runs", str(folder)]
    # The job's own earlier life wrote it, perhaps on another machine, and has ended.
    forget_lock(runs[-1])
    return ["--resume", str(runs[-1]), "--trust"]


def _stop_when_asked(file: Path) -> threading.Event:
    """An event that is set once the file is there."""
    stop = threading.Event()

    def look() -> None:
        while not stop.wait(1.0):
            if file.exists():
                stop.set()

    threading.Thread(target=look, daemon=True).start()
    return stop


if __name__ == "__main__":
    sys.exit(main())
