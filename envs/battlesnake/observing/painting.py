"""How the egocentric planes are painted.

Tables that are made once hold all geometry, so the kernels only look up and write bytes.

`envs.battlesnake.state` explains the kernels' one-letter arguments. Here `place` is the scratch
memory of one thread, `row` the number of a picture, and `at` a byte in it."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from envs.battlesnake.jit import kernel
from envs.battlesnake.reach import (
    FAR,
    ReachArrays,
    fill,
    health_on,
    note_arrivals,
    note_bodies,
    note_latest,
)
from envs.battlesnake.reach.on_bitboards import (
    ReachBitboards,
    fits,
    new_reach_bitboards,
    note_open,
    note_region,
    note_rivals,
    spread,
)
from envs.battlesnake.settings import Rules
from envs.battlesnake.state import Boards, State, head_cell, is_alive, opposite_cells, step_offset

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
(
    EDGE,
    FOOD,
    HAZARD,
    MY_HEAD,
    MY_BODY,
    OTHER_BODY,
    STRONGER_HEAD,
    WEAKER_HEAD,
    LENGTH_DIFFERENCE,
    STACKED_TAIL,
    OPPONENTS,
    THREAT,
) = range(len(PLANES))
REACH_PLANES = ("space", "reached_first", "roomy", "near_food")
SPACE, REACHED_FIRST, ROOMY, NEAR_FOOD = range(12, 16)
_MOST_PLANES = len(PLANES) + len(REACH_PLANES)

PLACES_APART = 4
"""How far apart threads write. Neighbouring places share a line of the cache, so two threads there
would wait for each other.
"""
MAX_COUNT = 255
_LENGTH_SPAN = 10
_NOBODYS = 255
"""The owner of items that look the same to every snake."""
_NOT_NOTED = -1


class View(NamedTuple):
    """The kernels' form of an observation type on boards of one size.

    A frame is a head cell and heading that a picture shows.
    """

    size: int
    """The number of bytes of a picture."""
    num_planes: int
    """The number of planes, and so of bytes per cell."""
    frames_per_cell: int
    """The number of frames of a head cell: 4, one per heading, if rotated; 1 if centred only; 0 if
    one frame does for all cells.
    """
    byte_of: np.ndarray
    """uint16 (frames, cells + 1): a cell's first byte in the picture. It is `size` for cells that
    aren't shown, and for the last one, which stands for no cell.
    """
    edges: np.ndarray
    """uint16 (frames, 1 + ring): how many cells just off the board are shown, and their bytes."""


@lru_cache(maxsize=16)
def make_view(
    width: int,
    height: int,
    wrapped: bool,
    radius: int | None,
    rotate: bool,
    cyclic: bool = False,
    reach: bool = False,
) -> View:
    """Return the tables for boards of that size. With `radius` None, pictures show the whole board
    and aren't centred.
    """
    num_planes = _MOST_PLANES if reach else len(PLANES)
    cells = (width + 2) * (height + 2)
    if radius is None:
        frames_per_cell = 0
        shown_cells = width * height
    else:
        frames_per_cell = 4 if rotate else 1
        shown_cells = (2 * radius + 1) ** 2
    frames = max(1, cells * frames_per_cell)
    size = shown_cells * num_planes
    view = View(
        size=size,
        num_planes=num_planes,
        frames_per_cell=frames_per_cell,
        byte_of=np.full((frames, cells + 1), size, np.uint16),
        edges=np.zeros((frames, 1 + 2 * (width + height) + 4), np.uint16),
    )
    opposite = opposite_cells(width, height)
    if radius is None:
        _show_whole_board(view, opposite, width, height)
    else:
        _show_windows(view, opposite, width, height, wrapped, cyclic, radius)
    return view


@kernel
def _show_whole_board(view: View, opposite: np.ndarray, width: int, height: int) -> None:
    for cell in range(len(opposite)):
        if opposite[cell] == cell:
            y, x = divmod(cell, width + 2)
            view.byte_of[0, cell] = ((height - y) * width + x - 1) * view.num_planes


@kernel
def _show_windows(
    view: View,
    opposite: np.ndarray,
    width: int,
    height: int,
    wrapped: bool,
    cyclic: bool,
    radius: int,
) -> None:
    """Fill in the frames around every cell, for every heading.

    Wrapped boards show each cell where it is nearest, as if there were no edges, and so do cyclic
    windows of other boards. The cells just off the board stay where they are there, because they
    mark the edges."""
    cells = len(opposite)
    side = 2 * radius + 1
    for frame in range(cells * view.frames_per_cell):
        head, heading = divmod(frame, view.frames_per_cell)
        for cell in range(cells):
            x = cell % (width + 2) - head % (width + 2)
            y = cell // (width + 2) - head // (width + 2)
            if wrapped or (cyclic and opposite[cell] == cell):
                x = (x + width // 2) % width - width // 2
                y = (y + height // 2) % height - height // 2
            right, ahead = _turned(x, y, heading)
            if max(abs(right), abs(ahead)) <= radius:
                byte = ((radius - ahead) * side + radius + right) * view.num_planes
                view.byte_of[frame, cell] = byte
                if opposite[cell] != cell and not wrapped:
                    view.edges[frame, 0] += 1
                    view.edges[frame, view.edges[frame, 0]] = byte


@kernel
def _turned(x: int, y: int, heading: int) -> tuple[int, int]:
    """How far to the right and how far ahead a point lies, heading up, down, left or right."""
    if heading == 0:
        return x, y
    if heading == 1:
        return -x, -y
    if heading == 2:
        return y, -x
    return -y, x


class Scene(NamedTuple):
    """Lists of what is on a board, made once for all its snakes. This is scratch memory, with
    places for each thread.
    """

    things: np.ndarray
    """int16 (N, 1 + cells): how many cells of a board hold food or hazards, and which."""
    items: np.ndarray
    """int64 (places, items): plane | value << 8 | owner << 16 | cell << 32. The owner is the slot
    whose body it is, or `_NOBODYS`.
    """
    heads: np.ndarray
    """int16 (places, S, 5): the cell of each living head and the four where it can go. What isn't
    there is the last "cell" of a `View`.
    """
    arrivals: np.ndarray
    """int16 (places, S, cells): the move on which each snake could be there
    (`envs.battlesnake.reach`).
    """
    fills: np.ndarray
    """int16 (places, 5, cells): the `ReachArrays`."""
    latest_of: np.ndarray
    """int64 (places,): the snake whose `ReachArrays.latest` is in `fills`, or `_NOT_NOTED` if that
    and `arrivals` are still those of another board.
    """
    bitboards: ReachBitboards


def make_scene(state: State, threads: int) -> Scene:
    """Allocate the lists for boards of this state's shape. Thread t writes at the place
    t * `PLACES_APART`.
    """
    places = threads * PLACES_APART
    num_boards, snakes, ring = state.arrays.body.shape
    cells = state.arrays.food.shape[1]
    items = 2 * cells + (snakes + 1) * (ring + 1)
    return Scene(
        things=np.zeros((num_boards, 1 + cells), np.int16),
        items=np.zeros((places, items), np.int64),
        heads=np.zeros((places, snakes, 5), np.int16),
        arrivals=np.zeros((places, snakes, cells), np.int16),
        fills=np.zeros((places, len(ReachArrays._fields), cells), np.int16),
        latest_of=np.zeros(places, np.int64),
        bitboards=new_reach_bitboards(state, places),
    )


def make_pictures(rows: int, size: int) -> np.ndarray:
    """Allocate pictures, uint8 (rows, size + 16). The spare bytes take what a picture doesn't show,
    so that no kernel has to ask whether a cell is shown."""
    return np.zeros((rows, size + _MOST_PLANES), np.uint8)


@kernel
def list_scene(s: Boards, b: int, r: Rules, view: View, scene: Scene, place: int) -> int:
    """List what is on board b, for `paint_observation`. Returns the number of items."""
    if view.num_planes == _MOST_PLANES:
        _begin_reach(s, b, r, scene, place)
    things = scene.things[b]
    items = scene.items[place]
    n, complete = _list_things(s, b, things, items)
    if not complete:
        _find_things(s, b, things)
        n, complete = _list_things(s, b, things, items)
    for j in range(s.cause.shape[1]):
        if is_alive(s, b, j):
            n = _list_body(s, b, j, OTHER_BODY, j, n, items)
        _list_head(s, b, j, r, scene.heads[place, j])
    return n


@kernel
def _begin_reach(s: Boards, b: int, r: Rules, scene: Scene, place: int) -> None:
    """Note what all snakes' fills have in common."""
    fills = _fills(scene, place)
    note_bodies(s, b, 0, r, 0, fills)
    scene.latest_of[place] = _NOT_NOTED
    x = scene.bitboards
    if fits(s, b, r, x):
        note_open(s, b, r, 0, fills.free_at, x, place)
        for j in range(s.cause.shape[1]):
            if is_alive(s, b, j):
                note_region(s, b, j, r, x, place)


