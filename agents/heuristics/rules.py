"""The rules that every snake begins with. Each is a function of a `Sight` and returns four things, one a move:

* booleans: False bans the move (`composition.Heuristics` says what happens if nothing is left);
* numbers: how much better the move is than one with 0, in units of log-probability: 1 makes it e times as likely.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from agents.heuristics.sight import Point, Sight
from agents.search.territory import divide, new_territory, survey
from agents.search.turns import drift, search_rules
from envs.battlesnake.rules import step_board
from envs.battlesnake.state import ALIVE

Rule = Callable[[Sight], Any]
"""Gets a `Sight`; returns four booleans or four numbers, in the order up, down, left, right."""

_EVERY_MOVE = range(4)
_LOST = -1e3


def walls(me: Sight) -> Sequence[bool]:
    """Not off the board."""
    return [me.ahead(move) is not None for move in _EVERY_MOVE]


def neck(me: Sight) -> Sequence[bool]:
    """Not back into the own neck."""
    moved = me.length > 1 and me.body[1] != me.head
    return [not (moved and me.ahead(move) == me.body[1]) for move in _EVERY_MOVE]


def certain_death(me: Sight) -> np.ndarray:
    """No wall, no body that stays, no starving, no deadly hazard: `envs.battlesnake.safety`."""
    return me.safe


def food_when_hungry(me: Sight, *, below: int = 31) -> Sequence[bool]:
    """Beside food and hungry (health less than `below`): eat. The starter pack's rule."""
    eats = [me.ahead(move) in me.food for move in _EVERY_MOVE]
    return eats if me.health < below and any(eats) else [True] * 4


def room(me: Sight) -> Sequence[bool]:
    """Only where the flood fill, with tails that move on, finds room for the whole body, if there is such a way."""
    return [fill is not None and fill.area >= me.length for fill in me.fills]


def space(me: Sight, *, weight: float = 3.0) -> Sequence[float]:
    """More cells in reach are better, up to twice the own length."""
    enough = 2.0 * me.length
    return [_LOST if fill is None else weight * min(fill.area, enough) / enough for fill in me.fills]


def territory(me: Sight, *, weight: float = 0.08) -> Sequence[float]:
    """Cells that I reach before anyone else (Voronoi, tails moving on), after the move."""
    return [_LOST if fill is None else weight * area for fill, area in zip(me.fills, _territories(me), strict=True)]


def head_to_head(me: Sight, *, fear: float = 6.0, hunt: float = 1.0) -> Sequence[float]:
    """Stay away from where heads of longer or equal snakes can go; go where those of shorter ones can."""
    scores = [0.0] * 4
    for other in me.others:
        reachable = me.around(other.head)
        for move in _EVERY_MOVE:
            if me.ahead(move) in reachable:
                scores[move] += hunt if other.length < me.length else -fear
    return scores


def food(me: Sight, *, weight: float = 2.0, always: float = 0.3) -> Sequence[float]:
    """The shorter the way to food, around bodies, the better: the more so the hungrier; a little (`always`) in any case."""
    wish = weight * max(always, 1 - me.health / 100)
    return [_LOST if fill is None else wish * max(0.0, 1 - fill.food / 20) for fill in me.fills]


def tail(me: Sight, *, weight: float = 1.0) -> Sequence[float]:
    """A way to the own tail is a way out: nearer is better."""
    target = me.body[-1]
    far = me.width + me.height
    return [0.0 if (p := me.ahead(move)) is None else weight * (1 - _way(me, p, target) / far) for move in _EVERY_MOVE]


def hazards(me: Sight, *, weight: float = 0.1) -> Sequence[float]:
    """A hazard costs what it takes of the health; food on it protects."""
    costs = [0 if (p := me.ahead(move)) in me.food else me.hazards[p] * me.hazard_damage for move in _EVERY_MOVE]
    return [-weight * cost for cost in costs]


STARTER_PACK: tuple[Rule, ...] = (walls, neck, food_when_hungry)
"""The rules of the SageMaker starter pack, in the form that can't go wrong with negative logits."""
CLASSICS: tuple[Rule, ...] = (certain_death, room, head_to_head, food, territory, tail, hazards)
"""What people write first, and in this order."""
RULES: dict[str, Rule] = {
    rule.__name__: rule
    for rule in (walls, neck, certain_death, food_when_hungry, room, space, territory, head_to_head, food, tail, hazards)
}


def _territories(me: Sight) -> list[int]:
    """Cells that I reach first after each move, if the others go straight on where they can; 0 if it kills me."""
    areas = []
    for move in _EVERY_MOVE:
        after = me.state.select(np.array([me.board]))
        s, r = after.arrays, search_rules(after.rules)
        moves = np.array([[drift(s, r, i) for i in range(after.num_snakes)]], np.int8)
        moves[0, me.slot] = move
        step_board(s, 0, r, moves)
        found = new_territory(after)
        if s.cause[0, me.slot] == ALIVE:
            survey(s, r, found)
            divide(s, r, found, me.slot)
        areas.append(int(found.area[me.slot]))
    return areas


def _way(me: Sight, start: Point, target: Point) -> int:
    """Moves from `start`, entered on move 1, to `target` around bodies that have not left by then; board's sides if none."""
    leaves: dict[Point, int] = {}
    for body in (me.body, *(other.body for other in me.others)):
        for entry, point in enumerate(body):
            leaves[point] = max(leaves.get(point, 0), len(body) - entry)
    none = me.width + me.height
    reached, edge, moves = {start}, [start], 1
    while edge and moves < none:
        if target in edge:
            return moves
        moves += 1
        edge = [
            p
            for p in dict.fromkeys(n for point in edge for n in sorted(me.around(point)))
            if p not in reached and not reached.add(p) and (not me.constrictor or p not in leaves) and moves >= leaves.get(p, 0)
        ]
    return none
