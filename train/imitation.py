"""Imitation: a network learns a teacher's moves, such as a search's, in the positions that the
network itself reaches.

This is DAgger (Ross, Gordon and Bagnell 2011, arXiv 1011.0686). The network plays, with some of the
teacher's moves among its own, and the teacher gives its move for each position. The teacher's own
games wouldn't be enough, because the network would never learn to recover from its own mistakes.
The value head learns the returns that followed.

`train.settings.ImitationSettings` lists the settings.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np

from envs.api import BatchEnv
from train.config import Experiment
from train.demonstrations.dataset import (
    NO_DEMONSTRATION,
    DemonstrationBatch,
    Demonstrations,
    Episodes,
)
from train.demonstrations.learner import DemonstrationLearner
from train.demonstrations.teacher import Teacher
from train.metrics.rows import means_of, nested_result
from train.runs.sessions.progress import Progress
from train.settings import ImitationSettings
from train.settings.schedule import value_at
from train.worlds.build import make_world, world_options
from train.worlds.state import remember, restore_progress, save_progress


class Imitation(DemonstrationLearner):
    """Plays, asks the teacher and learns in turn.

    A run (`train.runs.sessions.session`) calls `train` again and again. As with the other
    algorithms, checkpoints leave out the memory.
    """

    settings: ImitationSettings

    def __init__(self, experiment: Experiment) -> None:
        super().__init__(experiment, make_world(world_options(experiment)))
        self.settings = settings = experiment.settings_as(ImitationSettings)
        self.teacher = Teacher(settings, self.world)
        num_actions = int(self.world.single_action_space.n)
        self.demonstrations = Demonstrations(
            settings.replay_capacity, self.world.observations[0], num_actions
        )
        self._episodes = Episodes(self.world.num_envs, settings.gamma)
        self._updates_due = 0.0
        self.world.restart(experiment.seed)

    @classmethod
    def check(cls, experiment: Experiment, world: BatchEnv, progress: Progress | None) -> None:
        """Compile the teacher, and raise what `Teacher` and the agent raise if it can't play this
        world. `train.run.check` calls it.
        """
        teacher = Teacher(experiment.settings_as(ImitationSettings), world)
        rows = np.flatnonzero(world.valid)
        teacher.answers(rows, world.action_mask[rows])  # type: ignore[index]
        teacher.close()

    def train(self) -> dict[str, Any]:
        """Play `num_steps` steps of every game, with the updates that are due. Returns metrics,
        named and nested as RLlib's.
        """
        self._threads.before_update()
        remember(self.world, self.network)
        updates: list[dict[str, float]] = []
        before = self.agent_steps
        env_steps = 0
        playing = 0.0
        learning = 0.0
        for _ in range(self.settings.num_steps):
            env_steps += self.world.env_steps_per_advance
            began = time.perf_counter()
            demonstrations = self.play()
            learning_began = time.perf_counter()
            updates += self.learn(demonstrations)
            playing += learning_began - began
            learning += time.perf_counter() - learning_began
        learned = means_of(updates) | {
            "learning_rate": self.learning_rate,
            "lessons": float(self.demonstrations.added),
        }
        return nested_result(
            env_steps=env_steps,
            agent_steps=self.agent_steps - before,
            playing=playing,
            learning=learning,
            episodes=self.world.drain_episodes(),
            learned=learned,
        )

    def play(self) -> int:
        """Play one step of every game, and remember the teacher's answers. Returns how many answers
        it gave.
        """
        world = self.world
        settings = self.settings
        rows = np.flatnonzero(world.valid)
        observations = world.observations[rows]
        masks = world.action_mask[rows]  # type: ignore[index]
        answers = self.teacher.answers(rows, masks)
        demonstrated = answers.actions
        numbers = np.full(len(rows), NO_DEMONSTRATION, np.int64)
        taught = demonstrated != NO_DEMONSTRATION
        led = (self.rng.random(len(rows)) < value_at(settings.beta, self.agent_steps)) & taught
        actions = np.zeros(world.num_envs, np.int64)
        actions[rows] = np.where(led, demonstrated, self._choose(observations, masks))
        lessons = (
            observations[taught],
            masks[taught],
            answers.shares[taught],
            answers.values[taught],
        )
        numbers[taught] = self.demonstrations.add(*lessons)
        world.advance(actions)
        self._episodes.add(rows, numbers, world.rewards[rows])
        for row in np.flatnonzero(world.terminated | world.truncated).tolist():
            has_returns = bool(world.terminated[row])
            self.demonstrations.tell_returns(*self._episodes.end(row, has_returns=has_returns))
        self.agent_steps += len(rows)
        return int(taught.sum())

    def learn(self, demonstrations: int) -> list[dict[str, float]]:
        """Make the updates that are due after so many demonstrations. Returns the metrics of
        each.
        """
        self._updates_due += (
            demonstrations * self.settings.replay_ratio / self.settings.train_batch_size
        )
        if len(self.demonstrations) < self.settings.train_batch_size:
            self._updates_due = 0.0
        updates = []
        while self._updates_due >= 1.0:
            self._updates_due -= 1.0
            batch = self.demonstrations.sample(self.settings.train_batch_size, self.rng)
            updates.append(self.update(batch))
        return updates

    def save_to_path(self, path: str) -> None:
        super().save_to_path(path)
        save_progress(self.world, Path(path))

    def restore_from_path(self, path: str) -> None:
        super().restore_from_path(path)
        restore_progress(self.world, Path(path), self.network)
        self.world.restart(int(self.rng.integers(1 << 31)))

    def stop(self) -> None:
        self.teacher.close()
        super().stop()

    def _worth(self, batch: DemonstrationBatch) -> np.ndarray:
        """The mean of the return and of the teacher's value, weighted by `value_share`; the one
        that is known otherwise.
        """
        share = self.settings.value_share
        if not share:
            return batch.returns
        both = (1 - share) * batch.returns + share * batch.values
        either = np.where(np.isnan(batch.returns), batch.values, batch.returns)
        return np.where(np.isnan(both), either, both).astype(np.float32)

    def _choose(self, observations: np.ndarray, masks: np.ndarray) -> np.ndarray:
        """The network's own actions, int64 (n,)."""
        logits = self.logits(observations, masks)
        # The largest of logits with Gumbel noise is a draw from their softmax.
        explores = self.rng.random((len(logits), 1)) < self.settings.explore
        noise = np.where(explores, self.rng.gumbel(size=logits.shape), 0.0)
        return (logits + noise).argmax(axis=1)
