"""The rules once more, in plain Python from their description, and what can be forced by trying
everything.

Its rules share no code with the engine or the search, so that they can judge both. Slow: for small
positions."""

from __future__ import annotations

from functools import lru_cache
from itertools import product
from typing import NamedTuple

from envs.battlesnake.state import ALIVE, State

Point = tuple[int, int]
STEPS = ((0, 1), (0, -1), (-1, 0), (1, 0))


class Snake(NamedTuple):
    """A living snake: body head first, and health."""

    body: tuple[Point, ...]
    health: int


class World(NamedTuple):
    """What doesn't change during a game."""

    width: int
    height: int
    hazards: frozenset[tuple[Point, int]] = frozenset()  # (cell, layers)
    damage: int = 14
    wrapped: bool = False
    constrictor: bool = False
    solo: bool = False


class Position(NamedTuple):
    """Snakes by slot, None for the dead; food as a set of points."""

    snakes: tuple[Snake | None, ...]
    food: frozenset[Point]


def position_of(state: State) -> Position:
    """The position on a board of the engine."""
    a = state.arrays
    living = [i if a.cause[0, i] == ALIVE else None for i in range(state.num_snakes)]
    snakes = tuple(
        None if i is None else Snake(tuple(state.body(0, i)), int(a.health[0, i])) for i in living
    )
    return Position(snakes, frozenset(state.points(a.food[0])))


def step(world: World, position: Position, moves: tuple[int | None, ...]) -> Position:
    """The board after one turn on which nothing spawns."""
    layers = dict(world.hazards)
    moved: dict[int, Snake] = {}
    for slot, snake in enumerate(position.snakes):
        if snake is None:
            continue
        (x, y), (dx, dy) = snake.body[0], STEPS[moves[slot]]
        head = (
            ((x + dx) % world.width, (y + dy) % world.height) if world.wrapped else (x + dx, y + dy)
        )
        health = snake.health - 1
        if head in layers and head not in position.food:
            health = max(0, min(100, health - layers[head] * world.damage))
            if health == 0:
                continue
        moved[slot] = Snake((head, *snake.body[:-1]), health)
    eaten = {snake.body[0] for snake in moved.values()} & position.food
    for slot, snake in moved.items():
        if snake.body[0] in eaten:
            moved[slot] = Snake((*snake.body, snake.body[-1]), 100)
    moved = {
        slot: snake
        for slot, snake in moved.items()
        if snake.health > 0 and _is_inside(world, snake.body[0])
    }
    alive = {slot: snake for slot, snake in moved.items() if not _collides(slot, moved)}
    food = position.food - eaten
    if world.constrictor:
        food = frozenset()
        alive = {slot: _grown(snake) for slot, snake in alive.items()}
    return Position(tuple(alive.get(slot) for slot in range(len(position.snakes))), food)


def _is_inside(world: World, point: Point) -> bool:
    return 0 <= point[0] < world.width and 0 <= point[1] < world.height


def _collides(slot: int, moved: dict[int, Snake]) -> bool:
    head = moved[slot].body[0]
    length = len(moved[slot].body)
    if any(head in snake.body[1:] for snake in moved.values()):
        return True
    return any(
        other != slot and s.body[0] == head and len(s.body) >= length for other, s in moved.items()
    )


def _grown(snake: Snake) -> Snake:
    grows = len(snake.body) > 1 and snake.body[-1] != snake.body[-2]
    return Snake((*snake.body, snake.body[-1]) if grows else snake.body, 100)


class Solver:
    """What slot 0 can force in a world, whatever the others answer, even if they knew each of its
    moves before they move.
    """

    def __init__(self, world: World) -> None:
        self.world = world
        self.survives = lru_cache(maxsize=None)(self._survives)
        self.wins = lru_cache(maxsize=None)(self._wins)

    def surviving_moves(self, position: Position, turns: int) -> list[int]:
        """The moves after which slot 0 can be sure to live for `turns` turns, this one counted."""
        return [
            m
            for m in range(4)
            if all(self.survives(p, turns - 1) for p in self._answers(position, m))
        ]

    def winning_moves(self, position: Position, turns: int) -> list[int]:
        """The moves after which slot 0 can be sure to be the last one within `turns` turns, this
        one counted.
        """
        return [
            m for m in range(4) if all(self.wins(p, turns - 1) for p in self._answers(position, m))
        ]

    def _survives(self, position: Position, turns: int) -> bool:
        if position.snakes[0] is None:
            return False
        if turns == 0 or self._has_won(position):
            return True
        return any(
            all(self.survives(p, turns - 1) for p in self._answers(position, m)) for m in range(4)
        )

    def _wins(self, position: Position, turns: int) -> bool:
        if position.snakes[0] is None:
            return False
        if self._has_won(position):
            return True
        return turns > 0 and any(
            all(self.wins(p, turns - 1) for p in self._answers(position, m)) for m in range(4)
        )

    def _has_won(self, position: Position) -> bool:
        return not self.world.solo and not any(position.snakes[1:])

    def _answers(self, position: Position, move: int) -> list[Position]:
        """The boards that can come of my move."""
        others = [self._sensible_moves(snake) for snake in position.snakes[1:]]
        return [step(self.world, position, (move, *answer)) for answer in product(*others)]

    def _sensible_moves(self, snake: Snake | None) -> list[int | None]:
        """Not off the board and not into the own neck: who does that dies and hinders nobody by
        it.
        """
        if snake is None:
            return [None]
        moves: list[int | None] = []
        for move, (dx, dy) in enumerate(STEPS):
            x = snake.body[0][0] + dx
            y = snake.body[0][1] + dy
            if self.world.wrapped:
                x = x % self.world.width
                y = y % self.world.height
            if _is_inside(self.world, (x, y)) and (len(snake.body) < 3 or (x, y) != snake.body[1]):
                moves.append(move)
        return moves or [0]
