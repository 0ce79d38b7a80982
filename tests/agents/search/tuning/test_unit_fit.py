"""The fit of a learned evaluation's hidden units."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from agents.search.evaluation.hidden_units import add_up, new_hidden_units
from agents.search.evaluation.learned_features import LARGEST, NUM_FEATURES
from agents.search.evaluation.learned_weights import FULL, INPUT_UNIT, LARGEST_INPUT, UNIT
from agents.search.tuning.texel import mean_loss, probability
from agents.search.tuning.unit_fit import Adam, Network, fit_units, points_of, rounded
from tests.agents.search.evaluation.test_hidden_units import random_units

WHOLE = {"mean": np.zeros(NUM_FEATURES), "deviation": np.ones(NUM_FEATURES)}


def torch_loss(parameters, scaled, target, offset):
    inputs, bias, outputs = parameters
    logits = offset + torch.clamp(scaled @ inputs + bias, 0, 1) @ outputs
    return torch.nn.functional.binary_cross_entropy_with_logits(logits, target)


def test_the_steps_are_those_of_torch():
    random = np.random.default_rng(2)
    network = Network.random(5, 3, random)
    network.outputs[:] = random.normal(size=3)
    network.inputs *= 4
    theirs = [torch.tensor(one.copy(), requires_grad=True) for one in network.parameters]
    optimizer = torch.optim.Adam(theirs, lr=0.01)
    ours = Adam(network)
    for _ in range(30):
        batch = [random.normal(size=(64, 5)), random.random(64), random.normal(size=64)]
        scaled, target, offset = (one.astype(np.float32) for one in batch)
        ours.step(network.slopes(scaled, target, offset), 0.01)
        optimizer.zero_grad()
        torch_loss(theirs, *map(torch.tensor, (scaled, target, offset))).backward()
        optimizer.step()
    for mine, other in zip(network.parameters, theirs, strict=True):
        assert mine == pytest.approx(other.detach().numpy(), abs=1e-4)


def test_what_no_linear_sum_explains_is_found():
    """A snake wins the more, the more two features differ, whichever is the larger one."""
    random = np.random.default_rng(0)
    features = random.integers(0, 30, (20_000, NUM_FEATURES)).astype(np.int16)
    offset = random.normal(size=len(features))
    logits = offset + np.abs(features[:, 0] - features[:, 5]) / 6 - 1.6
    target = probability(logits)
    units = fit_units(
        features,
        target,
        offset,
        units=8,
        epochs=60,
        scale=500.0,
        mean=features.mean(axis=0),
        deviation=features.std(axis=0),
    )
    fitted = offset + points_of(units, features) / UNIT / 500
    least = mean_loss(logits, target)
    assert mean_loss(fitted, target) - least < 0.1 * (mean_loss(offset, target) - least)


def test_the_fit_is_the_same_every_time():
    random = np.random.default_rng(0)
    features = random.integers(0, 30, (1500, NUM_FEATURES)).astype(np.int16)
    target = random.random(1500)

    def fit():
        return fit_units(features, target, np.zeros(1500), units=4, epochs=2, scale=500.0, **WHOLE)

    assert fit() == fit()


def test_rounding_changes_little():
    random = np.random.default_rng(4)
    mean = random.uniform(0, 40, NUM_FEATURES)
    deviation = random.uniform(0.5, 30, NUM_FEATURES)
    network = Network.random(NUM_FEATURES, 16, random)
    network.outputs[:] = random.normal(size=16)
    features = np.rint(mean + deviation * random.normal(size=(200, NUM_FEATURES)))
    output = ((features - mean) / deviation @ network.inputs + network.bias).clip(0, 1)
    assert ((output > 0) & (output < 1)).mean() > 0.3
    units = rounded(network, scale=500.0, mean=mean, deviation=deviation)
    # Half a step for each weight, times its feature, and a step of the output.
    off = (np.abs(features).sum(axis=1).max() / 2 + 1) / INPUT_UNIT + 1 / FULL
    most = off * np.abs(network.outputs).sum() * 500 + 1
    assert np.abs(points_of(units, features) / UNIT - output @ network.outputs * 500).max() < most


def test_a_weight_that_is_too_large_for_the_file_is_cut_off():
    network = Network.random(NUM_FEATURES, 1, np.random.default_rng(0))
    network.inputs[3] = 900.0
    (unit,) = rounded(network, scale=500.0, **WHOLE)
    assert unit.weights[3] == LARGEST_INPUT


def test_the_fit_adds_what_the_search_adds():
    random = np.random.default_rng(5)
    units = random_units(32)
    features = random.integers(-10, 60, (50, NUM_FEATURES)).astype(np.int16)
    features[0] = LARGEST
    features[1] = -LARGEST
    arrays = new_hidden_units(units)
    expected = [add_up(arrays, row.astype(np.int32)) for row in features]
    assert points_of(units, features).tolist() == expected
