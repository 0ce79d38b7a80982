"""Decides who plays whom. A round's groups depend only on the tournament and on the games of
earlier rounds.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np

from agents.measure.tournament.bracket import Pairing, undecided
from agents.measure.tournament.settings import Game, Tournament, scores


def games_of_round(
    tournament: Tournament, round_: int, before: Sequence[Game]
) -> list[tuple[int, ...]]:
    """Return the players of each game of a round, in the order of their seats. `before` has all
    games of earlier rounds.

    A bracket's undecided pairings play one game each; none are left once it is over.
    """
    if tournament.form == "bracket":
        return [_seated(pairing) for pairing in undecided(tournament, before)]
    groups = _FORMS[tournament.form](tournament, round_, before)
    games = []
    for group in groups:
        for game in range(tournament.games):
            # From game to game each player moves on by a seat.
            rotation = (round_ * tournament.games + game) % len(group)
            games.append(tuple(group[rotation:] + group[:rotation]))
    return games


def _seated(pairing: Pairing) -> tuple[int, ...]:
    """The better seed has the first seat in the first game, and then they take turns."""
    first, second = pairing.players
    assert second is not None
    if pairing.games % 2 == 0:
        return first, second
    return second, first


def ladder(tournament: Tournament, before: Sequence[Game], rounds: int) -> list[int]:
    """Return the ladder's order after this many rounds, the best first. It starts in the order of
    the list of players.
    """
    order = list(range(len(tournament.players)))
    for round_ in range(rounds):
        points, _ = scores([game for game in before if game.round == round_], len(order))
        for rungs in _rungs(tournament, round_):
            order[rungs] = sorted(order[rungs], key=lambda player: -points[player])
    return order


def _rungs(tournament: Tournament, round_: int) -> list[slice]:
    """The neighbours who meet. In even rounds the groups begin at the top. In odd rounds they are
    shifted, so that they end at the foot; or by half a group if they do so anyway.
    """
    num = len(tournament.players)
    seats = tournament.seats
    shift = 0
    if round_ % 2 and num > seats:
        shift = num % seats or seats // 2
    return [slice(k, k + seats) for k in range(shift, num - seats + 1, seats)]


def _ladder_groups(tournament: Tournament, round_: int, before: Sequence[Game]) -> list[list[int]]:
    order = ladder(tournament, before, round_)
    return [order[rungs] for rungs in _rungs(tournament, round_)]


def _round_robin_groups(
    tournament: Tournament, round_: int, before: Sequence[Game]
) -> list[list[int]]:
    groups = itertools.combinations(range(len(tournament.players)), tournament.seats)
    return list(map(list, groups))


def _swiss_groups(tournament: Tournament, round_: int, before: Sequence[Game]) -> list[list[int]]:
    """Neighbours in the standings meet, unless they have met before.

    If the players can't be divided into full groups, those sit out who have played most, and among
    them the last in the standings."""
    num = len(tournament.players)
    points, count = scores(before, num)
    mean = points / np.maximum(count, 1)
    standing = sorted(range(num), key=lambda player: -mean[player])
    met = np.zeros((num, num), np.int64)
    for game in before:
        for a, b, _ in game.comparisons():
            met[a, b] += 1
            met[b, a] += 1
    for _ in range(num % tournament.seats):
        standing.remove(max(standing, key=lambda player: (count[player], standing.index(player))))
    groups = [standing[k : k + tournament.seats] for k in range(0, len(standing), tournament.seats)]
    return _with_strangers(groups, met, {player: place for place, player in enumerate(standing)})


def _with_strangers(
    groups: list[list[int]], met: np.ndarray, place: dict[int, int]
) -> list[list[int]]:
    """Exchange players between groups as long as that brings together players who have met less
    often, or who have met as often but stand nearer to each other.
    """

    def cost(group: Sequence[int]) -> tuple[int, int]:
        meetings = int(met[np.ix_(group, group)].sum())
        places = [place[player] for player in group]
        distances = [(b - a) ** 2 for a, b in itertools.combinations(places, 2)]
        return meetings, sum(distances)

    improved = True
    while improved:
        improved = False
        for one, two in itertools.combinations(groups, 2):
            for i, j in itertools.product(range(len(one)), range(len(two))):
                before = np.add(cost(one), cost(two)).tolist()
                _exchange(one, i, two, j)
                if np.add(cost(one), cost(two)).tolist() < before:
                    improved = True
                else:
                    _exchange(one, i, two, j)
    return groups


def _exchange(one: list[int], i: int, two: list[int], j: int) -> None:
    one[i], two[j] = two[j], one[i]


_FORMS = {"round-robin": _round_robin_groups, "swiss": _swiss_groups, "ladder": _ladder_groups}
