"""SPSA, simultaneous perturbation stochastic approximation, on the schedule of Stockfish's
fishtest.

All parameters are moved at once, each up or down by the toss of a coin. Two games with swapped
seats say which side is better, and every parameter steps towards that side. So a step costs two
games however many parameters there are. Sources: J. Spall, "Implementation of the Simultaneous
Perturbation Algorithm for Stochastic Optimization", 1998; fishtest's own formulas."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from agents.search.tuning.parameters import Parameter

ALPHA = 0.602
GAMMA = 0.101
A_RATIO = 0.1


@dataclass(frozen=True)
class Sides:
    """The two sides of a pair of games, float64 (P,) each. Integer parameters have whole values."""

    plus: np.ndarray
    minus: np.ndarray


class Spsa:
    """The moves and steps of a tuning of `pairs` pairs, which are counted from 1, as in fishtest.

    Nothing but the seed and the pair's number decides its coins, so the answer doesn't depend on
    who plays which pair when."""

    def __init__(self, parameters: Sequence[Parameter], *, pairs: int, seed: int) -> None:
        self.pairs = pairs
        self._seed = seed
        self._a_ratio = A_RATIO * pairs

        def column(name: str) -> np.ndarray:
            return np.array([getattr(parameter, name) for parameter in parameters], float)

        self._low = column("low")
        self._high = column("high")
        self._c_end = column("c_end")
        self._r_end = column("r_end")
        self.start = column("start")
        self._is_integer = np.array([one.is_integer for one in parameters], bool)

    def c(self, pair: int) -> np.ndarray:
        """Return how far each parameter is moved in this pair, float64 (P,). In the last pair this
        is `c_end`.
        """
        return self._c_end * (self.pairs / pair) ** GAMMA

    def a(self, pair: int) -> np.ndarray:
        """Return the gain of this pair's step, float64 (P,). In the last pair this is `r_end` ·
        `c_end`².
        """
        decay = ((self._a_ratio + self.pairs) / (self._a_ratio + pair)) ** ALPHA
        return self._r_end * self._c_end**2 * decay

    def sides(self, theta: np.ndarray, pair: int) -> Sides:
        """Return the two sides of a pair of games around `theta` (P,).

        Integers are rounded up with the probability of their fraction, both sides by one draw, so
        that the sides differ by as much as they should on average."""
        flips, draw = self._coins(pair)
        sides = [
            np.clip(theta + sign * self.c(pair) * flips, self._low, self._high) for sign in (1, -1)
        ]
        return Sides(*(np.where(self._is_integer, np.floor(side + draw), side) for side in sides))

    def step(self, theta: np.ndarray, pair: int, result: float) -> np.ndarray:
        """Return `theta` (P,) after a pair in which the plus side won `result` games more than it
        lost, shared wins in part.
        """
        flips, _ = self._coins(pair)
        return np.clip(theta + self.a(pair) / self.c(pair) * result * flips, self._low, self._high)

    def _coins(self, pair: int) -> tuple[np.ndarray, np.ndarray]:
        """Return whether each parameter goes up or down, ±1 (P,), and uniform draws from 0 to 1,
        (P,).
        """
        random = np.random.default_rng((self._seed, pair))
        return random.choice((-1.0, 1.0), len(self.start)), random.random(len(self.start))
