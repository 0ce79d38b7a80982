"""What a learned evaluation sees of a duel: whole numbers that the territory fill on two words
gives nearly for free.

Each snake has the features `OWN`, and the pair has the features `SHARED`, as the snake `me` sees
them. If the other snake looks at the same position, the two sets of `OWN` change places, except
where two snakes of equal length reach a cell at once."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from agents.search.evaluation.fill_words import bits_in
from agents.search.evaluation.territory import NO_FOOD, REACHED_AFTER, Territory
from agents.search.players import head_distance
from envs.battlesnake.jit import kernel
from envs.battlesnake.settings import Rules
from envs.battlesnake.state import Boards, State, head_cell, tail_cell

OWN = (
    *(
        f"reached_{moves}" for moves in REACHED_AFTER
    ),  # cells that it reaches first within so many moves
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

    edges: np.ndarray  # uint64 (2,): the cells at an edge, as bits of the two words
    at_edge: np.ndarray  # int64 (C,): edges that the cell touches
    off_edge: np.ndarray  # int64 (C,): moves to the nearest edge of each axis, added


def geometry(state: State, territory: Territory) -> Geometry:
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
def write_features(s: Boards, r: Rules, f: Territory, g: Geometry, x: np.ndarray, me: int) -> None:
    """Write the features of board 0, a duel that `fill_words` has filled with its stages noted,
    into `x`, integers (F,).

    The order is: those of `OWN` for `me`, those of `OWN` for the other, those of `SHARED`.
    """
    mine = 0 if f.order[0] == me else 1
    other = f.order[1 - mine]
    tail = tail_cell(s, 0, me)
    others = tail_cell(s, 0, other)
    t = f.word[tail, 0]
    u = f.word[tail, 1]
    v = f.word[others, 0]
    w = f.word[others, 1]
    a = f.words[me, 0]
    b = f.words[me, 1]
    c = f.words[other, 0]
    d = f.words[other, 1]
    around_a, around_b, my_pairs = _surroundings(r, f, a, b)
    around_c, around_d, their_pairs = _surroundings(r, f, c, d)
    _write_own(s, f, g, x, me, mine, a, b, my_pairs, bits_in(a & around_c) + bits_in(b & around_d))
    x[15] = (a & t | b & u) != 0
    x[16] = (a & v | b & w) != 0
    y = x[_NUM_OWN:]
    _write_own(
        s,
        f,
        g,
        y,
        other,
        1 - mine,
        c,
        d,
        their_pairs,
        bits_in(c & around_a) + bits_in(d & around_b),
    )
    y[15] = (c & v | d & w) != 0
    y[16] = (c & t | d & u) != 0
    _write_shared(
        s, r, x[2 * _NUM_OWN :], me, other, bits_in(f.food_words[0]) + bits_in(f.food_words[1])
    )


@kernel
def _write_own(
    s: Boards,
    f: Territory,
    g: Geometry,
    x: np.ndarray,
    i: int,
    column: int,
    a: np.uint64,
    b: np.uint64,
    pairs: int,
    contact: int,
) -> None:
    """The features of snake `i`, whose region is `a` and `b`, but for the tails; `column` is its
    place among the stages.
    """
    area = f.area[i]
    length = np.int64(s.length[0, i])
    health = np.int64(s.health[0, i])
    head = head_cell(s, 0, i)
    distance = f.food_distance[i]
    lacking = np.uint64(_FULL - health)
    for n in range(5):
        x[n] = f.reached[n, column]
    x[5], x[6], x[7], x[8] = area, length, health, np.int64(lacking * lacking // np.uint64(100))
    x[9] = max(0, _FAR - distance)
    x[10] = distance == NO_FOOD
    x[11] = distance > health
    x[12] = min(_MOST_OWNED, bits_in(a & f.food_words[0]) + bits_in(b & f.food_words[1]))
    x[13], x[14] = max(0, length - area), length > f.reached[4, column]
    x[17] = area - bits_in(a & f.start_words[0]) - bits_in(b & f.start_words[1])
    x[18] = bits_in(a & g.edges[0]) + bits_in(b & g.edges[1])
    x[19] = pairs
    x[20] = contact
    x[21], x[22] = g.at_edge[head], g.off_edge[head]


@kernel
def _surroundings(
    r: Rules, f: Territory, a: np.uint64, b: np.uint64
) -> tuple[np.uint64, np.uint64, int]:
    """The cells beside a region, as `fill_words.beside` has them, and how many pairs of its own
    cells are neighbours.
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
def _write_shared(s: Boards, r: Rules, x: np.ndarray, me: int, other: int, food: int) -> None:
    lead = s.length[0, me] - s.length[0, other]
    distance = head_distance(s, r, me, other)
    longer = min(1, max(-1, lead))
    even = 1 - distance % 2
    x[0], x[1], x[2], x[3] = 1, longer, min(3, max(-3, lead)), min(8, max(-8, lead))
    x[4], x[5], x[6], x[7] = distance, even, even * longer, longer * max(0, _CLOSE - distance)
    x[8], x[9], x[10] = distance == 2, distance == 3, min(_MOST_FOOD, food)