@kernel
def _fills(scene: Scene, place: int) -> ReachArrays:
    arrays = scene.fills[place]
    return ReachArrays(arrays[0], arrays[1], arrays[2], arrays[3], arrays[4])


@kernel
def _list_head(s: Boards, b: int, j: int, r: Rules, head: np.ndarray) -> None:
    """Write the cell of a head and the four cells where it can go into `head`, int16 (5,)."""
    nowhere = len(s.opposite)
    if not is_alive(s, b, j):
        head[:] = nowhere
        return
    head[0] = head_cell(s, b, j)
    for move in range(4):
        target = np.int64(head[0]) + step_offset(r.width, move)
        if r.wrapped:
            target = s.opposite[target]
        head[1 + move] = target if s.opposite[target] == target else nowhere


@kernel
def _list_things(s: Boards, b: int, things: np.ndarray, items: np.ndarray) -> tuple[int, bool]:
    """List the noted cells; returns the number of items, and whether all food and hazards of the
    board are in them.

    They usually are: the notes are from the last turn, and looking at every cell takes longer than
    all else."""
    n = 0
    food = 0
    layers = 0
    for k in range(1, things[0] + 1):
        cell = things[np.uint64(k)]
        food += s.food[b, np.uint64(cell)]
        layers += s.hazards[b, np.uint64(cell)]
        n = _append(cell, FOOD, s.food[b, np.uint64(cell)], _NOBODYS, n, items)
    if s.num_hazards[b]:
        for k in range(1, things[0] + 1):
            cell = things[np.uint64(k)]
            n = _append(
                cell, HAZARD, min(MAX_COUNT, s.hazards[b, np.uint64(cell)]), _NOBODYS, n, items
            )
    return n, food == s.num_food[b] and layers == s.num_hazards[b]


