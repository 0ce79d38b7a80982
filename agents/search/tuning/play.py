"""Plays a tuning: batch after batch of pairs, with games side by side, and a step of the parameters
after each batch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from agents.measure.sprt.openings import opening
from agents.measure.sprt.play import points
from agents.measure.sprt.settings import FIRST, SECOND
from agents.measure.tournament.game import Fixture
from agents.measure.tournament.play import play_side_by_side
from agents.measure.tournament.settings import Game, Match, Player
from agents.measure.tournament.store import Store
from agents.measure.tournament.workers import InThreads
from agents.search.tuning.parameters import with_values
from agents.search.tuning.settings import Tuning
from agents.search.tuning.spsa import Sides, Spsa


class TuningProgress:
    """The current result of a tuning. It depends only on the settings and the games' results, not
    on the order in which games end.
    """

    def __init__(self, tuning: Tuning, games: Iterable[Game] = ()) -> None:
        self.tuning = tuning
        self.spsa = Spsa(tuning.parameters, pairs=tuning.pairs, seed=tuning.seed)
        self.path = [self.spsa.start]
        """The parameters, float64 (P,), before each batch, and at the end."""
        self.games = 0
        self._results: dict[tuple[int, int], Fraction] = {}
        self.add(games)

    @property
    def pairs(self) -> int:
        """The number of pairs that the parameters have learned from."""
        return min((len(self.path) - 1) * self.tuning.batch, self.tuning.pairs)

    @property
    def is_over(self) -> bool:
        return self.pairs == self.tuning.pairs

    @property
    def values(self) -> dict[str, int | float]:
        """The present values of the parameters, by name."""
        return self.tuning.values_by_name(self.path[-1])

    def batch(self) -> range:
        """Return the numbers of the pairs that come next, counted from 0."""
        return range(self.pairs, min(self.pairs + self.tuning.batch, self.tuning.pairs))

    def sides(self, pair: int) -> Sides:
        """Return the two sides of a pair of the next batch."""
        return self.spsa.sides(self.path[-1], pair + 1)

    def games_to_go(self) -> int:
        """Return how many more games the tuning takes."""
        return 2 * self.tuning.pairs - self.games

    def has(self, pair: int, rotation: int) -> bool:
        """Return whether this game has been played."""
        return (pair, rotation) in self._results

    def add(self, games: Iterable[Game]) -> None:
        """Add finished games. Once a batch is complete, the parameters make its steps, pair after
        pair.
        """
        for game in games:
            self._results[game.round, game.number] = 2 * points(game) - 1
            self.games += 1
        while not self.is_over and all(map(self._is_complete, self.batch())):
            theta = self.path[-1]
            for pair in self.batch():
                result = float(self._results[pair, 0] + self._results[pair, 1])
                theta = self.spsa.step(theta, pair + 1, result)
            self.path.append(theta)

    def _is_complete(self, pair: int) -> bool:
        """Return whether both games of the pair have been played."""
        return self.has(pair, 0) and self.has(pair, 1)

    def to_dict(self) -> dict[str, Any]:
        """Return in JSON's types how far the parameters have moved, and by how many games."""
        t = self.tuning
        return {
            "player": t.player,
            "method": "spsa",
            "pairs": self.pairs,
            "pairs_asked": t.pairs,
            "batch": t.batch,
            "games": self.games,
            "seed": t.seed,
            "snakes": t.seats,
            "effort": {"nodes": t.nodes, "cpu_ms": t.cpu_ms},
            "parameters": {
                one.name: {
                    "start": one.plain(one.start),
                    "value": self.values[one.name],
                    "c_end": one.c_end,
                    "r_end": one.r_end,
                }
                for one in t.parameters
            },
        }


def play_tuning(
    tuning: Tuning,
    store: Store[Tuning],
    *,
    concurrency: int = 1,
    on_game: Callable[[TuningProgress], None] | None = None,
) -> TuningProgress:
    """Play the games that the store lacks, `concurrency` of them at the same time.

    Raises what `agents.make` raises, and `ConfigError` for a player that has changed since the
    games in the store were played."""
    store.begin(tuning)
    store.refuse_changed(tuning)
    progress = TuningProgress(tuning, store.games())
    while not progress.is_over:
        _play_batch(progress, store, concurrency, on_game)
    return progress


def _play_batch(
    progress: TuningProgress,
    store: Store[Tuning],
    concurrency: int,
    on_game: Callable[[TuningProgress], None] | None,
) -> None:
    tuning = progress.tuning
    pairs = progress.batch()
    match = _with_sides(tuning, [progress.sides(pair) for pair in pairs])

    def keep(game: Game) -> None:
        # In the store the sides of every pair are players 0 and 1.
        seats = tuple(replace(seat, player=(FIRST, SECOND)[seat.player % 2]) for seat in game.seats)
        own = replace(game, seats=seats)
        store.add(own)
        progress.add([own])
        if on_game:
            on_game(progress)

    fixtures = _fixtures(progress, pairs)
    # Every batch has other players, for which processes would have to be started anew.
    with InThreads(match, concurrency) as places:
        play_side_by_side(match, fixtures, keep, places, per_server=1)


def _fixtures(progress: TuningProgress, pairs: Iterable[int]) -> Iterator[Fixture]:
    """Yield the games of a batch that haven't been played."""
    tuning = progress.tuning
    for place, pair in enumerate(pairs):
        start = opening(tuning, pair)
        for rotation in (0, 1):
            if not progress.has(pair, rotation):
                players = tuple(2 * place + side for side in tuning.sides_of(rotation))
                yield Fixture(pair, rotation, start.seed, players, start.as_array(tuning.seats))


def _with_sides(tuning: Tuning, pairs: Iterable[Sides]) -> Match:
    """Return the match of a batch, with the sides of its pairs as players 0 and 1, 2 and 3, …"""
    players: list[Player] = []
    for pair in pairs:
        for side in (pair.plus, pair.minus):
            spec = with_values(tuning.player, tuning.values_by_name(side))
            players.append(Player(f"side {len(players)}", spec))
    return Match(
        players=tuple(players),
        width=tuning.width,
        height=tuning.height,
        settings=tuning.settings,
        seed=tuning.seed,
        timeout_ms=tuning.timeout_ms,
        max_turns=tuning.max_turns,
        nodes=tuning.nodes,
        cpu_ms=tuning.cpu_ms,
    )


def movement(progress: TuningProgress) -> np.ndarray:
    """Return how far each parameter has moved, float64 (P,), in units of its `c_end`."""
    c_end = np.array([parameter.c_end for parameter in progress.tuning.parameters])
    return (progress.path[-1] - progress.path[0]) / c_end
