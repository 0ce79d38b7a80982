"""Positions to try things on: random games under any rules, and boards drawn by hand."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from envs.battlesnake.games import play_turn, start_games
from envs.battlesnake.plain import state_from_board
from envs.battlesnake.safety import safe_moves
from envs.battlesnake.settings import Rules, Settings
from envs.battlesnake.state import ALIVE, MOVE_STEPS, State


def random_games(
    *,
    num_boards: int = 8,
    turns: int = 60,
    seed: int = 0,
    width: int = 11,
    height: int = 11,
    num_snakes: int = 4,
    **settings,
) -> Iterator[State]:
    """The same state after every turn of games played by random safe moves; ended games start
    anew.
    """
    state = State(
        num_boards, width=width, height=height, num_snakes=num_snakes, settings=Settings(**settings)
    )
    state.seed(seed)
    start_games(state)
    rng = np.random.default_rng(seed)
    boards, slots = np.divmod(np.arange(num_boards * num_snakes), num_snakes)
    for _ in range(turns):
        yield state
        weights = rng.random((len(boards), 4)) * safe_moves(state, boards, slots)
        running = np.ones(num_boards, bool)
        play_turn(
            state, weights.argmax(axis=1).reshape(num_boards, num_snakes).astype(np.int8), running
        )
        if not running.all():
            start_games(state, np.flatnonzero(~running))


def living(state: State) -> tuple[np.ndarray, np.ndarray]:
    """(boards, slots) of all living snakes."""
    return np.nonzero(state.arrays.cause == ALIVE)


def neighbours(point: tuple[int, int], rules: Rules) -> Iterator[tuple[int, int]]:
    """The points beside one, on the other side where the board wraps, in the order of moves."""
    for dx, dy in MOVE_STEPS:
        x = point[0] + dx
        y = point[1] + dy
        if rules.wrapped:
            yield x % rules.width, y % rules.height
        elif 0 <= x < rules.width and 0 <= y < rules.height:
            yield x, y


def board(width: int, height: int, *bodies, food=(), hazards=(), health=100, **settings) -> State:
    """A state of one board: bodies as lists of (x, y), head first; `health` of all, or a list."""
    healths = [health] * len(bodies) if isinstance(health, int) else health
    snakes = [
        {"id": f"s{i}", "health": h, "body": [{"x": x, "y": y} for x, y in body]}
        for i, (body, h) in enumerate(zip(bodies, healths, strict=True))
    ]
    points = {
        "food": [{"x": x, "y": y} for x, y in food],
        "hazards": [{"x": x, "y": y} for x, y in hazards],
    }
    return state_from_board(
        {"turn": 5, "width": width, "height": height, "snakes": snakes, **points},
        settings=Settings(**settings),
    )
