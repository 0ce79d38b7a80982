"""The state of N games as arrays, and the functions that reach inside them.

Cells are numbered on a board that is padded by one cell on every side, with y up: cell = (y + 1) *
(width + 2) + (x + 1). So a head that has left the board still has a number, and one step is one
addition: width + 2 up, -(width + 2) down, -1 left, 1 right. On a board of 3 x 3:

    y =  3   20  21  22  23  24
    y =  2   15 |16  17  18| 19
    y =  1   10 |11  12  13| 14        the board is what lies between the bars
    y =  0    5 | 6   7   8|  9
    y = -1    0   1   2   3   4
         x = -1   0   1   2   3

A body is a ring of places. The head lies at the place `head`, and the entries behind it follow
upwards, from the last place on to the first. A move writes the new head one place below the old
one, and nothing else; the tail is left behind because the snake stays as long as it was. Here a
snake of 4 entries in a ring of 6 places goes up from cell 13 to cell 18:

    place      0   1   2   3   4   5
    before    11   6   .   .  13  12     head = 4, length = 4: cells 13, 12, 11, 6
    after     11  (6)  .  18  13  12     head = 3, length = 4: cells 18, 13, 12, 11

Kernels call what they get by the same letters everywhere:

    s: Boards    the arrays of all boards
    b            the number of a board
    i            the slot of the snake that a kernel is about
    j            the slot of each other snake in turn
    r: Rules     the rules of the game, as integers (`envs.battlesnake.settings`)
    n, k         counters of what the line says: rows, items, attempts
"""

from __future__ import annotations

import copy
from typing import NamedTuple

import numpy as np

from envs.battlesnake import rng
from envs.battlesnake.jit import kernel
from envs.battlesnake.settings import Rules, Settings
from envs.common.errors import InvalidStateError, check_range, whole_seed

MIN_SIDE = 3
MAX_SIDE = 25
MAX_SNAKES = 16
MAX_BOARDS = 1 << 24
FULL_HEALTH = 100
MAX_LAYERS = MAX_SIDE * MAX_SIDE + 3
"""The most hazard layers on one cell. In snail_mode a tail leaves as many as its snake is long, and
no body is longer.
"""
NOBODY = -1

UP, DOWN, LEFT, RIGHT = range(4)
MOVE_NAMES = ("up", "down", "left", "right")
MOVE_STEPS = ((0, 1), (0, -1), (-1, 0), (1, 0))
"""How far each move goes, as (x, y)."""
_STEP_X = np.array([x for x, _ in MOVE_STEPS])
_STEP_Y = np.array([y for _, y in MOVE_STEPS])

(
    ALIVE,
    BODY_COLLISION,
    SELF_COLLISION,
    HEAD_COLLISION,
    WALL_COLLISION,
    OUT_OF_HEALTH,
    HAZARD,
    ABSENT,
) = range(8)
CAUSE_NAMES = (
    "",
    "snake-collision",
    "snake-self-collision",
    "head-collision",
    "wall-collision",
    "out-of-health",
    "hazard",
    "absent",
)


class Boards(NamedTuple):
    """The arrays of N boards with S slots for snakes, L body entries per slot and C padded cells.
    Kernels take this as `s`.
    """

    body: np.ndarray
    """int16 (N, S, L): the cells of a body, a ring that starts at `head`."""
    head: np.ndarray
    """int16 (N, S): where in the ring the head is."""
    length: np.ndarray
    """int16 (N, S): the number of body entries, repeats included."""
    health: np.ndarray
    """int16 (N, S): 0..100."""
    cause: np.ndarray
    """uint8 (N, S): ALIVE, a cause of death, or ABSENT where nobody plays in this slot."""
    killer: np.ndarray
    """int8 (N, S): the slot of the snake that is blamed, or NOBODY."""
    death_turn: np.ndarray
    """int32 (N, S): the turn of the first board on which the snake was dead, 0 while it lives."""
    food_eaten: np.ndarray
    """int16 (N, S): how many pieces of food the snake has eaten."""
    hazard_turns: np.ndarray
    """int16 (N, S): the number of turns that ended with the head on a hazard."""
    trail: np.ndarray
    """int16 (N, S, 2): (cell, layers) of hazards to come, which snail_mode keeps above the board.
    """
    occupied: np.ndarray
    """int16 (N, C): body entries of living snakes on the cell, heads included."""
    food: np.ndarray
    """uint8 (N, C): pieces of food on the cell."""
    hazards: np.ndarray
    """int16 (N, C): hazard layers on the cell, 0..MAX_LAYERS."""
    num_food: np.ndarray
    """int16 (N,): pieces of food on the board."""
    num_hazards: np.ndarray
    """int32 (N,): hazard layers on the board, all cells together."""
    num_alive: np.ndarray
    """int16 (N,): living snakes."""
    turn: np.ndarray
    """int32 (N,): the number of the board, 0 before the first move."""
    stream: np.ndarray
    """uint64 (N,): made of the seed and the board's index. All games on this board derive from it.
    """
    game: np.ndarray
    """uint32 (N,): the ordinal of the current game on this board."""
    key: np.ndarray
    """uint64 (N,): made of `stream` and `game`. All draws of this game derive from it."""
    opposite: np.ndarray
    """int16 (C,), shared by all boards: the cell where a head re-enters that has crossed an edge.
    A cell on the board is its own opposite.
    """


