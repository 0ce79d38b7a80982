"""Where trainings run: as processes of this machine, or as tasks of a Ray cluster."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Protocol

from envs.common.errors import ConfigError
from envs.common.strangers.printable import in_one_line
from envs.common.whole_files import not_through_links
from train.runs.folder import RunError

LOST = -1000
"""The exit code of a training whose machine was lost. No process ends with it."""
_PR_SET_PDEATHSIG = 1
_SECONDS_BETWEEN_LOOKS = 0.2


class Running(Protocol):
    """A training that was begun."""

    def poll(self) -> int | None:
        """Return the exit code, `LOST`, or None while it runs."""

    def terminate(self) -> None:
        """Tell it to save and end."""

    def wait(self) -> int:
        """Wait for its end, and return what `poll` then gives."""


Begin = Callable[[Sequence[str], Path, "int | None"], Running]
"""Begins `procsnake train` with some words, a log file to append to, and a number of threads (None:
as the libraries like).
"""


def require_room(cores: int, jobs: int) -> None:
    """Raise `ConfigError` if no machine of the cluster has enough CPUs for one training, because
    Ray would wait forever.
    """
    import ray

    each = max(1, cores // jobs)
    largest = int(max(node["Resources"].get("CPU", 0) for node in ray.nodes() if node["Alive"]))
    if each > largest:
        raise ConfigError(
            f"--jobs {jobs} gives each training {each} of the cluster's {cores} CPUs, but its"
            f" largest machine has {largest}; try --jobs {-(-cores // max(1, largest))}"
        )


def on_this_machine(
    words: Sequence[str],
    log: Path,
    num_threads: int | None,
    before: Callable[[], None] | None = None,
) -> subprocess.Popen[bytes]:
    """Start a training in a new process, which first calls `before`."""
    with open(log, "ab", opener=not_through_links) as output:
        # In a session of its own, so that Ctrl-C reaches it once: from here.
        return subprocess.Popen(
            [sys.executable, "-m", "procsnake", "train", *words],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            env=_environment(num_threads),
            start_new_session=True,
            preexec_fn=before,
        )


class OnCluster:
    """A training as a task of the Ray cluster that was joined, on whichever machine has
    `num_threads` CPUs free.

    The machines must see the folder of runs and log at the same path, as on a shared disk.
    """

    def __init__(self, words: Sequence[str], log: Path, num_threads: int | None) -> None:
        import ray

        # The folder is ours, whichever machine's checkpoint a training goes on with.
        trusting = list(words)
        if "--resume" in words:
            trusting.append("--trust")
        # A training that is lost goes on from its checkpoint, which Ray's own retries don't know.
        task = ray.remote(num_cpus=num_threads or 1, max_retries=0)(_train)
        self._code: Any = task.remote(trusting, os.path.abspath(log), num_threads)

    def poll(self) -> int | None:
        import ray

        if ray.wait([self._code], timeout=0)[0]:
            return self.wait()
        return None

    def terminate(self) -> None:
        import ray

        ray.cancel(self._code)

    def wait(self) -> int:
        import ray
        from ray.exceptions import RayError, RayTaskError, TaskCancelledError

        try:
            return int(ray.get(self._code))
        except TaskCancelledError:
            return -signal.SIGTERM
        except RayTaskError as error:
            raise RunError(
                f"a machine of the cluster can't train: {in_one_line(error.cause)}. Each needs"
                " procsnake, and --out at the same path"
            ) from error
        except RayError:
            return LOST


def _train(words: Sequence[str], log: str, num_threads: int | None) -> int:
    """Train on the machine where this task runs, and return the exit code."""
    process = on_this_machine(words, Path(log), num_threads, _end_with_parent())
    try:
        # Ray cancels by an exception in this thread, which a system call that waits would never
        # see.
        while process.poll() is None:
            time.sleep(_SECONDS_BETWEEN_LOOKS)
    except BaseException:
        process.terminate()
        process.wait()
        raise
    return process.returncode


def _end_with_parent() -> Callable[[], None] | None:
    """Return a call that has Linux kill the process with its parent; None on other systems.

    Ray's workers end with their node, but the processes that they started would go on.
    """
    if not sys.platform.startswith("linux"):
        return None
    prctl = ctypes.CDLL(None).prctl
    return lambda: prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def _environment(num_threads: int | None) -> dict[str, str]:
    """This process's environment, in which procsnake is found and numerical libraries start
    `num_threads` threads.
    """
    here = str(Path(__file__).parents[2])
    path = os.pathsep.join(filter(None, (here, os.environ.get("PYTHONPATH", ""))))
    environment = {**os.environ, "PYTHONPATH": path}
    if num_threads:
        environment["OMP_NUM_THREADS"] = str(num_threads)
    return environment
