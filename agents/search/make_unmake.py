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
    """What is needed to take turns back, with one row per turn: T turns, S slots, C padded cells.
    `reg` counts played turns.
    """

    head: np.ndarray  # int16 (T, S)
    length: np.ndarray  # int16 (T, S)
    health: np.ndarray  # int16 (T, S)
    cause: np.ndarray  # uint8 (T, S)
    tail: np.ndarray  # int16 (T, S): cell of the last entry, which growth overwrites
    target: np.ndarray  # int16 (T, S): where the head went
    food: np.ndarray  # uint8 (T, S): how much food lay there
    all_food: (
        np.ndarray
    )  # uint8 (T, C): kept where a constrictor game is about to take all food away
    counts: np.ndarray  # int16 (T, 2): num_food, num_alive
    body_hash: np.ndarray  # uint64 (T + 1, S)
    food_hash: np.ndarray  # uint64 (T + 1,)
    zobrist: np.ndarray  # uint64 (2, C): a random number for a body entry on the cell, and for food


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
def start_hash(s: Boards, u: Turns) -> None:
    """Hash the bodies and the food of board 0 from scratch, as those of turn 0."""
    for i in range(s.cause.shape[1]):
        u.body_hash[0, i] = 0
        if is_alive(s, 0, i):
            for entry in range(1, s.length[0, i]):
                u.body_hash[0, i] ^= link_hash(
                    u, body_cell(s, 0, i, entry), body_cell(s, 0, i, entry - 1)
                )
    u.food_hash[0] = 0
    for cell in range(s.food.shape[1]):
        u.food_hash[0] ^= u.zobrist[1, cell] * np.uint64(s.food[0, cell])


@kernel
def position_hash(s: Boards, u: Turns, t: int) -> np.uint64:
    """Return a key of the position after t turns. It depends on bodies, healths, food, and who is
    alive.
    """
    key = u.food_hash[t]
    for i in range(s.cause.shape[1]):
        if is_alive(s, 0, i):
            numbers = (
                np.uint64(s.health[0, i]) * _HEALTH
                ^ np.uint64(s.length[0, i]) * _LENGTH
                ^ np.uint64(i) * _SLOT
            )
            key ^= mix(u.body_hash[t, i] ^ numbers)
    return key


@kernel
def play(s: Boards, r: Rules, moves: np.ndarray, u: Turns, t: int) -> None:
    """Play turn t of the search, counted from 0, on board 0 with `moves` (1, S), and note how to
    take it back.
    """
    u.counts[t, 0], u.counts[t, 1] = s.num_food[0], s.num_alive[0]
    if r.constrictor and s.num_food[0]:
        for cell in range(s.food.shape[1]):
            u.all_food[t, cell] = s.food[0, cell]
    for i in range(s.cause.shape[1]):
        u.cause[t, i] = s.cause[0, i]
        if is_alive(s, 0, i):
            ahead = head_cell(s, 0, i) + step_offset(r.width, moves[0, i])
            cell = s.opposite[ahead] if r.wrapped else ahead
            u.head[t, i], u.length[t, i], u.health[t, i] = (
                s.head[0, i],
                s.length[0, i],
                s.health[0, i],
            )
            u.tail[t, i], u.target[t, i], u.food[t, i] = tail_cell(s, 0, i), cell, s.food[0, cell]
    step_board(s, 0, r, moves)
    _update_hash(s, r, u, t)


@kernel
def _update_hash(s: Boards, r: Rules, u: Turns, t: int) -> None:
    food = u.food_hash[t]
    if s.num_food[0] != u.counts[t, 0]:
        for i in range(s.cause.shape[1]):
            cell = u.target[t, i]
            if (
                u.cause[t, i] == ALIVE
                and u.food[t, i]
                and s.food[0, cell] == 0
                and not _seen(u, t, i)
            ):
                food ^= u.zobrist[1, cell] * np.uint64(u.food[t, i])
        if r.constrictor:
            food = np.uint64(0)
    u.food_hash[t + 1] = food
    for i in range(s.cause.shape[1]):
        if is_alive(s, 0, i):
            before = u.length[t, i]
            key = u.body_hash[t, i]
            key ^= link_hash(u, body_cell(s, 0, i, 1), body_cell(s, 0, i, 0))
            last = body_cell(s, 0, i, before - 1)
            key ^= link_hash(u, u.tail[t, i], last)
            for _ in range(s.length[0, i] - before):
                key ^= link_hash(u, last, last)
            u.body_hash[t + 1, i] = key


@kernel
def _seen(u: Turns, t: int, i: int) -> bool:
    """Whether a snake of a lower slot went to the same cell."""
    for j in range(i):
        if u.cause[t, j] == ALIVE and u.target[t, j] == u.target[t, i]:
            return True
    return False


@kernel
def take_back(s: Boards, r: Rules, u: Turns, t: int) -> None:
    """Take back turn t, which must be the last one played."""
    ring = s.body.shape[2]
    if r.constrictor and u.counts[t, 0]:
        for cell in range(s.food.shape[1]):
            s.food[0, cell] = u.all_food[t, cell]
    for i in range(s.cause.shape[1]):
        if u.cause[t, i] != ALIVE:
            continue
        died = not is_alive(s, 0, i)
        if not died:
            s.occupied[0, u.target[t, i]] -= 1
            s.occupied[0, u.tail[t, i]] += 1
            grown = s.length[0, i] - u.length[t, i]
            if grown:
                s.occupied[0, tail_cell(s, 0, i)] -= grown
        head = u.head[t, i]
        length = u.length[t, i]
        s.head[0, i], s.length[0, i], s.health[0, i] = head, length, u.health[t, i]
        s.cause[0, i] = ALIVE
        place = head + length - 1
        s.body[0, i, place - ring if place >= ring else place] = u.tail[t, i]
        if died:
            for entry in range(length):
                s.occupied[0, body_cell(s, 0, i, entry)] += 1
        s.food[0, u.target[t, i]] = u.food[t, i]
    s.num_food[0], s.num_alive[0] = u.counts[t, 0], u.counts[t, 1]


@kernel
def drift(s: Boards, r: Rules, i: int) -> int:
    """Return the move of a snake that isn't searched: straight on, or if that is certain death, the
    first move that isn't.
    """
    straight = straight_on(s, 0, i, r)
    head = head_cell(s, 0, i)
    if not is_certain_death(s, 0, i, r, head + step_offset(r.width, straight)):
        return straight
    for move in range(4):
        if not is_certain_death(s, 0, i, r, head + step_offset(r.width, move)):
            return move
    return straight
