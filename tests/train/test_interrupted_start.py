"""Ctrl-C before the first iteration: while packages are imported, the engine is compiled, or Ray
starts.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import pytest

COMMANDS = {
    "train": ["train", "battlesnake-ppo", "--minutes", "0.5"],
    "tune": ["tune", "battlesnake-ppo", "--search", "ppo.gamma=0.9,0.99", "--minutes", "0.3"],
}


BEGUN = "runs/*/ray_tune"
MOMENTS = [
    ("train", ""),
    ("train", "preparing the world"),
    ("train", "starting Ray"),
    ("tune", ""),
    ("tune", BEGUN),
]
"""(command, the line that it has said by then, or the folder that it has made); "" is two seconds
after its start.
"""


@pytest.mark.long
@pytest.mark.parametrize(("command", "moment"), MOMENTS)
def test_it_is_told_in_a_line_and_leaves_nothing(tmp_path, command, moment):
    process = subprocess.Popen(
        [
            sys.executable,
            "-u",
            "-m",
            "procsnake",
            *COMMANDS[command],
            "--runs",
            str(tmp_path / "runs"),
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    try:
        if moment == BEGUN:
            while process.poll() is None and not list(tmp_path.glob(BEGUN)):
                time.sleep(0.05)
            time.sleep(1)  # Ray Tune makes its trials then, which have no configuration yet
        elif moment:
            assert process.stdout is not None
            assert any(moment in told for told in process.stdout)
        else:
            time.sleep(2)
        os.killpg(process.pid, signal.SIGINT)
        said, _ = process.communicate(timeout=120)
    finally:
        process.kill()
    # To a shell they are the same.
    assert process.returncode in (130, -signal.SIGINT), said
    assert "Traceback" not in said
    assert "procsnake: stopp" in said
    assert not [path for path in tmp_path.rglob("*") if path.suffix in (".tmp", ".part")]
