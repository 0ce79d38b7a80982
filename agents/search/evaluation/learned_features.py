"""What a learned evaluation sees of a duel: whole numbers that the territory fill on two words
gives nearly for free.

Each snake has the features `OWN`, and the pair has the features `SHARED`, as the snake `me` sees
them. If the other snake looks at the same position, the two sets of `OWN` change places, except
where two snakes of equal length reach a cell at once."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from agents.search.evaluation.territory import NO_FOOD, REACHED_AFTER, Territory
from agents.search.players import head_distance
from envs.battlesnake.jit import kernel
from envs.battlesnake.reach.bitboards import bits_in
from envs.battlesnake.settings import Rules
from envs.battlesnake.state import Boards, State, head_cell, tail_cell

OWN = (
    # cells that it reaches first within so many moves
    *(f"reached_{moves}" for moves in REACHED_AFTER),
    "area",  # cells that it reaches first
    "length",
    "health",
    "hunger",  # a hundredth of the square of the health that is missing
    "food_near",  # 20 less the moves to the nearest food that it reaches first, at least 0
    "no_food",  # 1 if it reaches no food first
    "starving",  # 1 if the nearest food is farther than its health lasts, or out of reach
    "food_owned",  # how much food it reaches first, at most 6
    "lack",  # body entries that don't fit into its area
    "tight",  # 1 if its body is longer than its reach after 14 moves
    "tail_reached",  # 1 if it reaches its own tail first
    "other_tail_reached",  # 1 if it reaches the other's tail first
    "freed_cells",  # cells of its area that a body covered
    "edge_cells",  # cells of its area at an edge of the board
    "neighbours",  # pairs of neighbouring cells in its area: how compact it is
    "contact",  # cells of its area beside the other's
    "head_at_edge",  # edges of the board that its head touches
    "head_off_edge",  # moves from its head to the nearest edges, along both axes
)
SHARED = (
    "tempo",  # always 1
    "longer",  # -1 shorter than the other, 0 as long, 1 longer
    "lead_3",  # by how much I am longer, between -3 and 3
    "lead_8",  # the same between -8 and 8
    "distance",  # moves between the heads on an empty board
    "even",  # 1 if this distance is even, so that the heads can meet
    "even_longer",  # `longer` if it is even, else 0
    "close_longer",  # `longer` times the moves by which the distance is below 6, at least 0
    "at_two",  # 1 if the heads can meet with the next move
    "at_three",  # 1 if they are three moves apart
    "food",  # food on the board, at most 20
)
NUM_FEATURES = 2 * len(OWN) + len(SHARED)
LARGEST = 512
"""No feature is larger than this, whatever its sign: boards of up to 128 cells have at most 232
pairs of neighbouring cells.
"""

_NUM_OWN = len(OWN)
_FAR = 20
_MOST_OWNED = 6
_MOST_FOOD = 20
_CLOSE = 6
_FULL = 100
_1 = np.uint64(1)
_63 = np.uint64(63)


class Geometry(NamedTuple):
    """What the features need to know of a board of C padded cells."""

    edges: np.ndarray
    """uint64 (2,): the cells at an edge, as bits of the two words."""
    at_edge: np.ndarray
    """int64 (C,): how many edges the cell touches."""
    off_edge: np.ndarray
    """int64 (C,): moves to the nearest edge of each axis, added."""


def geometry_of(state: State, territory: Territory) -> Geometry:
    """Return the geometry of boards of this state's shape."""
    y, x = np.divmod(np.arange(state.arrays.occupied.shape[1]), state.width + 2)
    across = np.minimum(x - 1, state.width - x)
    along = np.minimum(y - 1, state.height - y)
    at_edge = (across == 0).astype(np.int64) + (along == 0)
    edges = np.bitwise_or.reduce(
        territory.word[(at_edge > 0) & (across >= 0) & (along >= 0)], axis=0
    )
    return Geometry(edges, at_edge, np.maximum(0, across) + np.maximum(0, along))


