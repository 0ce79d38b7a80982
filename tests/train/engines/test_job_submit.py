"""`ray job submit` of what the wheel installs, to a head of Ray that runs here with its job
server.
"""

from __future__ import annotations

import os
import shlex
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import pytest
import yaml

from tests.waiting import until
from tests.wheel import unpacked_wheel
from train.config import Experiment

pytestmark = pytest.mark.long

TOKEN = "a" * 64


@dataclass(frozen=True)
class Cluster:
    """A head of Ray with two processors, and how its machine calls programs."""

    address: str
    folder: Path
    environment: dict[str, str]

    def call(self, *words: str, expect: int = 0) -> str:
        """What a command prints, in the folder of the job. Fails the test if it ends with another
        code.
        """
        done = subprocess.run(
            words,
            cwd=self.folder / "job",
            env=self.environment,
            timeout=300,
            check=False,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        assert done.returncode == expect, done.stdout[-3000:]
        return done.stdout

    def ray(self, *words: str, expect: int = 0) -> str:
        """What a command of Ray's prints."""
        return self.call(sys.executable, "-m", "ray.scripts.scripts", *words, expect=expect)


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with procsnake as its wheel installs it."""
    return unpacked_wheel(tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def cluster(installed: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    # A head without its dashboard takes no jobs.
    if find_spec("aiohttp") is None:
        pytest.skip("ray[default] is not installed")
    folder = tmp_path_factory.mktemp("c")
    (folder / "job").mkdir()
    environment = {
        **os.environ,
        "PYTHONPATH": str(installed),
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "RAY_AUTH_MODE": "token",
        "RAY_AUTH_TOKEN": TOKEN,
        "RAY_TMPDIR": str(folder),
        "RAY_JOB_STOP_WAIT_TIME_S": "100",
    }
    for _ in range(3):
        with running_head(folder, environment) as made:
            if made is not None:
                yield made
                return
    pytest.fail(f"no head of Ray answers: {(folder / 'head.log').read_text()[-3000:]}")


@contextmanager
def running_head(folder: Path, environment: dict[str, str]) -> Iterator[Cluster | None]:
    """A head of Ray on two free ports. None if it doesn't answer: another program may have taken
    one of them before Ray.
    """
    with socket.socket() as one, socket.socket() as other:
        for free in (one, other):
            free.bind(("127.0.0.1", 0))
        port = one.getsockname()[1]
        dashboard = other.getsockname()[1]
    made = Cluster(f"http://127.0.0.1:{dashboard}", folder, environment)
    with (folder / "head.log").open("a") as log:
        head = subprocess.Popen(
            [
                sys.executable,
                *shlex.split("-m ray.scripts.scripts start --head --block"),
                f"--port={port}",
                "--num-cpus=2",
                "--node-ip-address=127.0.0.1",
                "--dashboard-host=127.0.0.1",
                f"--dashboard-port={dashboard}",
                "--disable-usage-stats",
            ],
            env=environment,
            cwd=folder,
            stdout=log,
            stderr=subprocess.STDOUT,
        )
    try:
        yield made if answers(made, head) else None
    finally:
        # Its own processes end with it.
        head.terminate()
        head.wait(60)


def answers(cluster: Cluster, head: subprocess.Popen[bytes]) -> bool:
    """Whether the job server of a head answers within a minute."""
    asked = [
        sys.executable,
        *shlex.split("-m ray.scripts.scripts job list --address"),
        cluster.address,
    ]
    deadline = time.monotonic() + 60
    while head.poll() is None and time.monotonic() < deadline:
        time.sleep(1)
        if not subprocess.run(
            asked, env=cluster.environment, capture_output=True, check=False
        ).returncode:
            return head.poll() is None
    return False


def submit(cluster: Cluster, *words: str, experiment: Experiment, expect: int = 0) -> str:
    """What `ray job submit` prints for a training of this experiment."""
    (cluster.folder / "job" / "experiment.yaml").write_text(yaml.safe_dump(experiment.to_dict()))
    train = [
        *shlex.split("procsnake train --config experiment.yaml --cluster auto --runs"),
        str(cluster.folder / "runs"),
    ]
    job = [
        "job",
        "submit",
        "--address",
        cluster.address,
        "--working-dir",
        ".",
        *words,
        "--",
        *train,
    ]
    return cluster.ray(*job, expect=expect)


def small(*overrides: str) -> Experiment:
    return Experiment.load(
        "battlesnake-ppo",
        ["env.options.num_games=8", "ppo.num_steps=16", "evaluation=null", *overrides],
    )


def test_a_job_trains_what_the_wheel_brings(cluster, installed):
    printed = submit(
        cluster, experiment=small("budget.max_minutes=null", "budget.total_agent_steps=2000")
    )
    assert "succeeded" in printed
    (run,) = (cluster.folder / "runs").iterdir()
    assert yaml.safe_load((run / "config.yaml").read_text())["num_env_runners"] == 1
    assert (run / "bundle").is_dir()
    where = cluster.call(
        sys.executable, "-c", "import procsnake, train; print(procsnake.__file__, train.__file__)"
    )
    assert all(path.startswith(str(installed)) for path in where.split())
    shutil.rmtree(cluster.folder / "runs")


def test_a_job_that_is_stopped_saves_its_run(cluster):
    submit(
        cluster, "--no-wait", "--submission-id", "long", experiment=small("budget.max_minutes=60")
    )

    def logs() -> str:
        return cluster.ray("job", "logs", "--address", cluster.address, "long")

    until(lambda: list((cluster.folder / "runs").glob("*/progress.csv")), seconds=200, told=logs)
    cluster.ray("job", "stop", "--address", cluster.address, "long")
    assert "stopped and saved" in logs()


def test_a_cluster_that_is_too_small_is_refused_at_once(cluster):
    printed = submit(
        cluster, experiment=small("scale.kind=single", "scale.instance=16cpu"), expect=1
    )
    assert "15 env runners need a CPU each, but the cluster has 2 for them" in printed


def test_the_machines_of_a_cluster_are_waited_for(cluster):
    environment = {**cluster.environment, "RAY_ADDRESS": "auto"}
    waiting = Cluster(cluster.address, cluster.folder, environment)
    wait = (sys.executable, "-m", "train.engines.wait")
    assert "1 of 1 machines are there" in waiting.call(*wait, "1")
    assert "only 1 of 2 machines came within 0.05 minutes" in waiting.call(
        *wait, "2", "--minutes", "0.05", expect=1
    )
