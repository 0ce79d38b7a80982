"""Monte Carlo tree search for simultaneous moves. It evaluates by territory, or by a trained
policy's priors and values.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Annotated, Any, NamedTuple

import numpy as np

from agents.agent import Agent, Decision
from agents.policy import Policy
from agents.sampling import choose, uniforms
from agents.search.evaluation.evaluate import Weights, weights_of
from agents.search.evaluation.territory import Territory, new_territory
from agents.search.make_unmake import Turns, new_turns, search_rules
from agents.search.mcts.search import (
    MAX_PLAYERS,
    MAX_TURNS,
    NO_NODE,
    NODES,
    PLAYERS,
    SIMULATIONS,
    STEPS,
    Tree,
    finish,
    new_tree,
    prepare,
    show_root,
    simulate,
)
from agents.search.options import Range, check_options
from agents.search.time_management import (
    MAX_CPU_MS,
    MAX_NEAR,
    MAX_NODES,
    MIN_CPU_MS,
    SearchLimits,
    WorkspacePool,
    cpu_due,
)
from envs.battlesnake.state import ALIVE, State
from envs.common.errors import UnknownNameError

DEFAULT_SIMULATIONS = 5_000
DEFAULT_POLICY_SIMULATIONS = 200
MARGIN_MS = 15.0
POLICY_MARGIN_MS = 25.0
_CHUNK = 200
"""The simulations between two looks at the clock."""
_LEAST_PRIOR = 0.01
_LEAST_SHARE = 0.1
"""Moves with a smaller share of the tries are never drawn."""
_EVERY_MOVE = np.ones(4, np.bool_)
RunSimulations = Callable[[int, bool], None]
"""Runs so many simulations from the root, and credits them at once if they are to be judged."""
ROOTS = ("uct", "regret")


class MCTSWorkspace(NamedTuple):
    """All arrays that one search writes to."""

    tree: Tree
    turns: Turns
    territory: Territory
    leaves: State
    """The positions at the ends of simulations, about which the policy is asked: `batch` boards."""


@dataclass(eq=False, repr=False, kw_only=True)
class MCTS(Agent):
    """Simulates games from the board, increasingly along moves that did well, and plays the most
    visited move.

    **What is searched.** Moves are simultaneous: in the tree each snake chooses without knowing the
    others' choice (decoupled UCT, PUCT bounds). So it takes risks that alpha-beta avoids, because
    alpha-beta lets the others know my move. My snake and the nearest others are searched. The rest
    go straight on where they can. A simulation ends at a new position, which is evaluated by
    territory, lengths and hunger. It is assumed that no food appears and that no royale wall moves.

    **How long it thinks.** With a limit of `simulations` it is deterministic. With a deadline and
    no `simulations` it thinks until `margin_ms` before the deadline; with neither, for 5 000
    simulations, or 200 with a policy.

    Raises `ConfigError` for options out of range, `UnknownNameError` for an unknown `root`,
    whatever `Policy.load` raises, and `BundleError` when playing on a board of a size that the
    policy doesn't know."""

    policy: Policy | str | os.PathLike[str] | None = field(default=None, kw_only=False)
    """A policy, or the path of its bundle. Its probabilities are the priors, and its values,
    limited to -1..1, the evaluation.
    """
    simulations: Annotated[int | None, Range(1, MAX_NODES)] = None
    """The number of simulations per move."""
    cpu_ms: Annotated[float | None, Range(MIN_CPU_MS, MAX_CPU_MS)] = None
    """The most processor time per move in milliseconds, on the search's own thread."""
    exploration: Annotated[float, Range(0.0, 1e6, step=0.1, tuned=(0.1, 5.0))] = 1.2
    """The factor of the bounds by which moves that were tried less are preferred."""
    max_rivals: Annotated[int, Range(0, MAX_PLAYERS - 1, step=1)] = MAX_PLAYERS - 1
    """How many of the other snakes are searched at most, the nearest first."""
    near: Annotated[int, Range(0, MAX_NEAR, step=1, tuned=(1, 24))] = 7
    """The second of them is searched only if its head is within so many moves."""
    batch: Annotated[int, Range(1, 1024, step=2, tuned=(1, 64))] = 8
    """The number of positions about which the policy is asked at a time."""
    max_nodes: Annotated[int, Range(2, 1 << 24, step=1 << 12, tuned=(256, 1 << 18))] = 1 << 16
    """The most positions in the tree."""
    margin_ms: Annotated[float | None, Range(0, MAX_CPU_MS)] = None
    """How long before the deadline the search ends, in milliseconds; by default 15, with a policy
    25.
    """
    weights: Weights | Mapping[str, Any] | None = None
    """The weights of its own evaluation, all or some of them by name."""
    root: str = "uct"
    """How moves are chosen at the root. With "regret", regret matching chooses the first turn, and
    the average strategy takes the place of the tries. Where a snake that can be foreseen has lost,
    as when two heads want the same cell, the best strategy is a mixed one.
    """
    sample: bool = False
    """Whether the move is drawn by its share, if that is at least a tenth, as a function of
    (`seed`, game, turn, slot).
    """
    seed: int = 0
    """The seed of these draws."""

    def __post_init__(self) -> None:
        if self.root not in ROOTS:
            raise UnknownNameError("root", self.root, ROOTS)
        check_options(self)
        if self.policy is not None and not isinstance(self.policy, Policy):
            self.policy = Policy.load(self.policy)
        if self.policy is None:
            self.name = "mcts"
            self.batch = 1
            usual_margin_ms = MARGIN_MS
        else:
            self.name = f"{self.policy.name}-mcts"
            usual_margin_ms = POLICY_MARGIN_MS
        if self.margin_ms is None:
            self.margin_ms = usual_margin_ms
        self.weights = weights_of(self.weights)
        self._idle: WorkspacePool[MCTSWorkspace] = WorkspacePool(self._new_workspace)

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
            assert self.margin_ms is not None
            deadline -= self.margin_ms / 1000
        return self._search(state, 0, you, allowed, deadline)

    def _limits(self, deadline: float | None) -> SearchLimits:
        """Return the limits of a search that begins now."""
        simulations = self.simulations
        if simulations is None and deadline is None and self.cpu_ms is None:
            simulations = DEFAULT_POLICY_SIMULATIONS
            if self.policy is None:
                simulations = DEFAULT_SIMULATIONS
        return SearchLimits(simulations, deadline, cpu_due(self.cpu_ms))

    def _new_workspace(self, state: State) -> MCTSWorkspace:
        ring = state.arrays.body.shape[2]
        leaves = State(
            self.batch,
            width=state.width,
            height=state.height,
            num_snakes=state.num_snakes,
            max_length=ring,
        )
        tree = new_tree(state.num_snakes, self.max_nodes, self.batch)
        return MCTSWorkspace(tree, new_turns(state, MAX_TURNS), new_territory(state), leaves)

    def _search(
        self, state: State, board: int, you: int, allowed: np.ndarray, deadline: float | None
    ) -> Decision:
        """Search one board until the limits are spent, and return the move with its reasons."""
        root = state.select(np.array([board]))
        rules = search_rules(root.rules)
        is_matching = self.root == "regret"
        with self._idle.borrow(state) as space:
            t, u, f, leaves = space
            prepare(root.arrays, rules, t, u, f, int(you), self.max_rivals, self.near, is_matching)
            _limit_prior(t.prior[0, 0], allowed)
            limits = self._limits(deadline)
            # Bound once, because a search calls it every few hundred microseconds.
            run = partial(
                simulate,
                root.arrays,
                rules,
                t,
                u,
                f,
                weights_of(self.weights),
                leaves.arrays,
                self.exploration,
            )
            if isinstance(self.policy, Policy):
                self._simulate_with_policy(self.policy, run, root, space, limits)
            else:
                self._simulate(run, t, limits)
            return self._decide(root, int(you), t)

    def _simulate(self, run: RunSimulations, t: Tree, limits: SearchLimits) -> None:
        """Simulate with the evaluation of territory, until the limits are spent."""
        judged = True
        # It always makes a start, so that a first call compiles all.
        while True:
            done = t.reg[SIMULATIONS]
            run(min(limits.pause(done) - done, _CHUNK), judged)
            if limits.is_spent(t.reg[SIMULATIONS]):
                return

    def _simulate_with_policy(
        self,
        policy: Policy,
        run: RunSimulations,
        root: State,
        space: MCTSWorkspace,
        limits: SearchLimits,
    ) -> None:
        """Simulate with a policy, until the limits are spent."""
        judged = False
        t = space.tree
        leaves = space.leaves
        # The last search in this workspace may have played by other rules.
        leaves.settings = root.settings
        # Step 1. The policy says what it thinks of the root.
        show_root(root.arrays, leaves.arrays)
        self._consult(policy, space, np.zeros(1, np.int64), np.zeros(1, np.int64))
        while True:
            # Step 2. Go down the tree `batch` times.
            done = t.reg[SIMULATIONS]
            count = min(self.batch, limits.pause(done) - done)
            run(count, judged)
            # Step 3. The policy evaluates all new positions at once.
            new_leaves = np.flatnonzero(t.leaf[:count] != NO_NODE)
            if len(new_leaves):
                self._consult(policy, space, new_leaves, t.leaf[new_leaves])
            # Step 4. Credit the moves that led there.
            finish(t, count)
            if limits.is_spent(t.reg[SIMULATIONS]):
                return

    def _consult(
        self, policy: Policy, space: MCTSWorkspace, boards: np.ndarray, nodes: np.ndarray
    ) -> None:
        """Put leaf boards to the policy: its probabilities become their nodes' priors, its values
        the simulations'.
        """
        t = space.tree
        leaves = space.leaves
        slots = t.players[: t.reg[PLAYERS]]
        rows, players = np.nonzero(leaves.arrays.cause[boards][:, slots] == ALIVE)
        whose = boards[rows]
        who = slots[players]
        priors, values = policy.move_probabilities(leaves, whose, who)
        # A move that is certain death has no prior, however the policy likes it; the least likely
        # of the rest keeps a little.
        legal = t.prior[nodes[rows], players] > 0
        t.prior[nodes[rows], players] = np.where(legal, np.maximum(priors, _LEAST_PRIOR), 0)
        t.value[whose, players] = np.clip(values, -1, 1)

    def _decide(self, root: State, you: int, t: Tree) -> Decision:
        """Return the move that the tree speaks for, with each move's share of the tries."""
        visits = t.visits[0, 0].astype(np.int64)
        total = t.total[0, 0]
        note = {
            "simulations": int(t.reg[SIMULATIONS]),
            "turns": int(t.reg[STEPS]),
            "nodes": int(t.reg[NODES]),
        }
        if not visits.any():
            return Decision(int(t.prior[0, 0].argmax()), note=note)
        if self.root == "uct":
            amounts = visits
        else:
            amounts = t.regrets.strategy[0]
        shares = (amounts / amounts.sum()).astype(np.float32)
        move = int(shares.argmax())
        if self.sample:
            uniform = uniforms(root, np.zeros(1, np.int64), np.array([you]), seed=self.seed)
            worthwhile = np.where(shares < _LEAST_SHARE, 0, shares)
            move = int(choose(worthwhile[None], uniform)[0])
        value = float(total[move] / max(visits[move], 1))
        return Decision(move, shares, value, note)


def _limit_prior(prior: np.ndarray, allowed: np.ndarray) -> None:
    """Take the prior, float32 (4,), from the moves that aren't allowed; the rest share it. A move
    without prior is never tried.
    """
    prior[~allowed] = 0
    if not prior.any():
        prior[allowed] = 1
    prior /= prior.sum()