@kernel
def write_features(
    s: Boards, r: Rules, f: Territory, geometry: Geometry, features: np.ndarray, me: int
) -> None:
    """Write the features of board 0, a duel that `fill_words` has filled with its stages noted,
    into `features`, integers (F,).

    The order is: those of `OWN` for `me`, those of `OWN` for the other, those of `SHARED`.
    """
    my_place = 0 if f.order[0] == me else 1
    other_place = 1 - my_place
    other = f.order[other_place]
    my_tail = tail_cell(s, 0, me)
    other_tail = tail_cell(s, 0, other)
    mine = features
    theirs = features[_NUM_OWN:]
    # The regions and what is beside them, in two words each.
    my_low = f.words[me, 0]
    my_high = f.words[me, 1]
    their_low = f.words[other, 0]
    their_high = f.words[other, 1]
    beside_me_low, beside_me_high, my_pairs = _surroundings(r, f, my_low, my_high)
    beside_them_low, beside_them_high, their_pairs = _surroundings(r, f, their_low, their_high)
    my_contact = bits_in(my_low & beside_them_low) + bits_in(my_high & beside_them_high)
    their_contact = bits_in(their_low & beside_me_low) + bits_in(their_high & beside_me_high)

    _write_own(s, f, geometry, mine, me, my_place, my_pairs, my_contact)
    mine[15] = _reaches(f, me, my_tail)
    mine[16] = _reaches(f, me, other_tail)
    _write_own(s, f, geometry, theirs, other, other_place, their_pairs, their_contact)
    theirs[15] = _reaches(f, other, other_tail)
    theirs[16] = _reaches(f, other, my_tail)
    food = bits_in(f.food_words[0]) + bits_in(f.food_words[1])
    _write_shared(s, r, features[2 * _NUM_OWN :], me, other, food)


@kernel
def _reaches(f: Territory, i: int, cell: int) -> bool:
    """Return whether snake i reaches a padded cell first."""
    return (f.words[i, 0] & f.word[cell, 0] | f.words[i, 1] & f.word[cell, 1]) != 0


@kernel
def _write_own(
    s: Boards,
    f: Territory,
    geometry: Geometry,
    own: np.ndarray,
    i: int,
    place: int,
    pairs: int,
    contact: int,
) -> None:
    """Write the features `OWN` of snake `i` into `own`, but for the tails; `place` is its place in
    `f.order`.
    """
    low = f.words[i, 0]
    high = f.words[i, 1]
    area = f.area[i]
    length = np.int64(s.length[0, i])
    health = np.int64(s.health[0, i])
    head = head_cell(s, 0, i)
    distance = f.food_distance[i]
    lacking = np.uint64(_FULL - health)
    for n in range(5):
        own[n] = f.reached[n, place]
    own[5] = area
    own[6] = length
    own[7] = health
    own[8] = np.int64(lacking * lacking // np.uint64(100))
    own[9] = max(0, _FAR - distance)
    own[10] = distance == NO_FOOD
    own[11] = distance > health
    own[12] = min(_MOST_OWNED, bits_in(low & f.food_words[0]) + bits_in(high & f.food_words[1]))
    own[13] = max(0, length - area)
    own[14] = length > f.reached[4, place]
    own[17] = area - bits_in(low & f.start_words[0]) - bits_in(high & f.start_words[1])
    own[18] = bits_in(low & geometry.edges[0]) + bits_in(high & geometry.edges[1])
    own[19] = pairs
    own[20] = contact
    own[21] = geometry.at_edge[head]
    own[22] = geometry.off_edge[head]


@kernel
def _surroundings(
    r: Rules, f: Territory, a: np.uint64, b: np.uint64
) -> tuple[np.uint64, np.uint64, int]:
    """Return the cells beside a region (`a`, `b`), as `bitboards.beside` does, and how many pairs
    of its own cells are neighbours.
    """
    width = np.uint64(r.width)
    back = np.uint64(64) - width
    right0 = a << _1 & f.columns[0, 0]
    right1 = (b << _1 | a >> _63) & f.columns[0, 1]
    above0 = a << width
    above1 = b << width | a >> back
    low = right0 | ((a >> _1 | b << _63) & f.columns[1, 0]) | above0 | (a >> width | b << back)
    high = right1 | (b >> _1 & f.columns[1, 1]) | above1 | b >> width
    pairs = bits_in(a & right0) + bits_in(b & right1) + bits_in(a & above0) + bits_in(b & above1)
    return low, high, pairs


@kernel
def _write_shared(s: Boards, r: Rules, shared: np.ndarray, me: int, other: int, food: int) -> None:
    """Write the features `SHARED` into `shared`, as snake `me` sees them."""
    lead = s.length[0, me] - s.length[0, other]
    distance = head_distance(s, r, me, other)
    longer = min(1, max(-1, lead))
    even = 1 - distance % 2
    shared[0] = 1
    shared[1] = longer
    shared[2] = min(3, max(-3, lead))
    shared[3] = min(8, max(-8, lead))
    shared[4] = distance
    shared[5] = even
    shared[6] = even * longer
    shared[7] = longer * max(0, _CLOSE - distance)
    shared[8] = distance == 2
    shared[9] = distance == 3
    shared[10] = min(_MOST_FOOD, food)
