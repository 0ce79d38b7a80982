"""One Ray for all tests of this folder."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from typing import Any

import pytest

os.environ.update(RLLIB_TEST_NO_TF_IMPORT="1", RAY_USAGE_STATS_ENABLED="0", RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO="0")


@pytest.fixture(scope="session")
def one_ray() -> Iterator[None]:
    import ray

    start_ray(num_cpus=4, include_dashboard=False)
    yield
    ray.shutdown()


def start_ray(address: str = "local", **options: Any) -> None:
    """Quietly, with the tests' own worlds where its workers find them."""
    import ray

    logging.getLogger("ray").setLevel(logging.ERROR)
    paths = os.pathsep.join([os.getcwd(), os.environ.get("PYTHONPATH", "")])
    ray.init(
        address,
        log_to_driver=False,
        logging_level=logging.ERROR,
        runtime_env={"env_vars": {"PYTHONPATH": paths}},
        **options,
    )
