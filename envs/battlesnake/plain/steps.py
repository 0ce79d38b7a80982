"""The engine's steps on plain boards, for tools, teaching and checking. They run the same rules as
the batch.

Settings are a dict of integers, or of strings that hold integers: `foodSpawnChance`, `minimumFood`,
`damagePerTurn` (or `hazardDamagePerTurn`), `shrinkEveryNTurns`. A missing setting has the default
of the official rules package. Any integer is accepted; one that is out of range becomes the nearest
value that `Settings` allows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from envs.battlesnake import maps, rng
from envs.battlesnake.plain.board import Board, is_dead
from envs.battlesnake.plain.conversion import board_from_state, state_from_board
from envs.battlesnake.rules import initialise_board, is_over, step_board
from envs.battlesnake.settings import Settings, within_limits
from envs.battlesnake.state import MOVE_NAMES, State
from envs.common.errors import InvalidActionError, whole_seed

_STRAIGHT_ON = -1
"""A number that is no move, for which the rules take the default."""
_ROYALE_PERIOD = 20
"""How many turns royale's wall stands still, where the settings don't say it."""


def ruleset_step(
    board: Board,
    moves: Sequence[str | None],
    *,
    ruleset: str = "standard",
    settings: Mapping[str, Any] | None = None,
    solo: bool = False,
    seed: int = 0,
) -> tuple[bool, Board]:
    """Play one step of the ruleset alone. The map isn't updated, and the turn number stays.

    `moves` has one entry per snake, in the order of the list: "up", "down", "left" or "right", and
    None for dead snakes. Any other string means straight on. An empty list on a board of turn 0 is
    the official initialisation step.

    Returns (over, board). `over` is True if the game was over before the step; the board is then
    unchanged. Raises `InvalidActionError` for a missing move, and `InvalidStateError` for a board
    that no game can have."""
    state = state_from_board(board, settings=_settings(settings, ruleset=ruleset, solo=solo))
    rules = state.rules
    if is_over(state.arrays, 0, rules):
        return True, _copy(board)
    _seed(state, seed)
    if not moves and state.arrays.turn[0] == 0:
        initialise_board(state.arrays, 0, rules)
    else:
        step_board(state.arrays, 0, rules, _move_numbers(board, moves))
    return False, _board_after(board, state)


def setup_board(
    *,
    map: str = "standard",
    width: int = 11,
    height: int = 11,
    snake_ids: Sequence[str] = ("a", "b"),
    settings: Mapping[str, Any] | None = None,
    seed: int = 0,
) -> Board:
    """Return the board that a map lays out for a new game. Raises `ConfigError` if the map has no
    room for so many snakes.
    """
    state = State(
        1,
        width=width,
        height=height,
        num_snakes=len(snake_ids),
        settings=_settings(settings, map=map),
    )
    _seed(state, seed)
    maps.set_up(state, np.arange(1))
    return board_from_state(state, 0, list(snake_ids))


def map_update(
    board: Board, *, map: str = "standard", settings: Mapping[str, Any] | None = None, seed: int = 0
) -> Board:
    """Do only what the map does at the end of a turn: food and hazards may appear or vanish. The
    turn number stays.

    Raises `ConfigError` for a board that the map isn't made for.
    """
    state = state_from_board(board, settings=_settings(settings, map=map))
    maps.check_board(map, width=state.width, height=state.height, num_snakes=len(board["snakes"]))
    _seed(state, seed)
    maps.update(state, np.arange(1))
    return _board_after(board, state)


def _move_numbers(board: Board, moves: Sequence[str | None]) -> np.ndarray:
    """Return the moves as int8 (1, snakes). Raises `InvalidActionError` if one is missing."""
    if len(moves) != len(board["snakes"]):
        raise InvalidActionError(
            f"moves has {len(moves)} entries for {len(board['snakes'])} snakes; give one each"
        )
    numbers = np.full((1, len(moves)), _STRAIGHT_ON, np.int8)
    for slot, (snake, move) in enumerate(zip(board["snakes"], moves, strict=True)):
        if move is None and not is_dead(snake):
            raise InvalidActionError(
                f"no move for snake {snake['id']!r}, which is alive; None is for the dead"
            )
        if move in MOVE_NAMES:
            numbers[0, slot] = MOVE_NAMES.index(move)
    return numbers


def _settings(
    numbers: Mapping[str, Any] | None,
    *,
    ruleset: str = "standard",
    map: str = "standard",
    solo: bool = False,
) -> Settings:
    """Read settings as the official engine reads them."""
    numbers = numbers or {}
    shrink_default = _ROYALE_PERIOD if "royale" in (ruleset, map) else 0
    damage = _integer(numbers, "damagePerTurn", _integer(numbers, "hazardDamagePerTurn", 0))
    fields = {
        "food_spawn_chance": _integer(numbers, "foodSpawnChance", 0),
        "minimum_food": _integer(numbers, "minimumFood", 0),
        "hazard_damage": damage,
        "shrink_every_n_turns": _integer(numbers, "shrinkEveryNTurns", shrink_default),
    }
    return Settings(
        ruleset=ruleset,
        map=map,
        solo=solo,
        **{name: within_limits(name, value) for name, value in fields.items()},
    )


def _integer(numbers: Mapping[str, Any], name: str, default: int) -> int:
    """Return a setting. As in the official engine, the default stands for what is absent or no
    integer.
    """
    try:
        return int(numbers[name])
    except (KeyError, TypeError, ValueError):
        return default


def _seed(state: State, seed: int) -> None:
    state.arrays.key[0] = rng.mix(np.uint64(whole_seed(seed) & 0xFFFFFFFFFFFFFFFF))


def _board_after(before: Board, state: State) -> Board:
    """Return the board of the state, with whatever else the caller's dicts carried."""
    after = board_from_state(state, 0, [snake["id"] for snake in before["snakes"]])
    after["snakes"] = [
        {**old, **new} for old, new in zip(before["snakes"], after["snakes"], strict=True)
    ]
    return {**before, **after}


def _copy(board: Board) -> Board:
    return {**board, "snakes": [snake.copy() for snake in board["snakes"]]}
