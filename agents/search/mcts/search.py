"""The tree of a simultaneous-move search. At a node every snake has statistics of its own; a joint
move leads to a child.

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
from agents.search.evaluation.territory import Territory
from agents.search.make_unmake import Turns, drift, play, position_hash, take_back
from agents.search.mcts.regret import Regrets, learn_regret, match_regret, new_regrets
from agents.search.players import is_player
from envs.battlesnake import rng
from envs.battlesnake.jit import kernel
from envs.battlesnake.safety import is_certain_death
from envs.battlesnake.settings import Rules
from envs.battlesnake.state import Boards, head_cell, is_alive, step_offset

MAX_PLAYERS = 3
MAX_TURNS = 60
NO_NODE = -1
_NOT_CHOSEN = -1
_JOINT_MOVES = 4**MAX_PLAYERS
# An evaluation of this much is worth half a win; that the last snakes die together is worth this to
# each.
_SCALE = 600.0
_DRAW = -0.5
# Registers.
NODES, SIMULATIONS, STEPS, PLAYERS, MATCHING = range(5)
_TO_UNIT = 2.0**-32


class Tree(NamedTuple):
    """The arrays of a tree with N nodes, P searched snakes (mine first), B simulations at a time, T
    turns and S slots.
    """

    reg: np.ndarray  # int64 (5,): nodes in use, simulations done, turns played, snakes searched, if the root matches regret
    players: np.ndarray  # int64 (S + P,): their slots
    moves: np.ndarray  # int8 (1, S)
    prior: np.ndarray  # float32 (N, P, 4): 0 for what is certain death or the dead's
    visits: np.ndarray  # int32 (N, P, 4)
    total: np.ndarray  # float32 (N, P, 4): sum of values
    child: np.ndarray  # int32 (N, 4**P): 0 where there is none
    path: np.ndarray  # int32 (B, T): nodes
    chosen: np.ndarray  # int8 (B, T, P): moves taken there, -1 for the dead
    length: np.ndarray  # int64 (B,)
    leaf: np.ndarray  # int64 (B,): the new node, or NO_NODE
    value: np.ndarray  # float64 (B, P): what the simulation came to, -1..1
    regrets: Regrets  # the root's


def new_tree(snakes: int, nodes: int, batch: int) -> Tree:
    """Allocate a tree for `nodes` nodes, with `batch` simulations at a time."""
    return Tree(
        reg=np.zeros(5, np.int64),
        players=np.zeros(snakes + MAX_PLAYERS, np.int64),
        moves=np.zeros((1, snakes), np.int8),
        prior=np.zeros((nodes, MAX_PLAYERS, 4), np.float32),
        visits=np.zeros((nodes, MAX_PLAYERS, 4), np.int32),
        total=np.zeros((nodes, MAX_PLAYERS, 4), np.float32),
        child=np.zeros((nodes, _JOINT_MOVES), np.int32),
        path=np.zeros((batch, MAX_TURNS), np.int32),
        chosen=np.zeros((batch, MAX_TURNS, MAX_PLAYERS), np.int8),
        length=np.zeros(batch, np.int64),
        leaf=np.zeros(batch, np.int64),
        value=np.zeros((batch, MAX_PLAYERS)),
        regrets=new_regrets(MAX_PLAYERS),
    )


@kernel
def add_node(s: Boards, r: Rules, t: Tree) -> int:
    """Add a node for board 0, with equal priors for the moves that are not certain death. Returns
    its number.
    """
    node = t.reg[NODES]
    t.reg[NODES] += 1
    t.child[node] = 0
    t.visits[node] = 0
    t.total[node] = 0
    t.prior[node] = 0
    for p in range(t.reg[PLAYERS]):
        i = t.players[p]
        if is_alive(s, 0, i):
            count = 0
            for move in range(4):
                if not is_certain_death(
                    s, 0, i, r, head_cell(s, 0, i) + step_offset(r.width, move)
                ):
                    t.prior[node, p, move] = 1
                    count += 1
            if count == 0:
                t.prior[node, p, drift(s, r, i)] = 1
            else:
                for move in range(4):
                    t.prior[node, p, move] /= count
    return node


@kernel
def descend(s: Boards, r: Rules, t: Tree, u: Turns, b: int, exploration: float) -> None:
    """Play simulation b on board 0, from the root down to a new node or to the end of a game.

    Until `back_up`, every move that it took counts as a loss, so that simulations that run at the
    same time spread over the moves."""
    node = 0
    depth = 0
    leaf = NO_NODE
    while True:
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
            t.chosen[b, depth, p] = move
        for i in range(s.cause.shape[1]):
            if is_alive(s, 0, i) and not is_player(t.players, t.reg[PLAYERS], i):
                t.moves[0, i] = drift(s, r, i)
        play(s, r, t.moves, u, depth)
        depth += 1
        if depth == MAX_TURNS or _is_settled(s, r, t):
            break
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
def _uniform(s: Boards, t: Tree, u: Turns, b: int, p: int) -> float:
    """A number in [0, 1) for player p in simulation b, a function of the position, too."""
    return (
        rng.draw(position_hash(s, u, 0), t.reg[SIMULATIONS] + b, rng.MOVES, p) >> np.uint64(32)
    ) * _TO_UNIT


@kernel
def _is_settled(s: Boards, r: Rules, t: Tree) -> bool:
    """Whether nothing that comes matters to the first player."""
    return not is_alive(s, 0, t.players[0]) or (s.num_alive[0] == 1 and not r.solo)


@kernel
def _select(t: Tree, node: int, p: int, exploration: float) -> int:
    """The move with the highest upper bound. What was never tried is taken to be as good as the
    rest so far.
    """
    visits = 0
    total = 0.0
    for move in range(4):
        visits += t.visits[node, p, move]
        total += t.total[node, p, move]
    untried = total / visits if visits else 0.0
    width = exploration * math.sqrt(visits + 1.0)
    best = 0
    highest = -1e9
    for move in range(4):
        prior = t.prior[node, p, move]
        tries = t.visits[node, p, move]
        if prior > 0:
            mean = t.total[node, p, move] / tries if tries else untried
            bound = mean + width * prior / (1 + tries)
            if bound > highest:
                best = move
                highest = bound
    return best


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
            together = drawn and t.chosen[b, t.length[b] - 1, p] != _NOT_CHOSEN
            t.value[b, p] = _DRAW if together else -1.0
        elif over:
            t.value[b, p] = 1.0
        else:
            score = weigh(s, r, f, w, i)
            t.value[b, p] = score / (_SCALE + abs(score))


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
        descend(s, r, t, u, b, exploration)
        appraise(s, r, t, f, w, b)
        if not judged:
            copy_board(s, leaves, b)
            leaves.turn[b] += t.length[b]
        for turn in range(t.length[b] - 1, -1, -1):
            take_back(s, r, u, turn)
        if judged:
            back_up(t, b)


@kernel
def copy_board(s: Boards, leaves: Boards, b: int) -> None:
    """Copy all of board 0 that observations show into board b of `leaves`."""
    for i in range(s.cause.shape[1]):
        leaves.head[b, i], leaves.length[b, i], leaves.health[b, i] = (
            s.head[0, i],
            s.length[0, i],
            s.health[0, i],
        )
        leaves.cause[b, i] = s.cause[0, i]
        for entry in range(s.body.shape[2]):
            leaves.body[b, i, entry] = s.body[0, i, entry]
    for cell in range(s.food.shape[1]):
        leaves.occupied[b, cell], leaves.food[b, cell] = s.occupied[0, cell], s.food[0, cell]
        leaves.hazards[b, cell] = s.hazards[0, cell]
    leaves.num_food[b], leaves.num_hazards[b], leaves.num_alive[b] = (
        s.num_food[0],
        s.num_hazards[0],
        s.num_alive[0],
    )
    leaves.turn[b] = s.turn[0]


@kernel
def back_up(t: Tree, b: int) -> None:
    """Add simulation b's values to the statistics of the moves that led to them."""
    if t.reg[MATCHING]:
        joint = 0
        for p in range(t.reg[PLAYERS]):
            joint += t.chosen[b, 0, p] << (2 * p)
        learn_regret(t.regrets, t.prior, t.reg[PLAYERS], joint, t.value, b)
    for turn in range(t.length[b]):
        node = t.path[b, turn]
        for p in range(t.reg[PLAYERS]):
            move = t.chosen[b, turn, p]
            if move != _NOT_CHOSEN:
                t.total[node, p, move] += 1 + t.value[b, p]
    t.reg[SIMULATIONS] += 1
