from __future__ import annotations

import numpy as np
import pytest

from train.rollouts.reward_scaling import RewardScaler

GAMMA = 0.9


def played(scaler, steps=200, num_rows=5, seed=0):
    """(rewards, scaled rewards, all returns so far) step by step, of rows that come and go."""
    rng = np.random.default_rng(seed)
    running = np.zeros(num_rows)
    seen = []
    for _ in range(steps):
        rows = np.flatnonzero(rng.random(num_rows) < 0.7)
        rewards = rng.normal(3.0, 2.0, len(rows)).astype(np.float32)
        ended = rng.random(len(rows)) < 0.2
        for row, reward, end in zip(rows, rewards, ended, strict=True):
            running[row] = GAMMA * running[row] + reward
            seen.append(running[row])
            running[row] = 0.0 if end else running[row]
        yield rewards, scaler.scale(rewards, rows, ended), np.array(seen)


def test_rewards_are_divided_by_the_deviation_of_all_discounted_returns_so_far():
    for rewards, scaled, seen in played(RewardScaler(5, GAMMA)):
        if len(seen) > 1:
            np.testing.assert_allclose(
                scaled, np.clip(rewards / np.sqrt(seen.var() + 1e-8), -10, 10), rtol=1e-5
            )
        assert scaled.dtype == np.float32


def test_the_first_reward_stays_and_two_returns_have_a_deviation():
    scaler = RewardScaler(1, GAMMA)
    ended = np.array([True])
    assert scaler.scale(np.array([7.0]), np.arange(1), ended) == pytest.approx(7.0)
    # The returns 7 and 3 have the deviation 2.
    assert scaler.scale(np.array([3.0]), np.arange(1), ended) == pytest.approx(1.5)


def test_huge_rewards_are_clipped():
    scaler = RewardScaler(2, GAMMA)
    for sign in (1, -1):
        for _ in range(50):
            scaler.scale(np.array([0.1, -0.1]), np.arange(2), np.array([True, True]))
        assert scaler.scale(
            np.array([sign * 1e9]), np.array([0]), np.array([True])
        ) == pytest.approx(sign * 10, rel=0.1)


def test_it_goes_on_from_its_state():
    whole = RewardScaler(5, GAMMA)
    first = RewardScaler(5, GAMMA)
    second = RewardScaler(5, GAMMA)
    *_, (_, _, seen) = played(whole)
    for _ in played(first):
        pass
    second.set_state(first.get_state())
    assert second.variance == whole.variance == pytest.approx(seen.var())
