"""What a tournament is: who plays, in which form, on which boards. JSON-able, so that a store can tell if it is the same."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, fields
from typing import Any, Literal, get_args

import numpy as np

from envs.battlesnake.maps import check_game
from envs.battlesnake.settings import Settings
from envs.errors import ConfigError, UnknownNameError

Form = Literal["round-robin", "swiss", "ladder"]
FORMS: tuple[str, ...] = get_args(Form)
MAX_SEATS = 8


@dataclass(frozen=True)
class Player:
    """Someone who takes part."""

    name: str
    spec: str
    """What `agents.make` takes, or a URL."""

    @property
    def is_remote(self) -> bool:
        return "://" in self.spec

    @classmethod
    def parse(cls, text: str) -> Player:
        """`SPEC`, or `NAME=SPEC`; a default name is the spec's own."""
        name, is_named, spec = text.partition("=")
        if is_named and not any(sign in name for sign in ":/?"):
            return cls(name, spec)
        return cls(text.removesuffix("/"), text)


@dataclass(frozen=True, kw_only=True)
class Tournament:
    """Raises `ConfigError` or `UnknownNameError` for what can't be played."""

    players: tuple[Player, ...]
    form: Form = "round-robin"
    """round-robin: every group of `seats` players meets in every round; swiss: neighbours in the standings meet, the least
    familiar ones first; ladder: neighbours on the ladder play for the places."""
    seats: int = 2
    """Snakes a game, 2 to 8."""
    rounds: int = 1
    games: int = 2
    """Games a group in a round; seats go round."""
    width: int = 11
    height: int = 11
    settings: Settings = field(default_factory=Settings)
    seed: int = 0
    timeout_ms: int = 500
    """For an answer over HTTP; with `tell_deadline` also for local agents."""
    tell_deadline: bool = False
    """Local agents think until the time-out, in place of a fixed effort. Then games don't repeat with the seed."""
    max_turns: int = 5000
    """A game that is still open then is a draw of those alive."""

    def __post_init__(self) -> None:
        if self.form not in FORMS:
            raise UnknownNameError("form of tournament", self.form, FORMS)
        names = [player.name for player in self.players]
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise ConfigError(f"two players are called {twice!r}; give one another name, as in {twice}-2={twice}")
        if not 2 <= self.seats <= MAX_SEATS or self.seats > len(names):
            raise ConfigError(f"seats is {self.seats} with {len(names)} players; 2 to {MAX_SEATS}, and no more than there are")
        for name in ("rounds", "games", "timeout_ms", "max_turns"):
            if getattr(self, name) < 1:
                raise ConfigError(f"{name} is {getattr(self, name)}; it must be at least 1")
        if not 0 <= self.seed < 1 << 63:
            raise ConfigError(f"seed is {self.seed}; it must be from 0 to 2**63 - 1")
        check_game(self.settings, width=self.width, height=self.height, num_snakes=self.seats)

    @property
    def names(self) -> list[str]:
        return [player.name for player in self.players]

    def game_seed(self, round_: int, number: int) -> int:
        """The seed of a game: a function of the tournament's and of which game it is."""
        words = np.random.SeedSequence([self.seed, round_, number]).generate_state(1, np.uint64)
        return int(words[0] >> np.uint64(1))

    def to_dict(self) -> dict[str, Any]:
        """Plain values from which `from_dict` makes an equal one."""
        return {**asdict(self), "players": [asdict(player) for player in self.players]}

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Tournament:
        players, settings = tuple(Player(**p) for p in data["players"]), Settings(**data["settings"])
        known = {f.name for f in fields(cls)}
        return cls(**{**{k: v for k, v in data.items() if k in known}, "players": players, "settings": settings})


@dataclass(frozen=True)
class Seat:
    """How one player fared in one game."""

    player: int
    """Place in `Tournament.players`."""
    place: int
    """1 is best; who died on the same turn, and all who were alive at the end, share a place."""
    cause: str
    """"" for survivors."""
    died: int
    """Turn of the death, 0 for survivors."""
    length: int
    latency_ms: float
    """Median of a move; 0 if there was none."""
    slowest_ms: float
    failures: int
    """Requests that came to nothing: late, refused, nonsense."""
    failure: str = ""
    """Why the first of them did."""


@dataclass(frozen=True)
class Game:
    """A game that was played. `moves` int8 (turns, seats), -1 for the dead: with the seed it is the whole game."""

    round: int
    number: int
    seed: int
    turns: int
    seats: tuple[Seat, ...]
    moves: np.ndarray = field(compare=False)

    @property
    def winner(self) -> int | None:
        """The player who alone is first; None after a draw."""
        first = [seat.player for seat in self.seats if seat.place == 1]
        return first[0] if len(first) == 1 else None

    def comparisons(self) -> list[tuple[int, int, float]]:
        """(player, other, 1 if it came out before the other, ½ with it, 0 behind it), each pair once."""
        found = []
        for k, a in enumerate(self.seats):
            for b in self.seats[k + 1 :]:
                found.append((a.player, b.player, 0.5 if a.place == b.place else float(a.place < b.place)))
        return found


def scores(games: Sequence[Game], num_players: int) -> tuple[np.ndarray, np.ndarray]:
    """Points, float64 (P,), and games, int64 (P,), of all players: a game's points are the share of the others beaten."""
    points, count = np.zeros(num_players), np.zeros(num_players, np.int64)
    for game in games:
        share = 1 / (len(game.seats) - 1)
        for a, b, score in game.comparisons():
            points[a] += share * score
            points[b] += share * (1 - score)
        for seat in game.seats:
            count[seat.player] += 1
    return points, count
