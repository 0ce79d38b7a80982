"""One snake's part in a recorded game: the boards on which it had to choose a move, the moves that
it chose, and how the game ended for it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from envs.battlesnake.plain import Board, Death, Snake, living_snakes, state_from_board
from envs.battlesnake.plain.board import has_known_fate
from envs.battlesnake.recording import UNKNOWN_CAUSE, Recording, likely_cause
from envs.battlesnake.rules import is_over, step_board
from envs.battlesnake.settings import Settings
from envs.battlesnake.state import MOVE_NAMES, State
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
    """The living snakes' moves by their ids, as far as the recording tells them: 0 up, 1 down, 2
    left, 3 right.
    """

    @property
    def turn(self) -> int:
        """Return the number of the turn."""
        return int(self.board["turn"])

    @property
    def move(self) -> int | None:
        """Return the snake's move; None if the recording doesn't show it."""
        return self.moves.get(self.snake)

    @property
    def living(self) -> list[Snake]:
        """Return the snakes that are alive on this board."""
        return living_snakes(self.board)

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
class SnakeGame:
    """One snake's part in a recorded game."""

    game_id: str
    settings: Settings
    snake: Mapping[str, Any]
    """The snake as on the first board."""
    positions: tuple[Position, ...]
    """One position per turn on which the snake had to choose, in order and without gaps."""
    death: Death | None
    """How the snake died; None if it lives on the last board."""
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


def game_of(recording: Recording, snake: str | None = None) -> SnakeGame:
    """Return the game of the snake with this name or id; by default of the snake that the game was
    recorded for.

    Raises `ConfigError` for games that can't be analysed (solo games, maps that move snakes, games
    with turns missing), `UnknownNameError` for an unknown snake, and `RecordingError` for settings
    that can't be read."""
    boards = recording.boards()
    settings = recording.settings
    if settings.solo:
        raise ConfigError(
            "this is a solo game, which nobody can win; analyse needs two snakes or more"
        )
    if settings.map in UNREADABLE_MAPS:
        raise ConfigError(
            f"the map {settings.map} moves the snakes itself, so their moves can't be judged"
        )
    first = _find_snake(boards[0], snake, recording.requests[0].get("you"))
    snake_id = first["id"]
    positions = tuple(_positions(recording, boards, settings, snake_id))
    if not positions:
        raise ConfigError(
            f"{name_of(first)} never had a choice in this game of {len(boards)} turns"
        )
    return SnakeGame(
        game_id=str(recording.game.get("id", "")),
        settings=settings,
        snake=first,
        positions=positions,
        death=_death(boards, positions, snake_id),
        result=result_of(recording, snake_id),
        last_board=boards[-1],
    )


def _death(boards: list[Board], positions: Sequence[Position], snake: str) -> Death | None:
    """How the snake died; None if it lives on the last board. Where the file doesn't tell the
    cause, the likely one is filled in.
    """
    death = Death.of(next(one for one in boards[-1]["snakes"] if one["id"] == snake))
    place = boards.index(positions[-1].board) + 1
    if death is None or death.cause != UNKNOWN_CAUSE or place == len(boards):
        return death
    cause = likely_cause(positions[-1].board, boards[place], snake, positions[-1].settings)
    return replace(death, cause=cause)


def game_of_each(recording: Recording) -> list[SnakeGame]:
    """Return the game of each snake that ever had a choice, in the order of the first board.

    Raises what `game_of` raises, if it raises for every snake.
    """
    games = list[SnakeGame]()
    refusals = list[ConfigError]()
    for snake in recording.boards()[0]["snakes"]:
        try:
            games.append(game_of(recording, snake["id"]))
        except ConfigError as error:
            refusals.append(error)
    if games:
        return games
    if refusals:
        raise refusals[0]
    raise ConfigError("the recording has no snakes on its first board")


def _find_snake(first: Board, name: str | None, you: Any) -> Snake:
    """The snake of this name or id on the first board; by default `you`, or else the first one."""
    snakes = first["snakes"]
    if name is None:
        own_id = you.get("id") if isinstance(you, dict) else None
        return next((snake for snake in snakes if snake["id"] == own_id), snakes[0])
    for snake in snakes:
        if name in (snake["id"], snake.get("name")):
            return snake
    raise UnknownNameError("snake", name, [name_of(snake) for snake in snakes])


def _positions(
    recording: Recording, boards: list[Board], settings: Settings, snake: str
) -> list[Position]:
    positions: list[Position] = []
    for n, board in enumerate(boards):
        alive = {one["id"] for one in living_snakes(board)}
        if snake not in alive or len(alive) < 2:
            break
        if positions and board["turn"] != positions[-1].turn + 1:
            raise ConfigError(
                f"turn {positions[-1].turn + 1} is missing in this recording, so the move before"
                " it is unknown"
            )
        moves = {one: MOVE_NAMES.index(move) for one, move in recording.moves_played(n).items()}
        positions.append(Position(board, settings, snake, moves))

    # Nobody chose on the board on which a game was broken off. A recording of a single board is
    # different: it asks for the best move there.
    if len(boards) > 1 and positions:
        last = positions[-1]
        if last.board is boards[-1] and last.move is None:
            positions.pop()
    return positions


def result_of(recording: Recording, snake: str) -> str:
    """Return how a game ended for the snake with this id: won, lost, draw, or "" if unknown."""
    result_line = recording.result or {}
    if result_line.get("isDraw"):
        return "draw"
    if result_line.get("winnerId"):
        return "won" if result_line["winnerId"] == snake else "lost"

    # The recording has no result: judge by who lives on its last board.
    deaths = {one["id"]: Death.of(one) for one in recording.boards()[-1]["snakes"]}
    alive = [one for one, death in deaths.items() if death is None]
    own_death = deaths[snake]
    if own_death is None:
        return "won" if alive == [snake] else ""
    turns = [death.turn for death in deaths.values() if death]
    died_last = not alive and own_death.turn == max(turns)
    return "draw" if died_last and turns.count(own_death.turn) > 1 else "lost"


def _placed(board: Board) -> list[Snake]:
    return [snake for snake in board["snakes"] if has_known_fate(snake)]


def after(position: Position, move: int) -> tuple[State, int]:
    """Return the position after a turn in which the snake plays `move`, with the snake's slot.

    The others play their recorded moves, or straight on where unknown. Nothing spawns, and no wall
    moves.
    """
    state, slot = position.state()
    moves = np.array([[position.moves.get(one, -1) for one in position.ids()]], np.int8)
    moves[0, slot] = move
    rules = state.rules._replace(royale=False)
    if not is_over(state.arrays, 0, rules):
        step_board(state.arrays, 0, rules, moves)
    return state, slot