_ARRAYS_OF_SNAKES = (
    "body",
    "head",
    "length",
    "health",
    "cause",
    "killer",
    "death_turn",
    "food_eaten",
    "hazard_turns",
    "trail",
)
"""The arrays whose second axis is the slots."""


class State:
    """N games of Battlesnake under the same `settings`, on boards of one size, stored as a struct
    of arrays.

    `arrays` is a `Boards` of NumPy arrays; it documents their shapes and dtypes. You may read them,
    and write them with care. A board of 11 x 11 with 4 snakes takes 1 949 bytes. Body rings hold
    width * height + 3 entries, as many as a played game can need: a full board, a tail that was
    doubled by the last food, and one move. Pass `max_length` for made-up boards that need more.

    Raises `ConfigError` for sides outside 3..25, for more than 16 snakes, and for no boards.
    """

    def __init__(
        self,
        num_boards: int,
        *,
        width: int = 11,
        height: int = 11,
        num_snakes: int = 4,
        settings: Settings | None = None,
        max_length: int | None = None,
    ) -> None:
        self.num_boards = check_range("num_boards", num_boards, 1, MAX_BOARDS)
        self.width = check_range("width", width, MIN_SIDE, MAX_SIDE)
        self.height = check_range("height", height, MIN_SIDE, MAX_SIDE)
        self.num_snakes = check_range("num_snakes", num_snakes, 1, MAX_SNAKES)
        self.settings = settings or Settings()
        longest = max_length or self.width * self.height + 3
        self.arrays = _allocate(self.num_boards, self.num_snakes, longest, self.width, self.height)
        self.seed(0)

    def seed(self, seed: int) -> None:
        """Choose the sequence of games. From then on, the games on board b are a function of (seed,
        b) and the moves.

        Raises `ConfigError` unless `seed` is an integer, of which the lowest 64 bits count.
        """
        _seed_boards(self.arrays, np.uint64(whole_seed(seed) & 0xFFFFFFFFFFFFFFFF))

    @property
    def rules(self) -> Rules:
        """The kernels' form of `settings`, for boards of this size."""
        return self.settings.rules(self.width, self.height)

    def cell(self, x: int, y: int) -> int:
        """Return the padded cell number of a point, with x in -1..width and y in -1..height."""
        return (y + 1) * (self.width + 2) + x + 1

    def point(self, cell: int) -> tuple[int, int]:
        """Return the point (x, y) of a padded cell number."""
        y, x = divmod(int(cell), self.width + 2)
        return x - 1, y - 1

    def body(self, board: int, slot: int) -> list[tuple[int, int]]:
        """Return a snake's body as points, head first, with repeats. It is empty for a slot in
        which nobody plays.
        """
        a = self.arrays
        ring = (int(a.head[board, slot]) + np.arange(int(a.length[board, slot]))) % a.body.shape[2]
        return [self.point(cell) for cell in a.body[board, slot, ring]]

    def points(self, counts: np.ndarray) -> list[tuple[int, int]]:
        """Return the points that a per-cell count array (food[b], hazards[b]) counts, each as
        often, sorted by x, then y.
        """
        points = []
        for cell in np.flatnonzero(counts).tolist():
            points += [self.point(cell)] * int(counts[cell])
        return sorted(points)

    def place_snake(
        self,
        board: int,
        slot: int,
        body: list[tuple[int, int]],
        *,
        health: int = FULL_HEALTH,
        cause: int = ALIVE,
    ) -> None:
        """Put a snake into an empty slot.

        Raises `InvalidStateError`, which names the field, for a snake that can't be there.
        """
        a = self.arrays
        field = f"snakes[{slot}]"
        if not 1 <= len(body) <= a.body.shape[2]:
            raise InvalidStateError(
                f"{field}.body has {len(body)} entries; between 1 and {a.body.shape[2]} fit here"
            )
        if not 0 <= health <= FULL_HEALTH:
            raise InvalidStateError(
                f"{field}.health is {health}; it lies between 0 and {FULL_HEALTH}"
            )
        # Only the dead may lie off the board, by one cell.
        margin = 0 if cause == ALIVE else 1
        for x, y in set(body):
            if not (-margin <= x < self.width + margin and -margin <= y < self.height + margin):
                raise InvalidStateError(
                    f"{field}.body holds ({x}, {y}), which is off the {self.width}x{self.height}"
                    " board"
                )
        if a.cause[board, slot] != ABSENT:
            raise InvalidStateError(f"{field} is taken already")
        cells = np.array(body, np.int64) @ np.array((1, self.width + 2)) + self.cell(0, 0)
        a.body[board, slot, : len(cells)] = cells
        a.head[board, slot] = 0
        a.length[board, slot] = len(cells)
        a.health[board, slot] = health
        a.cause[board, slot] = cause
        if cause == ALIVE:
            np.add.at(a.occupied[board], cells, 1)
            a.num_alive[board] += 1

    def clear(self, board: int) -> None:
        """Empty a board: it then has no snakes, food or hazards, and turn 0. Its random streams
        stay.
        """
        clear_board(self.arrays, board)

    def copy(self) -> State:
        """Return an independent copy of all boards."""
        return self._with({name: array.copy() for name, array in self._arrays_of_boards().items()})

    def select(self, boards: np.ndarray) -> State:
        """Return an independent state with copies of the given boards, in that order. A board may
        be given several times.
        """
        return self._with({name: array[boards] for name, array in self._arrays_of_boards().items()})

    def select_living(self, board: int) -> State:
        """Return an independent state of one board whose slots are its living snakes', in their
        order, as a server is told of them. At least one snake must live.
        """
        # A search calls this for each move, and slices are copied faster than chosen rows.
        other = self._with(
            {
                name: array[board : board + 1].copy()
                for name, array in self._arrays_of_boards().items()
            }
        )
        living = np.flatnonzero(other.arrays.cause[0] == ALIVE)
        if len(living) < self.num_snakes:
            per_snake = {name: getattr(other.arrays, name)[:, living] for name in _ARRAYS_OF_SNAKES}
            other.arrays = other.arrays._replace(**per_snake)
            other.num_snakes = len(living)
        return other

    def _with(self, arrays: dict[str, np.ndarray]) -> State:
        """Return a state like this one with these arrays, which have a row per board."""
        other = copy.copy(self)
        other.arrays = Boards(**arrays, opposite=self.arrays.opposite.copy())
        other.num_boards = len(arrays["turn"])
        return other

    def _arrays_of_boards(self) -> dict[str, np.ndarray]:
        """Return the arrays whose first axis is the boards."""
        arrays = self.arrays._asdict()
        del arrays["opposite"]
        return arrays


