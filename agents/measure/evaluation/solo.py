"""Measures how many turns a snake survives alone on a board."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from statistics import NormalDist
from typing import Any

import numpy as np

from agents.agent import Agent
from agents.measure.evaluation.battlesnake import GameResults, play_games
from envs.battlesnake.settings import Settings
from envs.common.columns import in_columns

BOARDS = ((7, 7), (11, 11), (19, 19))
"""The boards of Arena's solo games."""
MAX_TURNS = 5000
"""The turn on which Arena ends a game."""


@dataclass(frozen=True)
class SoloScore:
    """How long an agent survived alone."""

    agent: str
    width: int
    height: int
    games: int
    max_turns: int
    mean_turns: float
    interval: tuple[float, float]
    """The 95 % interval of the mean, by the normal approximation. Games that the turn limit ended
    count with that limit.
    """
    median_turns: float
    survived: int
    """The number of games that the turn limit ended."""
    mean_length: float
    causes: dict[str, int]
    """How often it died of each cause; "survived" counts the other games."""

    def to_dict(self) -> dict[str, Any]:
        """Return the figures as a JSON-able dict."""
        return asdict(self)


def evaluate_solo(
    agent: Agent,
    boards: Sequence[tuple[int, int]] = BOARDS,
    *,
    num_games: int = 200,
    settings: Settings | None = None,
    seed: int = 0,
    max_turns: int = MAX_TURNS,
) -> list[SoloScore]:
    """Have `agent` play alone on boards (width, height), and return one score per board.

    The games are those of `play_games` with one agent. Raises what `play_games` raises.
    """
    scores = []
    for width, height in boards:
        results = play_games(
            [agent],
            num_games=num_games,
            width=width,
            height=height,
            settings=settings,
            seed=seed,
            max_turns=max_turns,
        )
        scores.append(_score(results, width, height, max_turns))
    return scores


def mean_interval(values: np.ndarray) -> tuple[float, float]:
    """Return the 95 % interval of the mean of `values` (n,), by the normal approximation.

    With one value, both ends are that value.
    """
    mean = float(values.mean())
    if len(values) == 1:
        return mean, mean
    spread = NormalDist().inv_cdf(0.975) * float(values.std(ddof=1)) / math.sqrt(len(values))
    return mean - spread, mean + spread


def table(scores: Sequence[SoloScore]) -> str:
    """Return the scores as lines of text."""
    heads = (
        "player",
        "board",
        "games",
        "turns",
        "95 % interval",
        "median",
        "to the end",
        "length",
        "most died of",
    )
    rows = [
        (
            s.agent,
            f"{s.width}×{s.height}",
            str(s.games),
            f"{s.mean_turns:.1f}",
            "{:.1f} to {:.1f}".format(*s.interval),
            f"{s.median_turns:.0f}",
            f"{s.survived / s.games:.1%}",
            f"{s.mean_length:.1f}",
            _deadliest(s.causes),
        )
        for s in scores
    ]
    return in_columns(rows, heads)


def _deadliest(causes: Mapping[str, int]) -> str:
    deaths = {cause: count for cause, count in causes.items() if cause != "survived"}
    if deaths:
        return max(deaths, key=lambda cause: deaths[cause])
    return "–"


def _score(results: GameResults, width: int, height: int, max_turns: int) -> SoloScore:
    return SoloScore(
        agent=results.names[0],
        width=width,
        height=height,
        games=len(results.turns),
        max_turns=max_turns,
        mean_turns=float(results.turns.mean()),
        interval=mean_interval(results.turns),
        median_turns=float(np.median(results.turns)),
        survived=int(results.capped.sum()),
        mean_length=float(results.snake_length[:, 0].mean()),
        causes=results.causes(0),
    )
