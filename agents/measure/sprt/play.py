"""Plays a sequential test, block after block and with games side by side, until the likelihood
ratio decides.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict
from fractions import Fraction
from itertools import chain, count, product
from typing import Any

import numpy as np

from agents.measure.sprt.openings import opening
from agents.measure.sprt.settings import FIRST, SECOND, Sprt
from agents.measure.sprt.statistics import (
    Strength,
    Verdict,
    expected_blocks,
    log_likelihood_ratio,
    possible_scores,
    strength_of,
)
from agents.measure.tournament.game import Fixture, check_urls
from agents.measure.tournament.play import play_side_by_side
from agents.measure.tournament.settings import Game
from agents.measure.tournament.store import Store
from agents.measure.tournament.workers import InThreads, MakeWorkers
from envs.common.plain_values import known_to_json

_FEW_BLOCKS = 20
"""With fewer blocks than this, the prediction of how long the test will take doesn't use the
strength that they show.
"""


def points(game: Game) -> Fraction:
    """Return the first player's score in a game: 1 if it alone comes first, an equal share of a
    shared first place, else 0.
    """
    slots = [slot for slot, seat in enumerate(game.seats) if seat.player == FIRST]
    return sum(map(game.share, slots), Fraction())


class SprtProgress:
    """The current result of a test. Blocks count in the order of their numbers, up to the deciding
    one.

    The order in which games end doesn't matter. So short games don't count before long ones, and
    the result depends neither on the number of parallel games nor on interruptions. At most
    `most_blocks` blocks are played."""

    def __init__(
        self, test: Sprt, games: Iterable[Game] = (), *, most_blocks: float = math.inf
    ) -> None:
        self.test = test
        self.most_blocks = most_blocks
        self.counts: np.ndarray = np.zeros(len(possible_scores(test.seats)), np.int64)
        """The number of blocks with each of the possible scores, int64 (K,)."""
        self.ratios: list[float] = []
        """The log-likelihood ratio after each block."""
        self.verdict: Verdict | None = None
        self._games: dict[tuple[int, int], Game] = {}
        self.add(games)

    @property
    def blocks(self) -> int:
        """The number of blocks that count."""
        return len(self.ratios)

    @property
    def ratio(self) -> float:
        """The log-likelihood ratio after the last block that counts, or 0 before the first one."""
        return self.ratios[-1] if self.ratios else 0.0

    @property
    def games(self) -> list[Game]:
        """The games that count, in the order of their blocks."""
        places = product(range(self.blocks), range(self.test.seats))
        return [self._games[place] for place in places]

    def has(self, block: int, rotation: int) -> bool:
        """Whether this game has been played."""
        return (block, rotation) in self._games

    def add(self, games: Iterable[Game]) -> None:
        """Add finished games, and count the blocks that they complete."""
        self._games.update(((game.round, game.number), game) for game in games)
        seats = self.test.seats
        hypotheses = self.test.hypotheses
        while self.verdict is None:
            score = self._next_score()
            if score is None:
                break
            self.counts[possible_scores(seats).index(score)] += 1
            # Block by block, because the last digits of a sum over many blocks at once would depend
            # on how many they are.
            self.ratios.append(float(log_likelihood_ratio(self.counts, seats, hypotheses)))
            self.verdict = hypotheses.verdict(self.ratio)

    def _next_score(self) -> Fraction | None:
        """The score of the block that follows those that count, or None if that block isn't
        complete.
        """
        seats = self.test.seats
        if not all(self.has(self.blocks, rotation) for rotation in range(seats)):
            return None
        games = [self._games[self.blocks, rotation] for rotation in range(seats)]
        return sum(map(points, games), Fraction()) / seats

    def strength(self) -> Strength | None:
        """Return how much stronger the first player is, or None before the first block."""
        if self.blocks:
            return strength_of(self.counts, self.test.seats)
        return None

    def games_to_go(self) -> float:
        """Return the expected number of games that the test still needs if the players are as
        strong as they seem, at most all remaining games.
        """
        seats = self.test.seats
        expected = seats * expected_blocks(
            self.test.hypotheses, seats, self._supposed_elo(), ratio=self.ratio
        )
        return max(0, min(expected, seats * self.most_blocks - len(self._games)))

    def _supposed_elo(self) -> float:
        """The normalised Elo that the games show, or what lies between the hypotheses while there
        are too few.
        """
        strength = self.strength()
        if strength and strength.normalised_elo and self.blocks >= _FEW_BLOCKS:
            return strength.normalised_elo.value
        return (self.test.hypotheses.elo0 + self.test.hypotheses.elo1) / 2

    def to_dict(self) -> dict[str, Any]:
        """Return the verdict and the figures behind it in JSON's types."""
        games = self.games
        t = self.test
        scores = [points(game) for game in games]
        blocks_by_score = {
            str(score): int(number)
            for score, number in zip(possible_scores(t.seats), self.counts, strict=True)
            if number or t.seats == 2
        }
        figures: dict[str, Any] = {"score": None, "elo": None, "normalised_elo": None}
        strength = self.strength()
        if strength:
            figures = asdict(strength)
        return {
            "players": [asdict(player) for player in t.players],
            "verdict": self.verdict,
            **asdict(t.hypotheses),
            "llr": self.ratio,
            "bounds": list(t.hypotheses.bounds),
            "snakes": t.seats,
            "blocks": self.blocks,
            "games": len(games),
            "won": scores.count(Fraction(1)),
            "shared": sum(0 < score < 1 for score in scores),
            "lost": scores.count(Fraction(0)),
            "blocks_by_score": blocks_by_score,
            # An infinite Elo is null, because JSON has no such number.
            **known_to_json(figures),
            "effort": {
                "nodes": t.nodes,
                "cpu_ms": t.cpu_ms,
                "wall_ms": t.timeout_ms if t.tell_deadline else None,
                "own": t.effort.own_efforts(t.names_and_specs),
            },
            "spent": [self.spent(player) for player in (FIRST, SECOND)],
        }

    def spent(self, player: int) -> dict[str, float]:
        """Return what a player spent on its moves over all games.

        `cpu_ms` is the mean processor time per move, `wall_ms` the median of the games' median
        times, `failures` the number of failed requests, and `excused` the number of turns on which
        the player was asked again because it was late in a burst of load."""
        all_seats = chain.from_iterable(game.seats for game in self.games)
        seats = [seat for seat in all_seats if seat.player == player]
        return {
            "cpu_ms": float(np.mean([seat.cpu_ms for seat in seats] or [0.0])),
            "wall_ms": float(np.median([seat.latency_ms for seat in seats] or [0.0])),
            "failures": sum(seat.failures for seat in seats),
            "excused": sum(seat.excused for seat in seats),
        }


