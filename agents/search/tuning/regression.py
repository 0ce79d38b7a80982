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
    asked: Sequence[str],
    stores: Sequence[Path],
    *,
    every: int = 3,
    most: int = sys.maxsize,
) -> Regression:
    """Fit weights of `player` to games in `stores`. `asked` names them; "weights" or "all" stands
    for every linear weight.

    A position is taken each `every` turns, and from each store `most` games at most. Raises
    `UnknownNameError` for a name that is no parameter's, `StoreError`, and `ConfigError` for a
    parameter in which the evaluation isn't linear and for games that decide nothing."""
    known = parameters_of(player)
    asked = list(dict.fromkeys(asked))
    linear = {f"{WEIGHTS}.{name}": known[f"{WEIGHTS}.{name}"] for name in LINEAR}
    if {ALL, WEIGHTS} & set(asked):
        chosen = tuple(linear.values())
    else:
        chosen = tuple(_linear(name, known, linear) for name in asked)
    places = [LINEAR.index(one.name.removeprefix(f"{WEIGHTS}.")) for one in chosen]
    weights = weights_of(Player.of(player).options.get(WEIGHTS))
    found = collect(map(read_games, stores), weights, every=every, most=most)
    start = np.array([getattr(weights, name) for name in LINEAR], float)
    rest = np.delete(found.features, places, axis=1) @ np.delete(start, places)
    fit = fit_weights(found.features[:, places], rest, found.results, start[places])
    values = {
        one.name: one.plain(min(max(new, one.low), one.high))
        for one, new in zip(chosen, fit.weights, strict=True)
    }
    return Regression(player, chosen, values, found, fit)


def _linear(name: str, known: dict[str, Parameter], linear: dict[str, Parameter]) -> Parameter:
    if name not in known:
        raise UnknownNameError("parameter", name, [*linear, ALL, WEIGHTS])
    if name not in linear:
        raise ConfigError(
            f"the evaluation isn't linear in {name}; Texel's method takes {', '.join(linear)}. Tune"
            " it by games"
        )
    return linear[name]
