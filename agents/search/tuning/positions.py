"""Collects quiet positions of recorded games, with the features that the evaluation sees in them,
and the games' results.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from agents.measure.sprt.settings import Sprt
from agents.measure.tournament.game import replayed
from agents.measure.tournament.settings import Game, Match, Tournament
from agents.measure.tournament.store import OtherKindError, Store, StoreError
from agents.search.alphabeta.agent import AlphaBeta
from agents.search.evaluation.evaluate import SURE, Weights, weigh
from agents.search.evaluation.fill import divide
from agents.search.evaluation.learned import HAND_WRITTEN
from agents.search.evaluation.territory import Territory, new_territory, survey
from agents.search.make_unmake import search_rules
from agents.search.options import ranges_of
from agents.search.players import head_distance
from agents.search.tuning.settings import Tuning
from envs.battlesnake.state import ALIVE, State
from envs.common.errors import ConfigError

LINEAR = tuple(name for name, declared in ranges_of(Weights).items() if declared.is_linear)
"""The weights in which the evaluation is linear."""
UNIT = 10_000 * 24 * 4 * 420
"""A number that every denominator of the evaluation divides. So weights that are multiples of it
lead to no rounding.
"""
_NODES = 300
"""The number of nodes of the search that finds decided positions, which are left out because games
don't evaluate them.
"""


@dataclass(frozen=True)
class Positions:
    """N positions, each seen by one snake."""

    features: np.ndarray
    """The points that the evaluation gives for a weight of 1, for each weight of `LINEAR`, float64
    (N, W).
    """
    results: np.ndarray
    """The snake's result, float64 (N,): 1 if it alone came first, an equal share of a shared first
    place, else 0.
    """
    games: int


def features_of(state: State, me: int, territory: Territory, weights: Weights) -> np.ndarray:
    """Return the evaluation's features on board 0 for the living snake `me`, int64 (W,) in units of
    1 / `UNIT`.

    They are asked of the evaluation itself, a weight at a time; `weights` gives those in which it
    isn't linear."""
    s = state.arrays
    r = search_rules(state.rules)
    divide(s, r, territory, me)
    nothing = weights._replace(**dict.fromkeys(LINEAR, 0))
    alone = [nothing._replace(**{name: UNIT}) for name in LINEAR]
    return np.array([weigh(s, r, territory, one, me) for one in alone], np.int64)


def is_quiet(state: State, me: int) -> bool:
    """Return whether no other head can meet mine on the next turn. Only there does the search stop
    and evaluate.
    """
    s = state.arrays
    r = search_rules(state.rules)
    others = np.flatnonzero(s.cause[0] == ALIVE)
    return all(head_distance(s, r, me, int(i)) != 2 for i in others if i != me)


def read_games(path: Path) -> tuple[Match, list[Game]]:
    """Return the match in a store of `tournament`, `sprt` or `tune`, and its games. Raises
    `StoreError` for other files.
    """
    if not os.path.isfile(path):
        raise StoreError(
            f"there is no {path}. Games are recorded by procsnake tournament, sprt and tune, in"
            " their --store"
        )
    kinds: tuple[type[Match], ...] = (Sprt, Tournament, Tuning)
    for kind in kinds:
        with Store(path, kind) as store:
            try:
                match = store.load()
            except OtherKindError as error:
                refusal = error
                continue
            if match is None:
                raise StoreError(f"{path} holds no match")
            return match, store.games()
    raise refusal


def collect(
    recorded: Iterable[tuple[Match, Sequence[Game]]], weights: Weights, *, every: int, most: int
) -> Positions:
    """Return quiet and undecided positions, one every `every` turns, of at most `most` games of
    each match.

    Openings are left out, because nobody chose them. Raises `ConfigError` if there are none.
    """
    features = []
    results = []
    count = 0
    for match, games in recorded:
        for game in games[:most]:
            count += 1
            for state, slot in _positions_of(match, game, every):
                territory = new_territory(state)
                survey(state.arrays, search_rules(state.rules), territory)
                features.append(features_of(state, slot, territory, weights) / UNIT)
                results.append(float(game.share(slot)))
    if not features:
        raise ConfigError(f"{count} games have no quiet, undecided position; record longer games")
    return Positions(np.array(features), np.array(results), count)


def _positions_of(match: Match, game: Game, every: int) -> Iterator[tuple[State, int]]:
    """Yield the positions of a game that count, with the slot that sees them."""
    search = AlphaBeta(nodes=_NODES, weights=Weights(), evaluation=HAND_WRITTEN)
    first = max(1, match.turns_of_opening(game.round))  # Nobody chose the official start either.
    for turn, state in replayed(match, game):
        if turn < first or (turn - first) % every:
            continue
        for slot in map(int, np.flatnonzero(state.arrays.cause[0] == ALIVE)):
            if is_quiet(state, slot) and abs(search.act(state, slot).note["score"]) < SURE:
                yield state, slot
