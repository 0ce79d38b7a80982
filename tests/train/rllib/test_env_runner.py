from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
import torch
from ray.exceptions import RayActorError

from tests.train.experiments import toy
from train.metrics.rows import episode_sums
from train.ppo import PPOConfig, PPORunner
from train.rllib import weight_servers


def runner(world, **arguments) -> PPORunner:
    return PPORunner(
        config=PPOConfig.from_experiment(toy(world, bf16=False, **arguments)), worker_index=0
    )


def test_rows_that_are_not_valid_leave_no_entries(one_ray):
    """In the corridor a valid row shows one lit plane; a row that waits shows garbage."""
    (fragment,) = runner("corridor").sample()
    lit = fragment.columns["obs"].reshape(len(fragment), -1)
    assert ((lit == 255).sum(axis=1) == 1).all()
    assert ((lit == 0).sum(axis=1) == lit.shape[1] - 1).all()
    assert 0 < len(fragment) < 16 * 128
    assert fragment.env_steps() == 16 * 64


def test_every_decision_of_an_ended_episode_is_an_entry(one_ray):
    played = runner("corridor", options={"max_turns": 5})
    (fragment,) = played.sample(num_timesteps=50)
    # After 50 steps of games cut at 5 turns, all have ended some; what is under way has at most 5
    # steps a row.
    sums = played.get_metrics()["episode_sums"]["length"].peek()
    assert sums <= len(fragment) <= sums + 5 * 128


@pytest.mark.parametrize("both", [False, True])
def test_a_cut_episode_is_worth_what_its_final_observation_promises(one_ray, both):
    """With lambda 0 an advantage is r + gamma V(next) - V; a game cut at every step takes V from
    the final observation.

    Action 0 terminates the episode, after which nothing follows, even if it is cut off at `both`
    ends."""
    played = runner("corridor", options={"max_turns": 1}, gae_lambda=0.0, gamma=0.5)

    def advance(actions, advance=played.env.advance):
        advance(actions)
        played.env.truncated |= both & played.env.terminated

    played.env.advance = advance
    (fragment,) = played.sample(num_timesteps=1)
    with torch.inference_mode():
        value = played.module.rollout(torch.eye(11, dtype=torch.uint8)[:, None, None, :] * 255)[
            1
        ].numpy()
    for action, expected in ((1, 0.5 * value[1] - value[0]), (0, -value[0])):
        chosen = fragment.columns["advantages"][fragment.columns["actions"] == action]
        assert len(chosen)
        np.testing.assert_allclose(chosen, expected, atol=1e-6)


def test_actions_are_drawn_with_the_networks_probabilities(one_ray):
    """Chi-square against the stored log-probabilities, by action, over one observation (the
    bandit's never changes).
    """
    played = runner("masked-bandit")
    with torch.no_grad():
        played.module.network.heads.actor.bias += torch.tensor([0.0, 0.5, 1.0, 2.0])
    (fragment,) = played.sample(num_timesteps=100 * played.env.num_games)
    mask = fragment.columns["action_mask"]
    actions = fragment.columns["actions"]
    assert mask[np.arange(len(actions)), actions].all()
    everything = mask.all(axis=1)
    assert everything.sum() > 200
    observed = np.bincount(actions[everything], minlength=4)
    with torch.inference_mode():
        logits = played.module.rollout(torch.full((1, 1, 1, 4), 255, dtype=torch.uint8))[0]
    expected = logits.softmax(-1).numpy()[0] * everything.sum()
    assert (
        (observed - expected) ** 2 / expected
    ).sum() < 16.3  # 99.9 % quantile, 3 degrees of freedom


def test_going_on_changes_games_actions_and_views_the_more_was_played(one_ray):
    """Kept is how many rollouts there were. After none, all is as at the beginning."""
    seeds = []
    for rollouts in (None, 0, 1, 2):
        played = runner("symmetric-identity", symmetries=True)
        if rollouts is not None:
            played.carry_on({**played.progress(), "rollouts": rollouts})
        assert played.progress()["rollouts"] == (rollouts or 0)
        fragment = played.sample()[0]
        assert played.progress()["rollouts"] == (rollouts or 0) + 1
        drawn = (played._generator.initial_seed(), played._views._random.integers(1 << 40))
        seeds.append(
            (
                played._env_seed,
                *drawn,
                fragment.columns["obs"].tobytes(),
                fragment.columns["actions"].tobytes(),
            )
        )
    assert seeds[0] == seeds[1]
    for part in zip(*seeds, strict=True):
        assert len(set(part)) == 3


def test_sums_count_causes_by_code():
    columns = {
        "row": np.array([0, 1, 2]),
        "return": np.array([1.0, 2.0, 3.0]),
        "won": np.array([True, False, True]),
    }
    sums = episode_sums({**columns, "cause": np.array([4, 0, 4])})
    counted = dict.fromkeys((f"cause_{code}" for code in range(7)), 0.0) | {
        "cause_0": 1.0,
        "cause_4": 2.0,
    }
    assert sums == {"return": 6.0, "won": 2.0, **counted}


def test_an_unknown_world_option_is_a_config_error():
    from envs.common.errors import ConfigError
    from train.worlds.build import make_world

    with pytest.raises(ConfigError, match="num_gamez"):
        make_world({"name": "identity", "imports": ["tests.train.small_worlds"], "num_gamez": 3})


def test_a_runner_whose_weight_server_is_lost_looks_for_another(one_ray, monkeypatch):
    played = runner("identity")
    asked = []
    there = ["lost", "main"]

    def server(name):
        return SimpleNamespace(pull_if_newer=SimpleNamespace(remote=lambda version: name))

    def get(name):
        asked.append(name)
        if name == "lost":
            raise RayActorError

    monkeypatch.setattr(weight_servers, "ray", SimpleNamespace(get=get))
    source = SimpleNamespace(nearest=lambda: server(there.pop(0)))
    for _ in range(3):
        played.take_newest_weights(source)
    assert asked == ["lost", "main", "main"]
