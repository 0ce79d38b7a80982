"""What a snake sees: planes of small integers from its own point of view."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
from gymnasium.spaces import Box

from envs.battlesnake.kernels import kernel
from envs.battlesnake.rules import straight_on
from envs.battlesnake.safety import safe_moves
from envs.battlesnake.starter_pack import KINDS, StarterPackObservation
from envs.battlesnake.state import (
    MAX_SIDE,
    UP,
    State,
    head_cell,
    is_alive,
    step_offset,
)
from envs.errors import ConfigError, UnknownNameError

PLANES = (
    "edge",
    "food",
    "hazard",
    "my_head",
    "my_body",
    "other_body",
    "stronger_head",
    "weaker_head",
    "length_difference",
    "stacked_tail",
    "opponents",
    "threat",
)
(EDGE, FOOD, HAZARD, MY_HEAD, MY_BODY, OTHER_BODY, STRONGER_HEAD, WEAKER_HEAD, LENGTH_DIFFERENCE, STACKED_TAIL,
 OPPONENTS, THREAT) = range(12)  # fmt: skip

# Brings each plane to about 0..1 for a network's first layer: float = uint8 * scale.
PLANE_SCALES = (1.0, 1.0, 0.25, 0.01, 0.05, 0.05, 0.01, 0.01, 1 / 21, 1.0, 1 / 3, 1.0)

_LEFT_AHEAD_RIGHT = np.array([[2, 0, 3], [3, 1, 2], [1, 2, 0], [0, 3, 1]], np.int8)
_EGOCENTRIC = "egocentric-planes"
OBSERVATION_TYPES = (_EGOCENTRIC, *KINDS)

_MAX_COUNT = 255
_LENGTH_SPAN = 10


class View(NamedTuple):
    """What the kernels need of an observation type: the picture's geometry on boards of one size."""

    centred: bool
    rotate: bool
    radius: int  # cells shown on each side of the centre; of no matter if not centred
    rows: int
    columns: int
    x_of: np.ndarray  # int16 (cells,): x of a padded cell
    y_of: np.ndarray
    byte_of: np.ndarray  # int32 (4, cells): byte of a cell in a picture taken from (0, 0), by heading


class Frame(NamedTuple):
    """Where a picture is taken from: it shows a cell at byte start + byte_of[heading, cell]."""

    left: int  # x and y of the lower left corner of what a window can show
    low: int
    heading: int
    start: int


