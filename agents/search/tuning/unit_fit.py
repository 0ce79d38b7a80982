"""Fits the hidden units of a learned evaluation to what its linear sum leaves unexplained.

The loss is the cross-entropy of the logits `offset` + what the units add. Adam (Kingma and Ba 2015,
arXiv 1412.6980) minimises it over random batches, with a rate that falls to 0. At the end the
weights are rounded to the whole numbers of the file."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from agents.search.evaluation.learned_weights import (
    FULL,
    INPUT_UNIT,
    LARGEST_BIAS,
    LARGEST_INPUT,
    UNIT,
    HiddenUnit,
)
from agents.search.tuning.texel import probability

_BATCH = 256
_RATE = 0.003
_DECAYS = (0.9, 0.999)
_TINY = 1e-8
_START_BIAS = 0.5


@dataclass
class Network:
    """A layer of N units that see F features, and what they add to the logit."""

    inputs: np.ndarray
    """float32 (F, N), for features of mean 0 and variance 1."""
    bias: np.ndarray
    """float32 (N,)."""
    outputs: np.ndarray
    """float32 (N,): what a unit's output 1 adds."""

    @classmethod
    def random(cls, features: int, units: int, random: np.random.Generator) -> Network:
        """Return a network that adds nothing yet, with outputs midway between 0 and 1."""
        spread = 0.5 / np.sqrt(features)
        return cls(
            inputs=random.normal(0, spread, (features, units)).astype(np.float32),
            bias=np.full(units, _START_BIAS, np.float32),
            outputs=np.zeros(units, np.float32),
        )

    @property
    def parameters(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        return self.inputs, self.bias, self.outputs

    def slopes(
        self, scaled: np.ndarray, target: np.ndarray, offset: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the derivatives of the mean loss by the parameters, for `scaled` features (B, F),
        `target` (B,) and `offset` (B,).
        """
        activation = scaled @ self.inputs + self.bias
        output = activation.clip(0, 1)
        error = (probability(offset + output @ self.outputs) - target) / len(target)
        is_between = (activation > 0) & (activation < 1)
        by_activation = error[:, None] * self.outputs * is_between
        return scaled.T @ by_activation, by_activation.sum(axis=0), output.T @ error


class Adam:
    """Adam's moments for each parameter of a network."""

    def __init__(self, network: Network) -> None:
        self._network = network
        self._means = [np.zeros_like(one) for one in network.parameters]
        self._squares = [np.zeros_like(one) for one in network.parameters]
        self._steps = 0

    def step(self, slopes: tuple[np.ndarray, ...], rate: float) -> None:
        self._steps += 1
        first, second = _DECAYS
        rate *= np.sqrt(1 - second**self._steps) / (1 - first**self._steps)
        moments = zip(self._network.parameters, slopes, self._means, self._squares, strict=True)
        for parameter, slope, mean, square in moments:
            mean += (1 - first) * (slope - mean)
            square += (1 - second) * (slope * slope - square)
            parameter -= rate * mean / (np.sqrt(square) + _TINY)


def fit_units(
    features: np.ndarray,
    target: np.ndarray,
    offset: np.ndarray,
    *,
    units: int,
    epochs: int,
    scale: float,
    mean: np.ndarray,
    deviation: np.ndarray,
) -> tuple[HiddenUnit, ...]:
    """Return units that add to the logits `offset` (N,) so that they predict `target` (N,) from
    `features` (N, F).

    Every position is seen `epochs` times. `mean` and `deviation` (F,) are those of the features,
    and `scale` is what the logit 1 counts in points.
    """
    random = np.random.default_rng(0)
    network = Network.random(features.shape[1], units, random)
    adam = Adam(network)
    # A larger weight couldn't be written into the file.
    most = (LARGEST_INPUT / INPUT_UNIT * deviation)[:, None].astype(np.float32)
    mean = mean.astype(np.float32)
    deviation = deviation.astype(np.float32)
    batches = -(-len(target) // _BATCH)
    for step in range(epochs * batches):
        if step % batches == 0:
            order = random.permutation(len(target))
        rows = order[step % batches :: batches]
        scaled = (features[rows] - mean) / deviation
        slopes = network.slopes(scaled, target[rows], offset[rows])
        adam.step(slopes, _RATE * (1 - step / (epochs * batches)))
        network.inputs.clip(-most, most, out=network.inputs)
    return rounded(network, scale=scale, mean=mean, deviation=deviation)


def rounded(
    network: Network, *, scale: float, mean: np.ndarray, deviation: np.ndarray
) -> tuple[HiddenUnit, ...]:
    """Return the units of a network in whole numbers, for features as they are."""
    inputs = network.inputs / deviation[:, None]
    weights = np.rint(inputs * INPUT_UNIT).astype(np.int64).clip(-LARGEST_INPUT, LARGEST_INPUT)
    # The output is rounded down, so that half a step is lost on average.
    bias = (network.bias - mean @ inputs + 0.5 / FULL) * INPUT_UNIT
    points = np.rint(network.outputs * scale * UNIT)
    return tuple(
        HiddenUnit.of(
            weights[:, number].tolist(),
            bias=int(np.rint(bias[number]).clip(-LARGEST_BIAS, LARGEST_BIAS)),
            points=int(points[number]),
        )
        for number in range(len(points))
    )


def points_of(units: tuple[HiddenUnit, ...], features: np.ndarray) -> np.ndarray:
    """Return what the units add to the score of each position, int64 (N,) in 1 / `UNIT` points, as
    the search computes it.
    """
    # The numbers are whole and below 2**53, so float64 holds them exactly, and is far faster.
    weights = np.array([unit.weights for unit in units], float).T
    bias = np.array([unit.bias for unit in units], float)
    points = np.array([unit.points for unit in units], float)
    output = np.floor((features @ weights + bias) * FULL / INPUT_UNIT).clip(0, FULL)
    return np.floor(output @ points / FULL).astype(np.int64)
