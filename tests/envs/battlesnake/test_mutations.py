"""Would the tests notice a wrong rule? Dozens of single mistakes, and each must be caught."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]


@pytest.mark.long
def test_every_single_mistake_in_the_rules_is_caught():
    run = subprocess.run(
        [sys.executable, "-m", "tests.envs.battlesnake.mutations"],
        cwd=ROOT,
        env=os.environ | {"NUMBA_DISABLE_JIT": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    report = json.loads(run.stdout)
    assert report["unchanged"] is None
    assert report["turns"] > 400
    assert len(report["mutations"]) >= 40
    assert "did not run" not in report["mutations"].values(), run.stderr
    assert [
        mistake for mistake, caught_by in report["mutations"].items() if caught_by is None
    ] == []
