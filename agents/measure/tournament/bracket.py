"""Single elimination, as Arena plans it: duels in rounds, from which the winners go on until one
player is left.

Players are seeded in the order in which they are named. With eight of them, the first round is 1-8,
4-5, 2-7 and 3-6, so the two best can only meet in the final. If their number isn't a power of two,
the best seeds have no opponent in the first round."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from agents.measure.tournament.settings import Game, Tournament
from envs.common.columns import in_columns

MOST_GAMES = 3
"""A match ends after so many times the games that it is the best of. Then whoever has won more goes
on, or the better seed.
"""


@dataclass(frozen=True)
class Pairing:
    """Two players of a round. Players are numbers of `Tournament.players`, which are their seeds
    less one.
    """

    players: tuple[int, int | None]
    """The better seed first; None if it has no opponent, and goes on without a game."""
    wins: tuple[int, int]
    games: int
    """The number of games that they have played, draws included."""
    winner: int | None
    """Who goes on; None as long as that isn't decided."""


def seeds_in_order(size: int) -> list[int]:
    """Return the seeds 0 … size - 1 as they stand in the bracket, for a power of two: neighbours
    meet in the first round.
    """
    seeds = [0]
    while len(seeds) < size:
        seeds = [seed for one in seeds for seed in (one, 2 * len(seeds) - 1 - one)]
    return seeds


def rounds_of(tournament: Tournament, games: Sequence[Game]) -> list[list[Pairing]]:
    """Return the rounds of the bracket, as far as these games have decided who meets. The last one
    may be undecided.
    """
    num = len(tournament.players)
    size = 1 << (num - 1).bit_length()
    standing: list[int | None] = [seed if seed < num else None for seed in seeds_in_order(size)]
    rounds: list[list[Pairing]] = []
    while len(standing) > 1:
        rounds.append(
            [
                _pairing(tournament, pair, games)
                for pair in zip(standing[::2], standing[1::2], strict=True)
            ]
        )
        standing = [pairing.winner for pairing in rounds[-1]]
        if None in standing:
            break
    return rounds


def undecided(tournament: Tournament, games: Sequence[Game]) -> list[Pairing]:
    """Return the pairings that play next, a game each. There are none once the tournament is
    over.
    """
    return [pairing for pairing in rounds_of(tournament, games)[-1] if pairing.winner is None]


def champion(tournament: Tournament, games: Sequence[Game]) -> int | None:
    """Return the number of the player that has won the final; None as long as nobody has."""
    last = rounds_of(tournament, games)[-1]
    return last[0].winner if len(last) == 1 else None


def rounds_survived(tournament: Tournament, games: Sequence[Game]) -> list[int]:
    """Return for each player how many rounds it has won, byes included."""
    winners = [pairing.winner for round_ in rounds_of(tournament, games) for pairing in round_]
    return [winners.count(player) for player in range(len(tournament.players))]


def as_json(tournament: Tournament, games: Sequence[Game]) -> dict[str, Any]:
    """Return the champion's name, or None, and the rounds, JSON-able. Players are named."""

    def named(player: int | None) -> str | None:
        return None if player is None else tournament.names[player]

    rounds = [
        [
            {**asdict(one), "players": [*map(named, one.players)], "winner": named(one.winner)}
            for one in round_
        ]
        for round_ in rounds_of(tournament, games)
    ]
    return {"champion": named(champion(tournament, games)), "rounds": rounds}


def rows(tournament: Tournament, games: Sequence[Game]) -> list[tuple[str, ...]]:
    """Return a row per pairing for people: the round's name, the two players with their seeds, the
    wins, and who goes on.
    """
    found: list[tuple[str, ...]] = []
    for round_ in rounds_of(tournament, games):
        for pairing in round_:
            first, second = (_seeded(tournament, player) for player in pairing.players)
            if pairing.players[1] is None:
                score = "bye"
            else:
                score = f"{pairing.wins[0]} : {pairing.wins[1]}"
            on = "" if pairing.winner is None else tournament.names[pairing.winner]
            found.append((_name(len(round_)), first, second, score, on))
    return found


def table(tournament: Tournament, games: Sequence[Game]) -> str:
    """Return the bracket as lines of text."""
    return in_columns(rows(tournament, games), ("round", "player", "against", "won", "goes on"))


def _pairing(
    tournament: Tournament, pair: tuple[int | None, int | None], games: Sequence[Game]
) -> Pairing:
    # Of two seats one has a player: byes are fewer than pairs.
    players = sorted(player for player in pair if player is not None)
    if len(players) == 1:
        return Pairing((players[0], None), (0, 0), 0, players[0])
    first, second = players
    # Two players meet once at most.
    met = [game.winner for game in games if {seat.player for seat in game.seats} == {first, second}]
    wins = (met.count(first), met.count(second))
    needed = tournament.games // 2 + 1
    winner = None
    if max(wins) >= needed or len(met) >= MOST_GAMES * tournament.games:
        winner = second if wins[1] > wins[0] else first
    return Pairing((first, second), wins, len(met), winner)


def _seeded(tournament: Tournament, player: int | None) -> str:
    if player is None:
        return "nobody"
    return f"{player + 1}. {tournament.names[player]}"


def _name(pairings: int) -> str:
    return {1: "final", 2: "semifinal", 4: "quarterfinal"}.get(pairings, f"round of {2 * pairings}")
