"""Alpha-beta search. It finds what I can force, even if the others answer knowing my move."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Annotated, Any, NamedTuple

import numpy as np

from agents.agent import Agent, Decision
from agents.policy import Policy
from agents.search.best_response import best_reply
from agents.search.evaluation import SCALE, SURE, WIN, Weights, crowd_weights_of, judge, weights_of
from agents.search.learned import (
    HAND_WRITTEN,
    Correction,
    LearnedEvaluation,
    chosen_evaluation,
    correct,
    evaluation_in_words,
    new_correction,
)
from agents.search.make_unmake import Turns, drift, new_turns, play, position_hash, search_rules, start_hash, take_back
from agents.search.players import choose_players, head_distance, is_player
from agents.search.ranges import Range
from agents.search.territory import Territory, new_territory, survey
from agents.search.time_management import MAX_CPU_MS, MIN_CPU_MS, SearchLimits, WorkspacePool, check_range, cpu_due
from agents.search.transposition_table import AT_LEAST, AT_MOST, EXACT, NO_MOVE, look_up, new_table, store
from envs.battlesnake.kernels import kernel
from envs.battlesnake.safety import is_certain_death
from envs.battlesnake.settings import Rules
from envs.battlesnake.state import HEAD_COLLISION, Boards, State, head_cell, is_alive, step_offset

MAX_DEPTH = 56
_QUIET_TURNS = 4
_MAX_TURNS = MAX_DEPTH + _QUIET_TURNS + 1
MAX_RIVALS = 3
DEFAULT_NODES = 20_000
DEFAULT_EVALUATION = "duel"
WINDOW = 150
SOON = 3
_FEW_NODES = 200
_EVERY_MOVE = np.ones(4, np.bool_)
# Registers of a search that can be interrupted.
_PLY, _TURN, _NODES, _TURNS_PLAYED, _VALUE, _RETURNING, _PLAYERS = range(7)


class Stack(NamedTuple):
    """The search's own stack, with one row per ply (one snake's choice), and what it learns on the way: P plies, S slots."""

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
    history: np.ndarray  # int64 (S, C): how often a snake's move to a cell caused a cut, weighted by depth
    table: np.ndarray  # uint64 (M, 2)
    allowed: np.ndarray  # bool (4,): the moves that I may choose at the root


class AlphaBetaWorkspace(NamedTuple):
    """All arrays that one search writes to."""

    stack: Stack
    turns: Turns
    territory: Territory
    correction: Correction


def new_workspace(state: State, *, table_bits: int, learned: LearnedEvaluation | None = None) -> AlphaBetaWorkspace:
    """Allocate the arrays for a search on boards of this state's shape, with a table of 2**`table_bits` positions."""
    snakes, cells = state.num_snakes, state.arrays.occupied.shape[1]
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
    return AlphaBetaWorkspace(stack, new_turns(state, _MAX_TURNS), territory, new_correction(state, territory, learned))


def share_table(space: AlphaBetaWorkspace, owner: AlphaBetaWorkspace) -> AlphaBetaWorkspace:
    """Return a workspace with the arrays of `space` and the transposition table of `owner`."""
    return space._replace(stack=space.stack._replace(table=owner.stack.table))


@kernel
def prepare(s: Boards, r: Rules, x: Stack, u: Turns, f: Territory, me: int, max_rivals: int, near: int) -> None:
    """Begin a search on board 0 for snake `me`: choose the snakes to search, and empty the tables."""
    x.table[:] = 0
    x.history[:] = 0
    x.killer[:] = NO_MOVE
    x.reg[:] = 0
    x.reg[_PLAYERS] = choose_players(s, r, x.players, me, max_rivals, near)
    survey(s, r, f)
    start_hash(s, u)


@kernel
def begin(x: Stack, depth: int, alpha: int, beta: int) -> None:
    """Begin an iteration of `depth` turns with the window alpha to beta."""
    x.reg[_PLY], x.reg[_TURN], x.reg[_RETURNING] = 0, 0, 0
    x.player[0], x.depth[0], x.alpha[0], x.beta[0] = 0, depth, alpha, beta
    x.best_move[0] = NO_MOVE


