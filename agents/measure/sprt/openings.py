"""Makes openings: random turns after the official start that leave every player in the game. Reads
and writes books of openings.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from agents.measure.sprt.settings import Opening, Sprt
from agents.measure.tournament.settings import derived_seed
from agents.search.alphabeta.agent import AlphaBeta
from agents.search.evaluation.evaluate import SURE, Weights
from agents.search.evaluation.learned import HAND_WRITTEN
from envs.battlesnake.games import play_turn, start_games
from envs.battlesnake.safety import safe_moves
from envs.battlesnake.state import ALIVE, State
from envs.common.errors import ConfigError, ProcsnakeError
from envs.common.strangers.bounded import parse_json, read_text
from envs.common.whole_files import write_whole

_NODES = 500
"""The number of nodes of the search that finds out whether a snake is lost."""
_ATTEMPTS = 100
_VERSION = 1
_MAX_BYTES = 1 << 20
_MAX_OPENINGS = 10_000


class BookError(ProcsnakeError):
    """A file of openings can't be read, or is for other games."""


@dataclass(frozen=True)
class _Board:
    """The games for which a book's openings are made."""

    seats: int
    width: int
    height: int
    settings: dict[str, Any]

    @classmethod
    def of(cls, test: Sprt) -> _Board:
        return cls(test.seats, test.width, test.height, asdict(test.settings))


def opening(test: Sprt, block: int) -> Opening:
    """Return the opening of a block's games: from the test's book, or else from the test's seed and
    the block's number.

    Raises `ConfigError` if a player has lost after every random opening that was tried.
    """
    if test.book:
        return test.book[block]
    for attempt in range(_ATTEMPTS):
        candidate = _random_opening(test, derived_seed(test.seed, block, attempt))
        if candidate is not None:
            return candidate
    raise ConfigError(
        f"of {_ATTEMPTS} random openings of {test.opening_turns} turns none left every snake a"
        " chance. Ask for fewer turns"
    )


def _random_opening(test: Sprt, seed: int) -> Opening | None:
    """A random opening, or None if a snake dies during it or is lost after it."""
    random = np.random.default_rng(seed)
    slots = np.arange(test.seats)
    state, running = _start(test, seed)
    turns = []
    for _ in range(test.opening_turns):
        safe = safe_moves(state, np.zeros_like(slots), slots)
        moves = [int(random.choice(np.flatnonzero(row))) for row in safe]
        play_turn(state, np.array([moves], np.int8), running)
        if not _all_play(state, running):
            return None
        turns.append(moves)
    if _is_lost_for_someone(state):
        return None
    return Opening.of(seed, turns)


def _start(test: Sprt, seed: int) -> tuple[State, np.ndarray]:
    """A test's game at its official start, and which games run, bool (1,)."""
    state = State(
        1, width=test.width, height=test.height, num_snakes=test.seats, settings=test.settings
    )
    state.seed(seed)
    return state, start_games(state)


def _all_play(state: State, running: np.ndarray) -> bool:
    return bool(running[0]) and bool((state.arrays.cause[0] == ALIVE).all())


def _is_lost_for_someone(state: State) -> bool:
    # The same weights always, so that a test's openings stay the same whichever evaluation
    # alphabeta has by default.
    search = AlphaBeta(nodes=_NODES, weights=Weights(), evaluation=HAND_WRITTEN)
    return any(
        search.act(state.copy(), slot).note["score"] < -SURE for slot in range(state.num_snakes)
    )


def write_book(path: Path, test: Sprt, openings: Iterable[Opening]) -> int:
    """Write a book and return the number of its openings.

    Its first line of JSON describes the games it is for; each further line is an opening. Raises
    `BookError` once the book would be too large for `read_book`."""
    lines = [json.dumps({"procsnake_book": _VERSION, **asdict(_Board.of(test))}) + "\n"]
    size = len(lines[0])
    number = 0
    for number, one in enumerate(openings, 1):
        lines.append(json.dumps({"seed": one.seed, "moves": list(one.moves)}) + "\n")
        size += len(lines[-1])
        if number > _MAX_OPENINGS or size > _MAX_BYTES:
            raise BookError(
                f"{path} isn't written: it would exceed {_MAX_OPENINGS} openings or {_MAX_BYTES}"
                f" bytes. Ask for at most --games {(number - 1) * test.seats}, or for fewer"
                " --opening-turns"
            )
    write_whole(path, "".join(lines))
    return number


def read_book(path: Path, test: Sprt) -> tuple[Opening, ...]:
    """Return the openings in a book.

    Raises `BookError` for a file that isn't a book, is too large, or is for other games."""
    try:
        head, *lines = map(parse_json, read_text(path, _MAX_BYTES).splitlines())
        if head["procsnake_book"] != _VERSION:
            raise BookError(
                f"{path} has version {head['procsnake_book']!r}, this procsnake reads {_VERSION}"
            )
        if len(lines) > _MAX_OPENINGS:
            raise BookError(
                f"{path} has {len(lines)} openings, more than {_MAX_OPENINGS}. Split it into two"
                " books"
            )
        board = _Board(*(head[name] for name in ("seats", "width", "height", "settings")))
        openings = tuple(_opening(line) for line in lines)
    except OSError as error:
        raise BookError(f"{path} can't be read: {error.strerror or error}") from error
    except (ValueError, LookupError, TypeError, AttributeError, ConfigError) as error:
        raise BookError(
            f"{path} is not a book of openings ({error}). To write one: --write-book FILE"
        ) from error
    fields = asdict(_Board.of(test))
    different = [name for name, value in fields.items() if getattr(board, name) != value]
    if different:
        raise BookError(
            f"{path} is for games with other {', '.join(different)} than were asked for"
        )
    if not openings:
        raise BookError(f"{path} has no openings")
    for number, one in enumerate(openings, 1):
        if not _can_be_played(test, one):
            raise BookError(
                f"opening {number} of {path} doesn't leave {test.seats} snakes alive in a"
                " running game"
            )
    return openings


def _opening(line: Any) -> Opening:
    moves = tuple(line["moves"])
    if not all(isinstance(turn, str) for turn in moves):
        raise ValueError("moves are texts")
    return Opening(line["seed"], moves)


def _can_be_played(test: Sprt, one: Opening) -> bool:
    if not one.is_for(test.seats):
        return False
    state, running = _start(test, one.seed)
    for turn in one.as_array(test.seats):
        play_turn(state, turn[None], running)
        if not _all_play(state, running):
            return False
    return _all_play(state, running)


def openings(test: Sprt, count: int) -> Iterator[Opening]:
    """Yield the openings of the first `count` blocks, or fewer if the book has fewer."""
    for block in range(min(count, len(test.book) or count)):
        yield opening(test, block)
