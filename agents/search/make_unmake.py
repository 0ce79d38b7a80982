"""Plays a turn on board 0 of a state, takes it back, and hashes the position. Every search is built
on this.

The turn itself is the engine's `step_board`. Taking it back undoes only what a turn can have
changed. That takes 30 ns per snake, while a copy of the whole board would move 1.9 KB. Statistics
that no rule reads (who killed whom, food eaten) are not restored."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from envs.battlesnake.jit import kernel
from envs.battlesnake.rng import mix
from envs.battlesnake.rules import step_board, straight_on
from envs.battlesnake.safety import is_certain_death
from envs.battlesnake.settings import Rules
from envs.battlesnake.state import (
    ALIVE,
    Boards,
    State,
    body_cell,
    head_cell,
    is_alive,
    step_offset,
    tail_cell,
)

_HEALTH = np.uint64(0x9E3779B97F4A7C15)
_LENGTH = np.uint64(0xD6E8FEB86659FD93)
_SLOT = np.uint64(0xC2B2AE3D27D4EB4F)


class Turns(NamedTuple):
    """What is needed to take turns back, with one row per turn: T turns, S slots, C padded
    cells.
    """

    head: np.ndarray
    """int16 (T, S): where the head lay in the ring of the body."""
    length: np.ndarray
    """int16 (T, S)"""
    health: np.ndarray
    """int16 (T, S)"""
    cause: np.ndarray
    """uint8 (T, S): `ALIVE`, or what the snake had died of before."""
    tail: np.ndarray
    """int16 (T, S): the cell of the last entry, which growth overwrites."""
    target: np.ndarray
    """int16 (T, S): the cell to which the head went."""
    food: np.ndarray
    """uint8 (T, S): how much food lay there."""
    all_food: np.ndarray
    """uint8 (T, C): the food of the board, where a constrictor game is about to take all away."""
    counts: np.ndarray
    """int16 (T, 2): num_food, num_alive."""
    body_hash: np.ndarray
    """uint64 (T + 1, S): the hash of each body before the turn."""
    food_hash: np.ndarray
    """uint64 (T + 1,): the hash of all food before the turn."""
    food_places: np.ndarray
    """int16 (C + 1, 3): cell, column and row of each food before turn 0, then -1. No food appears
    in a search.
    """
    zobrist: np.ndarray
    """uint64 (2, C): a random number for a body entry on the cell, and one for food there."""


def new_turns(state: State, turns: int) -> Turns:
    """Allocate the arrays for `turns` turns on boards of this state's shape."""
    snakes = state.num_snakes
    cells = state.arrays.occupied.shape[1]
    words = np.random.default_rng(0).integers(0, 1 << 64, (2, cells), np.uint64)
    return Turns(
        head=np.zeros((turns, snakes), np.int16),
        length=np.zeros((turns, snakes), np.int16),
        health=np.zeros((turns, snakes), np.int16),
        cause=np.zeros((turns, snakes), np.uint8),
        tail=np.zeros((turns, snakes), np.int16),
        target=np.zeros((turns, snakes), np.int16),
        food=np.zeros((turns, snakes), np.uint8),
        all_food=np.zeros((turns, cells), np.uint8),
        counts=np.zeros((turns, 2), np.int16),
        body_hash=np.zeros((turns + 1, snakes), np.uint64),
        food_hash=np.zeros(turns + 1, np.uint64),
        food_places=np.zeros((cells + 1, 3), np.int16),
        zobrist=words,
    )


def search_rules(rules: Rules) -> Rules:
    """Return the rules as a search plays them. Future random draws are unknown, so no royale wall
    moves and no food appears.
    """
    return rules._replace(royale=False)


@kernel
def link_hash(u: Turns, cell: int, onward: int) -> np.uint64:
    """Return the hash of two successive body entries, the one nearer to the tail first. So a hash
    depends on a body's order.
    """
    return u.zobrist[0, cell] * np.uint64(2 * onward + 1)


@kernel
def begin_turns(s: Boards, r: Rules, u: Turns) -> None:
    """Hash the bodies and the food of board 0 from scratch, as those of turn 0, and list the
    food.
    """
    for i in range(s.cause.shape[1]):
        u.body_hash[0, i] = 0
        if is_alive(s, 0, i):
            for entry in range(1, s.length[0, i]):
                u.body_hash[0, i] ^= link_hash(
                    u, body_cell(s, 0, i, entry), body_cell(s, 0, i, entry - 1)
                )
    u.food_hash[0] = 0
    count = 0
    for cell in range(s.food.shape[1]):
        u.food_hash[0] ^= u.zobrist[1, cell] * np.uint64(s.food[0, cell])
        if s.food[0, cell]:
            u.food_places[count, 0] = cell
            u.food_places[count, 1] = cell % (r.width + 2)
            u.food_places[count, 2] = cell // (r.width + 2)
            count += 1
    u.food_places[count, 0] = -1


@kernel
def position_hash(s: Boards, u: Turns, turn: int) -> np.uint64:
    """Return a key of the position after `turn` turns. It depends on bodies, healths, food, and who
    is alive.
    """
    key = u.food_hash[turn]
    for i in range(s.cause.shape[1]):
        if is_alive(s, 0, i):
            numbers = (
                np.uint64(s.health[0, i]) * _HEALTH
                ^ np.uint64(s.length[0, i]) * _LENGTH
                ^ np.uint64(i) * _SLOT
            )
            key ^= mix(u.body_hash[turn, i] ^ numbers)
    return key


