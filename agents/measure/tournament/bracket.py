"""Single elimination, as Arena plans it: duels in rounds, from which the winners go on until one
player is left.

Players are seeded in the order in which they are named. With eight of them, the first round is 1-8,
4-5, 2-7 and 3-6, so the two best can only meet in the final. If their number isn't a power of two,
the best seeds have no opponent in the first round."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import chain
from typing import Any

from agents.measure.tournament.settings import Game, Tournament
from envs.common.columns import in_columns

MOST_GAMES = 3
"""A match that is the best of n games ends after so many times n games, if draws prolong it. Then
whoever has won more goes on, or the better seed.
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
    """Return the seeds 0 … size - 1 as they stand in the bracket, where neighbours meet in the
    first round. `size` is a power of two.
    """
    seeds = [0]
    while len(seeds) < size:
        # Each seed gets the neighbour with which it adds up to the last seed of this round.
        last = 2 * len(seeds) - 1
        pairs = [(seed, last - seed) for seed in seeds]
        seeds = list(chain.from_iterable(pairs))
    return seeds


def rounds_of(tournament: Tournament, games: Sequence[Game]) -> list[list[Pairing]]:
    """Return the rounds of the bracket whose pairings these games determine. The last round may be
    undecided.
    """
    num = len(tournament.players)
    size = 1 << (num - 1).bit_length()
    standing: list[int | None] = [seed if seed < num else None for seed in seeds_in_order(size)]
    rounds: list[list[Pairing]] = []
    while len(standing) > 1:
        pairs = zip(standing[::2], standing[1::2], strict=True)
        pairings = [_pairing(tournament, pair, games) for pair in pairs]
        rounds.append(pairings)
        standing = [pairing.winner for pairing in pairings]
        if None in standing:
            break
    return rounds


def undecided(tournament: Tournament, games: Sequence[Game]) -> list[Pairing]:
    """Return the pairings that each play the next game; none once the tournament is over."""
    return [pairing for pairing in rounds_of(tournament, games)[-1] if pairing.winner is None]


def champion(tournament: Tournament, games: Sequence[Game]) -> int | None:
    """Return the number of the player that has won the final; None as long as nobody has."""
    last = rounds_of(tournament, games)[-1]
    is_final = len(last) == 1
    return last[0].winner if is_final else None


def rounds_survived(tournament: Tournament, games: Sequence[Game]) -> list[int]:
    """Return for each player how many rounds it has won, byes included."""
    pairings = chain.from_iterable(rounds_of(tournament, games))
    winners = [pairing.winner for pairing in pairings]
    return [winners.count(player) for player in range(len(tournament.players))]


def as_json(tournament: Tournament, games: Sequence[Game]) -> dict[str, Any]:
    """Return `champion`, the name of the champion or None, and `rounds`, JSON-able. The players are
    given by their names.
    """

    def name(player: int | None) -> str | None:
        return None if player is None else tournament.names[player]

    def in_json(pairing: Pairing) -> dict[str, Any]:
        names = [name(player) for player in pairing.players]
        return {**asdict(pairing), "players": names, "winner": name(pairing.winner)}

    rounds = [list(map(in_json, pairings)) for pairings in rounds_of(tournament, games)]
    return {"champion": name(champion(tournament, games)), "rounds": rounds}


def rows(tournament: Tournament, games: Sequence[Game]) -> list[tuple[str, ...]]:
    """Return a row per pairing for people: the round's name, the two players with their seeds, the
    wins, and the winner.
    """
    table_rows: list[tuple[str, ...]] = []
    for pairings in rounds_of(tournament, games):
        for pairing in pairings:
            first, second = (_seeded(tournament, player) for player in pairing.players)
            score = f"{pairing.wins[0]} : {pairing.wins[1]}"
            if pairing.players[1] is None:
                score = "bye"
            winner = "" if pairing.winner is None else tournament.names[pairing.winner]
            table_rows.append((_name(len(pairings)), first, second, score, winner))
    return table_rows


def table(tournament: Tournament, games: Sequence[Game]) -> str:
    """Return the bracket as lines of text."""
    return in_columns(rows(tournament, games), ("round", "player", "against", "won", "goes on"))


def _pairing(
    tournament: Tournament, pair: tuple[int | None, int | None], games: Sequence[Game]
) -> Pairing:
    # There are fewer byes than pairs, so at least one of the two seats has a player.
    players = sorted(player for player in pair if player is not None)
    if len(players) == 1:
        return Pairing((players[0], None), (0, 0), 0, players[0])
    first, second = players
    # Two players meet in one match at most, so all games between them are games of this one.
    winners = [game.winner for game in games if game.players == {first, second}]
    wins = (winners.count(first), winners.count(second))
    majority = tournament.games // 2 + 1
    winner = None
    if max(wins) >= majority or len(winners) >= MOST_GAMES * tournament.games:
        winner = second if wins[1] > wins[0] else first
    return Pairing((first, second), wins, len(winners), winner)


def _seeded(tournament: Tournament, player: int | None) -> str:
    if player is None:
        return "nobody"
    return f"{player + 1}. {tournament.names[player]}"


def _name(pairings: int) -> str:
    return {1: "final", 2: "semifinal", 4: "quarterfinal"}.get(pairings, f"round of {2 * pairings}")
