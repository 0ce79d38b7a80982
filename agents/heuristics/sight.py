"""What a rule sees: the board from one snake's point of view, in plain points."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from envs.battlesnake.reach import Reach, reach
from envs.battlesnake.safety import safe_moves
from envs.battlesnake.state import ALIVE, MOVE_STEPS, State

Point = tuple[int, int]


@dataclass(frozen=True)
class Other:
    """Another living snake."""

    slot: int
    body: list[Point]
    """The body's points, head first, with repeats."""
    health: int

    @property
    def head(self) -> Point:
        return self.body[0]

    @property
    def length(self) -> int:
        return len(self.body)


class Sight:
    """Board `board` of `state` as the snake in `slot` sees it. Points are (x, y), with (0, 0) at
    the bottom left and y up.

    Moves are numbers: 0 up, 1 down, 2 left, 3 right. Rules only read a `Sight`.
    """

    def __init__(self, state: State, board: int, slot: int) -> None:
        self.state = state
        self.board = int(board)
        self.slot = int(slot)
        self.width = state.width
        self.height = state.height
        rules = state.rules
        self.wrapped: bool = rules.wrapped
        """Whether the edges lead to the other side."""
        self.constrictor: bool = rules.constrictor
        """Whether bodies never leave."""
        self.hazard_damage: int = rules.hazard_damage
        """The health that a hazard layer takes. A negative number heals."""

    @cached_property
    def body(self) -> list[Point]:
        """This snake's body, head first, with repeats."""
        return self.state.body(self.board, self.slot)

    @property
    def head(self) -> Point:
        return self.body[0]

    @property
    def length(self) -> int:
        return len(self.body)

    @property
    def health(self) -> int:
        """This snake's health, 1..100."""
        return int(self.state.arrays.health[self.board, self.slot])

    @property
    def turn(self) -> int:
        return int(self.state.arrays.turn[self.board])

    @cached_property
    def others(self) -> list[Other]:
        """The other living snakes, in slot order."""
        a = self.state.arrays
        slots = [
            i
            for i in range(self.state.num_snakes)
            if i != self.slot and a.cause[self.board, i] == ALIVE
        ]
        return [
            Other(i, self.state.body(self.board, i), int(a.health[self.board, i])) for i in slots
        ]

    @cached_property
    def food(self) -> set[Point]:
        return set(self.state.points(self.state.arrays.food[self.board]))

    @cached_property
    def hazards(self) -> Counter[Point]:
        """The number of hazard layers on each point."""
        return Counter(self.state.points(self.state.arrays.hazards[self.board]))

    @cached_property
    def safe(self) -> np.ndarray:
        """bool (4,): False where a move is certain death (`envs.battlesnake.safety`). If every move
        is, all are True.
        """
        return safe_moves(self.state, np.array([self.board]), np.array([self.slot]))[0]

    @cached_property
    def fills(self) -> list[Reach | None]:
        """What a flood fill finds behind each move: its `area`, and the moves to `food`.

        None where the move is certain death.
        """
        ways = [self.safe[move] and self.ahead(move) is not None for move in range(4)]
        return [
            reach(self.state, self.board, self.slot, move) if way else None
            for move, way in enumerate(ways)
        ]

    def step(self, point: Point, move: int) -> Point | None:
        """Return the point to which a move from `point` leads; None if it is off the board."""
        x = point[0] + MOVE_STEPS[move][0]
        y = point[1] + MOVE_STEPS[move][1]
        if self.wrapped:
            return x % self.width, y % self.height
        if 0 <= x < self.width and 0 <= y < self.height:
            return (x, y)
        return None

    def ahead(self, move: int) -> Point | None:
        """Return the point to which a move takes this snake's head; None if it is off the board."""
        return self.step(self.head, move)

    def around(self, point: Point) -> set[Point]:
        """Return the points of the board that are one move away from `point`."""
        return {p for move in range(4) if (p := self.step(point, move)) is not None}

    def distance(self, a: Point, b: Point) -> int:
        """Return the number of moves between two points on an empty board."""
        dx = abs(a[0] - b[0])
        dy = abs(a[1] - b[1])
        if self.wrapped:
            dx = min(dx, self.width - dx)
            dy = min(dy, self.height - dy)
        return dx + dy
