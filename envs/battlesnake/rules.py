"""The official rules of Battlesnake. Each function is one stage, in the order of the official
pipeline.

The source is the behaviour of the official rules module (December 2025), which every recorded game
in `tests/data` agrees with. A step leads from the board of turn T to the board of turn T + 1.
`envs.battlesnake.state` explains the one-letter arguments."""

from __future__ import annotations

import numpy as np

from envs.battlesnake import rng
from envs.battlesnake.jit import kernel
from envs.battlesnake.settings import Rules
from envs.battlesnake.state import (
    ABSENT,
    BODY_COLLISION,
    FULL_HEALTH,
    HAZARD,
    HEAD_COLLISION,
    NOBODY,
    OUT_OF_HEALTH,
    RIGHT,
    SELF_COLLISION,
    UP,
    WALL_COLLISION,
    Boards,
    add_hazard,
    body_cell,
    clear_hazards,
    head_cell,
    is_alive,
    step_offset,
    tail_cell,
)

# A snake that is judged dead but still takes part in the judgement of the others bears its cause
# plus this.
_JUDGED = 16


@kernel
def is_over(s: Boards, b: int, r: Rules) -> bool:
    """Whether the game is over: at most one snake is left, or none in a game that is played
    solo.
    """
    if r.solo:
        return s.num_alive[b] == 0
    return s.num_alive[b] <= 1


@kernel
def step_board(s: Boards, b: int, r: Rules, moves: np.ndarray) -> None:
    """Play one turn of the ruleset in a game that is not over.

    `moves` is (N, S): 0 up, 1 down, 2 left, 3 right, anything else straight on. The caller then
    lets the map do its update and counts the turn."""
    move_snakes(s, b, r, moves)
    reduce_health(s, b)
    damage_in_hazards(s, b, r)
    feed_snakes(s, b)
    eliminate_snakes(s, b)
    if r.royale:
        shrink(s, b, r)
    if r.constrictor:
        remove_food(s, b)
        grow_snakes(s, b)


@kernel
def initialise_board(s: Boards, b: int, r: Rules) -> None:
    """Do the ruleset's step without moves, which the official engine does on the board of turn 0
    before the first turn.
    """
    if is_over(s, b, r):
        return
    feed_snakes(s, b)
    if r.constrictor:
        remove_food(s, b)
        grow_snakes(s, b)


@kernel
def move_snakes(s: Boards, b: int, r: Rules, moves: np.ndarray) -> None:
    """Move every living snake: it gets a new head and loses its last entry. Heads may leave the
    board unless it is wrapped.
    """
    ring = s.body.shape[2]
    for i in range(s.cause.shape[1]):
        if not is_alive(s, b, i):
            continue
        move = moves[b, i]
        if move < UP or move > RIGHT:
            move = straight_on(s, b, i, r)
        target = head_cell(s, b, i) + step_offset(r.width, move)
        if r.wrapped:
            target = s.opposite[target]
        s.occupied[b, tail_cell(s, b, i)] -= 1
        s.occupied[b, target] += 1
        place = s.head[b, i] - 1
        if place < 0:
            place = ring - 1
        s.head[b, i] = place
        s.body[b, i, place] = target


@kernel
def straight_on(s: Boards, b: int, i: int, r: Rules) -> int:
    """Return the official default move: on in the direction from neck to head, also across an edge.

    It is up if neck and head lie on one cell.
    """
    if s.length[b, i] < 2:
        return UP
    head = head_cell(s, b, i)
    neck = body_cell(s, b, i, 1)
    for move in range(4):
        if neck + step_offset(r.width, move) == head:
            return move
    for move in range(4):
        target = neck + step_offset(r.width, move)
        if target != neck and s.opposite[target] == head:
            return move
    return UP


@kernel
def reduce_health(s: Boards, b: int) -> None:
    """Take one health from every living snake."""
    for i in range(s.cause.shape[1]):
        if is_alive(s, b, i):
            s.health[b, i] -= 1


@kernel
def damage_in_hazards(s: Boards, b: int, r: Rules) -> None:
    """Let each hazard layer under a head take its damage from the health, or heal, unless there is
    food on the cell.
    """
    if s.num_hazards[b] == 0:
        return
    for i in range(s.cause.shape[1]):
        if not is_alive(s, b, i):
            continue
        cell = head_cell(s, b, i)
        layers = s.hazards[b, cell]
        if layers == 0:
            continue
        s.hazard_turns[b, i] += 1
        if s.food[b, cell]:
            continue
        health = max(0, min(FULL_HEALTH, s.health[b, i] - layers * r.hazard_damage))
        s.health[b, i] = health
        if health == 0:
            eliminate(s, b, i, HAZARD, NOBODY)


@kernel
def feed_snakes(s: Boards, b: int) -> None:
    """Let every living snake whose head is on food eat all of it. It gets full health, and one tail
    entry per food.
    """
    if s.num_food[b] == 0:
        return
    for i in range(s.cause.shape[1]):
        if is_alive(s, b, i):
            for _ in range(s.food[b, head_cell(s, b, i)]):
                s.health[b, i] = FULL_HEALTH
                s.food_eaten[b, i] += 1
                grow(s, b, i)
    for i in range(s.cause.shape[1]):
        if is_alive(s, b, i):
            cell = head_cell(s, b, i)
            s.num_food[b] -= s.food[b, cell]
            s.food[b, cell] = 0


