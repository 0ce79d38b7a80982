"""Monte Carlo tree search for simultaneous moves. It evaluates by territory, or by a trained
policy's priors and values.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Annotated, Any, NamedTuple

import numpy as np

from agents.agent import Agent, Decision
from agents.policy import Policy
from agents.sampling import choose, uniforms
from agents.search.evaluation.evaluate import Weights, weights_of
from agents.search.evaluation.territory import Territory, new_territory, survey
from agents.search.make_unmake import Turns, new_turns, search_rules, start_hash
from agents.search.mcts.regret import forget
from agents.search.mcts.search import (
    MATCHING,
    MAX_PLAYERS,
    MAX_TURNS,
    NO_NODE,
    NODES,
    PLAYERS,
    SIMULATIONS,
    STEPS,
    Tree,
    add_node,
    back_up,
    copy_board,
    new_tree,
    simulate,
)
from agents.search.options import Range
from agents.search.players import choose_players
from agents.search.time_management import (
    MAX_CPU_MS,
    MAX_NEAR,
    MIN_CPU_MS,
    SearchLimits,
    WorkspacePool,
    check_range,
    cpu_due,
)
from envs.battlesnake.jit import kernel
from envs.battlesnake.settings import Rules
from envs.battlesnake.state import ALIVE, Boards, State
from envs.common.errors import UnknownNameError

DEFAULT_SIMULATIONS = 5_000
DEFAULT_POLICY_SIMULATIONS = 200
_CHUNK = 200
_LEAST_PRIOR = 0.01
_LEAST_SHARE = 0.1
_EVERY_MOVE = np.ones(4, np.bool_)
ROOTS = ("uct", "regret")


class MCTSWorkspace(NamedTuple):
    """All arrays that one search writes to."""

    tree: Tree
    turns: Turns
    territory: Territory
    leaves: State


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
    start_hash(s, u)
    add_node(s, r, t)


@kernel
def finish(t: Tree, simulations: int) -> None:
    """Credit the simulations that are under way."""
    for b in range(simulations):
        back_up(t, b)


@kernel
def show_root(s: Boards, leaves: Boards) -> None:
    """Copy board 0 into board 0 of `leaves`."""
    copy_board(s, leaves, 0)


class MCTS(Agent):
    """Simulates games from the board on, more and more along the moves that did well, and plays the
    move that it tried most.

    **What is searched.** Moves are simultaneous: in the tree each snake chooses without knowing the others' choice (decoupled
    UCT, PUCT bounds with `exploration`). So it takes risks that alpha-beta declines, because there the others know my move. My
    snake and the nearest `max_rivals` others are searched, the second only if its head is within `near` moves. The rest go
    straight on where they can. A simulation ends at a new position (there are at most `max_nodes`), which is evaluated by
    territory, lengths and hunger. It is assumed that no food appears and that no royale wall moves.

    **At the root.** With `root="regret"`, regret matching chooses the first turn, and the average strategy takes the place of
    the tries. Where a snake that can be foreseen has lost, as when two heads want the same cell, the best strategy is a mixed
    one. With `sample=True` the move is drawn by its share, if that is at least a tenth, as a function of (`seed`, game, turn,
    slot).

    **With a policy** (a `Policy`, or the path of its bundle) its probabilities are the priors, and its values, limited to
    -1..1, the evaluation. It is asked about `batch` positions at a time.

    **How long it thinks.** With a limit of `simulations` it is deterministic. With a deadline and no `simulations` it thinks
    until `margin_ms` (15, with a policy 25) before the deadline; with neither, for 5 000 simulations, or 200 with a policy.
    `cpu_ms` limits the processor time, in milliseconds, that its thread spends on a move.

    `weights` are those of its own evaluation, all or some of them by name. Raises `ConfigError` for
    options out of range, whatever `Policy.load` raises, and `BundleError` when playing on a board
    of a size that the policy doesn't know."""

    def __init__(
        self,
        policy: Policy | str | os.PathLike[str] | None = None,
        *,
        simulations: int | None = None,
        cpu_ms: float | None = None,
        exploration: Annotated[float, Range(0.1, 5.0, 0.1)] = 1.2,
        max_rivals: Annotated[int, Range(0, MAX_PLAYERS - 1, 1)] = MAX_PLAYERS - 1,
        near: Annotated[int, Range(1, 24, 1)] = 7,
        batch: Annotated[int, Range(1, 64, 2)] = 8,
        max_nodes: Annotated[int, Range(256, 1 << 18, 1 << 12)] = 1 << 16,
        margin_ms: float | None = None,
        weights: Weights | Mapping[str, Any] | None = None,
        root: str = "uct",
        sample: bool = False,
        seed: int = 0,
    ) -> None:
        if root not in ROOTS:
            raise UnknownNameError("root", root, ROOTS)
        self.root = root
        self.sample = sample
        self.seed = seed
        check_range("simulations", simulations, 1, 1 << 40)
        check_range("cpu_ms", cpu_ms, MIN_CPU_MS, MAX_CPU_MS, whole=False)
        check_range("exploration", exploration, 0.0, 1e6, whole=False)
        check_range("max_rivals", max_rivals, 0, MAX_PLAYERS - 1)
        check_range("near", near, 0, MAX_NEAR)
        check_range("margin_ms", margin_ms, 0, MAX_CPU_MS, whole=False)
        check_range("batch", batch, 1, 1024)
        check_range("max_nodes", max_nodes, 2, 1 << 24)
        if policy is None or isinstance(policy, Policy):
            self.policy = policy
        else:
            self.policy = Policy.load(policy)
        self.name = "mcts" if self.policy is None else f"{self.policy.name}-mcts"
        self.cpu_ms = cpu_ms
        self.simulations = simulations
        self.exploration = exploration
        self.max_rivals = max_rivals
        self.near = near
        self.batch = batch if self.policy else 1
        self.max_nodes = max_nodes
        self.weights = weights_of(weights)
        if margin_ms is not None:
            self.margin_ms = margin_ms
        else:
            self.margin_ms = 15.0 if self.policy is None else 25.0
        self._idle: WorkspacePool[MCTSWorkspace] = WorkspacePool(self._new_workspace)

    def act_batch(self, state: State, boards: np.ndarray, slots: np.ndarray) -> np.ndarray:
        budget = self.simulations or (self._default if self.cpu_ms is None else None)
        pairs = zip(boards, slots, strict=True)
        return np.array(
            [self._search(state, b, i, _EVERY_MOVE, budget, None).move for b, i in pairs], np.int8
        )

    def act(self, state: State, you: int, deadline: float | None = None) -> Decision:
        return self.act_among(state, you, _EVERY_MOVE, deadline)

    def act_among(
        self, state: State, you: int, allowed: np.ndarray, deadline: float | None = None
    ) -> Decision:
        simulations = self.simulations or (
            self._default if deadline is None and self.cpu_ms is None else None
        )
        due = None if deadline is None else deadline - self.margin_ms / 1000
        return self._search(state, 0, you, allowed, simulations, due)

    @property
    def _default(self) -> int:
        if self.policy is None:
            return DEFAULT_SIMULATIONS
        return DEFAULT_POLICY_SIMULATIONS

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
        self,
        state: State,
        board: int,
        you: int,
        allowed: np.ndarray,
        simulations: int | None,
        deadline: float | None,
    ) -> Decision:
        root = state.select(np.array([board]))
        with self._idle.borrow(state) as space:
            t, u, f, _ = space
            prepare(
                root.arrays,
                search_rules(root.rules),
                t,
                u,
                f,
                int(you),
                self.max_rivals,
                self.near,
                self.root == "regret",
            )
            _allow_alone(t.prior[0, 0], allowed)
            budget = SearchLimits(simulations, deadline, cpu_due(self.cpu_ms))
            if self.policy is None:
                self._simulate(root, space, budget)
            else:
                self._simulate_with_policy(self.policy, root, space, budget)
            return self._decide(root, int(you), t)

    def _simulate(self, root: State, space: MCTSWorkspace, budget: SearchLimits) -> None:
        s, r, (t, u, f, leaves) = root.arrays, search_rules(root.rules), space
        # It always makes a start, so that a first call compiles all.
        while True:
            count = budget.pause(t.reg[SIMULATIONS]) - t.reg[SIMULATIONS]
            simulate(
                s,
                r,
                t,
                u,
                f,
                self.weights,
                leaves.arrays,
                self.exploration,
                min(count, _CHUNK),
                True,
            )
            if budget.spent(t.reg[SIMULATIONS]):
                return

    def _simulate_with_policy(
        self, policy: Policy, root: State, space: MCTSWorkspace, budget: SearchLimits
    ) -> None:
        """The root first, then `batch` simulations at a time."""
        s, r, (t, u, f, leaves) = root.arrays, search_rules(root.rules), space
        leaves.settings = (
            root.settings
        )  # The last search in this workspace may have played by other rules.
        show_root(s, leaves.arrays)
        self._consult(policy, space, np.zeros(1, np.int64), np.zeros(1, np.int64))
        while True:
            count = min(self.batch, budget.pause(t.reg[SIMULATIONS]) - t.reg[SIMULATIONS])
            simulate(s, r, t, u, f, self.weights, leaves.arrays, self.exploration, count, False)
            asked = np.flatnonzero(t.leaf[:count] != NO_NODE)
            if len(asked):
                self._consult(policy, space, asked, t.leaf[asked])
            finish(t, count)
            if budget.spent(t.reg[SIMULATIONS]):
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
        visits = t.visits[0, 0].astype(np.int64)
        total = t.total[0, 0]
        note = {
            "simulations": int(t.reg[SIMULATIONS]),
            "turns": int(t.reg[STEPS]),
            "nodes": int(t.reg[NODES]),
        }
        if not visits.any():
            return Decision(int(t.prior[0, 0].argmax()), note=note)
        amounts = visits if self.root == "uct" else t.regrets.strategy[0]
        shares = (amounts / amounts.sum()).astype(np.float32)
        move = int(shares.argmax())
        if self.sample:
            uniform = uniforms(root, np.zeros(1, np.int64), np.array([you]), seed=self.seed)
            move = int(choose(np.where(shares < _LEAST_SHARE, 0, shares)[None], uniform)[0])
        return Decision(move, shares, float(total[move] / max(visits[move], 1)), note)


def _allow_alone(prior: np.ndarray, allowed: np.ndarray) -> None:
    """Take the prior (4,) of a move that isn't allowed; the rest share it. A move without prior is
    never tried.
    """
    prior[~allowed] = 0
    if not prior.any():
        prior[allowed] = 1
    prior /= prior.sum()
