"""Finds the safest move on a plain board of any size, in pure Python.

It applies the mask of `envs.battlesnake.safety`, but reads dicts, so it is for boards that the
engine's arrays can't hold."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from itertools import chain
from typing import Any

from envs.battlesnake.settings import Rules
from envs.battlesnake.state import MOVE_STEPS

Point = tuple[int, int]


def safest_plain_move(
    board: Mapping[str, Any], hazards: Mapping[Point, int], you: int, rules: Rules
) -> int:
    """Return the move whose cell has the most free neighbours, among those that are not certain
    death; the first of equals.

    `board` is a dict as in `envs.battlesnake.plain`, of any size, with living snakes only.
    `hazards` counts the layers on each point. `you` is our place in the list of snakes. The move is
    0 up, 1 down, 2 left or 3 right; if every move is certain death, all are considered."""
    bodies = [list(map(_point, snake["body"])) for snake in board["snakes"]]
    occupied = Counter(chain.from_iterable(bodies))
    tails = Counter(body[-1] for body in bodies)
    food = {_point(part) for part in board["food"]}
    head = bodies[you][0]
    health = board["snakes"][you]["health"]

    def step(point: Point, move: int) -> Point | None:
        x = point[0] + MOVE_STEPS[move][0]
        y = point[1] + MOVE_STEPS[move][1]
        if rules.wrapped:
            return x % rules.width, y % rules.height
        if 0 <= x < rules.width and 0 <= y < rules.height:
            return (x, y)
        return None

    def is_safe(target: Point | None) -> bool:
        if target is None or occupied[target] > tails[target]:
            return False
        return target in food or health - 1 - hazards.get(target, 0) * rules.hazard_damage > 0

    def room(target: Point | None) -> int:
        if target is None:
            return -1
        onward = [step(target, move) for move in range(4)]
        return sum(point is not None and not occupied[point] for point in onward)

    ahead = [step(head, move) for move in range(4)]
    safe = [move for move in range(4) if is_safe(ahead[move])] or range(4)
    return max(safe, key=lambda move: room(ahead[move]))


def _point(part: Mapping[str, int]) -> Point:
    return part["x"], part["y"]
