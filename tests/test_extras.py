"""What a user has after `pip install '.[EXTRA]'`: environments from the wheel, with nothing else in
them.

The plain one runs every command that needs no extra, and says in a line which extra each other one
needs. Then an extra's own environment runs the commands that need it. They are the first examples
of the commands' --help, in miniature."""

from __future__ import annotations

import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.wheel import ROOT, built_wheel, run_each

pytestmark = pytest.mark.long

CHAMPIONS = (
    "match champion-standard greedy --delay 0 --seed 1 --record game.jsonl",
    "match champion-standard flood --seed 1",
    "evaluate champion-standard --games 1",
    "export onnx champion-standard --out policy.onnx",
    (
        "export aicrowd champion-coinrun --track generalization --out entry --author 'Ada"
        " <ada@example.org>'"
    ),
    "export check entry",
)
PLAIN = (
    *CHAMPIONS,
    "champions",
    "tournament champion-standard greedy --games 1 --max-turns 5",
    "sprt champion-standard greedy --games 4 --max-turns 5",
    "replay show game.jsonl --turn 3 --delay 0",
    "replay animate game.jsonl --out game.gif",
    "analyse game.jsonl --nodes 100",
    "warm-up random",
    "train --list",
    "train battlesnake-ppo --help-keys",
    "benchmark procgen --dry-run",
    "cluster up gpu-box cpu-1 --print",
    "launch sagemaker battlesnake-ppo --instances ml.c5.4xlarge --explain",
)
NEEDING = {
    "serve": (
        "serve flood --port 0",
        "games list",
        "match flood greedy --browser",
        "analyse --browser",
    ),
    "train": (
        "train battlesnake-ppo",
        "train battlesnake-imitation",
        "train battlesnake-evaluation",
        "train battlesnake-mxnet",
        "plot run",
        "tune battlesnake-ppo --search ppo.gamma=0.9,0.99",
        "benchmark battlesnake --minutes 0.1 --contenders ppo",
        "sprt flood greedy --cluster auto",
        "quickstart --minutes 1",
    ),
    "procgen": (
        "watch champion-coinrun",
        "levels champion-coinrun",
        "levels champion-coinrun champion-starpilot --levels test",
        "train procgen-ppo-cpu",
    ),
    "aws": (
        "job list",
        "launch sagemaker battlesnake-ppo --instances ml.c5.4xlarge --print-request",
    ),
    "hub": ("match hf://ada/snake flood", "push champion-standard hf://ada/snake"),
    "optuna": ("tune battlesnake-ppo --search ppo.gamma=0.9,0.99 --searcher optuna",),
    "wandb": ("train battlesnake-ppo --wandb",),
    "mlflow": ("train battlesnake-ppo --mlflow",),
    "tensorflow": ("export savedmodel champion-standard --out served",),
}
"""By extra, what a plain installation refuses."""
RUNS = {
    "serve": (
        "warm-up champion-standard",
    ),  # tests/serve/test_deploy.py serves from such an environment
    "train": ("train battlesnake-ppo --minutes 0.02", "plot run", *CHAMPIONS[1:2]),
    "procgen": (
        "watch champion-coinrun --delay 0 --record film.mp4",
        "levels champion-coinrun --episodes 2",
        *CHAMPIONS,
    ),
    "aws": (
        "launch sagemaker battlesnake-ppo --instances ml.c5.4xlarge --explain"
        " --price ml.c5.4xlarge=0.8",
    ),
}
"""By extra, what its environment runs. MXNet, TensorFlow, AWS's SDK and the trackers have
environments in the Makefile.
"""
WITHOUT_CONSTRAINTS = {"procgen"}
"""The extras that ask for NumPy 1; constraints.txt has NumPy 2."""


@pytest.fixture(scope="module")
def plain(tmp_path_factory) -> Path:
    """An environment with the wheel, without pip."""
    folder = tmp_path_factory.mktemp("plain")
    subprocess.run(
        [sys.executable, "-m", "venv", "--without-pip", folder / "environment"], check=True
    )
    wheel = built_wheel(folder)
    install(folder / "environment", str(wheel), "--constraint", ROOT / "constraints.txt")
    return folder / "environment"


def install(environment: Path, *words: str | Path) -> None:
    pip = [
        sys.executable,
        "-m",
        "pip",
        "--python",
        environment / "bin" / "python",
        "install",
        "--quiet",
        "--no-compile",
    ]
    subprocess.run([*pip, *words], check=True, timeout=900)


@pytest.fixture
def desk(tmp_path) -> Path:
    """A working directory with a run in it."""
    shutil.unpack_archive(
        ROOT / "tests" / "data" / "runs-9be3ed9" / "ppo.tar.xz", tmp_path, "xztar"
    )
    (tmp_path / "ppo").rename(tmp_path / "run")
    return tmp_path


def results(environment: Path, commands: tuple[str, ...], cwd: Path) -> list[list]:
    places, codes = run_each(
        environment / "bin" / "python", [shlex.split(command) for command in commands], cwd=cwd
    )
    assert all(Path(place).is_relative_to(environment) for place in places)
    return codes


def test_what_needs_no_extra_runs(plain, desk):
    assert [one for one in results(plain, PLAIN, desk) if one[1] != 0] == []


@pytest.mark.parametrize("extra", NEEDING)
def test_a_line_names_the_extra_that_is_missing(plain, desk, extra):
    for command, code, output in results(plain, NEEDING[extra], desk):
        assert (code, "Traceback" in output) == (2, False), (command, output)
        assert f"procsnake[{extra}]" in output.strip().splitlines()[-1], command


@pytest.mark.parametrize("extra", RUNS)
def test_an_extra_runs_what_needs_it(plain, desk, extra, tmp_path_factory):
    folder = tmp_path_factory.mktemp(extra)
    environment = folder / "environment"
    # The files are links, so that this takes no room; pip replaces files, and writes none in place.
    subprocess.run(["cp", "-al", plain, environment], check=True)
    if extra == "train":
        install(environment, "torch==2.13.0")
    constraints = [] if extra in WITHOUT_CONSTRAINTS else ["--constraint", ROOT / "constraints.txt"]
    install(environment, f"procsnake[{extra}]", *constraints)
    assert [one for one in results(environment, RUNS[extra], desk) if one[1] != 0] == []
    shutil.rmtree(folder)