@kernel
def run(s: Boards, r: Rules, x: Stack, u: Turns, f: Territory, w: Weights, c: Correction, until: int) -> bool:
    """Search until the iteration is done, which returns True, or until `until` nodes were visited in all, which returns False.

    After False, another call continues.
    """
    ply, turn, value, returning = x.reg[_PLY], x.reg[_TURN], x.reg[_VALUE], x.reg[_RETURNING] != 0
    nodes, played, done = x.reg[_NODES], x.reg[_TURNS_PLAYED], False
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
        x.depth[ply + 1], x.player[ply + 1] = depth, following
        returning = False
        ply += 1
    x.reg[_PLY], x.reg[_TURN], x.reg[_VALUE], x.reg[_RETURNING] = ply, turn, value, returning
    x.reg[_NODES], x.reg[_TURNS_PLAYED] = nodes, played
    return done


@kernel
def _collect_moves(s: Boards, r: Rules, x: Stack, ply: int) -> None:
    """The moves of a turn whose last chooser chose at `ply`. The snakes that aren't searched meet my head if they dare."""
    while True:
        x.moves[0, x.players[x.player[ply]]] = x.choices[ply, x.tried[ply] - 1]
        if x.player[ply] == 0:
            break
        ply -= 1
    me = x.players[0]
    target = _landing(s, r, me, x.moves[0, me])
    for i in range(s.cause.shape[1]):
        if is_alive(s, 0, i) and not is_player(x.players, x.reg[_PLAYERS], i):
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
    for j in range(player + 1, x.reg[_PLAYERS]):
        if is_alive(s, 0, x.players[j]):
            return j
    return 0


@kernel
def _settle(
    s: Boards, r: Rules, x: Stack, u: Turns, f: Territory, w: Weights, c: Correction, ply: int, turn: int
) -> tuple[bool, int]:
    """(True, score) of a position that needs no search: the game is over, it is known, or it is as deep as we look."""
    me, depth = x.players[0], x.depth[ply]
    if not is_alive(s, 0, me):
        return True, w.draw if _is_mutual(s, r, u, me, turn - 1) and not r.solo else turn - WIN
    if s.num_alive[0] == 1 and not r.solo:
        return True, WIN - turn
    key = position_hash(s, u, turn)
    value, known_depth, bound, move = look_up(x.table, key, turn)
    x.key[ply], x.best_move[ply] = key, move
    if ply > 0 and move != NO_MOVE and known_depth >= depth:
        if bound == EXACT or (bound == AT_LEAST and value >= x.beta[ply]) or (bound == AT_MOST and value <= x.alpha[ply]):
            return True, value
    # Few quiet turns in the first iterations: with several rivals nearby they would eat up a small budget.
    if depth <= 0 and (depth <= -min(_QUIET_TURNS, x.depth[0]) or _is_quiet(s, r, x)):
        value = judge(s, r, f, w, me)
        if c.is_used[0]:
            value += correct(s, r, f, c, me)
        store(x.table, key, value, depth, EXACT, move if move != NO_MOVE else 0, turn)
        return True, value
    return False, 0


@kernel
def _is_mutual(s: Boards, r: Rules, u: Turns, me: int, turn: int) -> bool:
    """Whether the snake that met my head died too, or the last snakes died together: nobody wins that by choice."""
    if s.cause[0, me] == HEAD_COLLISION:
        return not is_alive(s, 0, s.killer[0, me])
    return s.num_alive[0] == 0 and u.counts[turn, 1] > 1


@kernel
def _is_quiet(s: Boards, r: Rules, x: Stack) -> bool:
    """Whether no two heads can meet on the next turn."""
    for j in range(1, x.reg[_PLAYERS]):
        if is_alive(s, 0, x.players[j]) and head_distance(s, r, x.players[0], x.players[j]) == 2:
            return False
    return True


