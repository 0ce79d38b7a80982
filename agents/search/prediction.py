"""Predicts the moves of the snakes that a search doesn't try.

The likeliest move has the greatest sum of weights, which are those of a conditional logit
(McFadden 1974), in hundredths. It was fitted to 38,000 moves in games of four, by `alphabeta`,
`flood` and `champion-standard` in equal parts. It names 66 % of their other moves; straight on
names 50 %. docs/lab/search.md says what it is worth."""

from __future__ import annotations

from agents.search.make_unmake import Turns, landing
from envs.battlesnake.jit import kernel
from envs.battlesnake.rules import straight_on
from envs.battlesnake.safety import is_certain_death
from envs.battlesnake.settings import Rules
from envs.battlesnake.state import Boards, head_cell, is_alive, step_offset

_STRAIGHT = 54
_FOOD = 178
_TOWARDS_FOOD = 90
_CONTESTED = -677
_EDGE = -65
_TOWARDS_CENTRE = 43
_NEVER = -10_000


@kernel
def likely_move(s: Boards, r: Rules, u: Turns, i: int) -> int:
    """Return the move that snake i makes most likely, of those that aren't certain death; without
    any, straight on.
    """
    row = r.width + 2
    head = head_cell(s, 0, i)
    x = head % row
    y = head // row
    straight = straight_on(s, 0, i, r)
    food_x, food_y = _way_to_food(s, r, u, x, y)
    likeliest = straight
    highest = _NEVER
    for move in range(4):
        offset = step_offset(r.width, move)
        if is_certain_death(s, 0, i, r, head + offset):
            continue
        dx = 0
        dy = 0
        if abs(offset) == 1:
            dx = offset
        else:
            dy = offset // row
        target = landing(s, r, i, move)
        weight = 0
        if move == straight:
            weight += _STRAIGHT
        if s.food[0, target]:
            weight += _FOOD
        if dx * food_x > 0 or dy * food_y > 0:
            weight += _TOWARDS_FOOD
        if _is_contested(s, r, i, target):
            weight += _CONTESTED
        if not r.wrapped:
            weight += _weight_of_place(r, x, y, dx, dy)
        if weight > highest:
            likeliest = move
            highest = weight
    return likeliest


@kernel
def _way_to_food(s: Boards, r: Rules, u: Turns, x: int, y: int) -> tuple[int, int]:
    """Return the columns and rows from (x, y) to the nearest food; (0, 0) without food."""
    nearest_x = 0
    nearest_y = 0
    least = 1 << 20
    for food in u.food_places:
        if food[0] < 0:
            break
        if s.food[0, food[0]] == 0:
            continue
        dx = food[1] - x
        dy = food[2] - y
        if r.wrapped:
            dx = _around(dx, r.width)
            dy = _around(dy, r.height)
        if abs(dx) + abs(dy) < least:
            least = abs(dx) + abs(dy)
            nearest_x = dx
            nearest_y = dy
    return nearest_x, nearest_y


@kernel
def _around(way: int, size: int) -> int:
    """Return the shorter way to the same place on a line whose ends meet."""
    if way > size // 2:
        return way - size
    if way < -(size // 2):
        return way + size
    return way


@kernel
def _is_contested(s: Boards, r: Rules, i: int, target: int) -> bool:
    """Return whether another head that is no shorter than snake i can reach the cell as soon."""
    for j in range(s.cause.shape[1]):
        if j != i and is_alive(s, 0, j) and s.length[0, j] >= s.length[0, i]:
            for move in range(4):
                if landing(s, r, j, move) == target:
                    return True
    return False


@kernel
def _weight_of_place(r: Rules, x: int, y: int, dx: int, dy: int) -> int:
    """Return the weight of a step (dx, dy) from (x, y) towards the edge or the centre."""
    weight = 0
    if x + dx == 1 or y + dy == 1 or x + dx == r.width or y + dy == r.height:
        weight += _EDGE
    # Twice as far, so that the centre of an even side is a whole number, too.
    if dx * (r.width + 1 - 2 * x) > 0 or dy * (r.height + 1 - 2 * y) > 0:
        weight += _TOWARDS_CENTRE
    return weight
