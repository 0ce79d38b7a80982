"""Alpha-beta search. It finds what I can force, even if the others answer knowing my move."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Annotated, Any, NamedTuple

import numpy as np

from agents.agent import Agent, Decision
from agents.policy import Policy
from agents.search.alphabeta.best_response import best_reply
from agents.search.alphabeta.search import (
    MAX_DEPTH,
    MAX_RIVALS,
    NODES,
    PLAYERS,
    QUIET_TURNS,
    TURNS_PLAYED,
    VALUE,
    AlphaBetaWorkspace,
    begin,
    new_workspace,
    prepare,
    run,
    share_table,
)
from agents.search.alphabeta.transposition_table import NO_MOVE
from agents.search.evaluation.evaluate import (
    SCALE,
    SURE,
    WIN,
    Weights,
    crowd_weights_of,
    weights_of,
)
from agents.search.evaluation.learned import (
    HAND_WRITTEN,
    LearnedEvaluation,
    chosen_evaluation,
    evaluation_in_words,
)
from agents.search.make_unmake import drift, search_rules
from agents.search.options import Range
from agents.search.time_management import (
    MAX_CPU_MS,
    MAX_NEAR,
    MIN_CPU_MS,
    SearchLimits,
    WorkspacePool,
    check_range,
    cpu_due,
)
from envs.battlesnake.safety import safe_moves
from envs.battlesnake.state import State

DEFAULT_NODES = 20_000
DEFAULT_EVALUATION = "duel"
WINDOW = 150
SOON = 3
NEVER = -3 * WIN
"""The score of a move that isn't considered; all others are larger."""
_FEW_NODES = 200
_EVERY_MOVE = np.ones(4, np.bool_)


