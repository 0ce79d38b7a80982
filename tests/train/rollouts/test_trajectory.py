from __future__ import annotations

import numpy as np
import pytest
from ray.rllib.utils.metrics.metrics_logger import MetricsLogger

from tests.train.experiments import toy_appo
from train.appo import APPOConfig, APPORunner, TrajectoriesToBatch, standardised
from train.ppo import PPORunner


def runner_of(world, **settings):
    config = APPOConfig.from_experiment(toy_appo(world, bf16=False, **settings))
    return config, APPORunner(config=config, worker_index=0)


def batch_of(config, module, trajectories):
    connector = TrajectoriesToBatch(settings=config.settings)
    return connector(
        rl_module={"default_policy": module}, episodes=trajectories, metrics=MetricsLogger()
    )["default_policy"]


def number_of(observations):
    return np.ascontiguousarray(observations).reshape(len(observations), 8).view(np.int64)[:, 0]


def test_with_the_policy_that_played_a_batch_is_the_one_that_ppo_would_learn_from(one_ray):
    """Cut, ended and waiting rows, over two fragments, whose rows must not be taken for each
    other.
    """
    config, runner = runner_of(
        "corridor", options={"num_games": 8, "max_turns": 3}, gamma=0.9, norm_adv=False
    )
    same = PPORunner(config=config, worker_index=0)
    same.module.load_state_dict(runner.module.state_dict())
    trajectories = []
    fragments = []
    for _ in range(2):
        trajectories.append(copied(runner.sample()[0]))
        fragments.append(copied(same.sample()[0]))
    batch = batch_of(config, runner.module, trajectories)
    assert sum(len(part.final_entries) for part in trajectories) > 10
    for name in ("actions", "action_logp", "vf_preds", "advantages", "value_targets"):
        truth = np.concatenate([fragment.columns[name] for fragment in fragments])
        np.testing.assert_allclose(batch[name].numpy(), truth, atol=1e-5, err_msg=name)


def test_learners_get_whole_rows_and_together_everything(one_ray):
    config, runner = runner_of("counting", options={"num_games": 7}, num_steps=60)
    whole = copied(runner.sample()[0])
    parts = whole.split(3)
    assert sum(part.agent_steps() for part in parts) == whole.agent_steps()
    assert sum(part.env_steps() for part in parts) == pytest.approx(whole.env_steps(), abs=2)
    assert len(np.unique(np.concatenate([np.unique(part.columns["rows"]) for part in parts]))) == 7
    for part in parts:
        shown = number_of(part.columns["obs"])
        following = number_of(part.last_observations)
        # A row's numbers go up by one, also beyond what was played.
        for row in np.unique(part.columns["rows"]):
            numbers = [*shown[part.columns["rows"] == row], *following[part.last_rows == row]]
            assert (np.diff(numbers) == 1).all()
        # And the last observation of a truncated episode shows the next number, too.
        np.testing.assert_array_equal(
            number_of(part.final_observations), shown[part.final_entries] + 1
        )
    expected = dict(zip(*judged(config, runner, [whole]), strict=True))
    assert expected == pytest.approx(
        dict(zip(*judged(config, runner, parts), strict=True)), abs=1e-5
    )


def test_standardised_advantages_keep_their_weights():
    """What counts for nothing goes on counting for nothing; where everything counts, it is the
    usual standardisation.
    """
    own = np.array([3.0, 5.0, 7.0, 1000.0])
    weights = np.array([1.0, 1.0, 1.0, 0.0])
    deviation = np.std([3.0, 5.0, 7.0])
    np.testing.assert_allclose(
        standardised(own * weights, weights), [-2 / deviation, 0.0, 2 / deviation, 0.0], rtol=1e-5
    )
    # A half weight: the mean is (3 + 5 + 0.5 · 10) / 2.5.
    own = np.array([3.0, 5.0, 10.0])
    weights = np.array([1.0, 1.0, 0.5])
    found = standardised(own * weights, weights)
    spread = np.sqrt((1.0 * 2.2**2 + 1.0 * 0.2**2 + 0.5 * 4.8**2) / 2.5)
    np.testing.assert_allclose(found, [-2.2 / spread, -0.2 / spread, 0.5 * 4.8 / spread], rtol=1e-5)


def test_a_stretch_of_time_is_refused(one_ray):
    _, runner = runner_of("identity")
    with pytest.raises(TypeError, match="use split"):
        runner.sample()[0][:10]


def judged(config, runner, trajectories):
    """(The number that each entry shows, its value target)."""
    batch = batch_of(config, runner.module, trajectories)
    return number_of(batch["obs"].numpy()).tolist(), batch["value_targets"].tolist()


def copied(fragment):
    """Its columns are views of the env runner's buffer, which the next call overwrites."""
    fragment.columns = {name: column.copy() for name, column in fragment.columns.items()}
    return fragment
