"""Real runs on several machines, each with its own network: who comes, who is lost, and how a job
ends on all of them.
"""

from __future__ import annotations

import csv
import dataclasses
import os
import re
from contextlib import ExitStack
from pathlib import Path

import pytest

from agents.bundle import load
from tests.train.cluster.machines import SUBNET, machines, on_the_switch, python, require_machines
from tests.train.experiments import toy, toy_q
from tests.train.sagemaker.jobs import prepare
from train.config import Experiment

pytestmark = pytest.mark.long

PATIENT = {"PROCSNAKE_JOIN_SECONDS": "150"}
IMPATIENT = {"PROCSNAKE_JOIN_SECONDS": "20"}
ENTRY = python("-m", "train.sagemaker.container.entry", "train")
GROUPS = {"rollout": [0, 2], "learner": [1]}
AWS = {
    "AWS_ACCESS_KEY_ID": "test",
    "AWS_SECRET_ACCESS_KEY": "test",
    "AWS_DEFAULT_REGION": "eu-west-1",
}


def instead(*command: str) -> list[str]:
    """The entry point with another command than the training."""
    return python("-m", "tests.train.sagemaker.launch_command", *command)


def noted(experiment: Experiment, notes, *, steps: int) -> Experiment:
    """On the world that notes where it is played, with more env runners than one machine of two
    CPUs has room for.
    """
    notes.mkdir()
    options = {"num_games": 32, "notes": str(notes)}
    env = {"name": "noted", "imports": ["tests.train.sagemaker.worlds"], "options": options}
    return Experiment.from_dict(
        {
            **experiment.to_dict(),
            "env": env,
            "budget": {"total_agent_steps": steps},
            "num_env_runners": 3,
        }
    )


def curve(machine) -> list[dict[str, str]]:
    (path,) = machine.ml.glob("checkpoints/*/progress.csv")
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


@pytest.fixture(autouse=True)
def _needs_machines():
    require_machines()


def test_a_command_that_fails_fails_the_head_and_everybody_is_gone_five_seconds_after_the_end(
    tmp_path,
):
    with machines(["algo-1", "algo-2"], tmp_path, PATIENT) as (head, worker):
        prepare([head, worker])
        command = instead("python3", "-c", "raise ValueError('out of snakes')")
        worker.start(command)
        head.start(command)
        worker.wait_for("the head ended with 1", 150)
        # Of a machine that is as busy as it may be; each more who wait for its cores take their
        # share.
        share = max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1))
        assert head.wait(5 * share) == 1
        assert worker.wait(0.5 * share) == 0
        assert "ValueError: out of snakes" in head.failure
        assert worker.failure == ""


def test_a_worker_whose_head_is_lost_says_so(tmp_path):
    with machines(["algo-1", "algo-2"], tmp_path, PATIENT) as (head, worker):
        prepare([head, worker])
        for machine in (head, worker):
            machine.start(instead("sleep", "600"))
        head.wait_for("all 2 machines are there", 150)
        head.vanish()
        assert worker.wait(40) == 1
        assert worker.failure.startswith("lost the head algo-1")


def test_a_worker_that_is_unplugged_is_noticed_within_forty_seconds_and_fails_the_run_by_its_name(
    tmp_path,
):
    with machines(["algo-1", "algo-2", "algo-3"], tmp_path, PATIENT) as (head, worker, other):
        prepare([head, worker, other])
        for machine in (head, worker, other):
            machine.start(instead("sleep", "600"))
        head.wait_for("all 3 machines are there", 200)
        worker.unplug()
        head.wait_for("lost the machine algo-2: the trainer is asked to save and end", 40)
        # Ray's own command, which ends it, takes long on a machine that others use.
        assert head.wait(90) == 1
        assert "algo-2" in head.failure
        assert "algo-3" not in head.failure
        assert other.wait(90) == 0


def test_a_worker_whose_raylet_dies_says_so_within_twenty_seconds_and_the_head_tells_why(tmp_path):
    with machines(["algo-1", "algo-2", "algo-3"], tmp_path, PATIENT) as (head, worker, other):
        prepare([head, worker, other])
        for machine in (head, worker, other):
            machine.start(instead("sleep", "600"))
        head.wait_for("all 3 machines are there", 300)
        worker.kill("raylet")
        worker.wait_for("Ray's raylet on this machine died", 20)
        head.wait_for("lost the machine algo-2 (Ray's raylet on this machine died", 20)
        assert worker.wait(90) == head.wait(90) == 1
        assert worker.failure.startswith("Ray's raylet on this machine died")
        assert "algo-2 (Ray's raylet" in head.failure
        assert other.wait(90) == 0


