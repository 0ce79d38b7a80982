"""Describes matches, such as tournaments: the players, the form, the boards; and the games of them.

A match is JSON-able, so a store can compare it with the match that it holds.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from fractions import Fraction
from itertools import combinations
from typing import Any, ClassVar, Literal, TypeVar, get_args

import numpy as np

from agents.effort import ONE_LIMIT, Effort
from agents.player import Player
from envs.battlesnake.maps import check_game
from envs.battlesnake.settings import Settings
from envs.common.errors import ConfigError, UnknownNameError

Form = Literal["round-robin", "swiss", "ladder", "bracket"]
FORMS: tuple[str, ...] = get_args(Form)
MAX_SEATS = 8
MAX_PLAYERS = 1000
MAX_ROUNDS = 1_000_000
MAX_GAMES_OF_ROUND = 1_000_000
"""Nobody plays more, but a stranger's store may ask for it, and all games of a round are drawn up
before the first of them is played.
"""
M = TypeVar("M", bound="Match")


@dataclass(frozen=True, kw_only=True)
class Match:
    """The players and their boards, which tournaments, sequential tests and tunings have in common.
    A store keeps the games of one match.

    Raises `ConfigError` or `UnknownNameError` for settings that can't be played.
    """

    kind: ClassVar[str]
    """The name of this kind of match in a store."""
    may_grow: ClassVar[tuple[str, ...]] = ()
    """The fields that may change when a match is continued."""

    players: tuple[Player, ...]
    seats: int = 2
    """The number of snakes per game."""
    width: int = 11
    height: int = 11
    settings: Settings = field(default_factory=Settings)
    seed: int = 0
    timeout_ms: int = 500
    """The time for an answer over HTTP, in milliseconds; with `tell_deadline` also for local
    agents.
    """
    tell_deadline: bool = False
    """Whether local agents think until the timeout and not by a fixed effort. Then the same seed
    doesn't give the same games.
    """
    max_turns: int = 5000
    """The most turns of a game. If a game isn't over by then, it is a draw of the living snakes."""
    nodes: int | None = None
    """Nodes per move, for agents that count them; others keep an effort of their own."""
    cpu_ms: float | None = None
    """Milliseconds of processor time per move, measured on the agent's thread, for agents that can
    be limited so.
    """

    def __post_init__(self) -> None:
        names = self.names
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise ConfigError(
                f"two players are called {twice!r}; give one another name, as in {twice}-2={twice}"
            )
        for name in ("timeout_ms", "max_turns"):
            if getattr(self, name) < 1:
                raise ConfigError(f"{name} is {getattr(self, name)}; it must be at least 1")
        if not 0 <= self.seed < 1 << 63:
            raise ConfigError(f"seed is {self.seed}; it must be from 0 to 2**63 - 1")
        if self.effort.options and self.tell_deadline:
            raise ConfigError(ONE_LIMIT)
        check_game(self.settings, width=self.width, height=self.height, num_snakes=self.seats)

    @property
    def names(self) -> list[str]:
        return [player.name for player in self.players]

    @property
    def effort(self) -> Effort:
        """What agents may spend on a move."""
        return Effort(nodes=self.nodes, cpu_ms=self.cpu_ms)

    @property
    def names_and_specs(self) -> list[tuple[str, str]]:
        return [(player.name, player.spec) for player in self.players]

    @property
    def effort_in_words(self) -> str:
        """The agents' limit per move as text, with the players that it doesn't apply to."""
        if self.tell_deadline:
            return f"{self.timeout_ms} ms of wall time per move"
        exceptions = self.effort.exceptions_in_words(self.names_and_specs)
        if exceptions:
            return f"{self.effort} ({exceptions})"
        return str(self.effort)

    def turns_of_opening(self, round_: int) -> int:
        """Return how many turns of given moves the games of a round begin with."""
        return 0

    def to_dict(self) -> dict[str, Any]:
        """Return plain values from which `from_dict` makes an equal tournament."""
        return {**asdict(self), "players": [asdict(player) for player in self.players]}

    @classmethod
    def from_dict(cls: type[M], data: dict[str, Any]) -> M:
        """Make a match from such plain values, which may be untrusted.

        Raises `ValueError` for values of the wrong type, and what `Settings` and the match
        itself raise."""
        _check_types(cls, data)
        for player in data["players"]:
            _check_types(Player, player)
        # A store adds keys of its own to a match's.
        names = {one.name for one in fields(cls)}
        values = {name: value for name, value in data.items() if name in names}
        values["players"] = tuple(Player(**player) for player in data["players"])
        values["settings"] = Settings(**data["settings"])
        return cls(**values)


_JSON_TYPES: dict[str, set[type]] = {
    "str": {str},
    "bool": {bool},
    "int": {int},
    "float": {int, float},
    "None": {type(None)},
}


def _check_types(kind: type[Match | Player], values: Mapping[str, Any]) -> None:
    """Raise `ValueError` for a value that isn't of its field's type. A field that holds an object
    isn't checked here, because the object's class does so.
    """
    for one in fields(kind):
        type_names = str(one.type).split(" | ")
        if one.name not in values or not _JSON_TYPES.keys() >= set(type_names):
            continue
        types = set().union(*(_JSON_TYPES[name] for name in type_names))
        if type(values[one.name]) not in types:
            raise ValueError(
                f"{one.name} is {values[one.name]!r:.50}; it must be of type {one.type}"
            )


