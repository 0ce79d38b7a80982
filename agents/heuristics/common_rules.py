"""The built-in rules. Each is a function of a `Sight` and returns four values, one per move:

* booleans, where False bans the move (`composition.Heuristics` says what happens if no move is
  left);
* or numbers, which say how much better the move is than one with 0, in units of log-probability: 1
makes it e times as likely."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import inf
from typing import Any

import numpy as np

from agents.heuristics.sight import Point, Sight
from agents.search.evaluation.fill import divide
from agents.search.evaluation.territory import new_territory, survey
from agents.search.make_unmake import drift, search_rules
from envs.battlesnake.rules import step_board
from envs.battlesnake.state import ALIVE

Rule = Callable[[Sight], Any]
"""A rule takes a `Sight` and returns four booleans or four numbers, in the order up, down, left,
right.
"""

_EVERY_MOVE = range(4)
_LOST = -1e3


def walls(me: Sight) -> Sequence[bool]:
    """Ban moves off the board."""
    return [me.ahead(move) is not None for move in _EVERY_MOVE]


def neck(me: Sight) -> Sequence[bool]:
    """Ban the move back into the own neck."""
    if me.length == 1 or me.body[1] == me.head:
        return [True] * 4
    return [me.ahead(move) != me.body[1] for move in _EVERY_MOVE]


def certain_death(me: Sight) -> np.ndarray:
    """Ban moves into walls, bodies that stay, starvation and deadly hazards
    (`envs.battlesnake.safety`).
    """
    return me.safe


def food_when_hungry(me: Sight, *, below: int = 31) -> Sequence[bool]:
    """If the snake is hungry (health less than `below`) and beside food, ban all moves that don't
    eat.

    The starter pack's rule.
    """
    eats = [me.ahead(move) in me.food for move in _EVERY_MOVE]
    if me.health < below and any(eats):
        return eats
    return [True] * 4


def room(me: Sight) -> Sequence[bool]:
    """Ban moves after which a flood fill, in which tails move on, finds no room for the whole
    body.
    """
    return [fill is not None and fill.area >= me.length for fill in me.fills]


def space(me: Sight, *, weight: float = 3.0) -> Sequence[float]:
    """Prefer moves with more cells in reach, up to twice the own length."""
    enough = 2.0 * me.length
    scores = [_LOST] * 4
    for move, fill in enumerate(me.fills):
        if fill is not None:
            scores[move] = weight * min(fill.area, enough) / enough
    return scores


def territory(me: Sight, *, weight: float = 0.08) -> Sequence[float]:
    """Prefer moves after which I reach more cells before anyone else (a Voronoi fill in which tails
    move on).
    """
    scores = [_LOST] * 4
    for move, area in enumerate(_territories(me)):
        if me.fills[move] is not None:
            scores[move] = weight * area
    return scores


def head_to_head(me: Sight, *, fear: float = 6.0, hunt: float = 1.0) -> Sequence[float]:
    """Avoid cells that the head of a longer or equal snake can enter, and prefer those that a
    shorter one's head can enter.
    """
    scores = [0.0] * 4
    for other in me.others:
        reachable = me.around(other.head)
        score = hunt if other.length < me.length else -fear
        for move in _EVERY_MOVE:
            if me.ahead(move) in reachable:
                scores[move] += score
    return scores


def food(me: Sight, *, weight: float = 2.0, always: float = 0.3) -> Sequence[float]:
    """Prefer shorter ways to food, around bodies. The preference grows with hunger, and is at least
    `always`.
    """
    wish = weight * max(always, 1 - me.health / 100)
    scores = [_LOST] * 4
    for move, fill in enumerate(me.fills):
        if fill is not None:
            scores[move] = wish * max(0.0, 1 - fill.food / 20)
    return scores


def tail(me: Sight, *, weight: float = 1.0) -> Sequence[float]:
    """Prefer moves nearer to the own tail, whose cell will become free."""
    target = me.body[-1]
    far = me.width + me.height
    scores = [0.0] * 4
    for move in _EVERY_MOVE:
        point = me.ahead(move)
        if point is not None:
            scores[move] = weight * (1 - _way(me, point, target) / far)
    return scores


def hazards(me: Sight, *, weight: float = 0.1) -> Sequence[float]:
    """Avoid hazards in proportion to the health that they take. Food on the cell protects."""
    scores = [0.0] * 4
    for move in _EVERY_MOVE:
        point = me.ahead(move)
        if point is not None and point not in me.food:
            scores[move] = -weight * me.hazards[point] * me.hazard_damage
    return scores


STARTER_PACK: tuple[Rule, ...] = (walls, neck, food_when_hungry)
"""The rules of the SageMaker starter pack, as bans, so that they can't go wrong with negative
logits.
"""
CLASSICS: tuple[Rule, ...] = (certain_death, room, head_to_head, food, territory, tail, hazards)
"""The rules that people write first, in this order."""
RULES: dict[str, Rule] = {
    rule.__name__: rule
    for rule in (
        walls,
        neck,
        certain_death,
        food_when_hungry,
        room,
        space,
        territory,
        head_to_head,
        food,
        tail,
        hazards,
    )
}


def _territories(me: Sight) -> list[int]:
    """Return how many cells I reach first after each move, if the others go straight on where they
    can; 0 if it kills me.
    """
    areas = []
    for move in _EVERY_MOVE:
        after = me.state.select(np.array([me.board]))
        s = after.arrays
        r = search_rules(after.rules)
        moves = np.array([[drift(s, r, i) for i in range(after.num_snakes)]], np.int8)
        moves[0, me.slot] = move
        step_board(s, 0, r, moves)
        cells = new_territory(after)
        if s.cause[0, me.slot] == ALIVE:
            survey(s, r, cells)
            divide(s, r, cells, me.slot)
        areas.append(int(cells.area[me.slot]))
    return areas


def _way(me: Sight, start: Point, target: Point) -> int:
    """Return the number of moves from `start`, entered on move 1, to `target` around bodies that
    have not left by then. It is the sum of the board's sides if there is no way.
    """
    free_after = _free_after(me)
    farthest = me.width + me.height
    visited = {start}
    edge = [start]
    moves = 1
    while edge and moves < farthest:
        if target in edge:
            return moves
        moves += 1
        next_edge = []
        for point in edge:
            for neighbour in sorted(me.around(point) - visited):
                visited.add(neighbour)
                if moves >= free_after.get(neighbour, 0):
                    next_edge.append(neighbour)
        edge = next_edge
    return farthest


def _free_after(me: Sight) -> dict[Point, float]:
    """Return, for each point that a body covers, after how many moves the body has left it. In a
    constrictor game it never does.
    """
    free_after: dict[Point, float] = {}
    for body in (me.body, *(other.body for other in me.others)):
        for entry, point in enumerate(body):
            moves = inf if me.constrictor else len(body) - entry
            free_after[point] = max(free_after.get(point, 0), moves)
    return free_after