def test_a_head_whose_own_ray_dies_says_so_within_twenty_seconds(tmp_path):
    with machines(["algo-1"], tmp_path, PATIENT) as (head,):
        prepare([head])
        head.start(instead("sleep", "600"))
        head.wait_for("all 1 machines are there", 300)
        head.kill("gcs_server")
        head.wait_for("gcs_server", 20)
        assert head.wait(90) == 1
        assert "gcs_server" in head.failure
        assert "on this machine died" in head.failure


def test_a_machine_that_is_lost_leaves_a_checkpoint_of_the_last_iteration(tmp_path):
    experiment = dataclasses.replace(
        noted(toy("identity"), tmp_path / "notes", steps=10_000_000), num_env_runners=2
    )
    experiment = experiment.override(["checkpoints.every_minutes=60"])
    with machines(["algo-1", "algo-2", "algo-3"], tmp_path, PATIENT) as (learner, player, other):
        everybody = (learner, player, other)
        prepare(everybody, groups={"learner": [0], "rollout": [1, 2]}, experiment=experiment)
        for machine in everybody:
            machine.start(ENTRY)
        learner.wait_for("training_iteration=5 ", 300)
        player.unplug()
        assert learner.wait(300) == 1
        assert "lost the machine algo-2" in learner.failure
        last = int(curve(learner)[-1]["iteration"])
        assert list(learner.ml.glob(f"checkpoints/*/checkpoints/{last:08d}/counters.json")), (
            learner.log[-3000:]
        )


def test_a_machine_with_another_token_is_refused_and_missed_like_one_that_never_comes(tmp_path):
    with machines(["algo-1", "algo-2", "algo-3", "algo-4"], tmp_path, IMPATIENT) as (
        head,
        stranger,
        absent,
        worker,
    ):
        prepare([head, stranger, absent, worker])
        (stranger.ml / "input/data/token/token").write_text("another")
        for machine in (stranger, worker, head):
            machine.start(instead("true"))
        assert stranger.wait(60) == 1
        assert "different tokens" in stranger.failure
        assert head.wait(90) == 1
        assert head.failure == "algo-2 has not called; algo-3 has not called after 20 s"
        assert "refused algo-2" in head.log
        assert worker.wait(60) == 0


@pytest.mark.parametrize("algorithm", ["ppo", "dqn", "apex"])
def test_two_machines_play_while_another_learns(tmp_path, algorithm):
    steps = {"ppo": 8192, "dqn": 4096, "apex": 2048}[algorithm]
    base = (
        toy("identity")
        if algorithm == "ppo"
        else toy_q("identity", algorithm=algorithm, num_env_runners=2)
    )
    experiment = noted(base, tmp_path / "notes", steps=steps)
    with machines(["algo-1", "algo-2", "algo-3"], tmp_path, PATIENT) as (player, learner, late):
        prepare([player, learner, late], groups=GROUPS, experiment=experiment)
        learner.start(ENTRY)
        player.start(ENTRY)
        # The last one comes when the others have long been waiting.
        learner.wait_for("algo-1 called", 100)
        late.start(ENTRY)
        assert learner.wait(300) == 0, learner.log[-3000:]
        assert player.wait(60) == late.wait(60) == 0
        assert {path.name for path in (tmp_path / "notes").iterdir()} == {"algo-1", "algo-3"}
        assert load(learner.ml / "model").card.algorithm == algorithm
        # APEX's iterations end by time: on a quick machine the first brings all the steps.
        reported = re.findall(
            r"^procsnake-metrics training_iteration=(\d+) ", learner.log, re.MULTILINE
        )
        assert reported == [row["iteration"] for row in curve(learner)] != []
        assert not list(player.ml.glob("checkpoints/*"))