@kernel
def _find_things(s: Boards, b: int, things: np.ndarray) -> None:
    n = 0
    for cell in range(s.food.shape[1]):
        # Always written, but kept only if it counts: a branch would be mispredicted too often.
        things[np.uint64(n + 1)] = cell
        n += (s.food[b, np.uint64(cell)] != 0) | (s.hazards[b, np.uint64(cell)] != 0)
    things[0] = n


@kernel
def _append(cell: int, plane: int, value: int, owner: int, n: int, items: np.ndarray) -> int:
    items[np.uint64(n)] = plane | value << 8 | owner << 16 | np.int64(cell) << 32
    return n + 1


@kernel
def _list_body(s: Boards, b: int, j: int, plane: int, owner: int, n: int, items: np.ndarray) -> int:
    """Append a body from tail to head, so that of stacked entries the one that stays longest is
    seen, and a stacked tail.
    """
    ring = s.body[b, j]
    length = np.int64(s.length[b, j])
    at = s.head[b, j] + length - 1
    if at >= len(ring):
        at -= len(ring)
    tail = ring[np.uint64(at)]
    for turns_left in range(1, length + 1):
        n = _append(ring[np.uint64(at)], plane, min(MAX_COUNT, turns_left), owner, n, items)
        at = at - 1 if at > 0 else len(ring) - 1  # The ring's end comes before its beginning.
    if length > 1 and items[np.uint64(n - length + 1)] >> 32 == tail:
        n = _append(tail, STACKED_TAIL, 1, _NOBODYS, n, items)
    return n


@kernel
def paint_observation(
    s: Boards,
    b: int,
    i: int,
    r: Rules,
    view: View,
    heading: int,
    scene: Scene,
    num_items: int,
    place: int,
    pictures: np.ndarray,
    row: int,
) -> None:
    """Paint into pictures[row] what snake i of board b sees when it heads `heading`.

    `list_scene` must have been called for the board; it returned `num_items`. `pictures` comes from
    `make_pictures`. A dead snake still sees its own body."""
    clear_picture(view, pictures, row)
    picture = pictures[row]
    head = np.int64(head_cell(s, b, i))
    frame = head * view.frames_per_cell + heading
    byte_of = view.byte_of[frame]
    for n in range(1, view.edges[frame, 0] + 1):
        picture[np.uint64(view.edges[frame, np.uint64(n)] + EDGE)] = 1
    items = scene.items[place]
    if not is_alive(s, b, i):
        num_items = _list_body(s, b, i, MY_BODY, _NOBODYS, num_items, items)
    for n in range(num_items):
        item = items[np.uint64(n)]
        plane = (item & 255) + (MY_BODY - OTHER_BODY) * ((item >> 16 & 255) == i)
        picture[np.uint64(byte_of[np.uint64(item >> 32)] + plane)] = item >> 8
    for j in range(s.cause.shape[1]):
        if j != i:
            _paint_head(
                s.length[b, i] - s.length[b, j],
                s.health[b, j],
                scene.heads[place, j],
                byte_of,
                picture,
            )
    at = byte_of[np.uint64(head)]
    picture[np.uint64(at + MY_HEAD)] = s.health[b, i]
    picture[np.uint64(at + OPPONENTS)] = s.num_alive[b] - is_alive(s, b, i)
    if view.num_planes == _MOST_PLANES and is_alive(s, b, i):
        _paint_reach(s, b, i, r, byte_of, scene, place, picture)


