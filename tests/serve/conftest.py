"""What servers do before they listen, once for all tests here: no request waits for kernels to be compiled."""

from __future__ import annotations

import pytest

import agents
from serve.server import warm_up


@pytest.fixture(scope="session", autouse=True)
def warm():
    warm_up({name: agents.make(name) for name in ("flood", "greedy")})
