"""Fits the curves of win probability to the games in stores of tournaments, and measures them on
games held out of the fit.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import chain, pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from agents.measure.analysis.opinions import MoveSearch
from agents.measure.analysis.win_probability import GROUPS, Curve, WinProbability, group_of
from agents.measure.tournament.game import replayed
from agents.measure.tournament.settings import Game, Match
from agents.parallel import Tell, spread
from agents.search.evaluation.evaluate import SURE
from agents.search.tuning.learning import ridge_regression
from agents.search.tuning.positions import read_games
from agents.search.tuning.texel import mean_loss
from envs.battlesnake.state import ALIVE
from envs.common.columns import in_columns
from envs.common.errors import ConfigError

EVERY = 16
"""The turns between two positions of a game that are used, because neighbouring positions are
nearly the same.
"""
HELD_OUT = 5
"""One game of so many is held out of the fit, to measure it."""
_LEAST = 100
_UNIT = 1000.0
_RIDGE = 1e-6
_BINS = (0.0, 0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.98, 1.0)


class Position(NamedTuple):
    """A search's scores of a position for one snake, and how the game ended for it."""

    group: str
    score: int
    result: float  # 1 if it alone came first, an equal share of a shared first place, else 0
    is_held_out: bool


@dataclass(frozen=True)
class Bin:
    """The positions of the held-out games whose fitted probability lies in a range."""

    low: float
    high: float
    positions: int
    expected: float
    """The mean of the fitted probabilities."""
    won: float
    """The share of points that were won."""

    @property
    def row(self) -> tuple[int, float, float]:
        """Return the values to store: the number of positions, the expected and the actual score,
        both rounded to a thousandth.
        """
        return self.positions, round(self.expected, 3), round(self.won, 3)


@dataclass(frozen=True)
class Measured:
    """How good a curve is on the games that were held out."""

    positions: int
    loss: float
    """The mean negative log-likelihood in nats."""
    loss_of_the_mean: float
    """The same for somebody who knows only the mean result."""
    bins: tuple[Bin, ...]

    @property
    def rows(self) -> list[tuple[int, float, float]]:
        """Return the bins' values to store."""
        return [one.row for one in self.bins]


def fit(
    stores: Sequence[Path], *, nodes: int, pool: ProcessPoolExecutor | None, tell: Tell
) -> tuple[WinProbability, dict[str, Measured]]:
    """Fit the curves to the games of these stores, and measure them by group. A group of which the
    games have too few positions keeps the built-in curve, and isn't measured.

    Raises `StoreError` for files that are not stores, and `ConfigError` if all groups have too few
    positions."""
    recorded = [read_games(path) for path in stores]
    games = list[tuple[Match, Game, bool]]()
    for match, all_games in recorded:
        games += [(match, game, n % HELD_OUT == 0) for n, game in enumerate(all_games)]
    positions = list(
        chain.from_iterable(spread(pool, partial(positions_of, nodes=nodes), games, tell))
    )
    curves = dict(WinProbability.shipped().curves)
    measured = {}
    for group in GROUPS:
        own = [one for one in positions if one.group == group]
        seen = [one for one in own if not one.is_held_out]
        held_out = [one for one in own if one.is_held_out]
        if held_out and sum(abs(one.score) <= SURE for one in seen) >= _LEAST:
            curves[group] = fit_curve(group, seen)
            measured[group] = measure(curves[group], held_out)
    if not measured:
        raise ConfigError(
            f"a curve needs {_LEAST} positions of its kind whose score isn't proven, and of the"
            f" {len(positions)} positions of these games no kind has so many; add stores with more"
            " games"
        )
    training = {
        "stores": [
            {**match.to_dict(), "games_kept": len(all_games)} for match, all_games in recorded
        ],
        "nodes": nodes,
        "every": EVERY,
        "bins": {group: one.rows for group, one in measured.items()},
        "held_out": {
            group: [one.positions, one.loss, one.loss_of_the_mean]
            for group, one in measured.items()
        },
    }
    return WinProbability(curves, training), measured