@kernel
def _paint_reach(
    s: Boards,
    b: int,
    i: int,
    r: Rules,
    byte_of: np.ndarray,
    scene: Scene,
    place: int,
    picture: np.ndarray,
) -> None:
    """Paint what snake i reaches from each cell that it can move to."""
    free_at = _fills(scene, place).free_at
    if fits(s, b, r, scene.bitboards):
        note_rivals(s, b, i, scene.bitboards, place)
    for move in range(4):
        target = head_cell(s, b, i) + step_offset(r.width, move)
        start = s.opposite[target]
        is_off = start != target and not r.wrapped
        health = health_on(s, b, r, start, s.health[b, i])
        # As `envs.battlesnake.safety` has it, but that counts tails, which may be off the board
        # now.
        if is_off or free_at[start] > 1 or health <= 0:
            continue
        area, first, food = _reach_from(s, b, i, r, start, health, scene, place)
        at = byte_of[np.uint64(start)]
        picture[np.uint64(at + SPACE)] = min(MAX_COUNT, area)
        picture[np.uint64(at + REACHED_FIRST)] = min(MAX_COUNT, first)
        picture[np.uint64(at + ROOMY)] = area >= s.length[b, i]
        picture[np.uint64(at + NEAR_FOOD)] = 0 if food == FAR else MAX_COUNT // food


@kernel
def _reach_from(
    s: Boards, b: int, i: int, r: Rules, start: int, health: int, scene: Scene, place: int
) -> tuple[int, int, int]:
    """Return `area`, `first` and `first_food` of a `Reach` of snake i, which has `health` after its
    move to `start`.
    """
    x = scene.bitboards
    if fits(s, b, r, x):
        area, first, food, moves = spread(r, start, x, place)
        if r.constrictor or moves <= health:
            return area, first, food
    # The snake may starve on the way, or the board isn't one for bitboards.
    fills = _fills(scene, place)
    if scene.latest_of[place] != i:
        _note_latest(s, b, i, r, scene, place)
    area, _, _, first, food = fill(s, b, i, r, start, fills)
    return area, first, food


@kernel
def _note_latest(s: Boards, b: int, i: int, r: Rules, scene: Scene, place: int) -> None:
    """Note when snake i must come to each cell to be first, and before that, once for each board,
    when each snake comes there.
    """
    fills = _fills(scene, place)
    if scene.latest_of[place] == _NOT_NOTED:
        for j in range(s.cause.shape[1]):
            if is_alive(s, b, j):
                note_arrivals(s, b, j, r, fills, scene.arrivals[place, j])
    note_latest(s, b, i, scene.arrivals[place], fills)
    scene.latest_of[place] = i


@kernel
def clear_picture(view: View, pictures: np.ndarray, row: int) -> None:
    """Set a picture to zero."""
    for byte in range(view.size):
        pictures[row, np.uint64(byte)] = 0


@kernel
def _paint_head(
    difference: int, health: int, head: np.ndarray, byte_of: np.ndarray, picture: np.ndarray
) -> None:
    """The head of a snake that is shorter by `difference`, and where it can go."""
    at = byte_of[np.uint64(head[0])]
    plane = WEAKER_HEAD if difference > 0 else STRONGER_HEAD
    limited = max(-_LENGTH_SPAN, min(_LENGTH_SPAN, difference))
    picture[np.uint64(at + plane)] = health
    picture[np.uint64(at + LENGTH_DIFFERENCE)] = limited + _LENGTH_SPAN + 1
    if difference <= 0:
        for move in range(4):
            picture[np.uint64(byte_of[np.uint64(head[1 + move])] + THREAT)] = 1
