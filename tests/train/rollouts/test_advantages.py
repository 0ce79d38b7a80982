from __future__ import annotations

import numpy as np

from train.rollouts.advantages import gae


def by_definition(episodes, gamma, gae_lambda):
    """Equation 16 of arXiv 1506.02438 as a sum: A_t = sum_l (gamma lambda)^l delta_{t+l}, episode
    by episode, float64.
    """
    out = {}
    for entries, rewards, values, bootstrap in episodes:
        following = [*values[1:], bootstrap]
        deltas = [r + gamma * nv - v for r, v, nv in zip(rewards, values, following, strict=True)]
        for t, entry in enumerate(entries):
            out[entry] = sum(
                (gamma * gae_lambda) ** (k - t) * deltas[k] for k in range(t, len(deltas))
            )
    return np.array([out[i] for i in range(len(out))])


def random_rollout(rng, num_rows=5, steps=40):
    """Rows that end (half of them truncated), then pause for a while, then come back."""
    flat = {name: [] for name in ("rows", "rewards", "values", "ended", "final_values")}
    episodes = []
    running = {row: ([], [], []) for row in range(num_rows)}
    pause = np.zeros(num_rows, int)
    for _ in range(steps):
        for row in range(num_rows):
            if pause[row]:
                pause[row] -= 1
                continue
            reward = rng.normal()
            value = rng.normal()
            ended = rng.random() < 0.15
            truncated = rng.random() < 0.5
            final = rng.normal() if ended and truncated else 0.0
            entries, rewards, values = running[row]
            entries.append(len(flat["rows"])), rewards.append(reward), values.append(value)
            for name, item in zip(flat, (row, reward, value, ended, final), strict=True):
                flat[name].append(item)
            if ended:
                episodes.append((entries, rewards, values, final))
                running[row], pause[row] = ([], [], []), rng.integers(0, 6)
    last_values = rng.normal(size=num_rows)
    episodes += [(*running[row], last_values[row]) for row in range(num_rows) if running[row][0]]
    return {name: np.array(column) for name, column in flat.items()}, last_values, episodes


def test_gae_equals_its_definition_with_endings_cuts_and_gaps():
    rng = np.random.default_rng(0)
    for gamma, gae_lambda in ((0.99, 0.95), (0.9, 0.0), (1.0, 1.0)):
        flat, last_values, episodes = random_rollout(rng)
        found = gae(*flat.values(), last_values, gamma, gae_lambda)
        np.testing.assert_allclose(
            found, by_definition(episodes, gamma, gae_lambda), rtol=1e-6, atol=1e-6
        )


def test_with_lambda_one_it_is_the_discounted_return_less_the_value():
    rewards = np.array([1.0, 2.0, 4.0])
    values = np.array([0.5, 0.25, 0.125])
    rows = np.zeros(3, np.int64)
    ended = np.array([False, False, True])
    found = gae(rows, rewards, values, ended, np.zeros(3), np.zeros(1), 0.5, 1.0)
    np.testing.assert_allclose(found, [1 + 1 + 1 - 0.5, 2 + 2 - 0.25, 4 - 0.125])
