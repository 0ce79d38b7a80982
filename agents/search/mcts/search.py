"""The tree of a simultaneous-move search: select, expand, evaluate, back up, in numbered steps. At
a node every snake has statistics of its own; a joint move leads to a child.

The search is decoupled UCT: each snake chooses by the results of its own moves alone, as if the
others were part of the world (Tak, Lanctot, Winands, "Monte Carlo Tree Search Variants for
Simultaneous Move Games", 2014). Priors enter as in PUCT (Silver et al., "Mastering the game of Go
without human knowledge", 2017). At the root, regret matching can choose instead (`regret.py`)."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from agents.search.evaluation.evaluate import Weights, weigh
from agents.search.evaluation.fill import divide
from agents.search.evaluation.territory import Territory, survey
from agents.search.make_unmake import Turns, begin_turns, drift, play, position_hash, take_back
from agents.search.mcts.regret import Regrets, forget, learn_regret, match_regret, new_regrets
from agents.search.players import choose_players, is_player
from envs.battlesnake import rng
from envs.battlesnake.jit import kernel
from envs.battlesnake.safety import is_certain_death
from envs.battlesnake.settings import Rules
from envs.battlesnake.state import Boards, head_cell, is_alive, step_offset

MAX_PLAYERS = 3
"""The most snakes whose moves are searched, mine included."""
MAX_TURNS = 60
"""The most turns of a simulation."""
NO_NODE = -1
_NOT_CHOSEN = -1
_JOINT_MOVES = 4**MAX_PLAYERS
_SCALE = 600.0
"""An evaluation of this much is worth half a win."""
_DRAW = -0.5
"""The value for each of the last snakes if they die together."""
_TO_UNIT = 2.0**-32

# The entries of `Tree.reg`.
NODES = 0
SIMULATIONS = 1
STEPS = 2
PLAYERS = 3
MATCHING = 4
_NUM_REGISTERS = 5


class Tree(NamedTuple):
    """The arrays of a tree.

    It has room for N nodes, P searched snakes (mine first), B simulations at a time of T turns
    each, and S slots. A joint move of a turn is a number to the base 4, whose digit p is the move
    of player p.
    """

    reg: np.ndarray
    """int64 (5,): nodes in use, simulations done, turns played, snakes searched, and whether the
    root matches regret.
    """
    players: np.ndarray
    """int64 (S + P,): the slots of the searched snakes."""
    moves: np.ndarray
    """int8 (1, S): the moves of the turn that is about to be played."""
    prior: np.ndarray
    """float32 (N, P, 4): how likely a move seems; 0 for certain death, and for the dead."""
    visits: np.ndarray
    """int32 (N, P, 4): how often a snake has tried a move."""
    total: np.ndarray
    """float32 (N, P, 4): the sum of the values of these tries."""
    child: np.ndarray
    """int32 (N, 4**P): the node after each joint move; 0 where there is none."""
    path: np.ndarray
    """int32 (B, T): the nodes through which a simulation went."""
    taken: np.ndarray
    """int8 (B, T, P): the moves taken there, -1 for the dead."""
    length: np.ndarray
    """int64 (B,): the turns of a simulation."""
    leaf: np.ndarray
    """int64 (B,): the node that a simulation added, or `NO_NODE`."""
    value: np.ndarray
    """float64 (B, P): what a simulation came to, from -1, dead, to 1, won."""
    regrets: Regrets
    """Those of the root."""


def new_tree(snakes: int, nodes: int, batch: int) -> Tree:
    """Allocate a tree for `nodes` nodes, with `batch` simulations at a time."""
    return Tree(
        reg=np.zeros(_NUM_REGISTERS, np.int64),
        players=np.zeros(snakes + MAX_PLAYERS, np.int64),
        moves=np.zeros((1, snakes), np.int8),
        prior=np.zeros((nodes, MAX_PLAYERS, 4), np.float32),
        visits=np.zeros((nodes, MAX_PLAYERS, 4), np.int32),
        total=np.zeros((nodes, MAX_PLAYERS, 4), np.float32),
        child=np.zeros((nodes, _JOINT_MOVES), np.int32),
        path=np.zeros((batch, MAX_TURNS), np.int32),
        taken=np.zeros((batch, MAX_TURNS, MAX_PLAYERS), np.int8),
        length=np.zeros(batch, np.int64),
        leaf=np.zeros(batch, np.int64),
        value=np.zeros((batch, MAX_PLAYERS)),
        regrets=new_regrets(MAX_PLAYERS),
    )


@kernel
def prepare(
    s: Boards,
    r: Rules,
    t: Tree,
    u: Turns,
    f: Territory,
    me: int,
    max_rivals: int,
    near: int,
    matching: bool,
) -> None:
    """Begin a search on board 0 for snake `me`. `matching` asks for regret matching at the root."""
    t.reg[:] = 0
    t.reg[MATCHING] = matching
    forget(t.regrets)
    t.reg[PLAYERS] = choose_players(s, r, t.players, me, max_rivals, near)
    survey(s, r, f)
    begin_turns(s, r, u)
    add_node(s, r, t)


@kernel
def simulate(
    s: Boards,
    r: Rules,
    t: Tree,
    u: Turns,
    f: Territory,
    w: Weights,
    leaves: Boards,
    exploration: float,
    simulations: int,
    judged: bool,
) -> None:
    """Play `simulations` simulations from board 0, which is back at the root afterwards.

    With `judged`, each is evaluated and credited at once. Otherwise the board at the end of
    simulation b is copied into board b of `leaves`, and `back_up` must credit the simulation later.
    """
    for n in range(simulations):
        b = 0 if judged else n
        # Steps 1 to 3. Go down the tree, and add a node.
        descend(s, r, t, u, b, exploration)
        # Step 4. Evaluate the position, or leave that to whoever reads `leaves`.
        appraise(s, r, t, f, w, b)
        if not judged:
            copy_board(s, leaves, b)
            leaves.turn[b] += t.length[b]
        # Step 5. Go back to the root.
        for turn in range(t.length[b] - 1, -1, -1):
            take_back(s, r, u, turn)
        # Step 6. Credit the moves that led there.
        if judged:
            back_up(t, b)


@kernel
def descend(s: Boards, r: Rules, t: Tree, u: Turns, b: int, exploration: float) -> None:
    """Play simulation b on board 0, from the root down to a new node or to the end of a game.

    Until `back_up`, every move that it took counts as a loss, so that simulations that run at the
    same time spread over the moves."""
    node = 0
    depth = 0
    leaf = NO_NODE
    while True:
        # Step 1. Select: every searched snake chooses without knowing what the others choose.
        t.path[b, depth] = node
        joint = 0
        for p in range(t.reg[PLAYERS]):
            move = _NOT_CHOSEN
            if is_alive(s, 0, t.players[p]):
                if depth == 0 and t.reg[MATCHING]:
                    move = match_regret(t.regrets, t.prior, p, _uniform(s, t, u, b, p))
                else:
                    move = _select(t, node, p, exploration)
                t.moves[0, t.players[p]] = move
                t.visits[node, p, move] += 1
                t.total[node, p, move] -= 1
                joint += move << (2 * p)
            t.taken[b, depth, p] = move
        # Step 2. Play the turn. The snakes that aren't searched go straight on where they can.
        for i in range(s.cause.shape[1]):
            if is_alive(s, 0, i) and not is_player(t.players, t.reg[PLAYERS], i):
                t.moves[0, i] = drift(s, r, i)
        play(s, r, t.moves, u, depth)
        depth += 1
        if depth == MAX_TURNS or _is_settled(s, r, t):
            break
        # Step 3. Expand: a position that is new becomes a node, as long as there is room.
        onward = t.child[node, joint]
        if onward == 0:
            if t.reg[NODES] < len(t.child):
                leaf = add_node(s, r, t)
                t.child[node, joint] = leaf
            break
        node = onward
    t.length[b] = depth
    t.leaf[b] = leaf
    t.reg[STEPS] += depth


@kernel
def _select(t: Tree, node: int, p: int, exploration: float) -> int:
    """Return the move of player p with the highest upper bound. A move that was never tried counts
    as good as the average of the rest.
    """
    visits = 0
    total = 0.0
    for move in range(4):
        visits += t.visits[node, p, move]
        total += t.total[node, p, move]
    untried = 0.0
    if visits:
        untried = total / visits
    width = exploration * math.sqrt(visits + 1.0)
    best = 0
    highest = -1e9
    for move in range(4):
        prior = t.prior[node, p, move]
        tries = t.visits[node, p, move]
        if prior > 0:
            mean = untried
            if tries:
                mean = t.total[node, p, move] / tries
            bound = mean + width * prior / (1 + tries)
            if bound > highest:
                best = move
                highest = bound
    return best


@kernel
def _uniform(s: Boards, t: Tree, u: Turns, b: int, p: int) -> float:
    """Return a number in [0, 1) for player p in simulation b, a function of the position, too."""
    draw = rng.draw(position_hash(s, u, 0), t.reg[SIMULATIONS] + b, rng.MOVES, p)
    return (draw >> np.uint64(32)) * _TO_UNIT


@kernel
def _is_settled(s: Boards, r: Rules, t: Tree) -> bool:
    """Return whether nothing that comes matters to the first player."""
    return not is_alive(s, 0, t.players[0]) or (s.num_alive[0] == 1 and not r.solo)


@kernel
def add_node(s: Boards, r: Rules, t: Tree) -> int:
    """Add a node for board 0, and return its number. The moves that are not certain death get equal
    priors.
    """
    node = t.reg[NODES]
    t.reg[NODES] += 1
    t.child[node] = 0
    t.visits[node] = 0
    t.total[node] = 0
    t.prior[node] = 0
    for p in range(t.reg[PLAYERS]):
        i = t.players[p]
        if not is_alive(s, 0, i):
            continue
        head = head_cell(s, 0, i)
        count = 0
        for move in range(4):
            if not is_certain_death(s, 0, i, r, head + step_offset(r.width, move)):
                t.prior[node, p, move] = 1
                count += 1
        if count == 0:
            t.prior[node, p, drift(s, r, i)] = 1
        else:
            for move in range(4):
                t.prior[node, p, move] /= count
    return node


@kernel
def appraise(s: Boards, r: Rules, t: Tree, f: Territory, w: Weights, b: int) -> None:
    """Evaluate board 0 at the end of simulation b for each searched snake: -1 is dead, 1 is the
    last one alive.
    """
    over = s.num_alive[0] == 0 or (s.num_alive[0] == 1 and not r.solo)
    if not over:
        divide(s, r, f, -1)
    drawn = s.num_alive[0] == 0 and not r.solo
    for p in range(t.reg[PLAYERS]):
        i = t.players[p]
        if not is_alive(s, 0, i):
            died_last = t.taken[b, t.length[b] - 1, p] != _NOT_CHOSEN
            if drawn and died_last:
                t.value[b, p] = _DRAW
            else:
                t.value[b, p] = -1.0
        elif over:
            t.value[b, p] = 1.0
        else:
            score = weigh(s, r, f, w, i)
            t.value[b, p] = score / (_SCALE + abs(score))


@kernel
def back_up(t: Tree, b: int) -> None:
    """Add simulation b's values to the statistics of the moves that led to them."""
    if t.reg[MATCHING]:
        joint = 0
        for p in range(t.reg[PLAYERS]):
            joint += t.taken[b, 0, p] << (2 * p)
        learn_regret(t.regrets, t.prior, t.reg[PLAYERS], joint, t.value, b)
    for turn in range(t.length[b]):
        node = t.path[b, turn]
        for p in range(t.reg[PLAYERS]):
            move = t.taken[b, turn, p]
            if move != _NOT_CHOSEN:
                t.total[node, p, move] += 1 + t.value[b, p]
    t.reg[SIMULATIONS] += 1