@dataclass(frozen=True, kw_only=True)
class EgocentricPlanes:
    """Observation uint8 (rows, columns, 12): one snake's own view of the board.

    ===================== ==========================================================================================
    plane                 value of a cell
    ===================== ==========================================================================================
    `edge`                1 on the cells just off the board; none if the board is wrapped or shown whole
    `food`                number of food
    `hazard`              hazard layers
    `my_head`             own health on the own head, 1..100
    `my_body`             turns until the cell is free if the snake does not eat: 1 at the tail, its length at the head
    `other_body`          the same for all other living snakes
    `stronger_head`       health on the heads of others that are at least as long: they win or draw head to head
    `weaker_head`         health on the heads of shorter ones
    `length_difference`   11 + own length - theirs, limited to 1..21, on the heads of others
    `stacked_tail`        1 on tails that stay next turn (anyone's)
    `opponents`           number of other living snakes, on the own head
    `threat`              1 where a `stronger_head` can go next turn
    ===================== ==========================================================================================

    All values are capped at 255. Row 0 is the top of the picture. `view="window"` puts the own head in the middle of a square
    of side 2 * radius + 1 (default: just wide enough to hold the whole board wherever the head is); `rotate` turns it so that
    the snake heads up, and then there are three actions: left, ahead, right. `view="board"` shows the board as it is (not
    rotated) with four actions: up, down, left, right. Snakes that have not moved yet count as heading up.
    """

    view: str = "window"
    radius: int | None = None
    rotate: bool = False

    def __post_init__(self) -> None:
        if self.view not in ("window", "board"):
            raise UnknownNameError("view", self.view, ("window", "board"))
        if self.radius is not None and not (self.view == "window" and 1 <= self.radius < MAX_SIDE):
            raise ConfigError(f"radius is {self.radius}; with view='window' it lies between 1 and {MAX_SIDE - 1}")
        if self.rotate and self.view == "board":
            raise ConfigError("rotate=True needs view='window': a board that is shown whole is not turned")

    @property
    def num_actions(self) -> int:
        """3 (left, ahead, right) if rotated, else 4 (up, down, left, right)."""
        return 3 if self.rotate else 4

    def contract(self) -> dict[str, Any]:
        """JSON-able description from which `observation_from_contract` makes an equal object."""
        return {"type": _EGOCENTRIC, "version": 1, **asdict(self)}

    def space(self, width: int, height: int) -> Box:
        """The observation space on a board of that size."""
        return Box(0, _MAX_COUNT, (*self._shape(width, height), len(PLANES)), np.uint8)

    def observe(self, state: State, boards: np.ndarray, slots: np.ndarray) -> np.ndarray:
        """What the snakes in `slots` of `boards` see: uint8 (n, rows, columns, 12)."""
        view = self.kernel_view(state.width, state.height)
        out = np.empty((len(boards), view.rows, view.columns, len(PLANES)), np.uint8)
        pictures, things = out.reshape(len(boards), -1), np.empty((1, 1 + state.arrays.food.shape[1]), np.int16)
        _observe_rows(state.arrays, state.rules, np.asarray(boards), np.asarray(slots), view, pictures, things)
        return out

    def action_mask(self, state: State, boards: np.ndarray, slots: np.ndarray) -> np.ndarray:
        """Bool (n, num_actions): False where an action is certain death; all True if each is."""
        mask = safe_moves(state, boards, slots)
        if not self.rotate:
            return mask
        mask = np.take_along_axis(mask, _LEFT_AHEAD_RIGHT[headings(state, boards, slots)].astype(np.int64), axis=1)
        return mask | ~mask.any(axis=1, keepdims=True)

    def to_moves(self, state: State, boards: np.ndarray, slots: np.ndarray, actions: np.ndarray) -> np.ndarray:
        """Moves on the board, int8 (n,), for actions (n,) as this observation numbers them."""
        if not self.rotate:
            return np.asarray(actions).astype(np.int8)
        return _LEFT_AHEAD_RIGHT[headings(state, boards, slots), actions]

    def kernel_view(self, width: int, height: int) -> View:
        """The kernels' form of this observation type for boards of that size."""
        rows, columns = self._shape(width, height)
        y, x = np.divmod(np.arange((width + 2) * (height + 2)), width + 2) - np.ones((2, 1), np.int64)
        per_row, per_column = columns * len(PLANES), len(PLANES)
        turned = ((x, y), (-x, -y), (y, -x), (-y, x))
        return View(
            centred=self.view == "window",
            rotate=self.rotate,
            radius=rows // 2,
            rows=rows,
            columns=columns,
            x_of=x.astype(np.int16),
            y_of=y.astype(np.int16),
            byte_of=np.array([right * per_column - ahead * per_row for right, ahead in turned], np.int32),
        )

    def _shape(self, width: int, height: int) -> tuple[int, int]:
        if self.view == "board":
            return height, width
        side = 2 * (self.radius or max(width, height) - 1) + 1
        return side, side


class Observation(Protocol):
    """What an observation type offers (see `EgocentricPlanes`). In one of your own, actions are moves on the board."""

    @property
    def num_actions(self) -> int: ...

    def contract(self) -> dict[str, Any]: ...

    def space(self, width: int, height: int) -> Box: ...

    def observe(self, state: State, boards: np.ndarray, slots: np.ndarray) -> np.ndarray: ...

    def action_mask(self, state: State, boards: np.ndarray, slots: np.ndarray) -> np.ndarray: ...

    def to_moves(self, state: State, boards: np.ndarray, slots: np.ndarray, actions: np.ndarray) -> np.ndarray: ...


def observation_from_contract(contract: dict[str, Any]) -> Observation:
    """The observation type that `contract()` described. Raises `UnknownNameError` or `ConfigError` if it is not known."""
    options = dict(contract)
    name, version = options.pop("type", None), options.pop("version", None)
    if name not in OBSERVATION_TYPES:
        raise UnknownNameError("observation type", str(name), OBSERVATION_TYPES)
    if version != 1:
        raise ConfigError(f"observation version is {version!r}; this procsnake knows version 1. Update procsnake")
    try:
        return EgocentricPlanes(**options) if name == _EGOCENTRIC else StarterPackObservation(name, **options)
    except TypeError as error:
        raise ConfigError(f"observation options {sorted(options)} are not understood: {error}") from error


