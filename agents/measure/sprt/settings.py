"""Describes a sequential test: its players, effort, openings and hypotheses."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from agents.measure.sprt.statistics import MAX_SEATS, Hypotheses
from agents.measure.tournament.settings import Match
from envs.common.errors import ConfigError

FIRST = 0
SECOND = 1
MAX_OPENING_TURNS = 40
_LETTERS = "udlr"
"""One letter per move, in the order of the move numbers."""


@dataclass(frozen=True)
class Opening:
    """How a block's games begin. Raises `ConfigError` for letters that aren't moves, and for too
    many turns.
    """

    seed: int
    """The seed of the games. The engine lays out snakes and food by it, and draws the food that
    appears later.
    """
    moves: tuple[str, ...]
    """One text per turn, with one letter per slot: u, d, l or r."""

    def __post_init__(self) -> None:
        if type(self.seed) is not int or not 0 <= self.seed < 1 << 63:
            raise ConfigError(
                f"an opening's seed is {self.seed!r}; it must be a whole number from 0 to 2**63 - 1"
            )
        if len(self.moves) > MAX_OPENING_TURNS or any(
            not turn or set(turn) - set(_LETTERS) for turn in self.moves
        ):
            raise ConfigError(
                f"an opening's moves are {self.moves!r}; they must be at most {MAX_OPENING_TURNS}"
                f" turns, each of letters of {_LETTERS!r}"
            )

    @classmethod
    def of(cls, seed: int, moves: Sequence[Sequence[int]]) -> Opening:
        """Make an opening of move numbers, which are given by turn and slot."""
        return cls(seed, tuple(map(_in_letters, moves)))

    def is_for(self, seats: int) -> bool:
        """Return whether each turn has a move for so many snakes."""
        return all(len(turn) == seats for turn in self.moves)

    def as_array(self, seats: int) -> np.ndarray:
        """Return the moves as numbers, int8 (turns, seats)."""
        numbers = [_LETTERS.index(letter) for letter in "".join(self.moves)]
        return np.array(numbers, np.int8).reshape(-1, seats)


def _in_letters(moves: Sequence[int]) -> str:
    return "".join(_LETTERS[move] for move in moves)


@dataclass(frozen=True, kw_only=True)
class Sprt(Match):
    """A test that decides which of two players is stronger.

    In games of more than two snakes the first player has one seat, and the second player has all
    others. The games come in blocks. All `seats` games of a block have the same start and the same
    food; in game r the first player sits in slot r. Raises `ConfigError` for settings that can't be
    played."""

    kind = "sprt"

    hypotheses: Hypotheses = field(default_factory=Hypotheses)
    opening_turns: int = 4
    """The number of random turns after the official start, 0 to 40, after which nobody may be lost.
    Ignored with a book.
    """
    book: tuple[Opening, ...] = ()
    """Starts that are used instead of random ones. When they are used up, the test ends."""

    def __post_init__(self) -> None:
        if len(self.players) != 2:
            names = ", ".join(self.names) or "nobody"
            raise ConfigError(f"a test is between two players, not {len(self.players)}: {names}")
        if not 2 <= self.seats <= MAX_SEATS:
            raise ConfigError(f"snakes is {self.seats}; it must be from 2 to {MAX_SEATS}")
        if not 0 <= self.opening_turns <= MAX_OPENING_TURNS:
            raise ConfigError(
                f"opening_turns is {self.opening_turns}; it must be from 0 to {MAX_OPENING_TURNS}"
            )
        if not all(opening.is_for(self.seats) for opening in self.book):
            raise ConfigError(f"the book's openings aren't for {self.seats} snakes")
        super().__post_init__()

    def group(self, rotation: int) -> tuple[int, ...]:
        """Return the players in slot order of game `rotation` of a block."""
        players = [SECOND] * self.seats
        players[rotation] = FIRST
        return tuple(players)

    def turns_of_opening(self, round_: int) -> int:
        # A block's number is the round of its games.
        if self.book:
            return len(self.book[round_].moves)
        return self.opening_turns

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Sprt:
        hypotheses = Hypotheses(**data["hypotheses"])
        book = tuple(Opening(opening["seed"], tuple(opening["moves"])) for opening in data["book"])
        plain = {name: value for name, value in data.items() if name not in ("hypotheses", "book")}
        return replace(super().from_dict(plain), hypotheses=hypotheses, book=book)

    def to_dict(self) -> dict[str, Any]:
        # JSON gives lists back. With lists here as well, settings from a file compare with new
        # ones.
        book = [{"seed": opening.seed, "moves": list(opening.moves)} for opening in self.book]
        return {**super().to_dict(), "book": book}