@kernel
def grow(s: Boards, b: int, i: int) -> None:
    """Append a copy of the last body entry. A body that fills its ring stops growing; no played
    game gets there.
    """
    length = s.length[b, i]
    ring = s.body.shape[2]
    if length == ring:
        return
    tail = tail_cell(s, b, i)
    place = s.head[b, i] + length
    if place >= ring:
        place -= ring
    s.body[b, i, place] = tail
    s.length[b, i] = length + 1
    if is_alive(s, b, i):
        s.occupied[b, tail] += 1


@kernel
def eliminate_snakes(s: Boards, b: int) -> None:
    """Eliminate snakes. Hunger and walls kill first, and their victims leave the board.

    Then all collisions are judged at once.
    """
    # 1. Hunger and walls.
    for i in range(s.cause.shape[1]):
        if is_alive(s, b, i):
            cell = head_cell(s, b, i)
            if s.health[b, i] <= 0:
                eliminate(s, b, i, OUT_OF_HEALTH, NOBODY)
            elif s.opposite[cell] != cell:
                eliminate(s, b, i, WALL_COLLISION, NOBODY)
    # 2. Collisions. Whoever is judged dead still counts as an obstacle for the others.
    anybody_dies = False
    for i in range(s.cause.shape[1]):
        if is_alive(s, b, i) and s.occupied[b, head_cell(s, b, i)] > 1:
            anybody_dies = judge_collision(s, b, i) or anybody_dies
    # 3. The victims of collisions leave the board together.
    if anybody_dies:
        for i in range(s.cause.shape[1]):
            if s.cause[b, i] >= _JUDGED:
                eliminate(s, b, i, s.cause[b, i] - _JUDGED, s.killer[b, i])


@kernel
def judge_collision(s: Boards, b: int, i: int) -> bool:
    """Decide whether the snake dies because other body entries share its head's cell. Returns True
    if it does.

    If several snakes are there, the longest is blamed.
    """
    cell = head_cell(s, b, i)
    if has_body_on(s, b, i, cell):
        s.cause[b, i] = _JUDGED + SELF_COLLISION
        s.killer[b, i] = i
        return True
    by_body = NOBODY
    by_head = NOBODY
    for j in range(s.cause.shape[1]):
        if j == i or not (is_alive(s, b, j) or s.cause[b, j] >= _JUDGED):
            continue
        if has_body_on(s, b, j, cell) and (
            by_body == NOBODY or s.length[b, j] > s.length[b, by_body]
        ):
            by_body = j
        if head_cell(s, b, j) == cell and s.length[b, j] >= s.length[b, i]:
            if by_head == NOBODY or s.length[b, j] > s.length[b, by_head]:
                by_head = j
    if by_body != NOBODY:
        s.cause[b, i] = _JUDGED + BODY_COLLISION
        s.killer[b, i] = by_body
    elif by_head != NOBODY:
        s.cause[b, i] = _JUDGED + HEAD_COLLISION
        s.killer[b, i] = by_head
    return by_body != NOBODY or by_head != NOBODY


@kernel
def has_body_on(s: Boards, b: int, i: int, cell: int) -> bool:
    """Whether any entry behind the snake's head lies on the cell."""
    for entry in range(1, s.length[b, i]):
        if body_cell(s, b, i, entry) == cell:
            return True
    return False


@kernel
def eliminate(s: Boards, b: int, i: int, cause: int, killer: int) -> None:
    """Take a snake out of the game. Its body stays recorded but no longer blocks cells."""
    s.cause[b, i] = cause
    s.killer[b, i] = killer
    s.death_turn[b, i] = s.turn[b] + 1
    s.num_alive[b] -= 1
    for entry in range(s.length[b, i]):
        s.occupied[b, body_cell(s, b, i, entry)] -= 1


@kernel
def shrink(s: Boards, b: int, r: Rules) -> None:
    """In royale, remove all hazards, then put one on each cell outside a rectangle that loses one
    side every few turns.

    The sides are drawn from the same sequence in each turn, so the rectangle only ever shrinks.
    Once it is empty, it stays empty, and no more sides are drawn, because a stranger's turn may be
    2^30."""
    clear_hazards(s, b)
    left = 0
    right = r.width - 1
    bottom = 0
    top = r.height - 1
    for n in range((s.turn[b] + 1) // r.shrink_every):
        if left > right or bottom > top:
            break
        side = rng.below(s.key[b], 0, rng.SHRINK, n, 4)
        if side == 0:
            left += 1
        elif side == 1:
            right -= 1
        elif side == 2:
            bottom += 1
        else:
            top -= 1
    for y in range(r.height):
        for x in range(r.width):
            if x < left or x > right or y < bottom or y > top:
                add_hazard(s, b, (y + 1) * (r.width + 2) + x + 1, 1)


@kernel
def remove_food(s: Boards, b: int) -> None:
    """In constrictor, remove all food."""
    if s.num_food[b]:
        s.food[b] = 0
        s.num_food[b] = 0


@kernel
def grow_snakes(s: Boards, b: int) -> None:
    """In constrictor, give every snake full health, dead ones too, and let it grow if its last two
    entries differ.
    """
    for i in range(s.cause.shape[1]):
        if s.cause[b, i] == ABSENT:
            continue
        s.health[b, i] = FULL_HEALTH
        length = s.length[b, i]
        if length > 1 and tail_cell(s, b, i) != body_cell(s, b, i, length - 2):
            grow(s, b, i)
