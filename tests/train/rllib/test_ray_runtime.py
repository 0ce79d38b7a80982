from __future__ import annotations

import os
import subprocess
import sys

START = """
from train.rllib.ray_runtime import RayError, running_ray
try:
    with running_ray(1):
        pass
except RayError as error:
    print(error)
"""


def test_a_ray_that_cant_start_is_told_in_a_line():
    """Its folder is one that can't be made."""
    environment = {**os.environ, "RAY_TMPDIR": "/dev/null/x"}
    told = subprocess.run(
        [sys.executable, "-c", START], env=environment, capture_output=True, text=True, check=True
    ).stdout
    assert "Not a directory: '/dev/null/x'" in told
    assert "RAY_TMPDIR: another folder" in told
    assert len(told.splitlines()) == 1
