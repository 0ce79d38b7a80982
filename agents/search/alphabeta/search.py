"""The tree that alpha-beta searches: I choose, the others answer knowing my move, and the turn is
played.

The search keeps its own stack instead of recursion, so that it can stop at any node and go on from
there."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from agents.search.alphabeta.transposition_table import (
    AT_LEAST,
    AT_MOST,
    EXACT,
    NO_MOVE,
    look_up,
    new_table,
    store,
)
from agents.search.evaluation.evaluate import WIN, Weights, judge
from agents.search.evaluation.learned import Correction, LearnedEvaluation, correct, new_correction
from agents.search.evaluation.territory import Territory, new_territory, survey
from agents.search.make_unmake import (
    Turns,
    drift,
    new_turns,
    play,
    position_hash,
    start_hash,
    take_back,
)
from agents.search.players import choose_players, head_distance, is_player
from envs.battlesnake.jit import kernel
from envs.battlesnake.safety import is_certain_death
from envs.battlesnake.settings import Rules
from envs.battlesnake.state import HEAD_COLLISION, Boards, State, head_cell, is_alive, step_offset

MAX_DEPTH = 56
MAX_RIVALS = 3
QUIET_TURNS = 4
_MAX_TURNS = MAX_DEPTH + QUIET_TURNS + 1
# Registers of a search that can be interrupted.
_PLY, _TURN, NODES, TURNS_PLAYED, VALUE, _RETURNING, PLAYERS, _QUIET = range(8)


class Stack(NamedTuple):
    """The search's own stack, with one row per ply (one snake's choice), and what it learns on the
    way: P plies, S slots.
    """

    reg: np.ndarray  # int64 (8,)
    players: np.ndarray  # int64 (S,): slots of the snakes that are searched, mine first
    moves: np.ndarray  # int8 (1, S)
    player: np.ndarray  # int64 (P,): place in `players`
    depth: np.ndarray  # int64 (P,): turns to go
    key: np.ndarray  # uint64 (P,)
    alpha: np.ndarray  # int64 (P,)
    beta: np.ndarray  # int64 (P,)
    floor: np.ndarray  # int64 (P,): alpha on entry
    best: np.ndarray  # int64 (P,)
    best_move: np.ndarray  # int64 (P,)
    choices: np.ndarray  # int64 (P, 4)
    merit: np.ndarray  # int64 (4,): by which the choices of one ply are sorted
    num_choices: np.ndarray  # int64 (P,)
    tried: np.ndarray  # int64 (P,)
    killer: np.ndarray  # int64 (P,): the move that last caused a cut here
    history: (
        np.ndarray
    )  # int64 (S, C): how often a snake's move to a cell caused a cut, weighted by depth
    table: np.ndarray  # uint64 (M, 2)
    allowed: np.ndarray  # bool (4,): the moves that I may choose at the root


class AlphaBetaWorkspace(NamedTuple):
    """All arrays that one search writes to."""

    stack: Stack
    turns: Turns
    territory: Territory
    correction: Correction


def new_workspace(
    state: State, *, table_bits: int, learned: LearnedEvaluation | None = None
) -> AlphaBetaWorkspace:
    """Allocate the arrays for a search on boards of this state's shape, with a table of
    2**`table_bits` positions.
    """
    snakes = state.num_snakes
    cells = state.arrays.occupied.shape[1]
    plies = _MAX_TURNS * (MAX_RIVALS + 1) + 1
    column = [np.zeros(plies, np.int64) for _ in range(10)]
    stack = Stack(
        reg=np.zeros(8, np.int64),
        players=np.zeros(max(snakes, MAX_RIVALS + 1), np.int64),
        moves=np.zeros((1, snakes), np.int8),
        player=column[0],
        depth=column[1],
        key=np.zeros(plies, np.uint64),
        alpha=column[2],
        beta=column[3],
        floor=column[4],
        best=column[5],
        best_move=column[6],
        choices=np.zeros((plies, 4), np.int64),
        merit=np.zeros(4, np.int64),
        num_choices=column[7],
        tried=column[8],
        killer=column[9],
        history=np.zeros((snakes, cells), np.int64),
        table=new_table(table_bits),
        allowed=np.ones(4, np.bool_),
    )
    territory = new_territory(state, with_stages=learned is not None)
    return AlphaBetaWorkspace(
        stack, new_turns(state, _MAX_TURNS), territory, new_correction(state, territory, learned)
    )


def share_table(space: AlphaBetaWorkspace, owner: AlphaBetaWorkspace) -> AlphaBetaWorkspace:
    """Return a workspace with the arrays of `space` and the transposition table of `owner`."""
    return space._replace(stack=space.stack._replace(table=owner.stack.table))


@kernel
def prepare(
    s: Boards,
    r: Rules,
    x: Stack,
    u: Turns,
    f: Territory,
    me: int,
    max_rivals: int,
    near: int,
    quiet_turns: int,
) -> None:
    """Begin a search on board 0 for snake `me`: choose the snakes to search, and empty the tables.

    Where two heads could meet next, the search looks up to `quiet_turns` (0 to `QUIET_TURNS`)
    further."""
    x.table[:] = 0
    x.history[:] = 0
    x.killer[:] = NO_MOVE
    x.reg[:] = 0
    x.reg[PLAYERS] = choose_players(s, r, x.players, me, max_rivals, near)
    x.reg[_QUIET] = quiet_turns
    survey(s, r, f)
    start_hash(s, u)


@kernel
def begin(x: Stack, depth: int, alpha: int, beta: int) -> None:
    """Begin an iteration of `depth` turns with the window alpha to beta."""
    x.reg[_PLY] = 0
    x.reg[_TURN] = 0
    x.reg[_RETURNING] = 0
    x.player[0] = 0
    x.depth[0] = depth
    x.alpha[0] = alpha
    x.beta[0] = beta
    x.best_move[0] = NO_MOVE


@kernel
def run(
    s: Boards, r: Rules, x: Stack, u: Turns, f: Territory, w: Weights, c: Correction, until: int
) -> bool:
    """Search until the iteration is done, which returns True, or until `until` nodes were visited
    in all, which returns False.

    After False, another call continues.
    """
    ply = x.reg[_PLY]
    turn = x.reg[_TURN]
    value = x.reg[VALUE]
    returning = x.reg[_RETURNING] != 0
    nodes = x.reg[NODES]
    played = x.reg[TURNS_PLAYED]
    done = False
    while True:
        if returning:
            if ply < 0:
                done = True
                break
            if x.player[ply + 1] == 0:
                turn -= 1
                take_back(s, r, u, turn)
            _note(s, r, x, ply, value)
        else:
            if nodes >= until:
                break
            nodes += 1
            if x.player[ply] == 0:
                settled, value = _settle(s, r, x, u, f, w, c, ply, turn)
                if settled:
                    returning = True
                    ply -= 1
                    continue
            _list_choices(s, r, x, ply)
        if x.tried[ply] == x.num_choices[ply] or x.alpha[ply] >= x.beta[ply]:
            value = x.best[ply]
            if x.player[ply] == 0:
                _remember(x, ply, turn)
            returning = True
            ply -= 1
            continue
        x.tried[ply] += 1
        x.alpha[ply + 1], x.beta[ply + 1] = x.alpha[ply], x.beta[ply]
        following = _next_player(s, x, x.player[ply])
        depth = x.depth[ply]
        if following == 0:
            _collect_moves(s, r, x, ply)
            play(s, r, x.moves, u, turn)
            turn += 1
            played += 1
            depth -= 1
        x.depth[ply + 1] = depth
        x.player[ply + 1] = following
        returning = False
        ply += 1
    x.reg[_PLY] = ply
    x.reg[_TURN] = turn
    x.reg[VALUE] = value
    x.reg[_RETURNING] = returning
    x.reg[NODES] = nodes
    x.reg[TURNS_PLAYED] = played
    return done


@kernel
def _collect_moves(s: Boards, r: Rules, x: Stack, ply: int) -> None:
    """The moves of a turn whose last chooser chose at `ply`. The snakes that aren't searched meet
    my head if they dare.
    """
    while True:
        x.moves[0, x.players[x.player[ply]]] = x.choices[ply, x.tried[ply] - 1]
        if x.player[ply] == 0:
            break
        ply -= 1
    me = x.players[0]
    target = _landing(s, r, me, x.moves[0, me])
    for i in range(s.cause.shape[1]):
        if is_alive(s, 0, i) and not is_player(x.players, x.reg[PLAYERS], i):
            x.moves[0, i] = drift(s, r, i)
            if s.length[0, i] >= s.length[0, me]:
                for move in range(4):
                    if _landing(s, r, i, move) == target:
                        x.moves[0, i] = move


@kernel
def _landing(s: Boards, r: Rules, i: int, move: int) -> int:
    """The padded cell to which a move leads."""
    target = head_cell(s, 0, i) + step_offset(r.width, move)
    return s.opposite[target] if r.wrapped else target


@kernel
def _next_player(s: Boards, x: Stack, player: int) -> int:
    """Place in `players` of who chooses next in this turn; 0 if all have."""
    for j in range(player + 1, x.reg[PLAYERS]):
        if is_alive(s, 0, x.players[j]):
            return j
    return 0


@kernel
def _settle(
    s: Boards,
    r: Rules,
    x: Stack,
    u: Turns,
    f: Territory,
    w: Weights,
    c: Correction,
    ply: int,
    turn: int,
) -> tuple[bool, int]:
    """(True, score) of a position that needs no search: the game is over, it is known, or it is as
    deep as we look.
    """
    me = x.players[0]
    depth = x.depth[ply]
    if not is_alive(s, 0, me):
        return True, w.draw if _is_mutual(s, r, u, me, turn - 1) and not r.solo else turn - WIN
    if s.num_alive[0] == 1 and not r.solo:
        return True, WIN - turn
    key = position_hash(s, u, turn)
    value, known_depth, bound, move = look_up(x.table, key, turn)
    x.key[ply] = key
    x.best_move[ply] = move
    if ply > 0 and move != NO_MOVE and known_depth >= depth:
        if (
            bound == EXACT
            or (bound == AT_LEAST and value >= x.beta[ply])
            or (bound == AT_MOST and value <= x.alpha[ply])
        ):
            return True, value
    # Few quiet turns in the first iterations: with several rivals nearby they would eat up a small
    # budget.
    if depth <= 0 and (depth <= -min(x.reg[_QUIET], x.depth[0]) or _is_quiet(s, r, x)):
        value = judge(s, r, f, w, me)
        if c.is_used[0]:
            value += correct(s, r, f, c, me)
        store(x.table, key, value, depth, EXACT, move if move != NO_MOVE else 0, turn)
        return True, value
    return False, 0


@kernel
def _is_mutual(s: Boards, r: Rules, u: Turns, me: int, turn: int) -> bool:
    """Whether the snake that met my head died too, or the last snakes died together: nobody wins
    that by choice.
    """
    if s.cause[0, me] == HEAD_COLLISION:
        return not is_alive(s, 0, s.killer[0, me])
    return s.num_alive[0] == 0 and u.counts[turn, 1] > 1


@kernel
def _is_quiet(s: Boards, r: Rules, x: Stack) -> bool:
    """Whether no two heads can meet on the next turn."""
    for j in range(1, x.reg[PLAYERS]):
        if is_alive(s, 0, x.players[j]) and head_distance(s, r, x.players[0], x.players[j]) == 2:
            return False
    return True


@kernel
def _list_choices(s: Boards, r: Rules, x: Stack, ply: int) -> None:
    """The moves of the ply's snake that are not certain death, the most promising first; straight
    on if there are none.
    """
    i = x.players[x.player[ply]]
    head = head_cell(s, 0, i)
    known = x.best_move[ply] if x.player[ply] == 0 else NO_MOVE
    count = 0
    for move in range(4):
        target = head + step_offset(r.width, move)
        if is_certain_death(s, 0, i, r, target) or (ply == 0 and not x.allowed[move]):
            continue
        merit = x.history[i, target]
        if move == x.killer[ply]:
            merit += 1 << 40
        if move == known:
            merit += 1 << 41
        place = count
        while place > 0 and merit > x.merit[place - 1]:
            x.merit[place], x.choices[ply, place] = x.merit[place - 1], x.choices[ply, place - 1]
            place -= 1
        x.merit[place] = merit
        x.choices[ply, place] = move
        count += 1
    if count == 0:
        x.choices[ply, 0] = drift(s, r, i)
        count = 1
    x.num_choices[ply], x.tried[ply], x.floor[ply] = count, 0, x.alpha[ply]
    x.best[ply] = -2 * WIN if x.player[ply] == 0 else 2 * WIN
    x.best_move[ply] = NO_MOVE


@kernel
def _note(s: Boards, r: Rules, x: Stack, ply: int, value: int) -> None:
    """Take a child's score into account: mine for the largest, the others' for the smallest."""
    move = x.choices[ply, x.tried[ply] - 1]
    mine = x.player[ply] == 0
    if (value > x.best[ply]) if mine else (value < x.best[ply]):
        x.best[ply] = value
        x.best_move[ply] = move
        if mine:
            x.alpha[ply] = max(x.alpha[ply], value)
        else:
            x.beta[ply] = min(x.beta[ply], value)
        if x.alpha[ply] >= x.beta[ply]:
            i = x.players[x.player[ply]]
            x.killer[ply] = move
            x.history[i, head_cell(s, 0, i) + step_offset(r.width, move)] += (
                max(1, x.depth[ply]) ** 2
            )


@kernel
def _remember(x: Stack, ply: int, turn: int) -> None:
    best = x.best[ply]
    if best >= x.beta[ply]:
        bound = AT_LEAST
    else:
        bound = AT_MOST if best <= x.floor[ply] else EXACT
    store(x.table, x.key[ply], best, x.depth[ply], bound, x.best_move[ply], turn)
