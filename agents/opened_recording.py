"""Opens a game for a command, and prints reasons to doubt it on stderr."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass, replace

from envs.battlesnake.plain import Board, Snake, living_snakes, state_from_board
from envs.battlesnake.recording import Recording, asked_snake, contradiction
from envs.battlesnake.state import State
from envs.common.errors import ConfigError, ProcsnakeError, UnknownNameError
from envs.common.strangers.printable import printable


def open_recording(
    path: str | os.PathLike[str], *, width: int | None = None, height: int | None = None
) -> Recording:
    """Read a game, and print reasons to doubt it on stderr. Raises what `Recording.read` raises."""
    recording = Recording.read(path, width=width, height=height)
    say_doubts(recording, str(path))
    return recording


def say_doubts(recording: Recording, name: str) -> None:
    """Print the `doubts_of` the recording called `name` on stderr."""
    for doubt in doubts_of(recording):
        print(printable(f"{name}: {doubt}"), file=sys.stderr)


def doubts_of(recording: Recording) -> list[str]:
    """Return sentences on where a game contradicts its rules, and on which snakes may be dead."""
    doubts = []
    try:
        doubt = contradiction(recording)
    except ProcsnakeError:
        doubt = ""  # Its rules can't be read, which whoever needs them says.
    if doubt:
        doubts.append(doubt)
    if recording.undecided:
        names = {snake["id"]: _name_of(snake) for snake in recording.boards()[0]["snakes"]}
        who = ", ".join(names[one] for one in recording.undecided)
        doubts.append(f"this request doesn't say if {who} is alive; assumed alive")
    return doubts


@dataclass(frozen=True)
class Position:
    """A board of a recording from which to continue. The asked snake is in slot 0; the others
    follow in their order.
    """

    state: State
    """One board with the living snakes, under the recording's rules."""
    names: list[str]
    """The snakes' names by slot, or their ids where they have none."""
    board: Board
    """The same as a dict, with the living snakes by slot."""


def open_position(path: str | os.PathLike[str], turn: int | None = None) -> Position:
    """Read a single request, or a turn of a game, and print reasons to doubt it on stderr.

    Raises `ConfigError` if a game is given without a turn, and what `Recording.read` and
    `state_from_board` raise."""
    recording = open_recording(path)
    return position_of(recording, turn_of(recording, turn))


def turn_of(recording: Recording, turn: int | None) -> int:
    """Return `turn`, or the recording's only one. Raises `ConfigError` where there are several to
    choose from.
    """
    if turn is not None:
        return turn
    turns = recording.turns
    if len(turns) > 1:
        raise ConfigError(
            f"the recording holds turns {turns[0]} to {turns[-1]}; choose one: --turn N"
        )
    return turns[0]


def position_of(recording: Recording, turn: int, *, snake: str | None = None) -> Position:
    """Return a turn of a recording as a position, with `snake` (a name or id) first instead of the
    asked one.

    Raises `RecordingError` if the turn is missing or no snake lives, and `UnknownNameError` for
    a snake that isn't alive."""
    board = recording.board(turn)
    if snake is None:
        you = asked_snake(recording, board)
    else:
        you = _find_living(board, snake)
    others = [other for other in living_snakes(board) if other["id"] != you["id"]]
    snakes = [you, *others]
    settings = recording.settings
    if not others:
        settings = replace(settings, solo=True)
    board_of_living: Board = {**board, "snakes": snakes}
    state = state_from_board(board_of_living, settings=settings)
    return Position(state, [_name_of(one) for one in snakes], board_of_living)


def _find_living(board: Board, name: str) -> Snake:
    """Return the living snake of this name or id. Raises `UnknownNameError` if there is none."""
    living = living_snakes(board)
    for snake in living:
        if name in (snake["id"], snake.get("name")):
            return snake
    raise UnknownNameError("living snake", name, [_name_of(snake) for snake in living])


def _name_of(snake: Snake) -> str:
    """Return a snake's name, or its id if it has none."""
    return str(snake.get("name") or snake["id"])


def check_players(position: Position, num_players: int) -> None:
    """Raise `ConfigError` unless there is one player for each snake of the position."""
    snakes = len(position.names)
    if num_players != snakes:
        raise ConfigError(
            f"the position has {snakes} snakes ({', '.join(position.names)}), and the players are"
            f" {num_players}; name one for each snake, in this order"
        )
