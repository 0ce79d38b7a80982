"""Which boards and snakes each map takes, the errors for those that it doesn't take, and maps that
users add.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numba
import numpy as np

from envs.battlesnake.jit import allocating_kernel, kernel
from envs.battlesnake.jit.cache import BOUNDSCHECK
from envs.battlesnake.maps.dispatch import set_up_board, update_board
from envs.battlesnake.maps.drawings import DRAWINGS, size
from envs.battlesnake.maps.maze import SMALLEST_SIDE
from envs.battlesnake.maps.standard import (
    NO_FOOD_CELL,
    NO_START_CELL,
    OK,
    TOO_MANY_SNAKES,
    WRONG_SIZE,
    set_up_standard,
    update_standard,
)
from envs.battlesnake.settings import MAP_IDS, OFFICIAL_MAPS, STANDARD_MAP, Rules, Settings
from envs.battlesnake.state import MAX_SIDE, MAX_SNAKES, MIN_SIDE, Boards, State
from envs.common.errors import ConfigError, UnknownNameError, check_range


class Limits(NamedTuple):
    """The boards and numbers of snakes that a map can be played with."""

    sizes: tuple[tuple[int, int], ...] = ()
    """(width, height) of each board that the map can be played on; empty if it can be played on
    any.
    """
    smallest_side: int = MIN_SIDE
    most_snakes: int = MAX_SNAKES
    smallest_width: int = MIN_SIDE


class MapKernels(NamedTuple):
    """A map's kernels. Each works on many boards and takes (arrays, boards int64 (n,), rules)."""

    set_up_boards: Callable[..., int]
    """Sets up empty boards and returns `OK`, or the code of one that failed."""
    update_boards: Callable[..., None]


LIMITS = {name: Limits() for name in OFFICIAL_MAPS}
for _name, _most in zip(DRAWINGS, (8, 8, 12, 8, 12, 12, 4, 16, 6), strict=True):
    LIMITS[_name] = Limits(sizes=(size(_name),), most_snakes=_most)
LIMITS["healing_pools"] = Limits(sizes=((7, 7), (11, 11), (19, 19)))
LIMITS["hz_hazard_pits"] = Limits(sizes=((11, 11),), most_snakes=4)
LIMITS["hz_grow_box"] = Limits(smallest_side=4)
# Both coordinates of its first cell are drawn from the width, so it can be played on any height.
LIMITS["hz_expand_box"] = Limits(smallest_width=4)
LIMITS["solo_maze"] = Limits(smallest_side=SMALLEST_SIDE, most_snakes=1)

_USER_MAPS: dict[str, MapKernels] = {}
_SET_UP_FAILURES = {
    NO_START_CELL: "has too few start cells for {n} snakes on {size}",
    NO_FOOD_CELL: "has no room for the first food of {n} snakes on {size}",
    TOO_MANY_SNAKES: "holds at most 8 snakes on {size}, not {n}",
    WRONG_SIZE: "cannot be laid out on {size}",
}


def check_board(map: str, *, width: int, height: int, num_snakes: int) -> None:
    """Raise `UnknownNameError` for a map that doesn't exist, `ConfigError` for one that can't be
    played on such a board.
    """
    if map not in MAP_IDS:
        raise UnknownNameError("map", map, MAP_IDS)
    limits = LIMITS[map]
    if limits.sizes and (width, height) not in limits.sizes:
        its_sizes = " or ".join(f"{w}x{h}" for w, h in limits.sizes)
        raise ConfigError(
            f"width x height is {width}x{height}; map {map!r} is made for {its_sizes} only"
        )
    if min(width, height) < limits.smallest_side:
        raise ConfigError(
            f"width x height is {width}x{height}; map {map!r} needs {limits.smallest_side} or more"
            " on both sides"
        )
    if width < limits.smallest_width:
        raise ConfigError(
            f"width x height is {width}x{height}; map {map!r} needs a width of"
            f" {limits.smallest_width} or more"
        )
    if num_snakes > limits.most_snakes:
        raise ConfigError(
            f"num_snakes is {num_snakes}; map {map!r} takes at most {limits.most_snakes}"
        )


def check_game(settings: Settings, *, width: int, height: int, num_snakes: int) -> None:
    """Raise what `check_board` raises, and `ConfigError` for sizes that no game has and games that
    stand still or never end.
    """
    for name, side in (("width", width), ("height", height)):
        check_range(name, side, MIN_SIDE, MAX_SIDE)
    check_range("num_snakes", num_snakes, 1, MAX_SNAKES)
    check_board(settings.map, width=width, height=height, num_snakes=num_snakes)
    if settings.map in ("royale", "hz_hazard_pits") and settings.shrink_every_n_turns < 1:
        raise ConfigError(
            f"shrink_every_n_turns is {settings.shrink_every_n_turns}; map {settings.map!r} needs 1"
            " or more (usual: 25)"
        )
    if settings.map == "solo_maze" and settings.rules(width, height).constrictor:
        raise ConfigError(
            f"ruleset {settings.ruleset!r} takes the food away each turn, which on map 'solo_maze'"
            " means a new maze each turn for ever; choose another ruleset (usual: 'solo')"
        )


