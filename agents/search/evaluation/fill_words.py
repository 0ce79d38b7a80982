"""The territory fill for boards of up to 128 cells that aren't wrapped: a region is two 64-bit
words (`envs.battlesnake.reach.bitboards`).

It grows by a move in a dozen shifts, where `fill_rows` works through sixteen rows. Both fills come
to the same result, cell by cell."""

from __future__ import annotations

import numpy as np

from agents.search.evaluation.territory import (
    NO_FOOD,
    REACHED_AFTER,
    Territory,
    serve_longest_first,
)
from envs.battlesnake.jit import kernel
from envs.battlesnake.reach.bitboards import beside, bits_in
from envs.battlesnake.settings import Rules
from envs.battlesnake.state import Boards, body_cell, head_cell, is_alive

_0 = np.uint64(0)


@kernel
def divide_words(s: Boards, r: Rules, f: Territory, viewer: int) -> None:
    """Fill board 0 as `fill.divide` does, with two words per region."""
    open0, open1 = _start(s, f, viewer)
    if s.num_alive[0] == 2:
        _spread_two(s, r, f, open0, open1)
    else:
        _spread_all(s, r, f, open0, open1)
    for n in range(s.num_alive[0]):
        i = f.order[n]
        a = f.words[i, 0]
        b = f.words[i, 1]
        f.area[i] = bits_in(a) + bits_in(b)
        f.clean_area[i] = bits_in(a & f.clean_words[0]) + bits_in(b & f.clean_words[1])


@kernel
def _spread_all(s: Boards, r: Rules, f: Territory, open0: np.uint64, open1: np.uint64) -> None:
    """Let the regions grow, a move at a time."""
    food0, food1 = _food(s, f)
    for k in range(1, f.steps[0] + 1):
        if not r.constrictor:
            for n in range(s.num_alive[0]):
                freed0, freed1 = _freed(s, f, f.order[n], k)
                open0 = open0 | freed0
                open1 = open1 | freed1
        changed = _0
        for n in range(s.num_alive[0]):
            i = f.order[n]
            a = f.words[i, 0]
            b = f.words[i, 1]
            new0, new1 = beside(r, f.columns, a, b)
            new0 = new0 & open0
            new1 = new1 & open1
            f.words[i, 0] = a | new0
            f.words[i, 1] = b | new1
            open0 = open0 & ~new0
            open1 = open1 & ~new1
            changed |= new0 | new1
            if (new0 & food0 | new1 & food1) and f.food_distance[i] == NO_FOOD:
                f.food_distance[i] = k
        # In the first moves, regions may wait for a body to leave.
        if changed == 0 and (k > 3 or r.constrictor):
            break


@kernel
def _spread_two(s: Boards, r: Rules, f: Territory, open0: np.uint64, open1: np.uint64) -> None:
    """Let the regions of two snakes grow, a move at a time. They stay in registers, because a duel
    spends most of its search here.

    `a0` and `a1` are the region of the snake that is served first, `b0` and `b1` the other's."""
    food0, food1 = _food(s, f)
    i = f.order[0]
    j = f.order[1]
    a0 = f.words[i, 0]
    a1 = f.words[i, 1]
    b0 = f.words[j, 0]
    b1 = f.words[j, 1]
    eaten_a = NO_FOOD
    eaten_b = NO_FOOD
    stage = 0
    due = 0
    if f.reached.shape[0] > 0:
        due = REACHED_AFTER[0]
        f.start_words[0] = open0
        f.start_words[1] = open1
        f.food_words[0] = food0
        f.food_words[1] = food1
    for k in range(1, f.steps[0] + 1):
        if not r.constrictor:
            freed0, freed1 = _freed(s, f, i, k)
            more0, more1 = _freed(s, f, j, k)
            open0 = open0 | freed0 | more0
            open1 = open1 | freed1 | more1
        new0, new1 = beside(r, f.columns, a0, a1)
        new0 = new0 & open0
        new1 = new1 & open1
        a0 = a0 | new0
        a1 = a1 | new1
        open0 = open0 & ~new0
        open1 = open1 & ~new1
        changed = new0 | new1
        if new0 & food0 | new1 & food1:
            eaten_a = min(eaten_a, k)
        new0, new1 = beside(r, f.columns, b0, b1)
        new0 = new0 & open0
        new1 = new1 & open1
        b0 = b0 | new0
        b1 = b1 | new1
        open0 = open0 & ~new0
        open1 = open1 & ~new1
        if new0 & food0 | new1 & food1:
            eaten_b = min(eaten_b, k)
        if k == due:
            f.reached[stage, 0] = bits_in(a0) + bits_in(a1)
            f.reached[stage, 1] = bits_in(b0) + bits_in(b1)
            stage += 1
            due = 0
            if stage < len(REACHED_AFTER):
                due = REACHED_AFTER[stage]
        if (changed | new0 | new1) == 0 and (k > 3 or r.constrictor):
            break
    f.words[i, 0] = a0
    f.words[i, 1] = a1
    f.words[j, 0] = b0
    f.words[j, 1] = b1
    f.food_distance[i] = eaten_a
    f.food_distance[j] = eaten_b
    for n in range(stage, f.reached.shape[0]):
        f.reached[n, 0] = bits_in(a0) + bits_in(a1)
        f.reached[n, 1] = bits_in(b0) + bits_in(b1)


@kernel
def _start(s: Boards, f: Territory, viewer: int) -> tuple[np.uint64, np.uint64]:
    """Give every living snake its head, and return the cells that no body covers."""
    taken0 = _0
    taken1 = _0
    for i in range(s.cause.shape[1]):
        if is_alive(s, 0, i):
            for entry in range(s.length[0, i]):
                cell = body_cell(s, 0, i, entry)
                taken0 = taken0 | f.word[cell, 0]
                taken1 = taken1 | f.word[cell, 1]
            head = head_cell(s, 0, i)
            f.words[i, 0] = f.word[head, 0]
            f.words[i, 1] = f.word[head, 1]
            f.food_distance[i] = NO_FOOD
    serve_longest_first(s, f, viewer)
    return f.enterable_words[0] & ~taken0, f.enterable_words[1] & ~taken1


@kernel
def _food(s: Boards, f: Territory) -> tuple[np.uint64, np.uint64]:
    """Return the cells with food. In a search it is only eaten, so it lies where it lay at the
    root.
    """
    food0 = _0
    food1 = _0
    for n in range(f.num_food_cells[0]):
        cell = f.food_cells[n]
        if s.food[0, cell]:
            food0 = food0 | f.word[cell, 0]
            food1 = food1 | f.word[cell, 1]
    return food0, food1


@kernel
def _freed(s: Boards, f: Territory, i: int, k: int) -> tuple[np.uint64, np.uint64]:
    """Return the enterable cells that a body leaves with move k. Of entries on one cell the one
    nearest to the head leaves last.
    """
    entry = max(s.length[0, i] - k, 1)
    cell = body_cell(s, 0, i, entry)
    # Factors in the place of branches, which the processor couldn't foresee.
    leaves = np.uint64(k < s.length[0, i]) * np.uint64(cell != body_cell(s, 0, i, entry - 1))
    return (
        leaves * f.word[cell, 0] & f.enterable_words[0],
        leaves * f.word[cell, 1] & f.enterable_words[1],
    )