def positions_of(recorded: tuple[Match, Game, bool], *, nodes: int) -> list[Position]:
    """Return every sixteenth position of a game for each living snake, without the opening, whose
    moves were random.
    """
    match, game, is_held_out = recorded
    search = MoveSearch(nodes)
    positions = list[Position]()
    begins = match.turns_of_opening(game.round)
    for turn, state in replayed(match, game):
        if turn % EVERY == 0 and turn >= begins:
            living = np.flatnonzero(state.arrays.cause[0] == ALIVE)
            group = group_of(len(living), search.is_learned(state))
            for slot in map(int, living):
                score = search(state, slot).best_score
                positions.append(Position(group, score, float(game.share(slot)), is_held_out))
    return positions


def fit_curve(group: str, positions: Sequence[Position]) -> Curve:
    """Fit a group's curve. Raises `ConfigError` if the scores don't predict the results."""
    scores, results = _columns(positions)
    open_ones = np.abs(scores) <= SURE
    features = np.column_stack([scores[open_ones] / _UNIT, np.ones(open_ones.sum())])
    slope, offset = ridge_regression(features, results[open_ones], np.zeros(len(features)), _RIDGE)
    if slope <= 0:
        raise ConfigError(
            f"the scores don't predict the results of the group {group!r}; use games of stronger"
            " players"
        )
    lost = results[scores < -SURE]
    won = results[scores > SURE]
    # One result of ½ is added to each, so that no share is exactly 0 or 1.
    shares = ((part.sum() + 0.5) / (len(part) + 1) for part in (lost, won))
    proven_loss, proven_win = (round(float(share), 4) for share in shares)
    scale = round(_UNIT / float(slope), 1)
    return Curve(
        scale=scale, offset=round(float(offset), 4), proven_loss=proven_loss, proven_win=proven_win
    )


def measure(curve: Curve, positions: Sequence[Position]) -> Measured:
    """Compare a curve with the results of positions that it wasn't fitted to."""
    scores, results = _columns(positions)
    expected = np.array([curve(int(score)) for score in scores])
    logits = np.log(expected / (1 - expected))
    mean = float(results.mean())
    return Measured(
        positions=len(results),
        loss=mean_loss(logits, results),
        loss_of_the_mean=mean_loss(np.full(1, _logit(mean)), np.array([mean])),
        bins=tuple(_bins(expected, results)),
    )


def _bins(expected: np.ndarray, results: np.ndarray) -> Iterator[Bin]:
    """Compare the expected with the actual results, range by range; ranges with no position are
    left out.
    """
    bin_numbers = np.searchsorted(_BINS[1:-1], expected, side="right")
    for n, (low, high) in enumerate(pairwise(_BINS)):
        inside = bin_numbers == n
        if inside.any():
            mean_expected = float(expected[inside].mean())
            mean_result = float(results[inside].mean())
            yield Bin(low, high, int(inside.sum()), mean_expected, mean_result)


def _columns(positions: Sequence[Position]) -> tuple[np.ndarray, np.ndarray]:
    """The scores and the results, float64 (N,) each."""
    scores = np.array([one.score for one in positions], float)
    results = np.array([one.result for one in positions], float)
    return scores, results


def _logit(share: float) -> float:
    return float(np.log(share / (1 - share)))


def table(curves: WinProbability, measured: dict[str, Measured]) -> str:
    """Return the curves and their calibration in words and columns."""
    lines: list[str] = []
    for group in GROUPS:
        if group not in measured:
            lines.append(f"{group}: the built-in curve, because there are too few positions")
            continue
        one = measured[group]
        curve: Any = curves.curves[group]
        shape = f"scale {curve.scale:.0f}, offset {curve.offset:+.2f}"
        proven = f"proven losses {curve.proven_loss:.1%} won, proven wins {curve.proven_win:.1%}"
        loss = f"loss {one.loss:.3f} nats, {one.loss_of_the_mean:.3f} by the mean alone"
        bins = [
            (f"{b.low:.0%} to {b.high:.0%}", str(b.positions), f"{b.expected:.1%}", f"{b.won:.1%}")
            for b in one.bins
        ]
        lines.append(f"{group}: {shape}; {proven}; {loss}")
        lines.append(in_columns(bins, ("expected", "positions", "expected", "won"), indent="  "))
    return "\n".join(lines)
