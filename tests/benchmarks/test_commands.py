"""Every benchmark's command runs, in miniature: what it prints was measured, but says nothing."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
ATTACK = "--count 2 --seconds 1 --games 1 --blocks 1 --agent random"
COMMANDS = (
    "analyse --nodes 100 --games 2",
    f"arena_attack slow {ATTACK}",
    f"arena_attack starts {ATTACK}",
    f"arena_attack stalled {ATTACK}",
    f"arena_attack heads {ATTACK}",
    "arena_lives --games 5",
    "arena_load --agent random --rate 20 --seconds 1",
    "arena_load --agent random --games 1 --seconds 1 --pace-ms 0",
    "arena_storage starts --count 5",
    "arena_storage shapes --count 2 --agent random",
    "battlesnake --quick --seconds 0.01",
    "blunders random --games 1 --turns 1",
    "distant_engine --agent random --way 1 2 --telling zero",
    "hostile_bodies --runs 1",
    "policy_search --snakes 2 --games 1 --nodes 10",
    "procgen --players procsnake --steps 8 --rounds 1",
    (
        "procgen_networks --out {folder}/results --networks cleanrl --games coinrun --seeds 1"
        " --steps 1 --seconds 0.1"
    ),
    "scaling machines --machines 1 --quick",
    "scaling plan --quick",
    "scaling workers --quick",
    "search --quick --seconds 0.01",
    "sparse_layer --rounds 1",
    "tactics random",
    "trainers dqn --quick",
)
WITHOUT_MXNET = importlib.util.find_spec("mxnet") is None
ELSEWHERE = {
    "mxnet_dqn": "test_the_mxnet_benchmark_runs, in MXNet's environment",
    "procgen_gpu": "test_without_a_gpu_its_benchmark_says_so",
    "arena_shapes": "test_arena_lives.py",
    "yardstick": "test_yardstick.py",
    "one_version": "yardstick starts it",
}


def run(command: str, folder: Path) -> subprocess.CompletedProcess[str]:
    module, *words = command.format(folder=folder).split()
    line = [sys.executable, "-m", f"tests.benchmarks.{module}", *words]
    return subprocess.run(
        line, cwd=HERE.parents[1], capture_output=True, text=True, timeout=600, check=False
    )


def test_each_benchmark_has_a_command_here():
    modules = {
        path.stem for path in HERE.glob("*.py") if "__main__" in path.read_text(encoding="utf-8")
    }
    assert (
        modules - {Path(__file__).stem}
        == {command.split()[0] for command in COMMANDS} | ELSEWHERE.keys()
    )


@pytest.mark.long
@pytest.mark.parametrize("command", COMMANDS)
def test_it_runs(command, tmp_path):
    done = run(command, tmp_path)
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout


@pytest.mark.long
def test_without_a_gpu_its_benchmark_says_so(tmp_path):
    import torch

    done = run("procgen_gpu --rounds 1", tmp_path)
    if torch.cuda.is_available():
        assert done.returncode == 0, done.stderr[-3000:]
    else:
        assert (done.returncode, "torch finds no GPU here" in done.stderr) == (2, True)


@pytest.mark.long
@pytest.mark.skipif(WITHOUT_MXNET, reason="the extra [mxnet] is not installed")
def test_the_mxnet_benchmark_runs(tmp_path):
    done = run("mxnet_dqn --quick --seconds 0.1", tmp_path)
    assert done.returncode == 0, done.stderr[-3000:]
