"""The standings of a tournament: one row per player, the best first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np

from agents.measure.tournament.bracket import rounds_survived
from agents.measure.tournament.ratings import WengLin, bradley_terry, weng_lin_ratings
from agents.measure.tournament.settings import Game, Tournament, scores
from envs.common.columns import in_columns
from envs.common.strangers.printable import printable


@dataclass(frozen=True)
class Standing:
    """The results of one player."""

    player: int
    name: str
    games: int
    wins: int
    draws: int
    """The number of games in which the player shared the first place."""
    points: float
    """The share of the others that the player outlived, 0..1, as a mean over its games. A shared
    place counts half.
    """
    skill: WengLin
    elo: float
    interval: tuple[float, float]
    """The 95 % interval of `elo`."""
    latency_ms: float
    """The median over the player's games of the median latency, in milliseconds."""
    slowest_ms: float
    failures: int
    excused: int
    """The turns on which the player was asked again because it was late in a burst of load. They
    aren't failures.
    """
    failure: str
    """Why a request failed in the first game that had failed requests."""
    causes: dict[str, int]
    """How often the player died of each cause; "survived" counts the other games."""


def standings(tournament: Tournament, games: Sequence[Game]) -> list[Standing]:
    """Return the standings, the best first, by μ − 3σ; in a bracket first by the number of rounds
    that a player survived.
    """
    num = len(tournament.players)
    points, count = scores(games, num)
    skills = weng_lin_ratings(games, num)
    fitted = bradley_terry(games, num)
    intervals = fitted.intervals()
    all_seats = list(chain.from_iterable(game.seats for game in games))
    rows = []
    for player, name in enumerate(tournament.names):
        seats = [seat for seat in all_seats if seat.player == player]
        wins = sum(game.winner == player for game in games)
        first = sum(seat.place == 1 for seat in seats)
        rows.append(
            Standing(
                player=player,
                name=name,
                games=int(count[player]),
                wins=wins,
                draws=first - wins,
                points=float(points[player] / max(1, count[player])),
                skill=skills[player],
                elo=float(fitted.elo[player]),
                interval=(float(intervals[player, 0]), float(intervals[player, 1])),
                latency_ms=float(np.median([seat.latency_ms for seat in seats] or [0.0])),
                slowest_ms=max((seat.slowest_ms for seat in seats), default=0.0),
                failures=sum(seat.failures for seat in seats),
                excused=sum(seat.excused for seat in seats),
                failure=next((seat.failure for seat in seats if seat.failure), ""),
                causes=dict(Counter(seat.cause or "survived" for seat in seats).most_common()),
            )
        )
    survived = [0] * num
    if tournament.form == "bracket":
        survived = rounds_survived(tournament, games)
    return sorted(rows, key=lambda row: (-survived[row.player], -row.skill.ordinal))


def table(rows: Sequence[Standing]) -> str:
    """Return the standings as lines of text, which fit into 80 columns unless names are longer than
    18 characters.

    Elo is relative to the mean of all players, with its 95 % interval.
    """
    heads = ("", "player", "games", "won", "drawn", "points", "μ−3σ", "Elo (95 %)", "ms")
    cells = [
        (
            str(place),
            row.name,
            str(row.games),
            str(row.wins),
            str(row.draws),
            f"{row.points:.1%}",
            f"{row.skill.ordinal:.2f}",
            f"{row.elo:+.0f} ({row.interval[0]:+.0f}…{row.interval[1]:+.0f})",
            f"{row.latency_ms:.2f}",
        )
        for place, row in enumerate(rows, 1)
    ]
    lines = [in_columns(cells, heads)]
    failures = [f"{printable(row.name)} {row.failures}" for row in rows if row.failures]
    if failures:
        lines.append(f"without a valid answer in time (turns): {', '.join(failures)}")
    excuses = [f"{printable(row.name)} {row.excused}" for row in rows if row.excused]
    if excuses:
        lines.append(
            f"late in bursts of load, asked again and not charged (turns): {', '.join(excuses)}"
        )
    return "\n".join(lines)


def cross_table(tournament: Tournament, games: Sequence[Game]) -> tuple[np.ndarray, np.ndarray]:
    """Return how often the row's player was better than the column's, float64 (P, P), where a draw
    counts half, and how often they met, int64 (P, P).
    """
    num = len(tournament.players)
    before = np.zeros((num, num))
    met = np.zeros((num, num), np.int64)
    for game in games:
        for a, b, score in game.comparisons():
            before[a, b] += score
            before[b, a] += 1 - score
            met[a, b] += 1
            met[b, a] += 1
    return before, met
