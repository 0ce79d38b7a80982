from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from ray.rllib.algorithms.impala.torch.vtrace_torch_v2 import vtrace_torch

from tests.train.rollouts.test_advantages import random_rollout
from train.rollouts.advantages import gae
from train.rollouts.v_trace import v_trace


def by_definition(episodes, ratios, gamma, trace_lambda, rho_clip, c_clip):
    """Equation 1 of arXiv 1802.01561 and the policy gradient of section 4.2, as sums over each
    episode, entry by entry.
    """
    targets = {}
    advantages = {}
    for entries, rewards, values, bootstrap in episodes:
        length = len(entries)
        following = [*values[1:], bootstrap]
        rho = [min(rho_clip, ratios[entry]) for entry in entries]
        c = [trace_lambda * min(c_clip, ratios[entry]) for entry in entries]
        deltas = [rho[t] * (rewards[t] + gamma * following[t] - values[t]) for t in range(length)]
        v = [
            values[s]
            + sum(gamma ** (t - s) * math.prod(c[s:t]) * deltas[t] for t in range(s, length))
            for s in range(length)
        ]
        for s, entry in enumerate(entries):
            after = v[s + 1] if s + 1 < length else bootstrap
            mixed = trace_lambda * after + (1 - trace_lambda) * following[s]
            targets[entry], advantages[entry] = (
                v[s],
                rho[s] * (rewards[s] + gamma * mixed - values[s]),
            )
    return [np.array([found[i] for i in range(len(found))]) for found in (targets, advantages)]


@pytest.mark.parametrize(
    ("gamma", "trace_lambda", "rho_clip", "c_clip"),
    [(0.99, 1.0, 1.0, 1.0), (0.9, 0.95, 1.5, 0.7), (1.0, 0.0, 0.5, 1.0)],
)
def test_it_equals_the_papers_recursion_with_endings_cuts_and_gaps(
    gamma, trace_lambda, rho_clip, c_clip
):
    rng = np.random.default_rng(0)
    flat, last_values, episodes = random_rollout(rng)
    ratios = np.exp(rng.normal(size=len(flat["rows"])))
    found = v_trace(*flat.values(), last_values, ratios, gamma, trace_lambda, rho_clip, c_clip)
    expected = by_definition(episodes, ratios, gamma, trace_lambda, rho_clip, c_clip)
    for column, truth in zip(found, expected, strict=True):
        np.testing.assert_allclose(column, truth, rtol=1e-5, atol=1e-6)


def test_it_equals_rllibs_own():
    """RLlib's has a grid in place of rows, discounts of 0 in place of endings, and no lambda."""
    rng, (steps, rows), gamma = np.random.default_rng(1), (30, 6), 0.97
    grid = {
        name: rng.normal(size=(steps, rows))
        for name in ("target", "behaviour", "rewards", "values")
    }
    ended = rng.random((steps, rows)) < 0.1
    bootstrap = rng.normal(size=rows)
    tensors = {name: torch.from_numpy(column) for name, column in grid.items()}
    targets, advantages = vtrace_torch(
        target_action_log_probs=tensors["target"],
        behaviour_action_log_probs=tensors["behaviour"],
        discounts=torch.from_numpy(np.where(ended, 0.0, gamma)),
        rewards=tensors["rewards"],
        values=tensors["values"],
        bootstrap_values=torch.from_numpy(bootstrap),
        clip_rho_threshold=1.2,
        clip_pg_rho_threshold=1.2,
    )
    flat = {name: column.reshape(-1) for name, column in grid.items()}
    found = v_trace(
        np.tile(np.arange(rows), steps),
        flat["rewards"],
        flat["values"],
        ended.reshape(-1),
        np.zeros(steps * rows),
        bootstrap,
        np.exp(flat["target"] - flat["behaviour"]),
        gamma,
        1.0,
        1.2,
        1.0,
    )
    np.testing.assert_allclose(found[0], targets.numpy().reshape(-1), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(found[1], advantages.numpy().reshape(-1), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("trace_lambda", [0.0, 0.95, 1.0])
def test_where_the_policy_is_the_one_that_played_it_is_ppos_advantage(trace_lambda):
    flat, last_values, _ = random_rollout(np.random.default_rng(2))
    expected = gae(*flat.values(), last_values, 0.99, trace_lambda)
    targets, advantages = v_trace(
        *flat.values(), last_values, np.ones(len(expected)), 0.99, trace_lambda, 1.0, 1.0
    )
    np.testing.assert_allclose(advantages, expected, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(targets, expected + flat["values"], rtol=1e-5, atol=1e-6)