@kernel
def play(s: Boards, r: Rules, moves: np.ndarray, u: Turns, turn: int) -> None:
    """Play turn `turn` of the search, counted from 0, on board 0 with `moves` (1, S), and note how
    to take it back.
    """
    u.counts[turn, 0] = s.num_food[0]
    u.counts[turn, 1] = s.num_alive[0]
    if r.constrictor and s.num_food[0]:
        for cell in range(s.food.shape[1]):
            u.all_food[turn, cell] = s.food[0, cell]
    for i in range(s.cause.shape[1]):
        u.cause[turn, i] = s.cause[0, i]
        if is_alive(s, 0, i):
            cell = landing(s, r, i, moves[0, i])
            u.head[turn, i] = s.head[0, i]
            u.length[turn, i] = s.length[0, i]
            u.health[turn, i] = s.health[0, i]
            u.tail[turn, i] = tail_cell(s, 0, i)
            u.target[turn, i] = cell
            u.food[turn, i] = s.food[0, cell]
    step_board(s, 0, r, moves)
    _update_hash(s, r, u, turn)


@kernel
def _update_hash(s: Boards, r: Rules, u: Turns, turn: int) -> None:
    """Write the hashes after turn `turn`, from those before it and from what the turn has
    changed.
    """
    food = u.food_hash[turn]
    if s.num_food[0] != u.counts[turn, 0]:
        for i in range(s.cause.shape[1]):
            cell = u.target[turn, i]
            if (
                u.cause[turn, i] == ALIVE
                and u.food[turn, i]
                and s.food[0, cell] == 0
                and not _is_eaten_already(u, turn, i)
            ):
                food ^= u.zobrist[1, cell] * np.uint64(u.food[turn, i])
        if r.constrictor:
            food = np.uint64(0)
    u.food_hash[turn + 1] = food
    for i in range(s.cause.shape[1]):
        if is_alive(s, 0, i):
            before = u.length[turn, i]
            key = u.body_hash[turn, i]
            # A link more at the head, and one less at the tail. Growth doubles the last entry.
            key ^= link_hash(u, body_cell(s, 0, i, 1), body_cell(s, 0, i, 0))
            last = body_cell(s, 0, i, before - 1)
            key ^= link_hash(u, u.tail[turn, i], last)
            for _ in range(s.length[0, i] - before):
                key ^= link_hash(u, last, last)
            u.body_hash[turn + 1, i] = key


@kernel
def _is_eaten_already(u: Turns, turn: int, i: int) -> bool:
    """Return whether a snake of a lower slot went to the same cell."""
    for j in range(i):
        if u.cause[turn, j] == ALIVE and u.target[turn, j] == u.target[turn, i]:
            return True
    return False


@kernel
def take_back(s: Boards, r: Rules, u: Turns, turn: int) -> None:
    """Take back turn `turn`, which must be the last one played."""
    ring = s.body.shape[2]
    if r.constrictor and u.counts[turn, 0]:
        for cell in range(s.food.shape[1]):
            s.food[0, cell] = u.all_food[turn, cell]
    for i in range(s.cause.shape[1]):
        if u.cause[turn, i] != ALIVE:
            continue
        has_died = not is_alive(s, 0, i)
        if not has_died:
            s.occupied[0, u.target[turn, i]] -= 1
            s.occupied[0, u.tail[turn, i]] += 1
            grown = s.length[0, i] - u.length[turn, i]
            if grown:
                s.occupied[0, tail_cell(s, 0, i)] -= grown
        head = u.head[turn, i]
        length = u.length[turn, i]
        s.head[0, i] = head
        s.length[0, i] = length
        s.health[0, i] = u.health[turn, i]
        s.cause[0, i] = ALIVE
        # The last entry of the body, whose ring begins anew at its end.
        place = head + length - 1
        if place >= ring:
            place -= ring
        s.body[0, i, place] = u.tail[turn, i]
        if has_died:
            for entry in range(length):
                s.occupied[0, body_cell(s, 0, i, entry)] += 1
        s.food[0, u.target[turn, i]] = u.food[turn, i]
    s.num_food[0] = u.counts[turn, 0]
    s.num_alive[0] = u.counts[turn, 1]


@kernel
def landing(s: Boards, r: Rules, i: int, move: int) -> int:
    """Return the padded cell to which a move of snake i leads."""
    target = head_cell(s, 0, i) + step_offset(r.width, move)
    if r.wrapped:
        return s.opposite[target]
    return target


@kernel
def drift(s: Boards, r: Rules, i: int) -> int:
    """Return straight on as the move of snake i, or if that is certain death, the first move that
    isn't.
    """
    straight = straight_on(s, 0, i, r)
    head = head_cell(s, 0, i)
    if not is_certain_death(s, 0, i, r, head + step_offset(r.width, straight)):
        return straight
    for move in range(4):
        if not is_certain_death(s, 0, i, r, head + step_offset(r.width, move)):
            return move
    return straight
