"""What a snake sees: planes of small integers, from the snake's own point of view."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any, Protocol

import numpy as np
from gymnasium.spaces import Box

from envs.battlesnake.jit import kernel
from envs.battlesnake.observing.painting import (
    MAX_COUNT,
    PLANES,
    REACH_PLANES,
    Scene,
    View,
    list_scene,
    make_pictures,
    make_scene,
    make_view,
    paint_observation,
)
from envs.battlesnake.observing.starter_pack import KINDS, StarterPackObservation
from envs.battlesnake.rules import straight_on
from envs.battlesnake.safety import safe_moves
from envs.battlesnake.settings import Rules
from envs.battlesnake.state import MAX_SIDE, UP, Boards, State
from envs.common.errors import (
    ConfigError,
    ProcsnakeError,
    UnknownNameError,
    check_range,
    check_switch,
)
from envs.common.parts import Parts

# Brings each plane to about 0..1 for a network's first layer: float = uint8 * scale.
PLANE_SCALES = (1.0, 1.0, 0.25, 0.01, 0.05, 0.05, 0.01, 0.01, 1 / 21, 1.0, 1 / 3, 1.0)
REACH_PLANE_SCALES = (1 / 64, 1 / 32, 1.0, 1 / 128)

_LEFT_AHEAD_RIGHT = np.array([[2, 0, 3], [3, 1, 2], [1, 2, 0], [0, 3, 1]], np.int8)
_EGOCENTRIC = "egocentric-planes"


@dataclass(frozen=True, kw_only=True)
class EgocentricPlanes:
    """The observation uint8 (rows, columns, 12), or 16 with `reach`: the board as one snake sees
    it.

    ===================== ========================================================================
    plane                 value of a cell
    ===================== ========================================================================
    `edge`                1 on the cells just off the board; 0 if the board is wrapped or `view` is
                          "board"
    `food`                how many pieces of food lie there
    `hazard`              how many hazard layers lie there
    `my_head`             on this snake's head: its health, 1..100
    `my_body`             turns until the cell is free if the snake does not eat: 1 at the tail, its
                          length at the head
    `other_body`          the same for all other living snakes
    `stronger_head`       on heads of snakes that are at least as long, so that they win or draw
                          head to head: their health
    `weaker_head`         on heads of shorter snakes: their health
    `length_difference`   on heads of other snakes: 11 + own length - theirs, limited to 1..21
    `stacked_tail`        1 on each tail, of any snake, that will stay on its cell next turn
    `opponents`           on this snake's head: the number of other living snakes
    `threat`              1 where a snake with a `stronger_head` can go next turn
    ===================== ========================================================================

    With `reach`, there is also what this snake reaches (`envs.battlesnake.reach`) from each cell
    beside its head, unless moving there is certain death:

    ===================== ========================================================================
    `space`               cells that it reaches alive from there, if tails move on and nobody eats
    `reached_first`       those that it reaches before any other snake could; of two at once the
                          longer one is first
    `roomy`               1 if `space` is at least its length
    `near_food`           255 divided by the moves to the nearest food that it reaches first; 0 if
                          there is none
    ===================== ========================================================================

    All values are capped at 255. Row 0 is the top of the picture.
    """

    view: str = "window"
    """"window" is a square with this snake's head in the middle. "board" is the whole board as it
    is, with four actions: up, down, left, right.
    """
    radius: int | None = None
    """The number of cells that a window shows on each side of the head. By default it is just large
    enough to show the whole board wherever the head is.
    """
    rotate: bool = False
    """Turn the window so that the snake heads up. There are then three actions: left, ahead, right.
    A snake that has not moved yet counts as heading up.
    """
    cyclic: bool = False
    """Shift the board cyclically until the head is in the middle. A window with a `radius` of at
    least half the board's longer side then shows all of it: what is cut off on one side appears on
    the other, beyond the marks of `edge`.
    """
    reach: bool = False
    """Add the four planes of what this snake reaches."""

    def __post_init__(self) -> None:
        if self.view not in ("window", "board"):
            raise UnknownNameError("view", self.view, ("window", "board"))
        if self.radius is not None:
            object.__setattr__(self, "radius", check_range("radius", self.radius, 1, MAX_SIDE - 1))
            if self.view == "board":
                raise ConfigError(
                    f"radius is {self.radius}; only view='window' has one, view='board' shows the"
                    " whole board"
                )
        for switch in ("rotate", "cyclic", "reach"):
            check_switch(switch, getattr(self, switch))
        if self.rotate and self.view == "board":
            raise ConfigError(
                "rotate=True needs view='window': a board that is shown whole is not turned"
            )
        if self.cyclic and self.view == "board":
            raise ConfigError(
                "cyclic=True needs view='window': a board that is shown whole is not shifted"
            )

    @property
    def num_actions(self) -> int:
        """The number of actions: 3 (left, ahead, right) if rotated, otherwise 4 (up, down, left,
        right).
        """
        if self.rotate:
            return 3
        return 4

    def contract(self) -> dict[str, Any]:
        """Return a JSON-able description from which `observation_from_contract` makes an equal
        object.
        """
        # The champions' cards leave out what is off.
        options = {
            name: value
            for name, value in asdict(self).items()
            if value or name not in ("cyclic", "reach")
        }
        return {"type": _EGOCENTRIC, "version": 1, **options}

    def space(self, width: int, height: int) -> Box:
        """Return the observation space on a board of that size."""
        return Box(0, MAX_COUNT, (*self._shape(width, height), self._num_planes), np.uint8)

    def observe(self, state: State, boards: np.ndarray, slots: np.ndarray) -> np.ndarray:
        """Return what the snakes in `slots` (n,) of `boards` (n,) see: uint8 (n, rows, columns,
        12), or 16 with `reach`.
        """
        view = self.kernel_view(state.width, state.height, state.rules.wrapped)
        pictures = make_pictures(len(boards), view.size)
        scene = make_scene(state, 1)
        _observe_rows(
            state.arrays, state.rules, np.asarray(boards), np.asarray(slots), view, scene, pictures
        )
        return pictures[:, : view.size].reshape(
            len(boards), *self._shape(state.width, state.height), self._num_planes
        )

    def plane_scales(self) -> list[float]:
        """Return one factor per plane that brings it to about 0..1 for a network's first layer."""
        if self.reach:
            return [*PLANE_SCALES, *REACH_PLANE_SCALES]
        return list(PLANE_SCALES)

    def action_mask(self, state: State, boards: np.ndarray, slots: np.ndarray) -> np.ndarray:
        """Return bool (n, num_actions): False where an action is certain death. If every action is,
        all are True.
        """
        mask = safe_moves(state, boards, slots)
        if not self.rotate:
            return mask
        mask = np.take_along_axis(
            mask, _LEFT_AHEAD_RIGHT[headings(state, boards, slots)].astype(np.int64), axis=1
        )
        return mask | ~mask.any(axis=1, keepdims=True)

    def to_moves(
        self, state: State, boards: np.ndarray, slots: np.ndarray, actions: np.ndarray
    ) -> np.ndarray:
        """Translate actions (n,), as this observation numbers them, into moves on the board, int8
        (n,).
        """
        if not self.rotate:
            return np.asarray(actions).astype(np.int8)
        return _LEFT_AHEAD_RIGHT[headings(state, boards, slots), actions]

    def kernel_view(self, width: int, height: int, wrapped: bool) -> View:
        """Return the kernels' form of this observation type for boards of that size."""
        radius = None
        if self.view == "window":
            radius = self._shape(width, height)[0] // 2
        return make_view(width, height, wrapped, radius, self.rotate, self.cyclic, self.reach)

    @property
    def _num_planes(self) -> int:
        if self.reach:
            return len(PLANES) + len(REACH_PLANES)
        return len(PLANES)

    def _shape(self, width: int, height: int) -> tuple[int, int]:
        if self.view == "board":
            return height, width
        side = 2 * (self.radius or max(width, height) - 1) + 1
        return side, side