@kernel
def _list_choices(s: Boards, r: Rules, x: Stack, ply: int) -> None:
    """The moves of the ply's snake that are not certain death, the most promising first; straight on if there are none."""
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
        x.merit[place], x.choices[ply, place] = merit, move
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
        x.best[ply], x.best_move[ply] = value, move
        if mine:
            x.alpha[ply] = max(x.alpha[ply], value)
        else:
            x.beta[ply] = min(x.beta[ply], value)
        if x.alpha[ply] >= x.beta[ply]:
            i = x.players[x.player[ply]]
            x.killer[ply] = move
            x.history[i, head_cell(s, 0, i) + step_offset(r.width, move)] += max(1, x.depth[ply]) ** 2


@kernel
def _remember(x: Stack, ply: int, turn: int) -> None:
    best = x.best[ply]
    bound = AT_LEAST if best >= x.beta[ply] else AT_MOST if best <= x.floor[ply] else EXACT
    store(x.table, x.key[ply], best, x.depth[ply], bound, x.best_move[ply], turn)


class AlphaBeta(Agent):
    """Looks ahead turn by turn, deeper and deeper, and plays the move with the best outcome that the others can't prevent.

    **What is searched.** The others are assumed to answer knowing my move (paranoid search). This is exact about what I can
    force: in a duel, a win that it announces (`note["score"]` near `evaluation.WIN`) is a win against anyone. Of more snakes
    only the nearest `max_rivals` are searched, the second and third only if their heads are within `near` moves. The rest go
    straight on where they can, and enter my cell if they are long enough. `evaluation.judge` evaluates positions at the end of
    the search. Where two heads could meet next, the search looks further, for up to 4 turns. It assumes that no food appears
    and that no royale wall moves.

    **With a policy** (a `Policy`, or its bundle's path) it has a fallback. If it proves that I die within `SOON` turns against
    opponents who know my move, it plays the best response to what the policy predicts of the nearest opponent
    (`best_response.best_reply`), with the time that is left, and sets `note["guessed"]`.

    **How long it thinks.** With a limit of `nodes` (positions in which a snake chooses or that are evaluated) it is
    deterministic. With a deadline and no `nodes` it thinks until `margin_ms` before the deadline; with neither, for 20 000
    nodes. `cpu_ms` limits the processor time, in milliseconds, that its thread spends on a move, whatever else the machine
    does. With `threads` above 1, further threads search ahead of the first through the same table as long as it thinks, and
    the deepest answer counts. This depends on timing, so it isn't deterministic; `nodes` then limits only the first thread.
    The transposition table has 2**`table_bits` positions of 16 bytes, and as many again for each further thread.

    `weights` are those of the evaluation, all or some of them by name; `crowd_weights` are those of a search that begins with
    more than two living snakes, where they differ. `evaluation` is a learned evaluation, the path of its file, or the name of
    one that comes with procsnake ("duel"). It corrects the hand-written one in searches that `LearnedEvaluation.applies_to`,
    and `note["evaluation"]` then is "learned". In other searches, and always with `evaluation="hand-written"`, it is
    "hand-written".

    Raises `ConfigError` for options out of range, `LearnedEvaluationError` for a file that is no learned evaluation, whatever
    `Policy.load` raises, and `BundleError` when playing on a board of a size that the policy doesn't know.
    """

    name = "alphabeta"

    def __init__(
        self,
        policy: Policy | str | os.PathLike[str] | None = None,
        *,
        nodes: int | None = None,
        cpu_ms: float | None = None,
        max_rivals: Annotated[int, Range(0, MAX_RIVALS, 1)] = 2,
        near: Annotated[int, Range(1, 24, 1)] = 7,
        margin_ms: float = 15.0,
        max_depth: Annotated[int, Range(1, MAX_DEPTH, 2)] = MAX_DEPTH,
        table_bits: Annotated[int, Range(8, 24, 1)] = 17,
        threads: int = 1,
        weights: Weights | Mapping[str, Any] | None = None,
        crowd_weights: Weights | Mapping[str, Any] | None = None,
        evaluation: LearnedEvaluation | str | os.PathLike[str] = DEFAULT_EVALUATION,
    ) -> None:
        check_range("nodes", nodes, 1, 1 << 40)
        check_range("cpu_ms", cpu_ms, MIN_CPU_MS, MAX_CPU_MS)
        check_range("max_rivals", max_rivals, 0, MAX_RIVALS)
        check_range("max_depth", max_depth, 1, MAX_DEPTH)
        check_range("table_bits", table_bits, 8, 24)
        check_range("threads", threads, 1, 16)
        self.policy = policy if policy is None or isinstance(policy, Policy) else Policy.load(policy)
        if self.policy is not None:
            self.name = f"{self.policy.name}-alphabeta"
        self.nodes, self.cpu_ms, self.margin_ms = nodes, cpu_ms, margin_ms
        self.max_rivals, self.near = max_rivals, near
        self.max_depth, self.table_bits, self.weights = max_depth, table_bits, weights_of(weights)
        self.crowd_weights = crowd_weights_of(weights, crowd_weights)
        self.threads, self._has_guessed = threads, False
        self.learned = chosen_evaluation(evaluation)
        self._idle: WorkspacePool[AlphaBetaWorkspace] = WorkspacePool(self._new_workspace)

    def _new_workspace(self, state: State) -> AlphaBetaWorkspace:
        return new_workspace(state, table_bits=self.table_bits, learned=self.learned)

    def evaluation_in_words(self, state: State | None = None) -> str | None:
        return evaluation_in_words(self.learned, state)

    def act_batch(self, state: State, boards: np.ndarray, slots: np.ndarray) -> np.ndarray:
        budget = self.nodes or (DEFAULT_NODES if self.cpu_ms is None else None)
        pairs = zip(boards, slots, strict=True)
        return np.array([self._search(state, b, i, _EVERY_MOVE, budget, None).move for b, i in pairs], np.int8)

    def act(self, state: State, you: int, deadline: float | None = None) -> Decision:
        return self.act_among(state, you, _EVERY_MOVE, deadline)

    def act_among(self, state: State, you: int, allowed: np.ndarray, deadline: float | None = None) -> Decision:
        nodes = self.nodes or (DEFAULT_NODES if deadline is None and self.cpu_ms is None else None)
        return self._search(state, 0, you, allowed, nodes, None if deadline is None else deadline - self.margin_ms / 1000)

    def _search(
        self, state: State, board: int, you: int, allowed: np.ndarray, nodes: int | None, deadline: float | None
    ) -> Decision:
        with ExitStack() as borrowed:
            spaces = [borrowed.enter_context(self._idle.borrow(state)) for _ in range(self.threads)]
            searches = []
            for place, space in enumerate(spaces):
                own = SearchLimits(nodes, deadline, cpu_due(self.cpu_ms))
                budget = own if place == 0 else SearchLimits(None, math.inf)
                scratch, shared = state.select(np.array([board])), share_table(space, spaces[0])
                searches.append(_Search(self, scratch, int(you), shared, budget, first=1 + place, allowed=allowed))
            found = max(_run_together(searches), key=lambda found: found.depth)
            note: dict[str, Any] = {"score": found.score, "depth": found.depth}
            for key, register in (("nodes", _NODES), ("turns", _TURNS_PLAYED)):
                note[key] = sum(int(space.stack.reg[register]) for space in spaces)
            note["evaluation"] = "learned" if spaces[0].correction.is_used[0] else HAND_WRITTEN
            guess = self._guess(state.select(np.array([board])), searches[0], found)
        if guess is not None:
            note["guessed"] = True
        move = found.move if guess is None else guess
        return Decision(move, value=max(-1.0, min(1.0, found.score / SCALE)), note=note)

    def _guess(self, here: State, root: _Search, found: _Found) -> int | None:
        """If I am lost soon, the best reply to what the policy expects, with what `root` has left of its budget; else None."""
        lost = found.score <= SOON - WIN
        x, budget, now, cpu_now = root.space.stack, root.budget, time.monotonic(), time.thread_time()
        # The first time in any case, so that a first call compiles all.
        if self.policy is None or x.reg[_PLAYERS] == 1 or (self._has_guessed and not lost):
            return None
        rival, left, spent = int(x.players[1]), None if budget.nodes is None else budget.nodes - int(x.reg[_NODES]), 0

        def search(onward: State, share: float) -> int:
            nonlocal spent
            nodes = None if left is None else max(_FEW_NODES, int(share * left) - spent)
            deadline = None if budget.deadline is None else now + share * (budget.deadline - now)
            cpu = None if budget.cpu_due is None else cpu_now + share * (budget.cpu_due - cpu_now)
            score = _Search(self, onward, root.me, root.space, SearchLimits(nodes, deadline, cpu), first=1).run().score
            spent += int(x.reg[_NODES])
            return score

        move = best_reply(self.policy, here, root.me, rival, search, allowed=root.allowed)
        self._has_guessed |= move is not None
        return move if lost else None