def play_sprt(
    test: Sprt,
    store: Store[Sprt],
    *,
    concurrency: int = 1,
    per_server: int = 1,
    workers: MakeWorkers = InThreads,
    max_games: int | None = None,
    on_game: Callable[[SprtProgress], None] | None = None,
) -> SprtProgress:
    """Play until the test decides, the book ends, or `max_games` have been played in whole blocks.
    Games already in the store count.

    `concurrency` is the number of games at the same time, and `per_server` the number of those with
    snakes behind one host and port. `workers` says where games are played
    (`agents.measure.tournament.workers`), which changes only the time that the test takes. A snake
    behind a URL that fails repeats its last move, as in tournaments. If all games have been played,
    the players needn't exist any more. Raises what `agents.make` raises, `SnakeUnreachableError`,
    and `ConfigError` for a player that has changed since the games in the store were played."""
    store.begin(test)
    most_blocks = math.inf
    if test.book:
        most_blocks = len(test.book)
    if max_games is not None:
        most_blocks = min(most_blocks, max_games // test.seats)
    progress = SprtProgress(test, store.games(), most_blocks=most_blocks)
    if progress.verdict is not None or next(_unfinished(progress), None) is None:
        return progress
    store.refuse_changed(test)
    check_urls(test)

    def keep(game: Game) -> bool:
        store.add(game)
        progress.add([game])
        if on_game:
            on_game(progress)
        return progress.verdict is not None

    # All games have the same players, so while a server is busy there is no other game to play.
    together = concurrency
    if any(player.is_remote for player in test.players):
        together = min(concurrency, per_server)
    with workers(test, together) as places:
        play_side_by_side(test, _fixtures(test, progress), keep, places, per_server=per_server)
    return progress


def _unfinished(progress: SprtProgress) -> Iterator[tuple[int, list[int]]]:
    """The blocks that haven't been played to the end, each with the rotations that it lacks."""
    rotations = range(progress.test.seats)
    for block in count():
        if block >= progress.most_blocks:
            return
        missing = [rotation for rotation in rotations if not progress.has(block, rotation)]
        if missing:
            yield block, missing


def _fixtures(test: Sprt, progress: SprtProgress) -> Iterator[Fixture]:
    for block, missing in _unfinished(progress):
        start = opening(test, block)
        for rotation in missing:
            yield Fixture(
                block, rotation, start.seed, test.group(rotation), start.as_array(test.seats)
            )


class Pace:
    """Measures how fast games end since this process began to play."""

    def __init__(self) -> None:
        self._began = time.monotonic()
        self._games = 0

    def tick(self) -> None:
        """Note that a game has ended."""
        self._games += 1

    def seconds(self, games: float) -> float | None:
        """Return how many seconds this number of games will take; None before the first game has
        ended.
        """
        if self._games:
            return games * (time.monotonic() - self._began) / self._games
        return None
