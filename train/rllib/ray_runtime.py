"""Starts Ray quietly and stops it again."""

from __future__ import annotations

import logging
import os
import sys
import sysconfig
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

from envs.common.cores import usable_cores
from envs.common.errors import ProcsnakeError
from envs.common.strangers.printable import in_one_line
from procsnake_packages import HERE
from train.cluster.node import token_path
from train.cluster.ray_node import token_environment
from train.config import Experiment

_QUIET = {
    "RLLIB_TEST_NO_TF_IMPORT": "1",
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
    "RAY_AIR_NEW_OUTPUT": "0",
    # Trials stay in the folder that the command was given in, which relative paths in an experiment
    # go by.
    "RAY_CHDIR_TO_TRIAL_DIR": "0",
}
_PREFER_OWN = "procsnake_packages.prefer_own"
"""The function that every worker calls first. It is needed because Ray puts the working directory
first on the workers' path, where a competition kit, for example, has a folder `envs` of its own."""

_TIMED_OUT = "timed out during startup"
"""What Ray says on a busy machine: its raylet ends itself if the dashboard agent, which it starts
even without a dashboard, isn't ready after 15 seconds. A second start finds what it imports in
memory, and so is quicker."""
_STARTS = 3
"""How often Ray is started at most."""


class RayError(ProcsnakeError):
    """Ray can't be started."""


@contextmanager
def running_ray(num_cpus: int, cluster: str | None = None) -> Iterator[None]:
    """Start a Ray of our own for actors that need `num_cpus` in all, unless one is running already.

    With `cluster`, join the Ray cluster at this address instead ("auto": the one of this machine).
    Raises `ClusterError` if that fails, and `RayError` if a Ray of our own doesn't start."""
    os.environ.update(_QUIET)
    if cluster and "RAY_AUTH_MODE" not in os.environ and token_path().is_file():
        # Ray reads these when it is imported, and never again.
        os.environ.update(token_environment(token_path()))
    # In a notebook Ray asks for ipywidgets 8 while it is imported. Colab has 7.
    logging.getLogger("ray.widgets").setLevel(logging.ERROR)
    import ray

    for name in ("ray", "ray.rllib", "ray.tune"):
        logging.getLogger(name).setLevel(logging.ERROR)
    # It logs a traceback for whatever fails in an env runner, which train.rllib.env_runner_failures
    # tells in a line.
    logging.getLogger("ray.rllib.utils.actor_manager").setLevel(logging.CRITICAL)
    if ray.is_initialized():
        yield
        return
    if cluster:
        _join(cluster)
    else:
        _start(num_cpus)
    try:
        yield
    finally:
        ray.shutdown()


def _start(num_cpus: int) -> None:
    try:
        _init_in_time(num_cpus)
    except Exception as error:
        raise RayError(
            f"Ray didn't start on this machine: {type(error).__name__}: {in_one_line(error)}. A"
            " start is given half a minute, and needs memory and room in /tmp/ray (RAY_TMPDIR:"
            " another folder); on a busy machine try later"
        ) from error


def _init_in_time(num_cpus: int) -> None:
    """Start Ray, anew if a start takes too long."""
    for _ in range(_STARTS - 1):
        try:
            return _init(num_cpus)
        except Exception as error:
            if _TIMED_OUT not in str(error):
                raise
    return _init(num_cpus)


def _init(num_cpus: int) -> None:
    import ray

    with fewer_processes(), _failed_start_ended():
        ray.init(
            # Never a cluster that happens to run on this machine.
            address="local",
            # More than there are, if need be: an actor that waits for a core that will never be
            # free waits forever.
            num_cpus=max(usable_cores(), num_cpus),
            include_dashboard=False,
            logging_level=logging.ERROR,
            log_to_driver=False,
            runtime_env={
                "env_vars": {**_QUIET, "PYTHONPATH": _path()},
                "worker_process_setup_hook": _PREFER_OWN,
            },
        )


@contextmanager
def _failed_start_ended() -> Iterator[None]:
    """End the processes of a start that fails. Ray leaves them running, and they would slow the
    next start down.
    """
    from ray._private.node import Node

    begun: list[Node] = []
    start = Node.start_head_processes

    def start_and_note(node: Node) -> None:
        begun.append(node)
        start(node)

    with patch.object(Node, "start_head_processes", start_and_note):
        try:
            yield
        except Exception:
            for node in begun:
                node.kill_all_processes(check_alive=False, wait=True)
            raise


@contextmanager
def fewer_processes() -> Iterator[None]:
    """Let a Ray that starts here have neither a dashboard nor a monitor that adds machines.

    Ray starts both, two fifths of its start's work, whatever `include_dashboard` says."""
    from ray._private.node import Node

    def no_dashboard(node: Any, **_: Any) -> None:
        node._webui_url = ""

    def no_monitor(node: Any) -> None:
        pass

    with (
        patch.object(Node, "start_api_server", no_dashboard),
        patch.object(Node, "start_monitor", no_monitor),
    ):
        yield


def _path() -> str:
    """The workers' PYTHONPATH: the working directory, the driver's own, and where procsnake lies if
    it isn't installed.
    """
    installed = {sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}
    own = str(HERE)
    places = [os.getcwd()]
    if drivers := os.environ.get("PYTHONPATH"):
        places.append(drivers)
    if own not in installed:
        places.append(own)
    return os.pathsep.join(places)


def _join(cluster: str) -> None:
    """The other machines have procsnake where their own Python finds it, so no path is sent
    along.
    """
    import ray
    from ray.exceptions import AuthenticationError, RaySystemError

    from train.cluster.hosts import ClusterError

    try:
        environment = {"env_vars": _QUIET, "worker_process_setup_hook": _PREFER_OWN}
        ray.init(
            address=cluster,
            logging_level=logging.ERROR,
            log_to_driver=False,
            runtime_env=environment,
        )
    except (
        ConnectionError,
        RuntimeError,
        ValueError,
        AuthenticationError,
        RaySystemError,
    ) as error:
        raise ClusterError(
            f"no Ray cluster could be joined at {cluster}: {in_one_line(error)}. Run this on one of"
            " its machines.",
            next_commands={"to start one": ("cluster", "up", "MACHINE", "MACHINE")},
        ) from error


def is_lost_process(error: Exception) -> bool:
    """Whether `error` says that a process of Ray has died."""
    if "ray" not in sys.modules:
        return False
    from ray.exceptions import RayActorError

    return isinstance(error, RayActorError)


def num_processes(experiment: Experiment) -> int:
    """Return how many processes a run keeps busy."""
    return 1 + experiment.num_env_runners + experiment.num_learners