class _Found(NamedTuple):
    """What a search came to: the last depth that it finished, its score, and the best move known by now."""

    move: int
    score: int
    depth: int


@dataclass
class _Search:
    """One thread's iterative deepening, from depth `first` on, within windows around the last score."""

    agent: AlphaBeta
    state: State
    me: int
    space: AlphaBetaWorkspace
    budget: SearchLimits
    first: int
    allowed: np.ndarray = field(default_factory=lambda: _EVERY_MOVE)

    def __post_init__(self) -> None:
        self.rules = search_rules(self.state.rules)
        is_crowd = self.state.arrays.num_alive[0] > 2
        self.weights = self.agent.crowd_weights if is_crowd else self.agent.weights
        x, u, f, c = self.space
        c.is_used[0] = self.agent.learned is not None and self.agent.learned.applies_to(self.state)
        prepare(self.state.arrays, self.rules, x, u, f, self.me, self.agent.max_rivals, self.agent.near)
        x.allowed[:] = self.allowed

    def run(self) -> _Found:
        x = self.space.stack
        move, score, reached, width = drift(self.state.arrays, self.rules, self.me), 0, 0, 3 * WIN
        if not self.allowed[move]:
            move = int(self.allowed.argmax())
        for depth in range(self.first, self.agent.max_depth + 1):
            low, high = score - width, score + width
            while True:
                done = self._iterate(depth, low, high)
                # A game that is over has a score, but no move was tried.
                best = int(x.reg[_VALUE] if done else x.best[0])
                if x.best_move[0] != NO_MOVE and best > low and self.allowed[x.best_move[0]]:
                    move = int(x.best_move[0])
                if not done or low < best < high:
                    break
                low, high = (-3 * WIN, high) if best <= low else (low, 3 * WIN)
            if not done:
                break
            score, reached, width = best, depth, WINDOW
            if abs(score) > SURE or (x.num_choices[0] == 1 and depth >= 2):
                break
        return _Found(move, score, reached)

    def _iterate(self, depth: int, low: int, high: int) -> bool:
        """One iteration; False if the budget was spent first. It always makes a start, so that a first call compiles all."""
        x, u, f, c = self.space
        begin(x, depth, low, high)
        while not run(self.state.arrays, self.rules, x, u, f, self.weights, c, self.budget.pause(x.reg[_NODES])):
            if self.budget.spent(x.reg[_NODES]):
                return False
        return True


def _run_together(searches: list[_Search]) -> list[_Found]:
    """What each of the searches found, on a thread each, by the time that the first one is through."""
    first, *others = searches
    if not others:
        return [first.run()]
    with ThreadPoolExecutor(len(others)) as pool:
        pending = [pool.submit(search.run) for search in others]
        try:
            found = first.run()
        finally:
            for search in others:
                search.budget.end()
        return [found, *(other.result() for other in pending)]
