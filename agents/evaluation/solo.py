"""Solo as a challenge: how many turns a snake survives alone on a board."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from statistics import NormalDist
from typing import Any

import numpy as np

from agents.agent import Agent
from agents.evaluation.battlesnake import GameResults, play_games
from envs.battlesnake.settings import Settings

BOARDS = ((7, 7), (11, 11), (19, 19))
"""Arena's boards."""
MAX_TURNS = 5000
"""Arena ends games there."""


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
    """The 95 % interval of the mean, by the normal approximation. Games that the turn limit ended count with that limit."""
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
            [agent], num_games=num_games, width=width, height=height, settings=settings, seed=seed, max_turns=max_turns
        )
        scores.append(_score(results, width, height, max_turns))
    return scores


def mean_interval(values: np.ndarray) -> tuple[float, float]:
    """Return the 95 % interval of the mean of `values` (n,), by the normal approximation.

    Of one value both ends are that value.
    """
    spread = NormalDist().inv_cdf(0.975) * float(values.std(ddof=1)) / math.sqrt(len(values)) if len(values) > 1 else 0.0
    return float(values.mean()) - spread, float(values.mean()) + spread


def table(scores: Sequence[SoloScore]) -> str:
    """Return the scores as lines of text."""
    lines = [
        f"{'player':<24} {'board':>6} {'games':>6} {'turns':>8}  {'95 % interval':<18} {'median':>7} {'to the end':>11}"
        f" {'length':>7}  most died of"
    ]
    for s in scores:
        interval = "{:.1f} to {:.1f}".format(*s.interval)
        deaths = {cause: count for cause, count in s.causes.items() if cause != "survived"}
        lines.append(
            f"{s.agent[-24:]:<24} {f'{s.width}×{s.height}':>6} {s.games:>6} {s.mean_turns:>8.1f}  {interval:<18}"
            f" {s.median_turns:>7.0f} {s.survived / s.games:>11.1%} {s.mean_length:>7.1f}"
            f"  {max(deaths, key=lambda cause: deaths[cause]) if deaths else '–'}"
        )
    return "\n".join(lines)


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
