"""What a sequential test is: who plays whom, at which effort, from which starts, and what is to be decided."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from agents.sprt.statistics import MAX_SEATS, Hypotheses
from agents.tournament.settings import Match
from envs.common.errors import ConfigError

FIRST, SECOND = 0, 1
MAX_OPENING_TURNS = 40
_LETTERS = "udlr"
"""A move per letter, in the order of the move numbers."""


@dataclass(frozen=True)
class Opening:
    """How a block's games begin. Raises `ConfigError` for moves that there are none of."""

    seed: int
    """Of the games: with it the engine lays out snakes and food, and draws what food appears later."""
    moves: tuple[str, ...]
    """Of each turn a letter per slot: u, d, l or r."""

    def __post_init__(self) -> None:
        if type(self.seed) is not int or not 0 <= self.seed < 1 << 63:
            raise ConfigError(f"an opening's seed is {self.seed!r}; it must be a whole number from 0 to 2**63 - 1")
        if len(self.moves) > MAX_OPENING_TURNS or any(not turn or set(turn) - set(_LETTERS) for turn in self.moves):
            raise ConfigError(
                f"an opening's moves are {self.moves!r}; they must be at most {MAX_OPENING_TURNS} turns, each of letters of"
                f" {_LETTERS!r}"
            )

    @classmethod
    def of(cls, seed: int, moves: Sequence[Sequence[int]]) -> Opening:
        """From move numbers by turn and slot."""
        return cls(seed, tuple("".join(_LETTERS[move] for move in turn) for turn in moves))

    def as_array(self, seats: int) -> np.ndarray:
        """int8 (turns, seats)."""
        return np.array([[_LETTERS.index(letter) for letter in turn] for turn in self.moves], np.int8).reshape(-1, seats)


@dataclass(frozen=True, kw_only=True)
class Sprt(Match):
    """Which of two players is stronger. Among more than two snakes the first player has one seat, the second all others.

    Block b is played `seats` times from one start with one stream of food; in its game r the first player sits in slot r.
    Raises `ConfigError` for what can't be played.
    """

    kind = "sprt"

    hypotheses: Hypotheses = field(default_factory=Hypotheses)
    opening_turns: int = 4
    """Random turns from the official start, 0 to 40, that nobody has lost by; not for a book."""
    book: tuple[Opening, ...] = ()
    """The starts in the place of random ones; a test ends with its book."""

    def __post_init__(self) -> None:
        if len(self.players) != 2:
            raise ConfigError(f"a test is between two players, not {len(self.players)}: {', '.join(self.names) or 'nobody'}")
        if not 2 <= self.seats <= MAX_SEATS:
            raise ConfigError(f"snakes is {self.seats}; it must be from 2 to {MAX_SEATS}")
        if not 0 <= self.opening_turns <= MAX_OPENING_TURNS:
            raise ConfigError(f"opening_turns is {self.opening_turns}; it must be from 0 to {MAX_OPENING_TURNS}")
        if any(len(turn) != self.seats for opening in self.book for turn in opening.moves):
            raise ConfigError(f"the book's openings aren't for {self.seats} snakes")
        super().__post_init__()

    def group(self, rotation: int) -> tuple[int, ...]:
        """Players in slot order of a block's game."""
        return tuple(FIRST if slot == rotation else SECOND for slot in range(self.seats))

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Sprt:
        hypotheses = Hypotheses(**data["hypotheses"])
        book = tuple(Opening(opening["seed"], tuple(opening["moves"])) for opening in data["book"])
        plain = {name: value for name, value in data.items() if name not in ("hypotheses", "book")}
        return replace(super().from_dict(plain), hypotheses=hypotheses, book=book)

    def to_dict(self) -> dict[str, Any]:
        # Lists, as JSON gives them back, so that what is kept and what is asked for compare.
        book = [{"seed": opening.seed, "moves": list(opening.moves)} for opening in self.book]
        return {**super().to_dict(), "book": book}
