"""Ray as the tests start it: quietly, alone or as a cluster of several nodes on this machine."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

os.environ.update(RAY_USAGE_STATS_ENABLED="0", RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO="0")

SHARED = {"num_cpus": 4, "include_dashboard": False}
"""The Ray that all tests of one process share."""


def start_ray(address: str = "local", **options: Any) -> None:
    """Start Ray without its logs; its workers find the tests' own worlds."""
    import ray

    from train.rllib.ray_runtime import fewer_processes

    logging.getLogger("ray").setLevel(logging.ERROR)
    paths = os.pathsep.join([os.getcwd(), os.environ.get("PYTHONPATH", "")])
    with fewer_processes():
        ray.init(
            address,
            log_to_driver=False,
            logging_level=logging.ERROR,
            runtime_env={"env_vars": {"PYTHONPATH": paths}},
            **options,
        )


@contextmanager
def ray_cluster(*nodes: dict[str, Any]) -> Iterator[Any]:
    """Start a cluster with these nodes. The shared Ray, if it runs, makes room, and is started anew
    afterwards.
    """
    import ray
    from ray.cluster_utils import Cluster

    shared = ray.is_initialized()
    ray.shutdown()
    cluster = Cluster()
    try:
        for node in nodes:
            # Without a port Ray tests none. It tests its own default otherwise, and leaks the
            # socket where another Ray has it.
            cluster.add_node(include_dashboard=False, dashboard_port=None, **node)
        start_ray(address=cluster.address)
        yield cluster
    finally:
        ray.shutdown()
        cluster.shutdown()
        if shared:
            start_ray(**SHARED)