class Observation(Protocol):
    """The methods that an observation type has; `EgocentricPlanes` documents them.

    An observation type of your own inherits most of them from `OwnObservation`.
    """

    @property
    def num_actions(self) -> int: ...

    def contract(self) -> dict[str, Any]: ...

    def space(self, width: int, height: int) -> Box: ...

    def observe(self, state: State, boards: np.ndarray, slots: np.ndarray) -> np.ndarray: ...

    def action_mask(self, state: State, boards: np.ndarray, slots: np.ndarray) -> np.ndarray: ...

    def to_moves(
        self, state: State, boards: np.ndarray, slots: np.ndarray, actions: np.ndarray
    ) -> np.ndarray: ...


class OwnObservation:
    """What an observation type of a user's own inherits. It adds `space` and `observe`, and options
    as a dataclass's fields.

    Actions are moves on the board: up, down, left, right. The contract holds the class's name and
    the fields."""

    num_actions = 4

    def contract(self) -> dict[str, Any]:
        """Return a JSON-able description from which `observation_from_contract` makes an equal
        object.
        """
        return {"type": _TYPES.name_of(type(self)), "version": 1, **vars(self)}

    def action_mask(self, state: State, boards: np.ndarray, slots: np.ndarray) -> np.ndarray:
        """Return bool (n, 4): False where a move is certain death. If every move is, all are
        True.
        """
        return safe_moves(state, boards, slots)

    def to_moves(
        self, state: State, boards: np.ndarray, slots: np.ndarray, actions: np.ndarray
    ) -> np.ndarray:
        """Return the actions as int8 (n,): they are moves on the board already."""
        return np.asarray(actions).astype(np.int8)


_TYPES = Parts(
    "observation type",
    "procsnake.observations",
    {
        _EGOCENTRIC: EgocentricPlanes,
        **{kind: partial(StarterPackObservation, kind) for kind in KINDS},
    },
)