@dataclass(frozen=True, kw_only=True)
class Tournament(Match):
    """The settings of a tournament. Raises `ConfigError` or `UnknownNameError` for settings that
    can't be played.
    """

    kind = "tournament"
    may_grow = ("rounds",)

    form: Form = "round-robin"
    """In a round-robin, every group of `seats` players meets in every round. In a Swiss tournament,
    neighbours in the standings meet, preferably those who have met least. In a ladder, neighbours
    on the ladder play for their places. A bracket is single elimination."""
    rounds: int = 1
    """How many rounds are played. A bracket ignores it, because it has as many as it takes."""
    games: int = 2
    """The number of games per group and round, in which the players change seats. In a bracket each
    match is the best of so many games, which must be an odd number."""

    def __post_init__(self) -> None:
        if self.form not in FORMS:
            raise UnknownNameError("form of tournament", self.form, FORMS)
        if not 2 <= self.seats <= MAX_SEATS or self.seats > len(self.players):
            raise ConfigError(
                f"seats is {self.seats} with {len(self.players)} players; 2 to {MAX_SEATS}, at"
                " most one seat per player"
            )
        for name in ("rounds", "games"):
            if getattr(self, name) < 1:
                raise ConfigError(f"{name} is {getattr(self, name)}; it must be at least 1")
        if (
            len(self.players) > MAX_PLAYERS
            or self.rounds > MAX_ROUNDS
            or self._games_of_round > MAX_GAMES_OF_ROUND
        ):
            raise ConfigError(
                f"{len(self.players)} players for {self.rounds} rounds of {self._games_of_round}"
                f" games are too many; up to {MAX_PLAYERS} players, {MAX_ROUNDS} rounds and"
                f" {MAX_GAMES_OF_ROUND} games per round are played"
            )
        if self.form == "bracket" and self.seats != 2:
            raise ConfigError(
                f"seats is {self.seats}; a bracket's matches are duels, so it must be 2"
            )
        if self.form == "bracket" and self.games % 2 == 0:
            raise ConfigError(
                f"games is {self.games}; a bracket's match is the best of an odd number, as 1, 3"
                " or 5"
            )
        super().__post_init__()

    @property
    def _games_of_round(self) -> int:
        """The most games that a round can have."""
        groups = len(self.players)
        if self.form == "round-robin":
            groups = math.comb(len(self.players), self.seats)
        return groups * self.games

    def game_seed(self, round_: int, number: int) -> int:
        """Return the seed of a game, as a function of the tournament's seed and the game's round
        and number.
        """
        return derived_seed(self.seed, round_, number)


def derived_seed(*numbers: int) -> int:
    """Return a seed from 0 to 2**63 - 1 that follows from these numbers."""
    words = np.random.SeedSequence(numbers).generate_state(1, np.uint64)
    return int(words[0] >> np.uint64(1))


@dataclass(frozen=True)
class Seat:
    """The result of one player in one game."""

    player: int
    """The player's place in `Tournament.players`."""
    place: int
    """The place in the game; 1 is best. Snakes that died on the same turn share a place, and so do
    all that survived.
    """
    cause: str
    """The cause of death; "" for survivors."""
    died: int
    """The turn of the death; 0 for survivors."""
    length: int
    latency_ms: float
    """The median time of a move, in milliseconds; 0 if there was no move."""
    slowest_ms: float
    failures: int
    """The number of failed requests: late, refused, or with a nonsensical answer."""
    failure: str = ""
    """The reason why the first of these requests failed."""
    cpu_ms: float = 0.0
    """The mean processor time of a move, in milliseconds; 0 where it isn't known, as for snakes
    behind URLs.
    """
    excused: int = 0
    """The number of turns on which it was asked again because it was late in a burst of load
    (`agents.measure.evaluation.busy`).
    """


@dataclass(frozen=True)
class Game:
    """A game that was played. `moves` is int8 (turns, seats), -1 for dead snakes. Moves and seed
    determine the whole game.
    """

    round: int
    number: int
    seed: int
    turns: int
    seats: tuple[Seat, ...]
    moves: np.ndarray = field(compare=False)

    @property
    def players(self) -> set[int]:
        """The players of the game."""
        return {seat.player for seat in self.seats}

    @property
    def winner(self) -> int | None:
        """The player that is first alone; None after a draw."""
        first = [seat.player for seat in self.seats if seat.place == 1]
        return first[0] if len(first) == 1 else None

    def share(self, slot: int) -> Fraction:
        """Return a seat's score: 1 if it alone comes first, an equal share of a shared first place,
        else 0.
        """
        first = [seat.place == 1 for seat in self.seats]
        return Fraction(first[slot], sum(first))

    def comparisons(self) -> list[tuple[int, int, float]]:
        """Return (player, other, result) for each pair.

        The result is 1 if the player did better, ½ if both did equally well, else 0.
        """
        return [(a.player, b.player, _result(a, b)) for a, b in combinations(self.seats, 2)]


def _result(seat: Seat, other: Seat) -> float:
    if seat.place == other.place:
        return 0.5
    return float(seat.place < other.place)


def scores(games: Sequence[Game], num_players: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the points, float64 (P,), and numbers of games, int64 (P,), of all players.

    A game's points are the share of the other players that the player outlived.
    """
    points = np.zeros(num_players)
    count = np.zeros(num_players, np.int64)
    for game in games:
        share = 1 / (len(game.seats) - 1)
        for a, b, score in game.comparisons():
            points[a] += share * score
            points[b] += share * (1 - score)
        for seat in game.seats:
            count[seat.player] += 1
    return points, count
