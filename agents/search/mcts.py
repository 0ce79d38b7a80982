"""Monte Carlo tree search for simultaneous moves, on territory or on a trained policy's priors and values."""

from __future__ import annotations

import os
from typing import NamedTuple

import numpy as np

from agents.agent import Agent, Decision
from agents.policy import Policy
from agents.sampling import choose, uniforms
from agents.search.budget import Budget, WorkspacePool, check_range
from agents.search.judgement import Weights
from agents.search.players import choose_players
from agents.search.regret import forget
from agents.search.territory import Territory, new_territory, survey
from agents.search.tree import (
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
from agents.search.turns import Turns, new_turns, search_rules, start_hash
from envs.battlesnake.kernels import kernel
from envs.battlesnake.state import ALIVE, State
from envs.errors import UnknownNameError

DEFAULT_SIMULATIONS = 5_000
DEFAULT_POLICY_SIMULATIONS = 200
_CHUNK = 200
_LEAST_PRIOR = 0.01
_LEAST_SHARE = 0.1
ROOTS = ("uct", "regret")


class Workspace(NamedTuple):
    """All that one search writes to."""

    tree: Tree
    turns: Turns
    territory: Territory
    leaves: State


@kernel
def prepare(s, r, t, u, f, me, max_rivals, near, matching):
    """Start anew on board 0 for snake `me`, with regret matching at the root or without."""
    t.reg[:] = 0
    t.reg[MATCHING] = matching
    forget(t.regrets)
    t.reg[PLAYERS] = choose_players(s, r, t.players, me, max_rivals, near)
    survey(s, r, f)
    start_hash(s, u)
    add_node(s, r, t)


@kernel
def finish(t, simulations):
    """Credit the simulations that were under way."""
    for b in range(simulations):
        back_up(t, b)


@kernel
def show_root(s, leaves):
    """Copy board 0 into board 0 of `leaves`."""
    copy_board(s, leaves, 0)


class MCTS(Agent):
    """Simulates games from the board on, ever more along the moves that did well for whoever chose them; plays the most tried.

    Moves are simultaneous: in the tree each snake chooses without knowing the others' choice (decoupled UCT, PUCT bounds with
    `exploration`), so it takes risks that alpha-beta, which shows its hand, must decline. Me and the nearest `max_rivals`
    others are searched, the second if its head is within `near` moves; the rest go straight on where they can. A simulation
    ends at a position that is new (of `max_nodes` at most); there territory, lengths and hunger are judged. No food appears and
    no royale wall moves meanwhile.

    With `root="regret"` the first turn is chosen by regret matching, and the average strategy takes the place of the tries.
    Where whoever is foreseen has lost, as when two heads want the same cell, the best strategy is a mixed one, and with
    `sample=True` the move is drawn: by its share, if that is a tenth or more, as a function of (`seed`, game, turn, slot).

    With a `policy` (a `Policy`, or the path of its bundle), its probabilities are the priors and its values, limited to -1..1,
    the judgement; positions are put to it `batch` at a time. Under `simulations` it is deterministic; with a deadline and no
    `simulations` it thinks until `margin_ms` (15, with a policy 25) before that; with neither, for 5 000 simulations, or 200
    with a policy. `weights` are what its own judgement counts.

    Raises `ConfigError` for options out of range, what `Policy.load` raises, and `BundleError` when playing on a board of
    another size than the policy knows.
    """

    def __init__(
        self,
        policy: Policy | str | os.PathLike[str] | None = None,
        *,
        simulations: int | None = None,
        exploration: float = 1.2,
        max_rivals: int = MAX_PLAYERS - 1,
        near: int = 7,
        batch: int = 8,
        max_nodes: int = 1 << 16,
        margin_ms: float | None = None,
        weights: Weights | None = None,
        root: str = "uct",
        sample: bool = False,
        seed: int = 0,
    ) -> None:
        if root not in ROOTS:
            raise UnknownNameError("root", root, ROOTS)
        self.root, self.sample, self.seed = root, sample, seed
        check_range("simulations", simulations, 1, 1 << 40)
        check_range("exploration", exploration, 0.0, 1e6)
        check_range("max_rivals", max_rivals, 0, MAX_PLAYERS - 1)
        check_range("batch", batch, 1, 1024)
        check_range("max_nodes", max_nodes, 2, 1 << 24)
        self.policy = policy if policy is None or isinstance(policy, Policy) else Policy.load(policy)
        self.name = "mcts" if self.policy is None else f"{self.policy.name}-mcts"
        self.simulations, self.exploration, self.max_rivals, self.near = simulations, exploration, max_rivals, near
        self.batch, self.max_nodes, self.weights = batch if self.policy else 1, max_nodes, weights or Weights()
        self.margin_ms = margin_ms if margin_ms is not None else 15.0 if self.policy is None else 25.0
        self._idle: WorkspacePool[Workspace] = WorkspacePool(self._new_workspace)

    def act_batch(self, state: State, boards: np.ndarray, slots: np.ndarray) -> np.ndarray:
        budget = self.simulations or self._default
        return np.array([self._search(state, b, i, budget, None).move for b, i in zip(boards, slots, strict=True)], np.int8)

    def act(self, state: State, you: int, deadline: float | None = None) -> Decision:
        simulations = self.simulations or (self._default if deadline is None else None)
        return self._search(state, 0, you, simulations, None if deadline is None else deadline - self.margin_ms / 1000)

    @property
    def _default(self) -> int:
        return DEFAULT_SIMULATIONS if self.policy is None else DEFAULT_POLICY_SIMULATIONS

    def _new_workspace(self, state: State) -> Workspace:
        leaves = State(self.batch, width=state.width, height=state.height, num_snakes=state.num_snakes, settings=state.settings)
        tree = new_tree(state.num_snakes, self.max_nodes, self.batch)
        return Workspace(tree, new_turns(state, MAX_TURNS), new_territory(state), leaves)

    def _search(self, state: State, board: int, you: int, simulations: int | None, deadline: float | None) -> Decision:
        root = state.select(np.array([board]))
        with self._idle.borrow(state) as space:
            t, u, f, _ = space
            prepare(root.arrays, search_rules(root.rules), t, u, f, int(you), self.max_rivals, self.near, self.root == "regret")
            budget = Budget(simulations, deadline)
            if self.policy is None:
                self._simulate(root, space, budget)
            else:
                self._simulate_with_policy(root, space, budget)
            return self._decide(root, int(you), t)

    def _simulate(self, root: State, space: Workspace, budget: Budget) -> None:
        s, r, (t, u, f, leaves) = root.arrays, search_rules(root.rules), space
        # It always makes a start, so that a first call compiles all.
        while True:
            count = budget.pause(t.reg[SIMULATIONS]) - t.reg[SIMULATIONS]
            simulate(s, r, t, u, f, self.weights, leaves.arrays, self.exploration, min(count, _CHUNK), True)
            if budget.spent(t.reg[SIMULATIONS]):
                return

    def _simulate_with_policy(self, root: State, space: Workspace, budget: Budget) -> None:
        """The root first, then `batch` simulations at a time."""
        s, r, (t, u, f, leaves) = root.arrays, search_rules(root.rules), space
        show_root(s, leaves.arrays)
        self._consult(space, np.zeros(1, np.int64), np.zeros(1, np.int64))
        while True:
            count = min(self.batch, budget.pause(t.reg[SIMULATIONS]) - t.reg[SIMULATIONS])
            simulate(s, r, t, u, f, self.weights, leaves.arrays, self.exploration, count, False)
            asked = np.flatnonzero(t.leaf[:count] != NO_NODE)
            if len(asked):
                self._consult(space, asked, t.leaf[asked])
            finish(t, count)
            if budget.spent(t.reg[SIMULATIONS]):
                return

    def _consult(self, space: Workspace, boards: np.ndarray, nodes: np.ndarray) -> None:
        """Put leaf boards to the policy: its probabilities become their nodes' priors, its values the simulations'."""
        t, leaves = space.tree, space.leaves
        slots = t.players[: t.reg[PLAYERS]]
        rows, players = np.nonzero(leaves.arrays.cause[boards][:, slots] == ALIVE)
        whose, who = boards[rows], slots[players]
        priors, values = self.policy.move_probabilities(leaves, whose, who)
        # A move that is certain death has no prior, however the policy likes it; the least likely of the rest keeps a little.
        legal = t.prior[nodes[rows], players] > 0
        t.prior[nodes[rows], players] = np.where(legal, np.maximum(priors, _LEAST_PRIOR), 0)
        t.value[whose, players] = np.clip(values, -1, 1)

    def _decide(self, root: State, you: int, t: Tree) -> Decision:
        visits, total = t.visits[0, 0].astype(np.int64), t.total[0, 0]
        note = {"simulations": int(t.reg[SIMULATIONS]), "turns": int(t.reg[STEPS]), "nodes": int(t.reg[NODES])}
        if not visits.any():
            return Decision(int(t.prior[0, 0].argmax()), note=note)
        amounts = visits if self.root == "uct" else t.regrets.strategy[0]
        shares = (amounts / amounts.sum()).astype(np.float32)
        move = int(shares.argmax())
        if self.sample:
            uniform = uniforms(root, np.zeros(1, np.int64), np.array([you]), seed=self.seed)
            move = int(choose(np.where(shares < _LEAST_SHARE, 0, shares)[None], uniform)[0])
        return Decision(move, shares, float(total[move] / max(visits[move], 1)), note)