class AlphaBeta(Agent):
    """Looks ahead turn by turn, deeper and deeper, and plays the move with the best outcome that
    the others can't prevent.

    **What is searched.** The others are assumed to answer knowing my move (paranoid search). This is exact about what I can
    force: in a duel, a win that it announces (`note["score"]` near `evaluation.WIN`) is a win against anyone. Of more snakes
    only the nearest `max_rivals` are searched, the second and third only if their heads are within `near` moves. The rest go
    straight on where they can, and enter my cell if they are long enough. `evaluation.judge` evaluates positions at the end of
    the search. Where two heads could meet next, the search looks further, for up to 4 turns, or `crowd_quiet_turns` if more
    than two snakes live as it begins. It assumes that no food appears and that no royale wall moves.

    **With a policy** (a `Policy`, or its bundle's path) it has a fallback. If it proves that I die within `SOON` turns against
    opponents who know my move, it plays the best response to what the policy predicts of the nearest opponent
    (`best_response.best_reply`), with the time that is left, and sets `note["guessed"]`.

    **How long it thinks.** With a limit of `nodes` (positions in which a snake chooses or that are evaluated) it is
    deterministic. With a deadline and no `nodes` it thinks until `margin_ms` before the deadline; with neither, for 20 000
    nodes. `cpu_ms` limits the processor time, in milliseconds, that its thread spends on a move, whatever else the machine
    does. With `threads` above 1, further threads search ahead of the first through the same table as long as it thinks, and
    the deepest answer counts. This depends on timing, so it isn't deterministic; `nodes` then limits only the first thread.
    The transposition table has 2**`table_bits` positions of 16 bytes, and as many again for each further thread.

    `weights` are those of the evaluation, all or some of them by name; `crowd_weights` are those of
    a search that begins with more than two living snakes, where they differ. `evaluation` is a
    learned evaluation, the path of its file, or the name of one that comes with procsnake ("duel").
    It corrects the hand-written one in searches that `LearnedEvaluation.applies_to`, and
    `note["evaluation"]` then is "learned". In other searches, and always with
    `evaluation="hand-written"`, it is "hand-written".

    Raises `ConfigError` for options out of range, `LearnedEvaluationError` for a file that is no
    learned evaluation, whatever `Policy.load` raises, and `BundleError` when playing on a board of
    a size that the policy doesn't know."""

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
        crowd_quiet_turns: Annotated[int, Range(0, QUIET_TURNS, 1)] = 1,
        evaluation: LearnedEvaluation | str | os.PathLike[str] = DEFAULT_EVALUATION,
    ) -> None:
        check_range("nodes", nodes, 1, 1 << 40)
        check_range("cpu_ms", cpu_ms, MIN_CPU_MS, MAX_CPU_MS, whole=False)
        check_range("max_rivals", max_rivals, 0, MAX_RIVALS)
        check_range("near", near, 0, MAX_NEAR)
        check_range("margin_ms", margin_ms, 0, MAX_CPU_MS, whole=False)
        check_range("max_depth", max_depth, 1, MAX_DEPTH)
        check_range("table_bits", table_bits, 8, 24)
        check_range("threads", threads, 1, 16)
        check_range("crowd_quiet_turns", crowd_quiet_turns, 0, QUIET_TURNS)
        if policy is None or isinstance(policy, Policy):
            self.policy = policy
        else:
            self.policy = Policy.load(policy)
        if self.policy is not None:
            self.name = f"{self.policy.name}-alphabeta"
        self.nodes = nodes
        self.cpu_ms = cpu_ms
        self.margin_ms = margin_ms
        self.max_rivals = max_rivals
        self.near = near
        self.max_depth = max_depth
        self.table_bits = table_bits
        self.weights = weights_of(weights)
        self.crowd_weights = crowd_weights_of(weights, crowd_weights)
        self.crowd_quiet_turns = crowd_quiet_turns
        self.threads = threads
        self._has_guessed = False
        self.learned = chosen_evaluation(evaluation)
        self._idle: WorkspacePool[AlphaBetaWorkspace] = WorkspacePool(self._new_workspace)

    def _new_workspace(self, state: State) -> AlphaBetaWorkspace:
        return new_workspace(state, table_bits=self.table_bits, learned=self.learned)

    def evaluation_in_words(self, state: State | None = None) -> str | None:
        return evaluation_in_words(self.learned, state)

    def act_batch(self, state: State, boards: np.ndarray, slots: np.ndarray) -> np.ndarray:
        budget = self.nodes or (DEFAULT_NODES if self.cpu_ms is None else None)
        pairs = zip(boards, slots, strict=True)
        return np.array(
            [self._search(state, b, i, _EVERY_MOVE, budget, None).move for b, i in pairs], np.int8
        )

    def act(self, state: State, you: int, deadline: float | None = None) -> Decision:
        return self.act_among(state, you, _EVERY_MOVE, deadline)

    def act_among(
        self, state: State, you: int, allowed: np.ndarray, deadline: float | None = None
    ) -> Decision:
        nodes = self.nodes or (DEFAULT_NODES if deadline is None and self.cpu_ms is None else None)
        return self._search(
            state,
            0,
            you,
            allowed,
            nodes,
            None if deadline is None else deadline - self.margin_ms / 1000,
        )

    def positions_inside(self, state: State, you: int, nodes: Sequence[int]) -> list[State]:
        """Return copies of the positions at which the search of board 0 stands after these numbers
        of nodes, which ascend.

        A search that is through with fewer nodes has fewer positions. They can be over, and `turn`
        is the root's in all."""
        if not nodes:
            return []
        found: list[State] = []
        scratch = state.select(np.zeros(1, np.int64))
        with self._idle.borrow(state) as space:
            stops = _Stops(nodes, lambda: found.append(scratch.select(np.zeros(1, np.int64))))
            _Search(self, scratch, int(you), space, stops, first=1).run()
        return found

    def score_moves(self, state: State, boards: np.ndarray, slots: np.ndarray) -> np.ndarray:
        """Return what each move is worth, int64 (n, 4), for the snakes in `slots` (n,) of `boards`
        (n,).

        All moves of a snake are searched equally far, and share `nodes` (20 000 without such a
        limit). `NEVER` stands for certain death, where there is another move. A single move is
        searched two turns far."""
        safe = safe_moves(state, boards, slots)
        scores = np.full((len(boards), 4), NEVER)
        for n, (board, you) in enumerate(zip(boards, slots, strict=True)):
            with self._idle.borrow(state) as space:
                scratch = state.select(np.array([board]))
                limits = SearchLimits(self.nodes or DEFAULT_NODES, None)
                scores[n] = _Search(self, scratch, int(you), space, limits, first=1).score(
                    np.flatnonzero(safe[n])
                )
        return scores

    def _search(
        self,
        state: State,
        board: int,
        you: int,
        allowed: np.ndarray,
        nodes: int | None,
        deadline: float | None,
    ) -> Decision:
        with ExitStack() as borrowed:
            spaces = [borrowed.enter_context(self._idle.borrow(state)) for _ in range(self.threads)]
            searches = []
            for place, space in enumerate(spaces):
                own = SearchLimits(nodes, deadline, cpu_due(self.cpu_ms))
                budget = own if place == 0 else SearchLimits(None, math.inf)
                scratch = state.select(np.array([board]))
                shared = share_table(space, spaces[0])
                searches.append(
                    _Search(
                        self, scratch, int(you), shared, budget, first=1 + place, allowed=allowed
                    )
                )
            found = max(_run_together(searches), key=lambda found: found.depth)
            note: dict[str, Any] = {"score": found.score, "depth": found.depth}
            for key, register in (("nodes", NODES), ("turns", TURNS_PLAYED)):
                note[key] = sum(int(space.stack.reg[register]) for space in spaces)
            if spaces[0].correction.is_used[0]:
                note["evaluation"] = "learned"
            else:
                note["evaluation"] = HAND_WRITTEN
            guess = self._guess(state.select(np.array([board])), searches[0], found)
        if guess is not None:
            note["guessed"] = True
        move = found.move if guess is None else guess
        return Decision(move, value=max(-1.0, min(1.0, found.score / SCALE)), note=note)

    def _guess(self, here: State, root: _Search, found: _Found) -> int | None:
        """If I am lost soon, the best reply to what the policy expects, with what `root` has left
        of its budget; else None.
        """
        lost = found.score <= SOON - WIN
        x = root.space.stack
        budget = root.budget
        now = time.monotonic()
        cpu_now = time.thread_time()
        # The first time in any case, so that a first call compiles all.
        if self.policy is None or x.reg[PLAYERS] == 1 or (self._has_guessed and not lost):
            return None
        rival = int(x.players[1])
        left = None if budget.nodes is None else budget.nodes - int(x.reg[NODES])
        spent = 0

        def search(onward: State, share: float) -> int:
            nonlocal spent
            if left is None:
                nodes = None
            else:
                nodes = max(_FEW_NODES, int(share * left) - spent)
            if budget.deadline is None:
                deadline = None
            else:
                deadline = now + share * (budget.deadline - now)
            if budget.cpu_due is None:
                cpu = None
            else:
                cpu = cpu_now + share * (budget.cpu_due - cpu_now)
            score = (
                _Search(
                    self, onward, root.me, root.space, SearchLimits(nodes, deadline, cpu), first=1
                )
                .run()
                .score
            )
            spent += int(x.reg[NODES])
            return score

        move = best_reply(self.policy, here, root.me, rival, search, allowed=root.allowed)
        self._has_guessed |= move is not None
        return move if lost else None


