"""Behaviour cloning: a network learns what chosen snakes played in recorded games.

This is supervised learning (Pomerleau 1988, "ALVINN"): the loss is the cross entropy of the moves
that were played. Some games are held out, to measure how the network does on unseen games. It has
never seen where its own mistakes lead, so continue with DAgger (`train.imitation`) or PPO by
`--init-from`.

`train.settings.CloningSettings` lists the settings.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from envs.api import BatchEnv
from envs.common.errors import ConfigError
from train.config import Experiment
from train.demonstrations.dataset import DemonstrationBatch
from train.demonstrations.learner import DemonstrationLearner
from train.demonstrations.recorded import (
    RecordedDemonstrations,
    Tell,
    games_hash,
    read_demonstrations,
)
from train.metrics.rows import means_of, nested_result
from train.runs.sessions.progress import Progress
from train.settings import CloningSettings
from train.worlds.build import single_world

_HELD_OUT_AT_ONCE = 4096
_MOST_HELD_OUT = 20_000
_last_read: tuple[str, RecordedDemonstrations] | None = None


class Cloning(DemonstrationLearner):
    """Learns from recorded games.

    A run (`train.runs.sessions.session`) calls `train` again and again. No game
    is played.

    A checkpoint leaves out the games: a resumed run reads them again, and refuses changed ones.
    """

    settings: CloningSettings

    def __init__(self, experiment: Experiment) -> None:
        super().__init__(experiment, single_world(experiment))
        self.settings = experiment.settings_as(CloningSettings)
        recorded = games_of(experiment, self.world)
        self.demonstrations = recorded.demonstrations
        self.lessons, held_out = recorded.split(self.settings.held_out, experiment.seed)
        self.held_out = np.random.default_rng(experiment.seed).permutation(held_out)[
            :_MOST_HELD_OUT
        ]

    @classmethod
    def check(cls, experiment: Experiment, world: BatchEnv, progress: Progress | None) -> None:
        """Read the games, and raise what `games_of` raises. `train.run.check` calls it."""
        if progress is None:
            games_of(experiment, world)
            return
        progress.status("reading the recorded games")
        games_of(experiment, world, say=progress.say, status=progress.passing)

    def train(self) -> dict[str, Any]:
        """Make `num_updates` updates and measure the held-out games. Returns metrics, named and
        nested as RLlib's.
        """
        self._threads.before_update()
        began = time.perf_counter()
        size = self.settings.train_batch_size
        updates = [
            self.update(self._at(self.rng.choice(self.lessons, size)))
            for _ in range(self.settings.num_updates)
        ]
        learning = time.perf_counter() - began
        decisions = size * len(updates)
        self.agent_steps += decisions
        learned = (
            means_of(updates)
            | self.measure()
            | {
                "learning_rate": self.learning_rate,
                "lessons": float(len(self.lessons)),
            }
        )
        nobody = {"return": np.zeros(0, np.float32)}
        return nested_result(
            env_steps=decisions,
            agent_steps=decisions,
            playing=0.0,
            learning=learning,
            episodes=nobody,
            learned=learned,
        )

    def measure(self) -> dict[str, float]:
        """Return how well the network predicts the held-out games' moves, and how well their most
        frequent action would.
        """
        right = 0
        surprise = 0.0
        for places in np.array_split(self.held_out, 1 + len(self.held_out) // _HELD_OUT_AT_ONCE):
            batch = self._at(places)
            logits = self.logits(batch.observations, batch.masks).astype(np.float64)
            right += int((logits.argmax(axis=1) == batch.actions).sum())
            logits -= logits.max(axis=1, keepdims=True)
            of_actions = np.take_along_axis(logits, batch.actions[:, None], axis=1)[:, 0]
            surprise += float((np.log(np.exp(logits).sum(axis=1)) - of_actions).sum())
        num = len(self.held_out)
        majority = np.bincount(self.demonstrations.actions[self.held_out]).max() / num
        return {
            "held_out_accuracy": right / num,
            "held_out_cross_entropy": surprise / num,
            "held_out_majority": majority,
        }

    def _at(self, places: np.ndarray) -> DemonstrationBatch:
        return DemonstrationBatch(*(column[places] for column in self.demonstrations))


def games_of(
    experiment: Experiment,
    world: BatchEnv,
    *,
    say: Tell = lambda _: None,
    status: Tell = lambda _: None,
) -> RecordedDemonstrations:
    """Return the games that an experiment clones. The last result is cached, because a run is
    checked before it begins.

    Raises what `read_demonstrations` raises, and `ConfigError` if the games have changed since the
    run began."""
    global _last_read
    settings = experiment.settings_as(CloningSettings)
    games_sha256 = games_hash(settings.games)
    if settings.games_sha256 not in (None, games_sha256):
        raise ConfigError(
            f"the games in {', '.join(settings.games)} aren't those that this run began with"
            f" (SHA-256 {str(settings.games_sha256)[:12]}…, now {games_sha256[:12]}…); put those"
            " back, or begin a new run with --from-games"
        )
    key = repr((settings, experiment.env, games_sha256))
    if _last_read is None or _last_read[0] != key:
        rewards = experiment.env.options.get("rewards", "win")
        _last_read = key, read_demonstrations(settings, world, rewards, say=say, status=status)
    return _last_read[1]