def test_a_job_that_is_interrupted_saves_and_goes_on_where_it_was(tmp_path):
    experiment = noted(toy("identity"), tmp_path / "notes", steps=10_000_000)
    machine_names = ["algo-1", "algo-2"]
    with machines(machine_names, tmp_path, PATIENT) as (learner, player):
        both = (learner, player)
        groups = {"learner": [0], "rollout": [1]}
        prepare(both, groups=groups, experiment=dataclasses.replace(experiment, num_env_runners=1))
        for machine in both:
            machine.start(ENTRY)
        learner.wait_for("training_iteration=5 ", 200)
        for machine in both:
            machine.terminate()
        assert learner.wait(110) == 143
        assert player.wait(60) == 0
        last = int(curve(learner)[-1]["iteration"])
        (saved,) = learner.ml.glob(f"checkpoints/*/checkpoints/{last:08d}/counters.json")

        # A checkpoint of which only a part reached S3 must not stop it.
        partial = saved.parent.with_name(f"{last + 1:08d}")
        partial.mkdir()
        (partial / "counters.json").write_text(saved.read_text())
        for machine in both:
            machine.start(ENTRY)
        learner.wait_for(f"training_iteration={last + 2} ", 200)
        assert (
            f"continuing {saved.parents[2]} from iteration {last}".replace(
                str(learner.ml), "/opt/ml"
            )
            in learner.log
        )
        assert f"{last + 1:08d} is incomplete" in learner.log
        for machine in both:
            machine.terminate()
        assert learner.wait(110) == 143
        iterations = [int(row["iteration"]) for row in curve(learner)]
        assert iterations == list(range(1, len(iterations) + 1))


def test_two_jobs_find_each_other_through_s3(tmp_path):
    server = python("-m", "moto.server", "-H", f"{SUBNET}.1", "-p", "5000")
    s3 = "import boto3; s3 = boto3.client('s3'); "
    make = (
        s3 + "s3.create_bucket(Bucket='meet', CreateBucketConfiguration={'LocationConstraint':"
        " 'eu-west-1'})"
    )
    count = s3 + "print('left:', s3.list_objects_v2(Bucket='meet')['KeyCount'])"
    meeting = {
        "rl_num_instances_secondary": "2",
        "s3_bucket": "meet",
        "s3_prefix": "job",
        "aws_region": "eu-west-1",
    }
    experiment = noted(toy("identity"), tmp_path / "notes", steps=8192)
    environment = {**PATIENT, **AWS, "AWS_ENDPOINT_URL": f"http://{SUBNET}.1:5000"}
    with ExitStack() as stack:
        names = ["algo-1", "algo-1@second", "algo-2@second"]
        learner, *players = stack.enter_context(machines(names, tmp_path, environment))
        stack.enter_context(on_the_switch(learner, server, 5000, AWS))
        learner.start(python("-c", make))
        assert learner.wait(60) == 0, learner.log
        prepare(
            [learner],
            experiment=experiment,
            hyperparameters={"rl_cluster_type": "primary", **meeting},
        )
        prepare(
            players,
            experiment=experiment,
            hyperparameters={"rl_cluster_type": "secondary", **meeting},
        )
        for machine in (learner, *players):
            machine.start(ENTRY)
        assert learner.wait(300) == 0, learner.log[-3000:]
        assert [player.wait(60) for player in players] == [0, 0]
        learner.start(python("-c", count))
        assert learner.wait(60) == 0
        assert "left: 0" in learner.log
    assert {path.name for path in (tmp_path / "notes").iterdir()} == {"algo-1", "algo-2"}


PAGE = (Path(__file__).parents[3] / "docs" / "sagemaker.md").read_text(encoding="utf-8")
(SCRIPT,) = re.findall(
    r'^```python title="train_snake.py"\n(.*?)^```$', PAGE, re.MULTILINE | re.DOTALL
)


def test_the_pages_script_trains_on_the_cluster_of_awss_launcher(tmp_path):
    notes = tmp_path / "notes"
    experiment = dataclasses.replace(noted(toy("identity"), notes, steps=20_000), num_env_runners=0)
    with machines(["algo-1", "algo-2"], tmp_path, {}) as everybody:
        prepare(everybody, groups={"cpu": [1], "head": [0]}, experiment=experiment)
        (tmp_path / "scripts").mkdir()
        script = SCRIPT.replace('"battlesnake-ppo", ["seed=1"]', '"/opt/ml/code/experiment.yaml"')
        assert script != SCRIPT
        (tmp_path / "scripts" / "train_snake.py").write_text(script)
        for machine in everybody:
            named = (
                "-e",
                str(tmp_path / "scripts" / "train_snake.py"),
                "--head-instance-group",
                "head",
            )
            machine.start(python("-m", "tests.train.sagemaker.aws_launcher", *named))
        head, worker = everybody
        assert head.wait(300) == 0, head.log
        assert worker.wait(120) == 0, worker.log
        # Both played, the head kept the run, and its policy is what becomes model.tar.gz.
        assert {path.name for path in notes.iterdir()} == {"algo-1", "algo-2"}
        assert int(curve(head)[-1]["agent_steps"]) >= 20_000
        assert "training_iteration=1 " in head.log
        load(head.ml / "model")
        assert not list(worker.ml.glob("checkpoints/*"))
