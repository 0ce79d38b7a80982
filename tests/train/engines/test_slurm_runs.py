"""Batch scripts, submitted to a Slurm on machines to throw away. Needs root, and Debian's
slurmctld, slurmd and munge.
"""

from __future__ import annotations

import re
import shlex
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from tests.train.engines.slurm_cluster import Slurm, slurm_cluster
from tests.train.experiments import toy, toy_q
from tests.waiting import until
from train.config import Experiment
from train.engines import slurm as engine
from train.engines.plan import Plan
from train.settings.scale import scale_overrides

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def slurm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Slurm]:
    with slurm_cluster(["node-1", "node-2"], tmp_path_factory.mktemp("slurm")) as running:
        yield running


def submit(
    slurm: Slurm, experiment: Experiment, instances: str, *overrides: str, instead: str = ""
) -> str:
    """Submit a script, and return the job's number. Its machines run the Python text `instead` if
    there is one.
    """
    plan = Plan(
        name="toy",
        experiment=experiment.override([*scale_overrides(instances), *overrides]),
        max_hours=1,
    )
    text = engine.script(plan, engine.Place(python=sys.executable))
    if instead:
        assert "-m train.engines.slurm_node" in text
        text = text.replace("-m train.engines.slurm_node", f"-c {shlex.quote(instead)}")
    script = slurm.folder / "toy.sh"
    script.write_text(text)
    return slurm.submit(script)


def only_run(slurm: Slurm, job: str) -> Path:
    """The run that the job said it wrote."""
    (line,) = (line for line in slurm.printed(job).splitlines() if line.startswith("run: "))
    return slurm.folder / "desk" / line.removeprefix("run: ")


@pytest.mark.parametrize("instances", ["2*2cpu-1gib", "2cpu-2gib+2cpu"])
def test_each_machine_may_use_all_of_its_processors(slurm, instances):
    experiment = toy_q("identity", algorithm="apex", num_env_runners=2)
    job = submit(
        slurm,
        experiment,
        instances,
        instead="import os; print('may use', len(os.sched_getaffinity(0)))",
    )
    assert slurm.wait(job, 60) == "COMPLETED"
    assert slurm.printed(job).splitlines() == ["may use 2"] * 2


def test_two_machines_train_as_one_cluster(slurm):
    job = submit(slurm, toy("identity", steps=4096), "2*2cpu-1gib")
    assert slurm.wait(job, 300) == "COMPLETED", slurm.printed(job)
    run = only_run(slurm, job)
    assert (run / "bundle").is_dir()
    assert yaml.safe_load((run / "config.yaml").read_text())["num_env_runners"] == 2 * 2 - 1
    assert "all 2 machines are there" in slurm.printed(job)
    assert not list((slurm.folder / "desk").glob("runs/*.job-*/token"))


def test_two_kinds_of_machines_are_two_components_of_one_job(slurm):
    job = submit(
        slurm,
        toy_q("identity", algorithm="apex", num_env_runners=2),
        "2cpu-2gib+2cpu-1gib",
        "budget.total_agent_steps=4096",
    )
    assert slurm.wait(job, 300) == "COMPLETED", slurm.printed(job)
    assert (
        yaml.safe_load((only_run(slurm, job) / "config.yaml").read_text())["num_env_runners"] == 2
    )
    assert "[node-2" in slurm.printed(job)


def endless(slurm: Slurm) -> tuple[str, Path]:
    """A job that has written a checkpoint, and its folder."""
    job = submit(
        slurm, toy("identity", steps=100_000_000), "2*2cpu-1gib", "checkpoints.every_minutes=0.02"
    )
    folder = slurm.folder / "desk" / "runs" / f"toy.job-{job}"
    until(
        lambda: list(folder.glob("identity-*/checkpoints/[!.]*")),
        seconds=300,
        told=lambda: slurm.printed(job),
    )
    return job, folder


def test_a_job_that_is_told_that_its_time_is_up_saves_before_it_ends(slurm):
    job, _ = endless(slurm)
    slurm.call("scancel", "--batch", "--signal=USR1", job)
    assert slurm.wait(job, 200) == "FAILED"
    assert "stopped and saved; continue with" in slurm.printed(job)
    assert "ExitCode=143:0" in slurm.call("scontrol", "--oneliner", "show", "job", job)


def test_a_job_that_is_started_once_more_continues_its_run(slurm):
    """First one that ran, as Slurm does after preemption; then one that had ended because its time
    was up.
    """
    job, folder = endless(slurm)
    _start_once_more(slurm, job, 1)
    slurm.call("scancel", "--batch", "--signal=USR1", job)
    assert slurm.wait(job, 200) == "FAILED"
    _start_once_more(slurm, job, 2)
    slurm.call("scancel", job)
    assert len(list(folder.glob("identity-*"))) == 1
    first, second = re.findall(
        r"continuing \S+ from iteration (\d+)", " ".join(slurm.printed(job).split())
    )
    assert 0 < int(first) < int(second)


def _start_once_more(slurm: Slurm, job: str, times: int) -> None:
    slurm.call("scontrol", "requeue", job)
    until(lambda: slurm.state(job) == "PENDING", seconds=300, told=lambda: slurm.printed(job))
    # Slurm would wait two minutes. It can't start a job within the second in which it revoked the
    # job's credential.
    time.sleep(5)
    slurm.call("scontrol", "update", f"JobId={job}", "StartTime=now")
    until(
        lambda: slurm.printed(job).count("continuing ") == times,
        seconds=300,
        told=lambda: slurm.printed(job),
    )


def test_a_job_that_loses_a_node_names_it_and_saves(slurm):
    job, _ = endless(slurm)
    slurm.machines[1].kill("raylet")
    assert slurm.wait(job, 300) == "FAILED"
    assert "Ray's raylet on this machine died" in slurm.printed(job)
    assert "lost the machine node-2" in slurm.printed(job)
    assert "stopped and saved; continue with" in slurm.printed(job)
