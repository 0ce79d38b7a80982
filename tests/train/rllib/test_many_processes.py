"""Env runners and learners in processes of their own: the same path, and what happens when one
dies.
"""

from __future__ import annotations

import itertools
import math

import pytest
import ray

from envs.common.errors import ConfigError
from tests.train.experiments import best_return, has_played, toy, toy_q, train_until
from tests.train.rllib.fields_shown import shows
from train.algorithms import build_algorithm
from train.config import Experiment
from train.ppo import PPOConfig
from train.run import train
from train.runs.export import checkpointed_weights
from train.runs.folder import RunFolder

# Ray's own: it sets fields of its data context that it has deprecated when it starts a learner.
pytestmark = [pytest.mark.long, pytest.mark.filterwarnings("ignore::DeprecationWarning:ray")]


def distributed(**changes) -> Experiment:
    return Experiment.from_dict({**toy("identity", num_env_runners=2).to_dict(), **changes})


@pytest.mark.parametrize("num_learners", [0, 1])
def test_two_env_runners_and_a_learner_apart_learn_the_same_way(one_ray, num_learners):
    best, result = best_return(distributed(num_learners=num_learners), 40)
    assert best >= 0.95
    assert result["env_runners"]["num_env_steps_sampled"] == 2 * 64 * 16


@pytest.mark.parametrize(
    ("algorithm", "num_learners"), [("appo", 2), *itertools.product(["ppo", "dqn", "apex"], [1, 2])]
)
def test_training_goes_on_when_a_learner_is_killed_and_it_keeps_what_it_knew(
    one_ray, algorithm, num_learners
):
    """Two learners share every batch; APEX goes on exploring, so its threshold is lower."""
    make = toy if algorithm in ("ppo", "appo") else toy_q
    made = make("identity", algorithm=algorithm, num_env_runners=0 if algorithm == "ppo" else 1)
    trained = build_algorithm(
        Experiment.from_dict({**made.to_dict(), "num_learners": num_learners})
    )
    threshold = 0.7 if algorithm == "apex" else 0.9
    try:
        train_until(
            trained,
            lambda result, _: (
                result.get("env_runners", {}).get("episode_return_mean", 0.0) >= threshold
            ),
        )
        # A copy is taken every ten seconds: this one is of the learner that has learned.
        trained._learners_copy = None
        train_until(trained, lambda _, learned: "restored_learners" in learned)
        ray.kill(trained.learner_group._workers[-1])
        result, learned = train_until(
            trained, lambda _, learned: learned.get("restored_learners") == 1
        )
        assert math.isfinite(learned["total_loss"])
        for _ in range(3):
            result, _ = train_until(trained, has_played)
        # Untrained it would earn 0.25.
        assert result["env_runners"]["episode_return_mean"] > 0.7
        steps = trained.agent_steps()
        train_until(trained, lambda *_: trained.agent_steps() > steps + 2000)
    finally:
        trained.stop()


def test_what_a_learners_process_refuses_is_said_without_its_traceback(one_ray):
    experiment = toy("identity", options={"num_games": 1}, num_steps=1, num_minibatches=4)
    algorithm = build_algorithm(Experiment.from_dict({**experiment.to_dict(), "num_learners": 1}))
    try:
        with pytest.raises(ConfigError) as refusal:
            algorithm.train()
    finally:
        algorithm.stop()
    assert str(refusal.value).startswith("ppo.num_minibatches is 4")


def test_a_run_with_everything_apart_is_saved_resumed_and_exported(one_ray, tmp_path):
    """What a learner in another process knows comes back from the checkpoint, and what it learned
    is exported.
    """
    experiment = distributed(
        num_learners=1, num_env_runners=1, budget={"total_agent_steps": 6 * 1024}
    )
    run = train(experiment, runs_dir=tmp_path, on_iteration=lambda row: row["iteration"] == 3).path
    before = checkpointed_weights(RunFolder(run).checkpoints()[-1])
    result = train(resume=run)
    assert result.finished
    assert [int(row["agent_steps"]) for row in RunFolder(run).curve()] == [
        1024 * k for k in range(1, 7)
    ]
    after = checkpointed_weights(RunFolder(run).checkpoints()[-1])
    assert any((before[name] != after[name]).any() for name in before)


@shows("callbacks_on_env_runners_recreated")
def test_training_goes_on_when_an_env_runner_is_killed(one_ray):
    recreated: list[list[int]] = []
    config = PPOConfig.from_experiment(distributed()).callbacks(
        on_env_runners_recreated=lambda env_runner_indices, **_: recreated.append(
            env_runner_indices
        )
    )
    algorithm = config.build_algo()
    try:
        steps = []
        lifetime = []
        for iteration in range(30):
            if iteration == 3:
                actor = algorithm.env_runner_group._worker_manager.actors()[1]
                ray.kill(actor, no_restart=False)
            result = algorithm.train()
            steps.append(result["env_runners"].get("num_env_steps_sampled", 0))
            lifetime.append(algorithm.agent_steps())
            if iteration > 6 and steps[-1] == 2048:
                break
        # Half the experience while one was gone, all of it again when it is back.
        assert 1024 in steps[3:]
        assert steps[:3] == [2048] * 3
        assert steps[-1] == 2048
        assert recreated == [[1]]
        assert lifetime == sorted(lifetime)
        assert sum(steps) == lifetime[-1]
    finally:
        algorithm.stop()


def test_ray_does_not_warn_that_env_runners_cant_be_started_anew(one_ray, capfd):
    build_algorithm(distributed()).stop()
    assert "restart" not in capfd.readouterr().err
