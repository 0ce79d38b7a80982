"""Runs that go on with another number of processes: what stays, what is refused."""

from __future__ import annotations

import pytest

from envs.common.errors import ConfigError
from procsnake import main
from tests.train.experiments import toy
from train.cluster.sizes import sized, steps_per_update
from train.config import Experiment
from train.run import train
from train.runs.continuing.resizing import resized
from train.settings.scale import scale_overrides


def of_a_job() -> Experiment:
    """An experiment as a job's run has it: sized."""
    return sized(Experiment.load("battlesnake-ppo", scale_overrides("ml.c5.4xlarge")))


def test_a_batch_stays_what_it_was_with_more_env_runners_and_with_fewer():
    base = Experiment.load("battlesnake-ppo")
    more = resized(base, ["num_env_runners=4"])
    # 8192 game steps: 4 env runners × 16 steps × 128 games.
    assert (more.num_env_runners, more.settings.num_steps, more.env.options["num_games"]) == (
        4,
        16,
        128,
    )
    fewer = resized(more, ["num_env_runners=2"])
    assert (fewer.num_env_runners, steps_per_update(fewer)) == (2, 8192)
    alone = resized(more, ["num_env_runners=0"])
    assert (alone.num_env_runners, steps_per_update(alone)) == (0, 8192)
    assert (
        fewer.settings.num_minibatches
        == more.settings.num_minibatches
        == base.settings.num_minibatches
    )


def test_without_overrides_nothing_changes():
    base = of_a_job()
    assert resized(base, []) is base


def test_a_scale_of_another_size_counts_for_instances():
    base = of_a_job()
    assert resized(base, ["scale.workers=4"]).num_env_runners == 4
    assert resized(base, ["scale.instance=ml.c5.xlarge"]).num_env_runners == 3
    # What was sized twice is what was sized once.
    here = resized(base, ["num_env_runners=2"])
    assert sized(here) == here
    assert (here.num_env_runners, here.scale.workers) == (2, 2)


def test_apex_gets_replay_shards_for_its_env_runners():
    more = resized(Experiment.load("battlesnake-apex"), ["num_env_runners=40"])
    assert more.settings.num_replay_shards == 3
    assert resized(more, ["num_env_runners=2"]).settings.num_replay_shards == 2


@pytest.mark.parametrize(
    "override",
    ["ppo.learning_rate=1e-4", "seed=1", "budget.max_minutes=9", "env.options.num_games=16", "x"],
)
def test_what_changes_the_experiment_is_refused(override):
    with pytest.raises(
        ConfigError,
        match=r"would change the experiment, whose run has begun; --resume takes sizes only",
    ):
        resized(Experiment.load("battlesnake-ppo"), ["num_env_runners=2", override])


def test_so_many_env_runners_that_the_batch_would_grow_are_refused():
    with pytest.raises(
        ConfigError,
        match="64 env runners a batch would have 16,384 game steps, but the run learned from 8,192",
    ):
        resized(Experiment.load("battlesnake-ppo"), ["num_env_runners=64"])


def test_a_run_goes_on_with_another_size(one_ray, tmp_path):
    first = train(
        toy("identity", steps=100_000, num_env_runners=0),
        runs_dir=tmp_path,
        on_iteration=lambda row: True,
    )
    again = train(resume=first.path, sizes=["num_env_runners=1"], on_iteration=lambda row: True)
    assert again.metrics["iteration"] == first.metrics["iteration"] + 1
    assert again.metrics["agent_steps"] == 2 * first.metrics["agent_steps"]


def test_the_command_names_what_it_does_not_take(tmp_path, capsys):
    from train.runs.folder import RunFolder

    run = RunFolder.set_up(tmp_path / "run", Experiment.load("battlesnake-ppo"), {})
    assert main(["train", "--resume", str(run.path), "--set", "seed=2"]) == 2
    assert "'seed=2' would change the experiment" in capsys.readouterr().err
