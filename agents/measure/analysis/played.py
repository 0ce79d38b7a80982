"""What a recording tells of one snake's game: the boards on which it had to choose, what it chose,
and how it ended.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from envs.battlesnake.plain import Board, state_from_board
from envs.battlesnake.recording import UNKNOWN_CAUSE, Recording, likely_cause
from envs.battlesnake.rules import is_over, step_board
from envs.battlesnake.settings import Settings
from envs.battlesnake.state import CAUSE_NAMES, MOVE_NAMES, State
from envs.common.errors import ConfigError, UnknownNameError

UNREADABLE_MAPS = ("solo_maze",)
"""Maps that move the snakes by themselves, which no search knows."""


@dataclass(frozen=True)
class Position:
    """A board on which the snake had to choose."""

    board: Board
    settings: Settings
    snake: str
    """The snake's id."""
    moves: Mapping[str, int]
    """What the living snakes played, by id, as far as the recording tells: 0 up, 1 down, 2 left, 3
    right.
    """

    @property
    def turn(self) -> int:
        """Return the number of the turn."""
        return int(self.board["turn"])

    @property
    def played(self) -> int | None:
        """Return what the snake played; None if the recording doesn't tell."""
        return self.moves.get(self.snake)

    @property
    def living(self) -> list[dict[str, Any]]:
        """Return the snakes that are alive on this board."""
        return [snake for snake in self.board["snakes"] if not snake["eliminatedCause"]]

    def state(self) -> tuple[State, int]:
        """Return the position with the snake's slot. The dead whose cause isn't known are left out
        of it.
        """
        snakes = _placed(self.board)
        state = state_from_board({**self.board, "snakes": snakes}, settings=self.settings)
        return state, [snake["id"] for snake in snakes].index(self.snake)

    def ids(self) -> list[str]:
        """Return the snakes' ids by the slots of `state`."""
        return [snake["id"] for snake in _placed(self.board)]


@dataclass(frozen=True)
class Played:
    """One snake's part in a recorded game."""

    game_id: str
    settings: Settings
    snake: Mapping[str, Any]
    """The snake as on the first board."""
    positions: tuple[Position, ...]
    """In order, one per turn on which the snake had to choose. None is missing between the first
    and the last.
    """
    ending: Mapping[str, Any]
    """The snake as on the last board, with `eliminatedCause` and `eliminatedBy`, which are "" if it
    lives.
    """
    result: str
    """won, lost, draw, or "" if the recording doesn't tell."""
    last_board: Board

    @property
    def name(self) -> str:
        """Return the snake's name, or its id if it has none."""
        return name_of(self.snake)

    @property
    def opponents(self) -> list[str]:
        """Return the names of the others at the start."""
        return [
            name_of(snake)
            for snake in self.positions[0].board["snakes"]
            if snake["id"] != self.snake["id"]
        ]

    def name_by_id(self, snake_id: str) -> str:
        """Return the name of a snake of this game."""
        snakes = self.last_board["snakes"]
        return next((name_of(snake) for snake in snakes if snake["id"] == snake_id), snake_id)


def name_of(snake: Mapping[str, Any]) -> str:
    """Return a snake's name, or its id if it has none."""
    return str(snake.get("name") or snake["id"])


def played_by(recording: Recording, snake: str | None = None) -> Played:
    """Return the part of the snake with this name or id, without one of the snake that the game was
    recorded for.

    Raises `ConfigError` for games that can't be analysed (solo games, maps that move snakes, games
    with turns missing), `UnknownNameError` for an unknown snake, and `RecordingError` for settings
    that can't be read."""
    boards = recording.boards()
    settings = recording.settings
    if settings.solo:
        raise ConfigError(
            "this is a solo game, in which there is nobody to win against; analyse needs two snakes"
            " or more"
        )
    if settings.map in UNREADABLE_MAPS:
        raise ConfigError(
            f"the map {settings.map} moves the snakes by itself, so moves on it can't be judged"
        )
    chosen = _chosen(boards[0], snake, recording.requests[0].get("you"))
    positions = tuple(_positions(recording, boards, settings, chosen["id"]))
    if not positions:
        raise ConfigError(
            f"{name_of(chosen)} had nothing to choose in this game of {len(boards)} turns"
        )
    ending = _ending(boards, positions, chosen["id"])
    result = result_of(recording, chosen["id"])
    return Played(
        str(recording.game.get("id", "")), settings, chosen, positions, ending, result, boards[-1]
    )