def check_set_up(code: int, map_name: str, width: int, height: int, num_snakes: int) -> None:
    """Raise `ConfigError` for the code of a set-up that failed."""
    if code != OK:
        what = _SET_UP_FAILURES.get(
            code, f"refused {{n}} snakes on {{size}} (its set-up returned {code})"
        )
        raise ConfigError(
            f"map {map_name!r} " + what.format(n=num_snakes, size=f"{width}x{height}")
        )


def set_up(state: State, boards: np.ndarray) -> None:
    """Lay out new games on the empty `boards`, integers (n,), by the map of the state's settings,
    official or a user's.

    Raises `ConfigError` if the map can't be played on such boards.
    """
    name = state.settings.map
    size_and_count = (state.width, state.height, state.num_snakes)
    check_board(name, width=state.width, height=state.height, num_snakes=state.num_snakes)
    check_set_up(
        _kernels(name).set_up_boards(state.arrays, np.asarray(boards), state.rules),
        name,
        *size_and_count,
    )


def update(state: State, boards: np.ndarray) -> None:
    """Do what the map, official or a user's, does on `boards`, integers (n,), at the end of a turn.
    Turn numbers stay.

    The state's size must be one of the map's, which `check_board` tells: the kernels write to the
    map's own cells unchecked."""
    _kernels(state.settings.map).update_boards(state.arrays, np.asarray(boards), state.rules)


def register_map(
    name: str,
    set_up: Callable[..., int],
    update: Callable[..., None],
    *,
    sizes: tuple[tuple[int, int], ...] = (),
    smallest_side: int = MIN_SIDE,
    most_snakes: int = MAX_SNAKES,
) -> None:
    """Add a map of your own. `Settings(map=name)` then plays it. Check it with
    `envs.battlesnake.compliance.check_map`.

    `set_up(s, b, r)` lays out a new game on the empty board b: it places one snake per slot and
    returns 0, or another number if it can't. `update(s, b, r)` does the map's part at the end of a
    turn. Here s is a `Boards` and r the `Rules`. Both functions are written with `@kernel` from
    `envs.battlesnake.jit`, or with `@allocating_kernel` if they need scratch arrays, and may
    use the helpers of `envs.battlesnake.state` and `envs.battlesnake.maps.standard`. They must draw
    random numbers by `rng.draw(s.key[b], …)` only, so that games can be repeated.

    Raises `ConfigError` if the name is an official map's, or if the limits allow no game. A user's
    own name can be registered again."""
    if name in OFFICIAL_MAPS:
        raise ConfigError(f"map {name!r} is an official one; register yours under another name")
    if not MIN_SIDE <= smallest_side <= MAX_SIDE or not 1 <= most_snakes <= MAX_SNAKES:
        raise ConfigError(
            f"smallest_side is {smallest_side} and most_snakes {most_snakes}; "
            f"they are within {MIN_SIDE}..{MAX_SIDE} and 1..{MAX_SNAKES}"
        )
    _USER_MAPS[name] = _over_boards(set_up, update)
    LIMITS[name] = Limits(sizes, smallest_side, most_snakes)
    MAP_IDS.setdefault(name, len(MAP_IDS))


def _over_boards(set_up_one: Callable[..., int], update_one: Callable[..., None]) -> MapKernels:
    """Loops over boards, compiled but not cached on disk: Numba can't know when a user's kernel has
    changed.
    """

    @numba.njit(nogil=True, boundscheck=BOUNDSCHECK)
    def set_up_boards(s: Boards, boards: np.ndarray, r: Rules) -> int:
        for b in boards:
            code = set_up_one(s, b, r)
            if code != OK:
                return code
        return OK

    @numba.njit(nogil=True, boundscheck=BOUNDSCHECK)
    def update_boards(s: Boards, boards: np.ndarray, r: Rules) -> None:
        for b in boards:
            update_one(s, b, r)

    return MapKernels(set_up_boards, update_boards)


@allocating_kernel
def _set_up_standard_boards(s: Boards, boards: np.ndarray, r: Rules) -> int:
    code = 0
    for b in boards:
        code = max(code, set_up_standard(s, b, r))
    return code


@kernel
def _update_standard_boards(s: Boards, boards: np.ndarray, r: Rules) -> None:
    for b in boards:
        update_standard(s, b, r)


@allocating_kernel
def _set_up_official_boards(s: Boards, boards: np.ndarray, r: Rules) -> int:
    code = 0
    for b in boards:
        code = max(code, set_up_board(s, b, r))
    return code


@allocating_kernel
def _update_official_boards(s: Boards, boards: np.ndarray, r: Rules) -> None:
    for b in boards:
        update_board(s, b, r)


# Compiling all 25 maps takes a minute, so programs that play only the standard one don't.
_STANDARD = MapKernels(_set_up_standard_boards, _update_standard_boards)
_OFFICIAL = MapKernels(_set_up_official_boards, _update_official_boards)


def _kernels(name: str) -> MapKernels:
    if name == STANDARD_MAP:
        return _STANDARD
    return _USER_MAPS.get(name, _OFFICIAL)