def _allocate(n: int, s: int, max_length: int, width: int, height: int) -> Boards:
    cells = (width + 2) * (height + 2)
    return Boards(
        body=np.zeros((n, s, max_length), np.int16),
        head=np.zeros((n, s), np.int16),
        length=np.zeros((n, s), np.int16),
        health=np.zeros((n, s), np.int16),
        cause=np.full((n, s), ABSENT, np.uint8),
        killer=np.full((n, s), NOBODY, np.int8),
        death_turn=np.zeros((n, s), np.int32),
        food_eaten=np.zeros((n, s), np.int16),
        hazard_turns=np.zeros((n, s), np.int16),
        trail=np.zeros((n, s, 2), np.int16),
        occupied=np.zeros((n, cells), np.int16),
        food=np.zeros((n, cells), np.uint8),
        hazards=np.zeros((n, cells), np.int16),
        num_food=np.zeros(n, np.int16),
        num_hazards=np.zeros(n, np.int32),
        num_alive=np.zeros(n, np.int16),
        turn=np.zeros(n, np.int32),
        stream=np.zeros(n, np.uint64),
        game=np.zeros(n, np.uint32),
        key=np.zeros(n, np.uint64),
        opposite=opposite_cells(width, height),
    )


def opposite_cells(width: int, height: int) -> np.ndarray:
    """Return `Boards.opposite` for boards of that size, int16 (cells,)."""
    y, x = np.divmod(np.arange((width + 2) * (height + 2)), width + 2)
    return (((y - 1) % height + 1) * (width + 2) + (x - 1) % width + 1).astype(np.int16)


