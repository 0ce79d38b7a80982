"""The wheel, outside the repository: it brings every file that is needed, and its commands run."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

import procsnake
from tests.envs.common.test_command_line import commands
from tests.wheel import ROOT, run_each, unpacked_wheel

USES = (
    ["champions"],
    ["train", "--list"],
    ["train", "battlesnake-ppo", "--help-keys"],
    ["benchmark", "procgen", "--dry-run"],
    shlex.split("launch sagemaker battlesnake-apex --instances ml.c5.4xlarge --explain"),
    ["warm-up", "random"],
    ["evaluate", "champion-duel", "--against", "random", "--num-snakes", "2", "--games", "2"],
    ["match", "champion-standard", "greedy", "--delay", "0", "--record", "game.jsonl"],
    ["match", "random", "random", "random", "random", "--seed", "1"],
    ["replay", "show", "game.jsonl", "--turn", "0"],
    ["replay", "animate", "game.jsonl", "--out", "game.gif"],
    ["tournament", "greedy", "random", "--games", "1", "--max-turns", "5"],
    ["sprt", "greedy", "random", "--games", "4", "--max-turns", "5"],
)
"""Commands that need neither a run, nor a person, nor anything outside this machine, and are done
soon.
"""


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    return unpacked_wheel(tmp_path_factory.mktemp("wheel"))


def test_it_has_every_file_of_the_packages(installed):
    """The tree's files, as git knows them or, in a copy without git, as they lie there."""
    folders = ("envs", "agents", "train", "serve")
    listed = subprocess.run(
        ["git", "ls-files", *folders], cwd=ROOT, capture_output=True, text=True, check=False
    ).stdout.split("\n")
    lying = [
        str(path.relative_to(ROOT))
        for name in folders
        for path in (ROOT / name).rglob("*")
        if path.is_file()
    ]
    expected = {
        name for name in (listed if any(listed) else lying) if name and "__pycache__" not in name
    }
    assert len(expected) > 400
    assert {name for name in expected if not (installed / name).is_file()} == set()


def test_every_command_runs_from_it(installed, tmp_path):
    words = [*([*name, "--help"] for name in commands()), *USES]
    environment = {**os.environ, "PYTHONPATH": str(installed)}
    places, codes = run_each(sys.executable, words, cwd=tmp_path, environment=environment)
    assert all(Path(place).is_relative_to(installed) for place in places)
    assert not Path(procsnake.__file__).is_relative_to(installed)
    assert [one for one in codes if one[1] != 0] == []
    assert (tmp_path / "game.gif").read_bytes().startswith(b"GIF")