def register(name: str, observation_type: type | str) -> None:
    """Add an observation type under `name`: a class with the methods of `Observation`, or its place
    as "module:class".
    """
    _TYPES.register(name, observation_type)


def is_observation_type(name: Any) -> bool:
    """Whether `name` is, or has the form of, the name of an observation type of Battlesnake."""
    return isinstance(name, str) and _TYPES.has(name)


def observation_from_contract(contract: dict[str, Any]) -> Observation:
    """Make the observation type that `contract()` described.

    Raises `UnknownNameError` for a type that isn't known, and `ConfigError` for another version,
    for unknown options, and for a user's own type whose module isn't named
    (`envs.common.parts`)."""
    options = dict(contract)
    name = str(options.pop("type", None))
    version = options.pop("version", None)
    observation_type = _TYPES.find(name)
    if version != 1:
        raise ConfigError(
            f"observation version is {version!r}; this procsnake knows version 1. Update procsnake"
        )
    try:
        observation: Observation = observation_type(**options)
    except TypeError as error:
        raise ConfigError(
            f"observation options {sorted(map(str, options))} are not understood: {error}"
        ) from error
    _require_methods(observation, f"the observation type {name!r}")
    return observation


_METHODS = ("space", "observe", "num_actions", "contract", "action_mask", "to_moves")


def _require_methods(observation: Any, what: str) -> None:
    """Raise `ConfigError` unless the object has all methods of `Observation`. The message begins
    with `what`.
    """
    missing = [method for method in _METHODS if not hasattr(observation, method)]
    if len(missing) == len(_METHODS):
        raise ConfigError(
            f"{what} is {observation!r}; it must be a type's name, a dict of options, or an"
            " observation object"
        )
    if missing:
        raise ConfigError(
            f"{what} lacks {' and '.join(missing)}; inherit what it need not have of its own from"
            " envs.battlesnake.observations.OwnObservation"
        )


def choose_observation(
    option: Observation | str | dict[str, Any] | None, num_snakes: int
) -> Observation:
    """Return the observation type that an environment's option `observation` stands for.

    The option is an observation object, the name of a type, or a dict of options. A dict names its
    `type`, unless it holds options of `EgocentricPlanes`. None stands for rotated planes. Raises
    `UnknownNameError` or `ConfigError` as `observation_from_contract` does, and for a type that its
    contract couldn't make again."""
    if option is None:
        return EgocentricPlanes(rotate=True)
    if isinstance(option, str):
        observation = _observation_from_options({"type": option})
    elif isinstance(option, dict):
        observation = _observation_from_options(option)
    else:
        _require_methods(option, "observation")
        observation = option
    if isinstance(observation, StarterPackObservation):
        return observation.for_snakes(num_snakes)
    return observation


def _observation_from_options(options: dict[str, Any]) -> Observation:
    """Make the observation type, and require that its contract makes it again."""
    observation = observation_from_contract({"type": _EGOCENTRIC, "version": 1, **options})
    try:
        observation_from_contract(json.loads(json.dumps(observation.contract())))
    except (TypeError, ProcsnakeError) as error:
        raise ConfigError(
            f"the observation type {options.get('type')!r} can't be made again from its contract,"
            f" as for a bundle: {error}"
        ) from error
    return observation


def headings(state: State, boards: np.ndarray, slots: np.ndarray) -> np.ndarray:
    """Return the moves, int8 (n,), that would carry each snake straight on. Before its first move a
    snake heads up.
    """
    out = np.empty(len(boards), np.int8)
    _heading_rows(state.arrays, state.rules, np.asarray(boards), np.asarray(slots), out)
    return out


@kernel
def _heading_rows(
    s: Boards, r: Rules, boards: np.ndarray, slots: np.ndarray, out: np.ndarray
) -> None:
    for n in range(len(boards)):
        out[n] = straight_on(s, boards[n], slots[n], r)


@kernel
def _observe_rows(
    s: Boards,
    r: Rules,
    boards: np.ndarray,
    slots: np.ndarray,
    view: View,
    scene: Scene,
    pictures: np.ndarray,
) -> None:
    for n in range(len(boards)):
        items = list_scene(s, boards[n], r, view, scene, 0)
        heading = heading_in(s, boards[n], slots[n], r, view)
        paint_observation(s, boards[n], slots[n], r, view, heading, scene, items, 0, pictures, n)


@kernel
def heading_in(s: Boards, b: int, i: int, r: Rules, view: View) -> np.int64:
    """Return the heading of a snake; always UP for a view that isn't rotated."""
    if view.frames_per_cell == 4:
        return straight_on(s, b, i, r)
    return np.int64(UP)


@kernel
def to_move(view: View, heading: int, action: int) -> int:
    """Return the board move for an action of a snake with that heading. An action out of range
    means straight on.
    """
    if view.frames_per_cell < 4:
        return action
    if 0 <= action < 3:
        return _LEFT_AHEAD_RIGHT[heading, action]
    return heading
