"""The attacks of `tests.benchmarks.arena_attack`, smaller: games go on beside them."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from serve.processes import can_fork

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(not can_fork(), reason="needs gunicorn and fork"),
]

SIZES = {
    "slow": 200,
    "idle": 500,
    "starts": 2000,
    "thinkers": 3,
    "pipelined": 6,
    "upgrades": 200,
    "refused": 8,
    "heads": 18,
}


@pytest.mark.parametrize(("attack", "count"), SIZES.items())
def test_games_go_on_beside_an_attack(attack, count):
    options = ["--count", str(count), "--seconds", "12", "--games", "4", "--agent", "flood"]
    command = [sys.executable, "-m", "tests.benchmarks.arena_attack", attack, *options]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=True)
    seen = json.loads(done.stdout.splitlines()[0])
    assert seen["moves"] > 40
    # Whether one is late depends on what else the machine does; whether it is answered doesn't.
    assert (seen["failed"], seen["5xx"]) == (0, 0), seen["first_failures"]
    if attack == "starts":
        # How many fit into the time is the machine's business; that none is turned away is the
        # server's.
        assert seen["refused"] == 0
        assert seen["started"] > 100
        assert seen["disk_mib"] < 5
    assert seen["log_kib"] < 100
