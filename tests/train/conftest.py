"""One Ray for all tests of this folder."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from tests.ray_cluster import SHARED, start_ray

os.environ["RLLIB_TEST_NO_TF_IMPORT"] = "1"


@pytest.fixture(scope="session")
def one_ray() -> Iterator[None]:
    import ray

    start_ray(**SHARED)
    yield
    ray.shutdown()