class _Stops(SearchLimits):
    """Lets a search stop after each of some numbers of nodes, calls `look` there, and ends it after
    the last one.
    """

    def __init__(self, nodes: Sequence[int], look: Callable[[], None]) -> None:
        super().__init__(nodes[-1], None)
        self._ahead = list(nodes)
        self._look = look

    def pause(self, nodes: int) -> int:
        return self._ahead[0]

    def spent(self, nodes: int) -> bool:
        while self._ahead and nodes >= self._ahead[0]:
            del self._ahead[0]
            self._look()
        return not self._ahead


class _Found(NamedTuple):
    """What a search came to: the last depth that it finished, its score, and the best move known by
    now.
    """

    move: int
    score: int
    depth: int


@dataclass
class _Search:
    """One thread's iterative deepening, from depth `first` on, within windows around the last
    score.
    """

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
        quiet_turns = self.agent.crowd_quiet_turns if is_crowd else QUIET_TURNS
        prepare(
            self.state.arrays,
            self.rules,
            x,
            u,
            f,
            self.me,
            self.agent.max_rivals,
            self.agent.near,
            quiet_turns,
        )
        x.allowed[:] = self.allowed

    def run(self) -> _Found:
        x = self.space.stack
        move = drift(self.state.arrays, self.rules, self.me)
        score = 0
        reached = 0
        width = 3 * WIN
        if not self.allowed[move]:
            move = int(self.allowed.argmax())
        for depth in range(self.first, self.agent.max_depth + 1):
            low = score - width
            high = score + width
            while True:
                done = self._iterate(depth, low, high)
                # A game that is over has a score, but no move was tried.
                best = int(x.reg[VALUE] if done else x.best[0])
                if x.best_move[0] != NO_MOVE and best > low and self.allowed[x.best_move[0]]:
                    move = int(x.best_move[0])
                if not done or low < best < high:
                    break
                low, high = (-3 * WIN, high) if best <= low else (low, 3 * WIN)
            if not done:
                break
            score = best
            reached = depth
            width = WINDOW
            if abs(score) > SURE or (x.num_choices[0] == 1 and depth >= 2):
                break
        return _Found(move, score, reached)

    def score(self, moves: np.ndarray) -> np.ndarray:
        """The scores of these moves, int64 (4,), at the last depth that all of them reached, and
        `NEVER` elsewhere.
        """
        x = self.space.stack
        scores = np.full(4, NEVER)
        scores[moves] = 0
        for depth in range(self.first, self.agent.max_depth + 1):
            found = scores.copy()
            for move in moves:
                x.allowed[:] = False
                x.allowed[move] = True
                if not self._iterate(depth, -3 * WIN, 3 * WIN):
                    return scores
                found[move] = x.reg[VALUE]
            scores = found
            if (np.abs(scores[moves]) > SURE).all() or (len(moves) == 1 and depth >= 2):
                break
        return scores

    def _iterate(self, depth: int, low: int, high: int) -> bool:
        """One iteration; False if the budget was spent first. It always makes a start, so that a
        first call compiles all.
        """
        x, u, f, c = self.space
        begin(x, depth, low, high)
        while not run(
            self.state.arrays, self.rules, x, u, f, self.weights, c, self.budget.pause(x.reg[NODES])
        ):
            if self.budget.spent(x.reg[NODES]):
                return False
        return True


def _run_together(searches: list[_Search]) -> list[_Found]:
    """What each of the searches found, on a thread each, by the time that the first one is
    through.
    """
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