@kernel
def _seed_boards(s: Boards, seed: np.uint64) -> None:
    for b in range(len(s.turn)):
        s.stream[b] = rng.combine(rng.mix(seed), b)
        s.game[b] = 0
        s.key[b] = rng.combine(s.stream[b], 0)


@kernel
def clear_board(s: Boards, b: int) -> None:
    """Empty board b: it then has no snakes, food or hazards, and turn 0."""
    s.cause[b] = ABSENT
    s.killer[b] = NOBODY
    s.head[b] = 0
    s.length[b] = 0
    s.health[b] = 0
    s.death_turn[b] = 0
    s.food_eaten[b] = 0
    s.hazard_turns[b] = 0
    s.trail[b] = 0
    s.occupied[b] = 0
    s.food[b] = 0
    s.hazards[b] = 0
    s.num_food[b] = 0
    s.num_hazards[b] = 0
    s.num_alive[b] = 0
    s.turn[b] = 0


@kernel
def is_alive(s: Boards, b: int, i: int) -> bool:
    """Whether the snake in slot i plays and has not died."""
    return s.cause[b, i] == ALIVE


@kernel
def head_cell(s: Boards, b: int, i: int) -> int:
    """Return the cell of a snake's head."""
    return s.body[b, i, s.head[b, i]]


@kernel
def body_cell(s: Boards, b: int, i: int, entry: int) -> int:
    """Return the cell of a body entry, from 0 (head) to length - 1 (tail)."""
    place = s.head[b, i] + entry
    ring = s.body.shape[2]
    if place >= ring:
        place -= ring
    return s.body[b, i, place]


@kernel
def tail_cell(s: Boards, b: int, i: int) -> int:
    """Return the cell of a snake's last body entry."""
    return body_cell(s, b, i, s.length[b, i] - 1)


@kernel
def step_offset(width: int, move: int) -> int:
    """Return what to add to a padded cell number to go up, down, left or right."""
    return _STEP_Y[move] * (width + 2) + _STEP_X[move]


@kernel
def add_snake(s: Boards, b: int, i: int, cell: int, length: int) -> None:
    """Put a living snake of full health, with all its body entries on one cell, into an empty
    slot.
    """
    s.cause[b, i] = ALIVE
    s.head[b, i] = 0
    s.length[b, i] = length
    s.health[b, i] = FULL_HEALTH
    for entry in range(length):
        s.body[b, i, entry] = cell
    s.occupied[b, cell] += length
    s.num_alive[b] += 1


@kernel
def add_food(s: Boards, b: int, cell: int) -> None:
    """Put one food on a cell."""
    s.food[b, cell] += 1
    s.num_food[b] += 1


@kernel
def add_hazard(s: Boards, b: int, cell: int, layers: int) -> None:
    """Add hazard layers to a cell, up to `MAX_LAYERS` in all. A negative number takes layers
    away.
    """
    before = s.hazards[b, cell]
    after = min(before + layers, MAX_LAYERS)
    s.hazards[b, cell] = after
    s.num_hazards[b] += after - before


@kernel
def clear_hazards(s: Boards, b: int) -> None:
    """Remove all hazards from the board, also those that snail_mode keeps above it."""
    s.trail[b] = 0
    if s.num_hazards[b]:
        s.hazards[b] = 0
        s.num_hazards[b] = 0
