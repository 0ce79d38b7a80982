"""Batch scripts: by bash, shellcheck and what sbatch reads. tests/train/engines/test_slurm_runs.py
submits them.
"""

from __future__ import annotations

import socket
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest
import yaml

from envs.common.errors import ConfigError
from tests.train.engines.plans import SCALES, plan
from train.cluster.hosts import ClusterError
from train.config import Experiment
from train.engines import slurm_node
from train.engines.slurm import Place, script

SHELLCHECK = Path(sysconfig.get_path("scripts")) / "shellcheck"


def options(text: str) -> list[list[str]]:
    """The options of each component, as sbatch reads them: until the first line that is neither
    empty nor a comment.
    """
    components: list[list[str]] = [[]]
    for line in text.splitlines():
        if line and not line.startswith("#"):
            break
        if line == "#SBATCH hetjob":
            components.append([])
        elif line.startswith("#SBATCH "):
            components[-1].append(line.removeprefix("#SBATCH "))
    return components


@pytest.mark.parametrize("instances", SCALES)
def test_shellcheck_finds_nothing(instances, tmp_path):
    file = tmp_path / "job.sh"
    file.write_text(script(plan(instances), Place(partition="gpu", account="me")))
    subprocess.run(["bash", "-n", file], check=True)
    if not SHELLCHECK.is_file():
        pytest.skip("shellcheck is not installed")
    done = subprocess.run([SHELLCHECK, file], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "")
    file.write_text(file.read_text().replace('> "$folder/token"', "> $folder/token"))
    assert subprocess.run([SHELLCHECK, file], capture_output=True, check=False).returncode == 1


def test_one_kind_of_machine_is_one_component():
    ((*lines,),) = options(
        script(plan("3*16cpu-2gpu-60gib", max_hours=47.5), Place(partition="gpu"))
    )
    assert {
        "--job-name=mine",
        "--nodes=3",
        "--ntasks-per-node=1",
        "--cpus-per-task=16",
        "--gpus-per-node=2",
        "--mem=60G",
        "--exclusive",
        "--time=1-23:30:00",
        "--partition=gpu",
    } <= set(lines)


def test_two_kinds_are_two_components_that_one_step_spans():
    text = script(plan("8cpu-1gpu+2*36cpu"), Place())
    first, second = options(text)
    assert {"--nodes=1", "--cpus-per-task=8", "--gpus-per-node=1", "--mem=0"} <= set(first)
    assert {"--nodes=2", "--cpus-per-task=36", "--mem=0", "--exclusive"} <= set(second)
    assert not [line for line in second if line.startswith(("--time", "--job-name", "--gpus"))]
    assert "srun --cpu-bind=none --het-group=0,1 " in text


def test_the_experiment_comes_through_the_shell_as_it_was(tmp_path):
    """Whatever stands in it, the script's own shell writes it to the file that the training
    reads.
    """
    name = "a\nEND OF EXPERIMENT\n$(touch broken) `touch broken` 'x' \"y\" \\"
    experiment = Experiment.from_dict({**plan("2*16cpu").experiment.to_dict(), "name": name})
    text = script(
        type(plan("2*16cpu"))(name="mine", experiment=experiment, max_hours=1.0),
        Place(python="true"),
    )
    head = text.partition("# The secret by which")[0]
    subprocess.run(
        ["bash", "-c", head],
        cwd=tmp_path,
        check=True,
        env={"SLURM_JOB_ID": "5", "PATH": "/usr/bin:/bin"},
    )
    (written,) = tmp_path.glob("runs/mine.job-5/experiment.yaml")
    assert Experiment.from_dict(yaml.safe_load(written.read_text())) == experiment
    assert not (tmp_path / "broken").exists()


@pytest.mark.parametrize(
    ("field", "value"),
    [("python", "a b"), ("runs", "/x/%j"), ("partition", "a\n#SBATCH --uid=0"), ("account", "a b")],
)
def test_what_would_break_the_script_is_refused(field, value):
    with pytest.raises(ConfigError, match=f"--{field} .*e.g. --{field} "):
        Place(**{field: value})


def test_names_and_times_that_slurm_cannot_have_are_refused():
    with pytest.raises(ConfigError, match="--name my-run"):
        script(plan("2*16cpu", name="my\nrun"), Place())
    with pytest.raises(ConfigError, match=r"--max-hours 0\.1 is too short"):
        script(plan("2*16cpu", max_hours=0.1), Place())


def test_a_machine_alone_takes_no_address_of_the_login_node(monkeypatch):
    """`sbatch` hands the variables of the shell on in which it was typed, and ssh's name the login
    node.
    """
    monkeypatch.setenv("SSH_CONNECTION", "198.51.100.4 50022 203.0.113.7 22")
    address = slurm_node.Nodes("cpu-1", {"cpu-1": "all"}, "cpu-1").address()
    with socket.socket() as here:
        here.bind((address, 0))


def test_each_machine_knows_its_part(tmp_path, monkeypatch):
    monkeypatch.setenv("SLURMD_NODENAME", "cpu-2")
    launch = slurm_node.plan(tmp_path, ["learner=gpu-1", "rollout=cpu-1,cpu-2"])
    hosts = launch.hosts
    assert (hosts.me, hosts.group, hosts.head, hosts.leads) == ("cpu-2", "rollout", "gpu-1", False)
    assert hosts.groups == {"gpu-1": "learner", "cpu-1": "rollout", "cpu-2": "rollout"}
    assert launch.command == ()
    first = slurm_node.plan(tmp_path, ["all=cpu-2,cpu-1"]).command
    train = (sys.executable, "-m", "procsnake", "train", "--cluster", "auto")
    assert first == (*train, "--config", str(tmp_path / "experiment.yaml"), "--runs", str(tmp_path))
    for name in ("a-20261122-000000", "a-20261123-000000"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "config.yaml").touch()
    again = slurm_node.plan(tmp_path, ["all=cpu-2,cpu-1"]).command
    assert again == (*train, "--resume", str(tmp_path / "a-20261123-000000"), "--trust")
    monkeypatch.setenv("SLURMD_NODENAME", "other")
    with pytest.raises(ClusterError, match="'other' for Slurm, but the job has gpu-1, cpu-1"):
        slurm_node.plan(tmp_path, ["all=gpu-1,cpu-1"])


def test_a_file_in_the_jobs_folder_stops_it(tmp_path):
    (tmp_path / "stop").touch()
    assert slurm_node._stop_when_asked(tmp_path / "stop").wait(20)
