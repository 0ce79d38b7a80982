"""Opens a game for a command, and says on stderr what its reader should know before trusting it."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass, replace

from envs.battlesnake.plain import Board, Snake, living_snakes, state_from_board
from envs.battlesnake.recording import Recording, asked_snake, contradiction
from envs.battlesnake.state import State
from envs.common.errors import ConfigError, ProcsnakeError, UnknownNameError
from envs.common.printable import printable


def open_recording(
    path: str | os.PathLike[str], *, width: int | None = None, height: int | None = None
) -> Recording:
    """Read a game, and print its doubts to stderr. Raises what `Recording.read` raises."""
    recording = Recording.read(path, width=width, height=height)
    say_doubts(recording, str(path))
    return recording


def say_doubts(recording: Recording, name: str) -> None:
    """Print to stderr what `doubts_of` tells of the recording called `name`."""
    for doubt in doubts_of(recording):
        print(printable(f"{name}: {doubt}"), file=sys.stderr)


def doubts_of(recording: Recording) -> list[str]:
    """Return sentences on where a game contradicts its rules, and on which snakes may be dead."""
    doubts = []
    try:
        first = contradiction(recording)
    except ProcsnakeError:
        first = ""  # Its rules can't be read, which whoever needs them says.
    if first:
        doubts.append(first)
    if recording.undecided:
        names = {
            snake["id"]: str(snake.get("name") or snake["id"])
            for snake in recording.boards()[0]["snakes"]
        }
        who = ", ".join(names[one] for one in recording.undecided)
        doubts.append(f"this request doesn't tell if {who} still lives; taken as living")
    return doubts


@dataclass(frozen=True)
class Position:
    """A board of a recording to play on from. The asked snake is in slot 0, and the others follow
    as they are listed.
    """

    state: State
    """One board with the living snakes, under the recording's rules."""
    names: list[str]
    """The snakes' names by slot, or their ids where they have none."""
    board: Board
    """The same as a dict, with the living snakes by slot."""


def open_position(path: str | os.PathLike[str], turn: int | None = None) -> Position:
    """Read a single request, or a turn of a game, and print its doubts to stderr.

    Raises `ConfigError` if a game is given without a turn, and what `Recording.read` and
    `state_from_board` raise."""
    recording = open_recording(path)
    return position_of(recording, turn_of(recording, turn))


def turn_of(recording: Recording, turn: int | None) -> int:
    """Return `turn`, or the recording's only one. Raises `ConfigError` where there are several to
    choose from.
    """
    turns = recording.turns
    if turn is None and len(turns) > 1:
        raise ConfigError(
            f"the recording holds turns {turns[0]} to {turns[-1]}; choose one: --turn N"
        )
    return turns[0] if turn is None else turn


def position_of(recording: Recording, turn: int, *, snake: str | None = None) -> Position:
    """Return a turn of a recording as a position, with `snake` (its name or id) first in place of
    the asked one.

    Raises `RecordingError` if the turn isn't there or nobody lives, and `UnknownNameError` for a
    snake that doesn't live."""
    board = recording.board(turn)
    you = asked_snake(recording, board) if snake is None else _named(board, snake)
    others = [snake for snake in living_snakes(board) if snake["id"] != you["id"]]
    snakes = [you, *others]
    settings = recording.settings
    if not others:
        settings = replace(settings, solo=True)
    living: Board = {**board, "snakes": snakes}
    names = [str(snake.get("name") or snake["id"]) for snake in snakes]
    return Position(state_from_board(living, settings=settings), names, living)


def _named(board: Board, name: str) -> Snake:
    living = living_snakes(board)
    for snake in living:
        if name in (snake["id"], snake.get("name")):
            return snake
    raise UnknownNameError(
        "living snake", name, [str(snake.get("name") or snake["id"]) for snake in living]
    )


def check_players(position: Position, num_players: int) -> None:
    """Raise `ConfigError` unless there is one player for each snake of the position."""
    snakes = len(position.names)
    if num_players != snakes:
        who = ", ".join(position.names)
        told = f"the position has {snakes} snakes ({who}), and the players are {num_players}"
        raise ConfigError(f"{told}; name one for each snake, in this order")