def choose_observation(given: Observation | str | dict[str, Any] | None, num_snakes: int) -> Observation:
    """What an environment of `num_snakes` snakes takes as its `observation`.

    An object; the name of a type; options, with their `type` unless they are those of `EgocentricPlanes`; None: rotated
    planes. Raises as `observation_from_contract` does.
    """
    if given is None:
        return EgocentricPlanes(rotate=True)
    options = {"type": given} if isinstance(given, str) else given
    chosen = observation_from_contract({"type": _EGOCENTRIC, "version": 1, **options}) if isinstance(options, dict) else options
    return chosen.for_snakes(num_snakes) if isinstance(chosen, StarterPackObservation) else chosen


def headings(state: State, boards: np.ndarray, slots: np.ndarray) -> np.ndarray:
    """The move, int8 (n,), that would carry each snake straight on; up before its first."""
    out = np.empty(len(boards), np.int8)
    _heading_rows(state.arrays, state.rules, np.asarray(boards), np.asarray(slots), out)
    return out


@kernel
def _heading_rows(s, r, boards, slots, out):
    for n in range(len(boards)):
        out[n] = straight_on(s, boards[n], slots[n], r)


@kernel
def _observe_rows(s, r, boards, slots, view, pictures, things):
    for n in range(len(boards)):
        list_things(s, boards[n], things, 0)
        paint_observation(s, boards[n], slots[n], r, view, pictures, n, things, 0)


@kernel
def to_move(s, b, i, r, view, action):
    """The board move that an action stands for; an action out of range stands for straight on."""
    if not view.rotate:
        return action
    heading = straight_on(s, b, i, r)
    return _LEFT_AHEAD_RIGHT[heading, action] if 0 <= action < 3 else heading


@kernel
def list_things(s, b, things, place):
    """Note in things[place], int16 (1 + cells,), how many cells of board b hold food or hazards, and which."""
    n = 0
    if s.num_hazards[b]:
        for cell in range(s.food.shape[1]):
            if s.food[b, cell] or s.hazards[b, cell]:
                n += 1
                things[place, n] = cell
    elif s.num_food[b]:
        for cell in range(s.food.shape[1]):
            if s.food[b, cell]:
                n += 1
                things[place, n] = cell
    things[place, 0] = n


@kernel
def paint_observation(s, b, i, r, view, pictures, row, things, place):
    """Paint what snake i of board b sees into pictures[row]. A dead snake still sees its own body.

    pictures: uint8 (R, rows * columns * planes); things[place]: what `list_things` noted of the board.
    """
    for byte in range(pictures.shape[1]):
        pictures[row, byte] = 0
    frame = _frame(s, b, i, r, view)
    if view.centred and not r.wrapped:
        _paint_edge(r, view, frame, pictures, row)
    for n in range(1, things[place, 0] + 1):
        cell = things[place, n]
        at = _byte_of(cell, r, view, frame)
        if at >= 0:
            pictures[row, at + FOOD] = s.food[b, cell]
            pictures[row, at + HAZARD] = min(_MAX_COUNT, s.hazards[b, cell])
    for j in range(s.cause.shape[1]):
        if j == i:
            _paint_self(s, b, i, r, view, frame, pictures, row)
        elif is_alive(s, b, j):
            _paint_other(s, b, j, s.length[b, i] - s.length[b, j], r, view, frame, pictures, row)


@kernel
def _frame(s, b, i, r, view):
    """The frame of a picture: around the own head, or the whole board."""
    per_row, per_column = view.columns * len(PLANES), len(PLANES)
    if not view.centred:
        return Frame(0, 0, UP, (view.rows - 1) * per_row)
    head = np.int64(head_cell(s, b, i))
    heading = np.int64(straight_on(s, b, i, r) if view.rotate else UP)
    start = view.radius * (per_row + per_column) - view.byte_of[heading, head]
    return Frame(view.x_of[head] - view.radius, view.y_of[head] - view.radius, heading, start)


