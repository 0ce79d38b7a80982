"""Applies Texel's method to stores of recorded games: it takes a search and names of weights, and
returns their new values.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from agents.player import Player
from agents.search.evaluation.evaluate import weights_of
from agents.search.tuning.parameters import ALL, WEIGHTS, Parameter, parameters_of
from agents.search.tuning.positions import LINEAR, Positions, collect, read_games
from agents.search.tuning.texel import Fit, fit_weights
from envs.common.errors import ConfigError, UnknownNameError


@dataclass(frozen=True)
class Regression:
    """The result of Texel's method."""

    player: str
    parameters: tuple[Parameter, ...]
    values: dict[str, int | float]
    """The weights by name, rounded and within their ranges."""
    positions: Positions
    fit: Fit

    def to_dict(self) -> dict[str, Any]:
        """Return in JSON's types the old and the new weights, and the games behind them."""
        return {
            "player": self.player,
            "method": "texel",
            "games": self.positions.games,
            "positions": len(self.positions.results),
            "scale": self.fit.scale,
            "loss_before": self.fit.loss_before,
            "loss": self.fit.loss,
            "parameters": {
                one.name: {
                    "start": one.plain(one.start),
                    "value": self.values[one.name],
                    "fitted": round(float(fitted), 3),
                }
                for one, fitted in zip(self.parameters, self.fit.weights, strict=True)
            },
        }


def regress(
    player: str,
    names: Sequence[str],
    stores: Sequence[Path],
    *,
    every: int = 3,
    most: int = sys.maxsize,
) -> Regression:
    """Fit weights of `player` to games in `stores`. `names` are theirs; "weights" or "all" stands
    for every linear weight.

    A position is taken each `every` turns, and from each store `most` games at most. Raises
    `UnknownNameError` for an unknown parameter, `StoreError`, and `ConfigError` for a
    parameter in which the evaluation isn't linear and for games that decide nothing."""
    parameters = _linear_parameters(player, names)
    places = [LINEAR.index(one.name.removeprefix(f"{WEIGHTS}.")) for one in parameters]
    weights = weights_of(Player.of(player).options.get(WEIGHTS))
    positions = collect(map(read_games, stores), weights, every=every, most=most)
    start = np.array([getattr(weights, name) for name in LINEAR], float)
    rest = np.delete(positions.features, places, axis=1) @ np.delete(start, places)
    fit = fit_weights(positions.features[:, places], rest, positions.results, start[places])
    values = {
        one.name: one.plain(min(max(new, one.low), one.high))
        for one, new in zip(parameters, fit.weights, strict=True)
    }
    return Regression(player, parameters, values, positions, fit)


def _linear_parameters(player: str, names: Sequence[str]) -> tuple[Parameter, ...]:
    """Return the parameters of these names, or all linear ones. Raises as `regress` does."""
    parameters = parameters_of(player)
    linear = {f"{WEIGHTS}.{name}": parameters[f"{WEIGHTS}.{name}"] for name in LINEAR}
    if ALL in names or WEIGHTS in names:
        return tuple(linear.values())
    for name in names:
        if name not in parameters:
            raise UnknownNameError("parameter", name, [*linear, ALL, WEIGHTS])
        if name not in linear:
            raise ConfigError(
                f"the evaluation isn't linear in {name}; Texel's method takes {', '.join(linear)}."
                " Tune it by games"
            )
    return tuple(linear[name] for name in dict.fromkeys(names))
