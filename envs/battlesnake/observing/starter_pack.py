"""The six observation types of the SageMaker starter pack, under their own names."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from gymnasium.spaces import Box

from envs.battlesnake.jit import kernel
from envs.battlesnake.safety import safe_moves
from envs.battlesnake.settings import Rules
from envs.battlesnake.state import MAX_SNAKES, Boards, State, body_cell, is_alive
from envs.common.errors import ConfigError, UnknownNameError, check_range, check_switch

KINDS = (
    "flat-num",
    "bordered-num",
    "max-bordered-num",
    "flat-51s",
    "bordered-51s",
    "max-bordered-51s",
)
MAX_BORDERED_SIDE = 21
BORDER = -1
HEAD = 5
BODY = 1


@dataclass(frozen=True)
class StarterPackObservation:
    """The observation (rows, columns, 1 + snakes): the whole board, which looks the same to all
    snakes without `own_first`.

    Channel 0 is 1 where food lies. Channel 1 + slot shows the body of the snake in that slot. Dead
    snakes and hazards are not shown.

    ================= ============================================================================
    `kind`            meaning
    ================= ============================================================================
    `…-51s`           int8: the head is 5, the body is 1
    `…-num`           int16: cells count along the body, from 1 at the tail to the length at the
                      head; stacked entries show the highest number
    `flat-…`          the board alone, (height, width)
    `bordered-…`      the board with one cell of -1 around it in every channel, (height + 2, width
                      + 2)
    `max-bordered-…`  21 x 21 with the board in the middle and -1 around it; if it can't be in the
                      middle, because its sides are even, it lies half a cell up and left
    ================= ============================================================================

    Row 0 is the top of the board (y = height - 1). There are four actions: up, down, left, right.

    Raises `UnknownNameError` for another kind, and `ConfigError` for an impossible number of
    snakes."""

    kind: str = "max-bordered-51s"
    """The starter pack's name of the type."""
    own_first: bool = field(default=False, kw_only=True)
    """Put the observing snake into channel 1 and the others after it, in slot order. A policy that
    is to be served needs this, because requests from an engine list only living snakes, so that
    slots change.
    """
    num_snakes: int | None = field(default=None, kw_only=True)
    """The number of channels for snakes. By default environments fill in the number of snakes of
    their games.
    """

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise UnknownNameError("observation type", str(self.kind), KINDS)
        if self.num_snakes is not None:
            object.__setattr__(
                self, "num_snakes", check_range("num_snakes", self.num_snakes, 1, MAX_SNAKES)
            )
        check_switch("own_first", self.own_first)

    @property
    def num_actions(self) -> int:
        """The number of actions: 4 (up, down, left, right)."""
        return 4

    def for_snakes(self, num_snakes: int) -> StarterPackObservation:
        """Return this type with its number of channels filled in. Raises `ConfigError` if it has
        too few for so many snakes.
        """
        channels = self.num_snakes or num_snakes
        if num_snakes > channels:
            raise ConfigError(
                f"{self.kind} has channels for {channels} snakes, the game has {num_snakes}; raise"
                " its num_snakes"
            )
        return replace(self, num_snakes=channels)

    def contract(self) -> dict[str, Any]:
        """Return a JSON-able description from which `observation_from_contract` makes an equal
        object.
        """
        return {
            "type": self.kind,
            "version": 1,
            "own_first": self.own_first,
            "num_snakes": self.num_snakes,
        }

    def space(self, width: int, height: int) -> Box:
        """Return the observation space on a board of that size.

        Raises `ConfigError` if `num_snakes` isn't filled in, or if a board for a max-bordered type
        is larger than 21 x 21."""
        if self.num_snakes is None:
            raise ConfigError(
                f"the shape of {self.kind} goes with the number of snakes:"
                " StarterPackObservation(…, num_snakes=4)"
            )
        rows, columns, _, _ = self._frame(width, height)
        low = 0 if self.kind.startswith("flat") else BORDER
        return Box(
            low, self._highest(width, height), (rows, columns, 1 + self.num_snakes), self._dtype
        )

    def observe(self, state: State, boards: np.ndarray, slots: np.ndarray) -> np.ndarray:
        """Return what the snakes in `slots` (n,) of `boards` (n,) see: (n, rows, columns, 1 +
        snakes).
        """
        channels = 1 + (self.for_snakes(state.num_snakes).num_snakes or 0)
        rows, columns, first_row, first_column = self._frame(state.width, state.height)
        out = np.full((len(boards), rows, columns, channels), BORDER, self._dtype)
        on_board = out[
            :, first_row : first_row + state.height, first_column : first_column + state.width
        ]
        on_board[:] = 0
        longest = 0
        if self._numbered:
            longest = self._highest(state.width, state.height)
        _paint_rows(
            state.arrays,
            state.rules,
            np.asarray(boards),
            np.asarray(slots),
            self.own_first,
            longest,
            on_board,
        )
        return out

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

    @property
    def _numbered(self) -> bool:
        return self.kind.endswith("num")

    @property
    def _dtype(self) -> type[np.signedinteger[Any]]:
        if self._numbered:
            return np.int16
        return np.int8

    def _highest(self, width: int, height: int) -> int:
        """Return the highest number in a picture: the length of the longest snake that a game can
        bring forth (`State`), or that of a head.
        """
        if self._numbered:
            return width * height + 3
        return HEAD

    def _frame(self, width: int, height: int) -> tuple[int, int, int, int]:
        """(rows, columns) of the picture, and the row and column of the board's top left corner in
        it.
        """
        if self.kind.startswith("flat"):
            return height, width, 0, 0
        if self.kind.startswith("bordered"):
            return height + 2, width + 2, 1, 1
        side = MAX_BORDERED_SIDE
        if max(width, height) > side:
            raise ConfigError(
                f"{self.kind} holds boards up to {side}x{side}, this one is {width}x{height}; use a"
                " bordered- type"
            )
        return side, side, (side - height) // 2, (side - width) // 2


@kernel
def _paint_rows(
    s: Boards,
    r: Rules,
    boards: np.ndarray,
    slots: np.ndarray,
    own_first: bool,
    longest: int,
    out: np.ndarray,
) -> None:
    """Paint the rows (board, slot) into `out` (n, height, width, channels), which is all 0.

    `longest` is the highest number along a body, or 0 for the kinds of 51s.
    """
    for n in range(len(boards)):
        b = boards[n]
        if s.num_food[b]:
            for y in range(r.height):
                for x in range(r.width):
                    if s.food[b, (y + 1) * (r.width + 2) + x + 1]:
                        out[n, r.height - 1 - y, x, 0] = 1
        for i in range(s.cause.shape[1]):
            if is_alive(s, b, i):
                _paint_snake(s, b, i, r, longest, out, n, _channel(i, slots[n], own_first))


@kernel
def _channel(i: int, own: int, own_first: bool) -> int:
    """Return the channel of slot i in the picture of slot `own`."""
    if not own_first or i > own:
        return 1 + i
    if i == own:
        return 1
    return 2 + i


@kernel
def _paint_snake(
    s: Boards, b: int, i: int, r: Rules, longest: int, out: np.ndarray, n: int, channel: int
) -> None:
    """From tail to head, so that of stacked entries the one nearest to the head is seen."""
    length = np.int64(s.length[b, i])
    for number in range(1, length + 1):
        y, x = divmod(np.int64(body_cell(s, b, i, length - number)), r.width + 2)
        if longest:
            value = min(number, longest)
        elif number == length:
            value = HEAD
        else:
            value = BODY
        out[n, r.height - y, x - 1, channel] = value