@kernel
def _byte_of(cell, r, view, frame):
    """Where the picture shows a padded cell: the byte of its first plane, or -1 if it lies outside."""
    byte = frame.start + view.byte_of[frame.heading, cell]
    if not view.centred:
        return byte
    right, up = view.x_of[cell] - frame.left, view.y_of[cell] - frame.low
    if r.wrapped:
        around_x = (right - view.radius + r.width // 2) % r.width - r.width // 2 + view.radius - right
        around_y = (up - view.radius + r.height // 2) % r.height - r.height // 2 + view.radius - up
        byte += around_x * _per_x(view, frame) + around_y * _per_y(r, view, frame)
        right, up = right + around_x, up + around_y
    # As unsigned numbers what is negative is large, so one comparison does for both sides.
    side = np.uint64(2 * view.radius)
    return byte if np.uint64(right) <= side and np.uint64(up) <= side else -1


@kernel
def _per_x(view, frame):
    return view.byte_of[frame.heading, 1] - view.byte_of[frame.heading, 0]


@kernel
def _per_y(r, view, frame):
    return view.byte_of[frame.heading, r.width + 2] - view.byte_of[frame.heading, 0]


@kernel
def _paint_edge(r, view, frame, pictures, row):
    """The ring of cells around the board, as far as the picture shows it."""
    low_x, high_x = max(-1, frame.left), min(r.width, frame.left + 2 * view.radius)
    low_y, high_y = max(-1, frame.low), min(r.height, frame.low + 2 * view.radius)
    for x in (-1, r.width):
        if low_x <= x <= high_x:
            for y in range(low_y, high_y + 1):
                cell = (y + 1) * (r.width + 2) + x + 1
                pictures[row, frame.start + view.byte_of[frame.heading, cell] + EDGE] = 1
    for y in (-1, r.height):
        if low_y <= y <= high_y:
            for x in range(low_x, high_x + 1):
                cell = (y + 1) * (r.width + 2) + x + 1
                pictures[row, frame.start + view.byte_of[frame.heading, cell] + EDGE] = 1


@kernel
def _paint_self(s, b, i, r, view, frame, pictures, row):
    _paint_body(s, b, i, r, view, frame, MY_BODY, pictures, row)
    at = _byte_of(head_cell(s, b, i), r, view, frame)
    on_board = view.centred or s.opposite[head_cell(s, b, i)] == head_cell(s, b, i)
    if at >= 0 and on_board:
        pictures[row, at + MY_HEAD] = s.health[b, i]
        pictures[row, at + OPPONENTS] = s.num_alive[b] - is_alive(s, b, i)


@kernel
def _paint_other(s, b, j, difference, r, view, frame, pictures, row):
    _paint_body(s, b, j, r, view, frame, OTHER_BODY, pictures, row)
    head = head_cell(s, b, j)
    at = _byte_of(head, r, view, frame)
    if at >= 0:
        shown = max(-_LENGTH_SPAN, min(_LENGTH_SPAN, difference)) + _LENGTH_SPAN + 1
        pictures[row, at + (WEAKER_HEAD if difference > 0 else STRONGER_HEAD)] = s.health[b, j]
        pictures[row, at + LENGTH_DIFFERENCE] = shown
    if difference <= 0:
        for move in range(4):
            offset = step_offset(r.width, move)
            target = s.opposite[head + offset] if r.wrapped else head + offset
            if s.opposite[target] == target:
                at = _byte_of(target, r, view, frame)
                if at >= 0:
                    pictures[row, at + THREAT] = 1


@kernel
def _paint_body(s, b, j, r, view, frame, plane, pictures, row):
    """Body entries from tail to head, so that of stacked entries the one that stays longest is seen."""
    length, ring = np.int64(s.length[b, j]), s.body.shape[2]
    place, previous = (s.head[b, j] + length - 1) % ring, -1
    for turns_left in range(1, length + 1):
        cell = np.int64(s.body[b, j, place])
        place = place - 1 if place > 0 else ring - 1
        if s.opposite[cell] != cell and not view.centred:
            continue
        at = _byte_of(cell, r, view, frame)
        if at >= 0:
            pictures[row, np.uint64(at + plane)] = min(_MAX_COUNT, turns_left)
            if turns_left == 2 and cell == previous:
                pictures[row, np.uint64(at + STACKED_TAIL)] = 1
        previous = cell
