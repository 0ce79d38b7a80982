"""Prioritised experience replay (Schaul et al. 2016, arXiv 1511.05952) in arrays, which takes whole
rollouts at a time.

Each env runner writes a ring `[length, rows]` of time. Observations are stored once, as the world
makes them (uint8). The next observation of a step is the observation some steps later; it is found
by index when a batch is drawn, as is the n-step return."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from ray.rllib.core.columns import Columns

from envs.common.errors import ConfigError
from train.rollouts.columns import ACTION_MASK
from train.rollouts.n_step import GOES_ON, LOST, TERMINATED, TRUNCATED, n_step_returns, next_cell
from train.rollouts.sum_tree import SumTree
from train.settings import QSettings

DISCOUNTS = "discounts"
WEIGHTS = "weights"
NEXT_ACTION_MASK = "next_action_mask"
CELLS = "cells"
STAMPS = "stamps"
PRIORITY_EPSILON = 1e-6


@dataclass
class Rollout:
    """`steps` steps of every row of one env runner's world.

    It has E decisions of the rows that were valid, in order of time.
    """

    columns: dict[str, np.ndarray]
    """`steps` and `rows` integers (E,): which decision it is; `obs` (E, …), `actions` int64 (E,),
    `rewards` float32 (E,), `endings` uint8 (E,) (`train.rollouts.n_step`); `action_mask` bool (E,
    A) if the world masks actions."""
    final_entries: np.ndarray
    """The entries whose episode was truncated, int64 (F,), in order."""
    final_observations: np.ndarray
    """The last observations of these episodes, (F, …)."""
    steps: int
    num_rows: int
    worker: int
    """The ring to which it belongs, counted from 0."""
    stream: str
    """The name of an unbroken sequence of rollouts. A restarted runner begins a new one."""
    sequence: int
    """Its place in its stream, counted from 0."""
    steps_of_games: int = 0
    """The number of steps of whole games that it holds."""
    priorities: np.ndarray | None = None
    """The first priorities by the worker's own Q values, float32 (steps, rows), or None for the
    highest priority so far. They belong to the `steps` starts that this rollout completes, which
    begin n_step steps before it."""

    def agent_steps(self) -> int:
        """Return the number of decisions."""
        return len(self.columns["rows"])

    def env_steps(self) -> int:
        """Steps of whole games."""
        return self.steps_of_games


class ReplayBuffer:
    """The last steps of `num_rings` env runners, drawn by priority over all of them.

    `capacity` is the number of decisions that there is room for, including those of rows that
    waited. `n_step` and `gamma` are those of the returns. `alpha` is the exponent of the
    priorities; 0 draws evenly. A step is drawn only if it still exists and the step `n_step` later
    has been written."""

    def __init__(
        self, capacity: int, *, num_rings: int, n_step: int, gamma: float, alpha: float, seed: int
    ) -> None:
        self.capacity = capacity
        self.num_rings = num_rings
        self.n_step = n_step
        self.gamma = gamma
        self.alpha = alpha
        self.max_priority = 1.0
        self.added = 0
        """The number of decisions written so far."""
        self._size = 0
        self._rng = np.random.default_rng(seed)
        self._length = 0

    @classmethod
    def of(
        cls, settings: QSettings, *, num_rings: int, seed: int, num_parts: int = 1
    ) -> ReplayBuffer:
        """Make the buffer that the settings describe, or one of `num_parts` equal parts of it."""
        return cls(
            settings.replay_capacity // num_parts,
            num_rings=num_rings,
            n_step=settings.n_step,
            gamma=settings.gamma,
            alpha=settings.priority_alpha,
            seed=seed,
        )

    def __len__(self) -> int:
        """The number of steps that can be drawn."""
        return self._size

    def add(self, rollout: Rollout) -> None:
        """Write a rollout over the oldest steps of its ring. Raises `ConfigError` if it doesn't fit
        into the capacity.
        """
        if not self._length:
            self._allocate(rollout)
        if rollout.steps + self.n_step > self._length:
            raise ConfigError(
                f"replay_capacity is {self.capacity}: that is {self._length} steps of"
                f" {self.num_rings} x {rollout.num_rows} rows, but a rollout has {rollout.steps}"
                f" and n_step is {self.n_step}. Try a replay_capacity of at least"
                f" {8 * (rollout.steps + self.n_step) * self.num_rings * rollout.num_rows}"
            )
        ring = rollout.worker
        place = (rollout.stream, rollout.sequence)
        if place != self._expected[ring]:
            self._break_off(ring)
        self._expected[ring] = (rollout.stream, rollout.sequence + 1)
        self._write(rollout)
        self.added += rollout.agent_steps()
        first = self._opened[ring]
        self._opened[ring] = max(self._opened[ring], self._head[ring] - self.n_step)
        starts = self._cells(ring, np.arange(first, self._opened[ring]))
        priorities = None
        if rollout.priorities is not None and len(starts):
            priorities = rollout.priorities[-(len(starts) // self._rows) :].reshape(-1)
        self._open(starts, priorities)

    def sample(self, batch_size: int, *, beta: float) -> dict[str, np.ndarray]:
        """Draw a batch and return its columns.

        They are `obs`, `actions`, `rewards` (n-step returns), `discounts` (of the value of
        `new_obs`; 0 where the episode terminated), `new_obs`, `next_action_mask`, importance
        `weights` (1 at most), and `cells` and `stamps`, which `update_priorities` needs."""
        # One draw from each of `batch_size` equal parts of the priorities (section 3.3 of the
        # paper).
        cells = self._tree.draw((np.arange(batch_size) + self._rng.random(batch_size)) / batch_size)
        returns, steps, last = n_step_returns(
            cells, self._rewards, self._endings, self.n_step, self.gamma
        )
        ending = self._flat(self._endings)[last]
        following = np.where(ending == GOES_ON, next_cell(last, self._length, self._rows), last)
        new_obs = self._flat(self._obs)[following]
        for k in np.flatnonzero(ending == TRUNCATED):
            new_obs[k] = self._finals[int(last[k])]
        discounts = np.where(ending == TERMINATED, 0.0, self.gamma**steps)
        batch = {
            Columns.OBS: self._flat(self._obs)[cells],
            Columns.ACTIONS: self._flat(self._actions)[cells].astype(np.int64),
            Columns.REWARDS: returns.astype(np.float32),
            DISCOUNTS: discounts.astype(np.float32),
            Columns.NEXT_OBS: new_obs,
            WEIGHTS: self._weights(cells, beta).astype(np.float32),
            CELLS: cells,
            STAMPS: self._stamps.reshape(-1)[cells // self._rows],
        }
        if self._mask is not None:
            # What may be done after a truncated episode is not known: anything.
            batch[NEXT_ACTION_MASK] = (
                self._flat(self._mask)[following] | (ending != GOES_ON)[:, None]
            )
        return batch

    def update_priorities(
        self, cells: np.ndarray, stamps: np.ndarray, td_errors: np.ndarray
    ) -> None:
        """Set the priorities of a batch to |TD error|, except for steps that have been overwritten
        since it was drawn.
        """
        there = self._stamps.reshape(-1)[cells // self._rows] == stamps
        priorities = np.abs(td_errors[there].astype(np.float64)) + PRIORITY_EPSILON
        self.max_priority = max(self.max_priority, float(priorities.max(initial=0.0)))
        self._tree[cells[there]] = priorities**self.alpha

    @property
    def total_priority(self) -> float:
        """The sum of priority^alpha over all steps."""
        return self._tree.total if self._length else 0.0

    def _weights(self, cells: np.ndarray, beta: float) -> np.ndarray:
        probabilities = self._tree[cells] / self._tree.total
        weights = (self._size * probabilities) ** -beta
        return weights / weights.max()

    def _allocate(self, rollout: Rollout) -> None:
        self._rows = rollout.num_rows
        self._length = max(1, self.capacity // (self.num_rings * self._rows))
        shape = (self.num_rings, self._length, self._rows)
        obs = rollout.columns[Columns.OBS]
        mask = rollout.columns.get(ACTION_MASK)
        self._obs = np.zeros((*shape, *obs.shape[1:]), obs.dtype)
        self._actions = np.zeros(shape, np.int16)
        self._rewards = np.zeros(shape, np.float32)
        self._endings = np.zeros(shape, np.uint8)
        self._valid = np.zeros(shape, np.bool_)
        if mask is None:
            self._mask = None
        else:
            self._mask = np.zeros((*shape, mask.shape[1]), np.bool_)
        self._finals: dict[int, np.ndarray] = {}
        self._stamps = np.full(shape[:2], -1, np.int64)
        self._tree = SumTree(self.num_rings * self._length * self._rows)
        # In steps since the ring began, so they only grow.
        self._head = np.zeros(self.num_rings, np.int64)
        self._opened = np.zeros(self.num_rings, np.int64)
        self._expected: list[tuple[str, int] | None] = [None] * self.num_rings

    @staticmethod
    def _flat(array: np.ndarray) -> np.ndarray:
        """Indexed by cell."""
        return array.reshape(-1, *array.shape[3:])

    def _cells(self, ring: int, times: np.ndarray) -> np.ndarray:
        """All cells of these times, times × rows of them."""
        slots = ring * self._length + times % self._length
        return (slots[:, None] * self._rows + np.arange(self._rows)).reshape(-1)

    def _write(self, rollout: Rollout) -> None:
        ring = rollout.worker
        columns = rollout.columns
        times = self._head[ring] + np.arange(rollout.steps)
        overwritten = self._cells(ring, times)
        self._close(overwritten)
        cells = overwritten[columns["steps"] * self._rows + columns["rows"]]
        self._stamps[ring, times % self._length] = times
        self._flat(self._valid)[overwritten] = False
        self._flat(self._valid)[cells] = True
        for array, name in (
            (self._obs, Columns.OBS),
            (self._actions, Columns.ACTIONS),
            (self._rewards, "rewards"),
            (self._endings, "endings"),
            (self._mask, ACTION_MASK),
        ):
            if array is not None:
                self._flat(array)[cells] = columns[name]
        for cell, observation in zip(
            cells[rollout.final_entries], rollout.final_observations, strict=True
        ):
            self._finals[int(cell)] = observation.copy()
        self._head[ring] += rollout.steps

    def _close(self, cells: np.ndarray) -> None:
        """Steps that can't be drawn any more."""
        drawable = cells[self._tree[cells] > 0.0]
        self._tree[drawable] = 0.0
        self._size -= len(drawable)
        for cell in cells[self._flat(self._endings)[cells] == TRUNCATED]:
            self._finals.pop(int(cell), None)

    def _open(self, starts: np.ndarray, priorities: np.ndarray | None) -> None:
        """Steps that can be drawn from now on, unless they are nobody's or what follows is lost."""
        _, _, last = n_step_returns(starts, self._rewards, self._endings, self.n_step, self.gamma)
        usable = self._flat(self._valid)[starts] & (self._flat(self._endings)[last] != LOST)
        cells = starts[usable]
        first = np.full(len(cells), self.max_priority)
        if priorities is not None:
            first = np.abs(priorities[usable].astype(np.float64)) + PRIORITY_EPSILON
        self._tree[cells] = first**self.alpha
        self._size += len(cells)

    def _break_off(self, ring: int) -> None:
        """What comes next in this ring isn't what came after its last step."""
        head = self._head[ring]
        if head == 0:
            return
        newest = self._cells(ring, np.array([head - 1]))
        endings = self._flat(self._endings)
        endings[newest] = np.where(endings[newest] == GOES_ON, LOST, endings[newest])
        self._open(self._cells(ring, np.arange(self._opened[ring], head)), None)
        self._opened[ring] = head
