"""Checks for people who write a map or a ruleset: they play many games on it and test that every
board is one a game can have.

from envs.battlesnake.compliance import check_map
register_map("my_map", set_up, update)
check_map("my_map", width=11, height=11, num_snakes=4)
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from envs.battlesnake import maps
from envs.battlesnake.rules import initialise_board, is_over, step_board
from envs.battlesnake.settings import Settings
from envs.battlesnake.state import ABSENT, ALIVE, FULL_HEALTH, Boards, State
from envs.common.errors import ComplianceError

Step = Callable[..., None]


def check_map(
    name: str,
    *,
    width: int = 11,
    height: int = 11,
    num_snakes: int = 4,
    num_games: int = 32,
    num_turns: int = 200,
    seed: int = 0,
    **settings: Any,
) -> None:
    """Play `num_games` games with random moves on a map, official or registered, for up to
    `num_turns` turns each.

    The check requires that the set-up puts a living snake of full health into every slot; that
    counts, bodies, food and hazards agree after every turn (`check_state`); that the map changes
    neither the turn number nor the random keys; and that the same seed gives the same games.
    `settings` are fields of `Settings`.

    Raises `ComplianceError` if one of these fails, and `ConfigError` if the map refuses such games.
    """
    rules = Settings(map=name, solo=settings.pop("solo", num_snakes == 1), **settings)
    maps.check_game(rules, width=width, height=height, num_snakes=num_snakes)
    games = partial(State, width=width, height=height, num_snakes=num_snakes, settings=rules)
    first = _play(games(num_games), seed, num_turns, step_board, f"map {name!r}")
    second = _play(games(num_games), seed, num_turns, step_board, f"map {name!r}")
    _require_equal(
        first,
        second,
        f"map {name!r}: the same seed gave two different games; draw by rng.draw(s.key[b], …) only",
    )
    alone = _play(games(1), seed, num_turns, step_board, f"map {name!r}")
    _require_equal(
        first.select(np.arange(1)), alone, f"map {name!r}: board 0 differs if it is played alone"
    )


def check_ruleset(
    step: Step = step_board,
    *,
    settings: Settings | None = None,
    width: int = 11,
    height: int = 11,
    num_snakes: int = 4,
    num_games: int = 32,
    num_turns: int = 200,
    seed: int = 0,
) -> None:
    """Play games with random moves by `step(s, b, r, moves)`, a kernel like
    `envs.battlesnake.rules.step_board`.

    After every turn the check requires what `check_state` does; that dead snakes stay dead with the
    same cause; that a snake that dies gets this turn's number; and that no head moves farther than
    one cell. The same seed must give the same games.

    Raises `ComplianceError` if one of these fails.
    """
    settings = settings or Settings(solo=num_snakes == 1)
    games = partial(
        State, num_games, width=width, height=height, num_snakes=num_snakes, settings=settings
    )
    first, second = (_play(games(), seed, num_turns, step, "the ruleset") for _ in range(2))
    _require_equal(
        first,
        second,
        "the ruleset: the same seed gave two different games; draw by rng.draw(s.key[b], …) only",
    )


def check_state(state: State, *, what: str = "the state") -> None:
    """Raise `ComplianceError` unless counts agree with cells, and bodies with occupancy, and all
    numbers are in range.

    `what` begins the message.
    """
    a = state.arrays
    size = f"{state.width}x{state.height}"
    present = a.cause != ABSENT
    alive = a.cause == ALIVE
    _require((a.cause <= ABSENT).all(), what, "cause", "holds an unknown cause of death")
    _require(
        ((a.health >= 0) & (a.health <= FULL_HEALTH)).all(),
        what,
        "health",
        f"leaves 0..{FULL_HEALTH}",
    )
    fits = (a.length >= 1) & (a.length <= a.body.shape[2])
    _require((fits | ~present).all(), what, "length", f"leaves 1..{a.body.shape[2]}")
    _require(
        ((a.killer >= -1) & (a.killer < state.num_snakes)).all(), what, "killer", "names no slot"
    )
    _require((a.hazards >= 0).all(), what, "hazards", "falls below zero")
    off_board = np.arange(a.opposite.size) != a.opposite
    for name in ("food", "hazards", "occupied"):
        _require(
            not getattr(a, name)[:, off_board].any(),
            what,
            name,
            f"has entries off the {size} board",
        )
    _require(
        (a.num_alive == alive.sum(1)).all(), what, "num_alive", "is not the number of living snakes"
    )
    _require((a.num_food == a.food.sum(1)).all(), what, "num_food", "is not the food on the board")
    _require(
        (a.num_hazards == a.hazards.sum(1)).all(),
        what,
        "num_hazards",
        "is not the hazard layers on the board",
    )
    occupied = np.zeros_like(a.occupied)
    ring = a.body.shape[2]
    for b, i in np.argwhere(alive):
        cells = a.body[b, i, (a.head[b, i] + np.arange(a.length[b, i])) % ring]
        np.add.at(occupied[b], cells, 1)
    _require(
        (occupied == a.occupied).all(), what, "occupied", "is not the body entries of living snakes"
    )


def _play(state: State, seed: int, num_turns: int, step: Step, what: str) -> State:
    """Set up all boards and play them with random moves that depend on (seed, board, turn)
    alone.
    """
    state.seed(seed)
    maps.set_up(state, np.arange(state.num_boards))
    a = state.arrays
    r = state.rules
    check_state(state, what=f"{what}, set-up")
    started = (a.cause == ALIVE) & (a.health == FULL_HEALTH)
    _require(
        started.all(), f"{what}, set-up", "cause", "is not ALIVE with full health in every slot"
    )
    for b in range(state.num_boards):
        initialise_board(a, b, r)
    moves = np.empty((state.num_boards, state.num_snakes), np.int8)
    for turn in range(num_turns):
        running = np.flatnonzero([not is_over(a, b, r) for b in range(state.num_boards)])
        if not len(running):
            break
        for b in running.tolist():
            moves[b] = np.random.default_rng((seed, b, turn)).integers(0, 4, state.num_snakes)
        before = Boards(*(array.copy() for array in a))
        for b in running.tolist():
            step(a, b, r, moves)
        _check_step(before, state, turn, f"{what}, turn {turn}")
        keys = a.turn.copy(), a.key.copy()
        maps.update(state, running)
        same = np.array_equal(keys[0], a.turn) and np.array_equal(keys[1], a.key)
        _require(same, f"{what}, turn {turn}", "turn or key", "was changed by the map")
        check_state(state, what=f"{what}, turn {turn}, after the map's update")
        a.turn[running] += 1
    return state


def _check_step(before: Boards, state: State, turn: int, what: str) -> None:
    a = state.arrays
    check_state(state, what=what)
    was_dead = (before.cause != ALIVE) & (before.cause != ABSENT)
    _require(
        (a.cause == before.cause)[was_dead].all(), what, "cause", "of a dead snake was changed"
    )
    died = (before.cause == ALIVE) & (a.cause != ALIVE)
    _require(
        (a.death_turn[died] == turn + 1).all(),
        what,
        "death_turn",
        f"is not {turn + 1} for a snake that died",
    )
    boards, slots = np.nonzero((before.cause == ALIVE) & (a.cause == ALIVE))
    old = before.body[boards, slots, before.head[boards, slots]].astype(int)
    new = a.body[boards, slots, a.head[boards, slots]].astype(int)
    stride = state.width + 2
    away_x = np.abs(new % stride - old % stride)
    away_y = np.abs(new // stride - old // stride)
    wrapped_x = np.minimum(away_x, state.width - away_x)
    wrapped_y = np.minimum(away_y, state.height - away_y)
    _require(
        (np.abs(wrapped_x) + np.abs(wrapped_y) <= 1).all(),
        what,
        "body",
        "moved a head by more than one cell",
    )


def _require(holds: bool | np.bool_, what: str, array: str, trouble: str) -> None:
    if not holds:
        raise ComplianceError(f"{what}: {array} {trouble}")


def _require_equal(one: State, other: State, message: str) -> None:
    for name, array in one.arrays._asdict().items():
        if name != "body" and not np.array_equal(array, getattr(other.arrays, name)):
            raise ComplianceError(f"{message} (first difference in {name})")