@kernel
def copy_board(s: Boards, leaves: Boards, b: int) -> None:
    """Copy all of board 0 that observations show into board b of `leaves`."""
    for i in range(s.cause.shape[1]):
        leaves.head[b, i] = s.head[0, i]
        leaves.length[b, i] = s.length[0, i]
        leaves.health[b, i] = s.health[0, i]
        leaves.cause[b, i] = s.cause[0, i]
        for entry in range(s.body.shape[2]):
            leaves.body[b, i, entry] = s.body[0, i, entry]
    for cell in range(s.food.shape[1]):
        leaves.occupied[b, cell] = s.occupied[0, cell]
        leaves.food[b, cell] = s.food[0, cell]
        leaves.hazards[b, cell] = s.hazards[0, cell]
    leaves.num_food[b] = s.num_food[0]
    leaves.num_hazards[b] = s.num_hazards[0]
    leaves.num_alive[b] = s.num_alive[0]
    leaves.turn[b] = s.turn[0]


@kernel
def finish(t: Tree, simulations: int) -> None:
    """Credit the simulations that are under way."""
    for b in range(simulations):
        back_up(t, b)


@kernel
def show_root(s: Boards, leaves: Boards) -> None:
    """Copy board 0 into board 0 of `leaves`."""
    copy_board(s, leaves, 0)
