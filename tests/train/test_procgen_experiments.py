"""The shipped experiments on Procgen: each builds, plays and learns; steps are counted as the games
count them.
"""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from train.config import Experiment, list_experiments
from train.ppo import PPOConfig, PPORunner
from train.run import train
from train.runs.export import build_network
from train.settings.schedule import value_at
from train.tuning.space import parse_space
from train.worlds.build import make_world, world_options

EXPERIMENTS = [name for name in list_experiments() if name.startswith(("procgen", "aicrowd"))]
SMALL = [
    "env.options.num_games=4",
    "network.options.depths=[4,4,4]",
    "network.options.width=1",
    "network.options.hidden=8",
]


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_each_builds_its_world_and_network_and_they_fit(name: str) -> None:
    experiment = Experiment.load(name, ["env.options.num_games=2"])
    world = make_world(world_options(experiment))
    world.restart(0)
    logits, values = build_network(experiment, world)(torch.from_numpy(world.observations))
    assert logits.shape == (2, 15)
    assert values.shape == (2,)
    world.close()


@pytest.mark.parametrize(
    ("name", "levels"),
    [("aicrowd-sample-efficiency", "all"), ("aicrowd-generalization", "train:200")],
)
def test_the_competitions_tracks_keep_its_rules(name: str, levels: str) -> None:
    experiment = Experiment.load(name)
    assert experiment.env.options["distribution_mode"] == "easy"
    assert experiment.env.options["levels"] == levels
    assert experiment.budget.total_agent_steps == 8_000_000


def test_lars_learning_rate_hits_its_knots() -> None:
    schedule = Experiment.load("procgen-ppo-lars").settings.learning_rate
    at = {0: 1e-4, 0.5e6: 8e-4, 1e6: 1e-4, 2e6: 5e-4, 3e6: 5e-5, 4e6: 2e-4, 8e6: 3e-5}
    for steps, rate in at.items():
        assert value_at(schedule, steps) == pytest.approx(rate)
    assert value_at(schedule, 0.25e6) == pytest.approx(4.5e-4)
    assert value_at(schedule, 9e6) == pytest.approx(3e-5)


def test_the_populations_ranges_hold_its_first_values() -> None:
    experiment = Experiment.load("procgen-pbt")
    assert experiment.tune.scheduler == "pbt"
    for key, space in experiment.tune.search.items():
        value = getattr(experiment.settings, key.removeprefix("ppo."))
        assert parse_space(key, space).nearest(value) == pytest.approx(value)


def test_repeated_actions_count_as_the_games_count(one_ray: None) -> None:
    experiment = Experiment.load(
        "procgen-ppo", [*SMALL, "env.options.action_repeat=3", "env.options.gap_stack=4"]
    )
    runner = PPORunner(config=PPOConfig.from_experiment(experiment), worker_index=0)
    (fragment,) = runner.sample(num_timesteps=5 * runner.env.env_steps_per_advance)
    assert fragment.agent_steps() == 5 * 4
    assert fragment.env_steps() == 5 * 4 * 3
    runner.stop()


@pytest.mark.long
@pytest.mark.parametrize("name", EXPERIMENTS)
def test_each_learns_for_a_few_steps(name: str, tmp_path: Path, one_ray: None) -> None:
    experiment = Experiment.load(name, [*SMALL, "evaluation=null"])
    if experiment.algorithm == "ppo":
        short = ["ppo.num_steps=16", "ppo.num_minibatches=2", "budget.total_agent_steps=128"]
    else:
        section = experiment.algorithm
        few = {"learning_starts": 64, "replay_capacity": 2000, "train_batch_size": 32}
        short = [f"{section}.{key}={value}" for key, value in few.items()]
        short += ["budget.total_agent_steps=1000", "env.options.augment=[translate]"]
        short += ["num_env_runners=1"] if section == "apex" else []
    result = train(experiment.override(short), runs_dir=tmp_path)
    assert result.finished
    assert (result.path / "report.html").is_file()
