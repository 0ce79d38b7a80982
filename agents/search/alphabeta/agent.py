"""Alpha-beta search. It finds what I can force even against opponents that know my move."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Annotated, Any

import numpy as np

from agents.agent import Agent, Decision
from agents.policy import Policy
from agents.search.alphabeta.best_response import best_reply
from agents.search.alphabeta.iterative_deepening import (
    NEVER,
    IterativeDeepening,
    Outcome,
    Stops,
    run_together,
)
from agents.search.alphabeta.search import prepare
from agents.search.alphabeta.stack import (
    MAX_DEPTH,
    MAX_RIVALS,
    NODES,
    PLAYERS,
    QUIET_TURNS,
    TURNS_PLAYED,
    AlphaBetaWorkspace,
    new_workspace,
    share_table,
)
from agents.search.evaluation.evaluate import SCALE, WIN, Weights, crowd_weights_of, weights_of
from agents.search.evaluation.learned import (
    HAND_WRITTEN,
    LearnedEvaluation,
    evaluation_in_words,
    find_evaluation,
)
from agents.search.make_unmake import search_rules
from agents.search.options import Range, check_options
from agents.search.players import among_the_living
from agents.search.time_management import (
    MAX_CPU_MS,
    MAX_NEAR,
    MAX_NODES,
    MIN_CPU_MS,
    Remainder,
    SearchLimits,
    WorkspacePool,
    cpu_due,
)
from envs.battlesnake.safety import safe_moves
from envs.battlesnake.state import State

DEFAULT_NODES = 20_000
DEFAULT_EVALUATION = "duel-units"
SOON = 3
"""A loss within this many turns is answered by a guess, if there is a policy."""
SPARE_BITS = 3
"""A table has room for at least 2**`SPARE_BITS` times as many positions as are searched, where
`table_bits` allows it, so that few share a place.
"""
_EVERY_MOVE = np.ones(4, np.bool_)


@dataclass(eq=False, repr=False, kw_only=True)
class AlphaBeta(Agent):
    """Looks deeper turn by turn, and plays the move with the best guaranteed outcome.

    **What is searched.** The others are assumed to answer knowing my move (paranoid search). This
    is exact about what I can force: in a duel, an announced win (`note["score"]` near
    `evaluate.WIN`) is a win against anyone. With more snakes only the nearest are searched. The
    rest make their likeliest moves (`prediction.likely_move`), and enter my cell if they are long
    enough. `evaluate.judge` evaluates positions at the end of the search. Where two heads could
    meet next, the search looks up to 4 turns further. It assumes that no food appears and that no
    royale wall moves.

    **How long it thinks.** With a limit of `nodes` it is deterministic. With a deadline and no
    `nodes` it thinks until `margin_ms` before the deadline; with neither, for 20 000 nodes.

    `note["evaluation"]` is "learned" where the learned evaluation was used, else "hand-written".

    Raises `ConfigError` for options out of range, `LearnedEvaluationError` for a file that is no
    learned evaluation, whatever `Policy.load` raises, and `BundleError` when playing on a board of
    a size that the policy doesn't know."""

    name = "alphabeta"

    policy: Policy | str | os.PathLike[str] | None = field(default=None, kw_only=False)
    """A policy, or the path of its bundle, for a fallback. If the search proves that I die within
    `SOON` turns against opponents who know my move, it plays the best response to what the policy
    predicts of the nearest opponent (`best_response.best_reply`), with the time that is left, and
    sets `note["guessed"]`.
    """
    nodes: Annotated[int | None, Range(1, MAX_NODES)] = None
    """The most nodes per move: positions in which a snake chooses, or that are evaluated."""
    cpu_ms: Annotated[float | None, Range(MIN_CPU_MS, MAX_CPU_MS)] = None
    """The most processor time per move in milliseconds, on the search's own thread, whatever else
    the machine does.
    """
    max_rivals: Annotated[int, Range(0, MAX_RIVALS, step=1)] = 2
    """How many of the other snakes are searched at most, the nearest first."""
    near: Annotated[int, Range(0, MAX_NEAR, step=1, tuned=(1, 24))] = 7
    """The second and third of them are searched only if their heads are within so many moves."""
    margin_ms: Annotated[float, Range(0, MAX_CPU_MS)] = 15.0
    """How long before the deadline the search ends, in milliseconds."""
    max_depth: Annotated[int, Range(1, MAX_DEPTH, step=2)] = MAX_DEPTH
    """The most turns that it looks ahead."""
    table_bits: Annotated[int, Range(8, 24, step=1)] = 17
    """The transposition table has 2**`table_bits` positions of 16 bytes, and as many again for each
    further thread. A single thread that is limited to few `nodes` has a smaller one, because
    emptying it takes time.
    """
    threads: Annotated[int, Range(1, 16)] = 1
    """The number of threads. Those above 1 search ahead of the first through the same table as long
    as it thinks, and the deepest answer counts. This depends on timing, so it isn't deterministic;
    `nodes` then limits only the first thread.
    """
    weights: Weights | Mapping[str, Any] | None = None
    """The weights of the evaluation, all or some of them by name."""
    crowd_weights: Weights | Mapping[str, Any] | None = None
    """The weights of a search that begins with more than two living snakes, where they differ."""
    crowd_quiet_turns: Annotated[int, Range(0, QUIET_TURNS, step=1)] = 1
    """How many turns such a search looks further where two heads could meet, instead of 4."""
    evaluation: LearnedEvaluation | str | os.PathLike[str] = DEFAULT_EVALUATION
    """A learned evaluation, the path of its file, the name of one that comes with procsnake, or
    "hand-written". It corrects the hand-written one in searches that
    `LearnedEvaluation.applies_to`.
    """

    def __post_init__(self) -> None:
        check_options(self)
        if self.policy is not None and not isinstance(self.policy, Policy):
            self.policy = Policy.load(self.policy)
        if self.policy is not None:
            self.name = f"{self.policy.name}-alphabeta"
        self.crowd_weights = crowd_weights_of(self.weights, self.crowd_weights)
        self.weights = weights_of(self.weights)
        self.learned = find_evaluation(self.evaluation)
        self._has_guessed = False
        self._idle: WorkspacePool[AlphaBetaWorkspace] = WorkspacePool(self._new_workspace)

    def _new_workspace(self, state: State) -> AlphaBetaWorkspace:
        # A learned evaluation is for duels, so searches of other games are compiled without one's
        # hidden units.
        learned = self.learned if state.num_snakes == 2 else None
        table_bits = self.table_bits
        if self.nodes is not None and self.threads == 1:
            table_bits = min(table_bits, self.nodes.bit_length() + SPARE_BITS)
        return new_workspace(state, table_bits=table_bits, learned=learned)

    def evaluation_in_words(self, state: State | None = None) -> str | None:
        if state is not None and state.arrays.num_alive[0]:
            state = state.select_living(0)
        return evaluation_in_words(self.learned, state)

    def act_batch(self, state: State, boards: np.ndarray, slots: np.ndarray) -> np.ndarray:
        moves = np.zeros(len(boards), np.int8)
        for n, (board, you) in enumerate(zip(boards, slots, strict=True)):
            moves[n] = self._search(state, board, you, _EVERY_MOVE, None).move
        return moves

    def act(self, state: State, you: int, deadline: float | None = None) -> Decision:
        return self.act_among(state, you, _EVERY_MOVE, deadline)

    def act_among(
        self, state: State, you: int, allowed: np.ndarray, deadline: float | None = None
    ) -> Decision:
        if deadline is not None:
            deadline -= self.margin_ms / 1000
        return self._search(state, 0, you, allowed, deadline)

    def positions_inside(self, state: State, you: int, nodes: Sequence[int]) -> list[State]:
        """Return copies of the positions that the search of board 0 has reached after these numbers
        of nodes, in ascending order.

        A search that ends earlier returns fewer positions. Positions may be those of finished
        games; `turn` is always the root's."""
        if not nodes:
            return []
        positions: list[State] = []
        scratch, me = among_the_living(state, 0, you)
        with self._idle.borrow(scratch) as space:
            stops = Stops(nodes, lambda: positions.append(scratch.copy()))
            self._begin(scratch, me, space, stops).run()
        return positions

    def score_moves(self, state: State, boards: np.ndarray, slots: np.ndarray) -> np.ndarray:
        """Return what each move is worth, int64 (n, 4), for the snakes in `slots` (n,) of `boards`
        (n,).

        All moves of a snake are searched equally far, and share `nodes` (20 000 without such a
        limit). `NEVER` stands for certain death if there is another move. A single move is searched
        two turns deep."""
        safe = safe_moves(state, boards, slots)
        scores = np.full((len(boards), 4), NEVER)
        for n, (board, you) in enumerate(zip(boards, slots, strict=True)):
            scratch, me = among_the_living(state, board, you)
            with self._idle.borrow(scratch) as space:
                limits = SearchLimits(self.nodes or DEFAULT_NODES, None)
                search = self._begin(scratch, me, space, limits)
                scores[n] = search.score_moves(np.flatnonzero(safe[n]))
        return scores

    def _search(
        self, state: State, board: int, you: int, allowed: np.ndarray, deadline: float | None
    ) -> Decision:
        """Search one board until the limits are spent, and return the move with its reasons."""
        nodes = self.nodes
        if nodes is None and deadline is None and self.cpu_ms is None:
            nodes = DEFAULT_NODES
        here, me = among_the_living(state, board, you)
        with ExitStack() as stack:
            spaces = [stack.enter_context(self._idle.borrow(here)) for _ in range(self.threads)]
            # A search may leave its board as it was at its last node. So only the one thread of a
            # search after which nobody guesses may have the original.
            needs_copies = self.threads > 1 or self.policy is not None
            searches = []
            for thread, space in enumerate(spaces):
                # The helpers go on until the first thread is through.
                limits = SearchLimits(None, math.inf)
                if thread == 0:
                    limits = SearchLimits(nodes, deadline, cpu_due(self.cpu_ms))
                search = self._begin(
                    here.copy() if needs_copies else here,
                    me,
                    share_table(space, spaces[0]),
                    limits,
                    first_depth=1 + thread,
                    allowed=allowed,
                )
                searches.append(search)
            outcome = max(run_together(searches), key=lambda outcome: outcome.depth)
            note = _note(outcome, spaces)
            guess = self._guess(here, searches[0], outcome)
        move = outcome.move
        if guess is not None:
            move = guess
            note["guessed"] = True
        value = max(-1.0, min(1.0, outcome.score / SCALE))
        return Decision(move, value=value, note=note)

    def _begin(
        self,
        state: State,
        me: int,
        space: AlphaBetaWorkspace,
        limits: SearchLimits,
        *,
        first_depth: int = 1,
        allowed: np.ndarray = _EVERY_MOVE,
    ) -> IterativeDeepening:
        """Prepare a search of board 0 of `state`, which it will change and restore."""
        if state.arrays.num_alive[0] > 2:
            weights = weights_of(self.crowd_weights)
            quiet_turns = self.crowd_quiet_turns
        else:
            weights = weights_of(self.weights)
            quiet_turns = QUIET_TURNS
        x, u, f, c = space
        c.is_used[0] = self.learned is not None and self.learned.applies_to(state)
        rules = search_rules(state.rules)
        prepare(state.arrays, rules, x, u, f, me, self.max_rivals, self.near, quiet_turns)
        return IterativeDeepening(
            state=state,
            me=me,
            space=space,
            limits=limits,
            weights=weights,
            max_depth=self.max_depth,
            first_depth=first_depth,
            allowed=allowed,
        )

    def _guess(self, here: State, search: IterativeDeepening, outcome: Outcome) -> int | None:
        """Return the best reply to what the policy expects, if I am lost soon, else None. It is
        searched with what `search` has left of its limits.
        """
        is_lost = outcome.score <= SOON - WIN
        x = search.space.stack
        if not isinstance(self.policy, Policy) or x.reg[PLAYERS] == 1:
            return None
        # The first time in any case, so that a first call compiles all.
        if self._has_guessed and not is_lost:
            return None
        rival = int(x.players[1])
        remainder = Remainder(search.limits, int(x.reg[NODES]))

        def score(onward: State, share: float) -> int:
            outcome = self._begin(onward, search.me, search.space, remainder.up_to(share)).run()
            remainder.use(int(x.reg[NODES]))
            return outcome.score

        move = best_reply(self.policy, here, search.me, rival, score, allowed=search.allowed)
        self._has_guessed |= move is not None
        return move if is_lost else None


def _note(outcome: Outcome, spaces: Sequence[AlphaBetaWorkspace]) -> dict[str, Any]:
    """Return what a decision tells of the search: its score, its depth, its effort on all threads,
    and the evaluation that it used.
    """
    evaluation = "learned" if spaces[0].correction.is_used[0] else HAND_WRITTEN
    return {
        "score": outcome.score,
        "depth": outcome.depth,
        "nodes": sum(int(space.stack.reg[NODES]) for space in spaces),
        "turns": sum(int(space.stack.reg[TURNS_PLAYED]) for space in spaces),
        "evaluation": evaluation,
    }