def _ending(boards: list[Board], positions: Sequence[Position], snake: str) -> Mapping[str, Any]:
    """The snake as on the last board, with the likely cause of its death where the file doesn't
    tell it.
    """
    ending = next(one for one in boards[-1]["snakes"] if one["id"] == snake)
    place = boards.index(positions[-1].board) + 1
    if ending["eliminatedCause"] != UNKNOWN_CAUSE or place == len(boards):
        return ending
    cause = likely_cause(positions[-1].board, boards[place], snake, positions[-1].settings)
    return {**ending, "eliminatedCause": cause}


def played_by_each(recording: Recording) -> list[Played]:
    """Return the part of each snake that had something to choose, in the order of the first board.

    Raises what `played_by` raises, if it does so for all of them.
    """
    found = list[Played]()
    refusals = list[ConfigError]()
    for snake in recording.boards()[0]["snakes"]:
        try:
            found.append(played_by(recording, snake["id"]))
        except ConfigError as error:
            refusals.append(error)
    if not found:
        raise (
            refusals[0]
            if refusals
            else ConfigError("the recording has no snakes on its first board")
        )
    return found


def _chosen(first: Board, wanted: str | None, you: Any) -> dict[str, Any]:
    snakes = first["snakes"]
    if wanted is None:
        own = you.get("id") if isinstance(you, dict) else None
        return next((snake for snake in snakes if snake["id"] == own), snakes[0])
    for snake in snakes:
        if wanted in (snake["id"], snake.get("name")):
            return snake
    raise UnknownNameError("snake", wanted, [name_of(snake) for snake in snakes])


def _positions(
    recording: Recording, boards: list[Board], settings: Settings, snake: str
) -> list[Position]:
    found: list[Position] = []
    for n, board in enumerate(boards):
        alive = {one["id"] for one in board["snakes"] if not one["eliminatedCause"]}
        if snake not in alive or len(alive) < 2:
            break
        if found and board["turn"] != found[-1].turn + 1:
            raise ConfigError(
                f"turn {found[-1].turn + 1} is missing in this recording, so what was played can't"
                " be told"
            )
        moves = {one: MOVE_NAMES.index(move) for one, move in recording.moves_played(n).items()}
        found.append(Position(board, settings, snake, moves))
    # Nobody chose on the board on which a game was broken off; a single board is a position to
    # choose on.
    if len(boards) > 1 and found and found[-1].board is boards[-1] and found[-1].played is None:
        found.pop()
    return found


def result_of(recording: Recording, snake: str) -> str:
    """Return how a game ended for the snake with this id: won, lost, draw, or "" if the recording
    doesn't tell.
    """
    told = recording.result
    last = recording.boards()[-1]
    ending = next(one for one in last["snakes"] if one["id"] == snake)
    if told and (told.get("winnerId") or told.get("isDraw")):
        if told.get("isDraw"):
            return "draw"
        return "won" if told["winnerId"] == ending["id"] else "lost"
    alive = [one["id"] for one in last["snakes"] if not one["eliminatedCause"]]
    if ending["eliminatedCause"]:
        others = [
            one for one in last["snakes"] if one["eliminatedOnTurn"] >= ending["eliminatedOnTurn"]
        ]
        return "draw" if not alive and len(others) > 1 else "lost"
    return "won" if alive == [ending["id"]] else ""


def _placed(board: Board) -> list[dict[str, Any]]:
    return [snake for snake in board["snakes"] if snake["eliminatedCause"] in CAUSE_NAMES]


def after(position: Position, move: int) -> tuple[State, int]:
    """Return the position after the snake played `move` and the others what they played, or
    straight on where it isn't told.

    Nothing spawns, and no wall moves.
    """
    state, slot = position.state()
    moves = np.array([[position.moves.get(one, -1) for one in position.ids()]], np.int8)
    moves[0, slot] = move
    rules = state.rules._replace(royale=False)
    if not is_over(state.arrays, 0, rules):
        step_board(state.arrays, 0, rules, moves)
    return state, slot
