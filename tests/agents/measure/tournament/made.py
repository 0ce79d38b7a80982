"""Games that nobody played, and tournaments of small boards."""

from __future__ import annotations

import numpy as np

from agents.measure.tournament.settings import Game, Player, Seat, Tournament


def game(*places: tuple[int, int], round_: int = 0, number: int = 0) -> Game:
    """A game of (player, place) by slot."""
    seats = tuple(Seat(player, place, "", 0, 3, 1.0, 2.0, 0) for player, place in places)
    return Game(round_, number, 5, 1, seats, np.zeros((1, len(places)), np.int8))


def won(winner: int, loser: int, **where: int) -> Game:
    return game((winner, 1), (loser, 2), **where)


def drawn(a: int, b: int, **where: int) -> Game:
    return game((a, 1), (b, 1), **where)


def players(*specs: str) -> tuple[Player, ...]:
    return tuple(Player.parse(spec).named() for spec in specs)


def small(*specs: str, **options) -> Tournament:
    """On 7×7, where games are short."""
    return Tournament(
        players=players(*specs), **{"width": 7, "height": 7, "max_turns": 60, **options}
    )


def of(num_players: int, **options) -> Tournament:
    """So many players of different names."""
    return small(*(f"p{k}=random" for k in range(num_players)), **options)
