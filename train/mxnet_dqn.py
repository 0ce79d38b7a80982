"""Deep Q-learning (Mnih et al. 2015) in MXNet, written to be read from top to bottom: replay,
network and target, play, learn.

It succeeds the SageMaker starter pack's DQN and keeps the names of its hyper-parameters.
`train.settings.MXNetDQNSettings` lists them; docs/mxnet-dqn.md says what is different and
why."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from safetensors.numpy import load_file, save_file

from agents.networks.mxnet_runtime import mx, to_mxnet
from agents.networks.mxnet_starter_pack import build, set_weights, to_planes, weights_of
from agents.networks.starter_pack_shape import shape_of
from envs.common.errors import reason
from envs.common.strangers.bounded import parse_json, read_text
from train.config import Experiment, NetworkSettings
from train.metrics.rows import means_of, nested_result
from train.runs.export import WEIGHTS, network_with
from train.runs.folder import RunError
from train.settings import MXNetDQNSettings
from train.worlds.build import make_world, world_options
from train.worlds.state import remember, restore_progress, save_progress

if TYPE_CHECKING:
    import torch

TRAINER = "trainer.states"
COUNTERS = "learner.json"
NETWORK = "network."
TARGET = "target."
_MAX_COUNTERS = 1 << 10
_WORST = np.finfo(np.float32).min


class Transitions(NamedTuple):
    """Decisions that were taken, with what followed each of them."""

    observations: np.ndarray  # (B, …)
    actions: np.ndarray  # int64 (B,)
    rewards: np.ndarray  # float32 (B,)
    next_observations: np.ndarray  # (B, …): what the same snake saw one turn later
    terminated: np.ndarray  # bool (B,): nothing comes after it
    # bool (B, A): actions allowed one turn later. Where the episode ended, all of them, because the
    # world has only the next episode's mask by then; of ended episodes, only truncated ones use it.
    next_masks: np.ndarray


class Replay:
    """The last `capacity` decisions, drawn with equal probability.

    Successive decisions are alike: a snake that walks along a wall sees the wall for many turns. A
    network that learned from them as they come would forget the rest of the board. A batch that is
    drawn from thousands of decisions has something of everything, and each decision is learned from
    more than once.
    """

    def __init__(self, capacity: int, observation: np.ndarray, num_actions: int) -> None:
        pictures = (capacity, *observation.shape)
        self._columns = Transitions(
            np.empty(pictures, observation.dtype),
            np.empty(capacity, np.int64),
            np.empty(capacity, np.float32),
            np.empty(pictures, observation.dtype),
            np.empty(capacity, np.bool_),
            np.empty((capacity, num_actions), np.bool_),
        )
        self._capacity = capacity
        self.added = 0

    def __len__(self) -> int:
        return min(self.added, self._capacity)

    def add(self, batch: Transitions) -> None:
        """Store these decisions in place of the oldest ones."""
        places = np.arange(self.added, self.added + len(batch.actions)) % self._capacity
        for column, new_column in zip(self._columns, batch, strict=True):
            column[places] = new_column
        self.added += len(batch.actions)

    def sample(self, size: int, rng: np.random.Generator) -> Transitions:
        """Draw `size` decisions, with replacement."""
        places = rng.integers(len(self), size=size)
        return Transitions(*(column[places] for column in self._columns))


class QLearner:
    """The network, the target network and the optimiser.

    The target of a Q value is made of the Q values of the next state, which is much like this one.
    If the network itself gave them, each update would raise its own targets, and the values would
    diverge. So they come from the target network, a copy that lags behind.
    """

    def __init__(
        self,
        network: NetworkSettings,
        settings: MXNetDQNSettings,
        observation_shape: Any,
        num_actions: int,
        seed: int,
    ) -> None:
        self.settings = settings
        self.updates = 0
        options = {"state_type": "layered", **network.options}
        self._reads = {
            "one_versus_all": options["state_type"] == "one_versus_all",
            "scales": options.pop("scales", None),
        }
        shape = shape_of(tuple(observation_shape), num_actions, kind=network.name, **options)
        self.network = build(shape, seed)
        self.target = build(shape, seed)
        # The starter pack never did this: its target began as another random network.
        set_weights(self.target, weights_of(self.network))
        self.trainer = mx.gluon.Trainer(
            self.network.collect_params(),
            "adam",
            {"learning_rate": settings.lr_start},
            kvstore=None,
        )
        self._loss = mx.gluon.loss.HuberLoss()

    def q_values(self, observations: np.ndarray) -> np.ndarray:
        """Return the Q values of observations, float32 (B, A)."""
        return self.network(to_planes(observations, **self._reads)).asnumpy()

    def targets(self, batch: Transitions) -> np.ndarray:
        """Return the target of each decision's Q value, float32 (B,): reward + gamma · best value
        of the next state. Nothing follows a terminated episode; a truncated one would have
        continued.
        """
        following = self.target(to_planes(batch.next_observations, **self._reads)).asnumpy()
        best = np.where(batch.next_masks, following, _WORST).max(axis=1)
        return batch.rewards + self.settings.gamma * np.where(batch.terminated, 0.0, best).astype(
            np.float32
        )

    def update(self, batch: Transitions) -> dict[str, float]:
        """Make one step of Adam and update the target network. Returns the metrics."""
        planes = to_planes(batch.observations, **self._reads)
        targets = to_mxnet(self.targets(batch))
        with mx.autograd.record():
            values = mx.nd.pick(self.network(planes), to_mxnet(batch.actions))
            loss = self._loss(values, targets).mean()
        loss.backward()
        self.trainer.set_learning_rate(self.learning_rate)
        self.trainer.step(1)
        self.updates += 1
        self._follow()
        return {"qf_loss": float(loss.asscalar()), "qf_mean": float(values.mean().asscalar())}

    @property
    def learning_rate(self) -> float:
        """Adam's step size. It is multiplied by `lr_factor` every `lr_step` updates."""
        return self.settings.lr_start * self.settings.lr_factor ** (
            self.updates // self.settings.lr_step
        )

    def _follow(self) -> None:
        hard = self.settings.target_update_every
        if hard and self.updates % hard:
            return
        tau = 1.0 if hard else self.settings.tau
        network = self.network.collect_params().values()
        target = self.target.collect_params().values()
        for fast, slow in zip(network, target, strict=True):
            moved = slow.data()
            moved *= 1.0 - tau
            moved += tau * fast.data()


class MXNetDQN:
    """Plays and learns in turn.

    A run (`train.runs.sessions.session`) calls `train` again and again. It plays any
    `envs.api.BatchEnv` with observations (H, W, C). One network plays all rows.
    """

    fraction_done = 0.0

    def __init__(self, experiment: Experiment) -> None:
        self.experiment = experiment
        self.settings = settings = experiment.settings_as(MXNetDQNSettings)
        self.world = world = make_world(world_options(experiment))
        self.num_actions = int(world.single_action_space.n)
        shape = world.single_observation_space.shape
        self.learner = QLearner(
            experiment.network, settings, shape, self.num_actions, experiment.seed
        )
        self.replay = Replay(settings.buffer_size, world.observations[0], self.num_actions)
        self.seed = experiment.seed
        self.rng = np.random.default_rng(experiment.seed)
        self.games = 0.0
        self._updates_due = 0.0
        self.world.restart(experiment.seed)

    @property
    def epsilon(self) -> float:
        """The probability of a random action. It is multiplied by `eps_decay` with each game that
        ends.
        """
        return max(
            self.settings.eps_end, self.settings.eps_start * self.settings.eps_decay**self.games
        )

    def choose(self) -> np.ndarray:
        """Choose an action for each row, int64 (R,): the best one or, with probability epsilon, a
        random allowed one. A snake that never explores would not find out what actions are worth.
        """
        mask = self._mask()
        rows = self.world.num_envs
        random_actions = np.where(mask, self.rng.random(mask.shape), -1.0).argmax(axis=1)
        values = self.learner.q_values(self.world.observations)
        best_actions = np.where(mask, values, _WORST).argmax(axis=1)
        return np.where(self.rng.random(rows) < self.epsilon, random_actions, best_actions)

    def play(self) -> int:
        """Play one step of every game and remember it. Returns the number of decisions."""
        world = self.world
        actions = self.choose()
        acted = np.flatnonzero(world.valid)
        observations = world.observations[world.valid]
        world.advance(actions)
        ended = (world.terminated | world.truncated)[acted]
        following = world.observations[acted]
        next_masks = self._mask()[acted]
        # Where an episode ended, the world shows the next one's beginning already. Of the end it
        # keeps the observation, but not the mask.
        following[ended] = world.final_observations[acted[ended]]
        next_masks[ended] = True
        self.replay.add(
            Transitions(
                observations,
                actions[acted],
                world.rewards[acted],
                following,
                world.terminated[acted],
                next_masks,
            )
        )
        self.games += float(ended.sum()) / world.rows_per_game
        return len(acted)

    def learn(self, decisions: int) -> list[dict[str, float]]:
        """Make the updates that are due after so many decisions, one for every `update_every`.
        Returns the metrics of each.
        """
        self._updates_due += decisions / self.settings.update_every
        updates = []
        if self.replay.added < max(self.settings.warmup, self.settings.batch_size):
            self._updates_due = 0.0
        while self._updates_due >= 1.0:
            self._updates_due -= 1.0
            batch = self.replay.sample(self.settings.batch_size, self.rng)
            updates.append(self.learner.update(batch))
        return updates

    def train(self) -> dict[str, Any]:
        """Play `num_steps` steps of every game, with the updates that are due. Returns metrics,
        named and nested as RLlib's.
        """
        remember(self.world, self.torch_network())
        updates: list[dict[str, float]] = []
        env_steps = 0
        decisions = 0
        playing = 0.0
        learning = 0.0
        for _ in range(self.settings.num_steps):
            env_steps += self.world.env_steps_per_advance
            began = time.perf_counter()
            new_decisions = self.play()
            learning_began = time.perf_counter()
            updates += self.learn(new_decisions)
            decisions += new_decisions
            playing += learning_began - began
            learning += time.perf_counter() - learning_began
        learned = means_of(updates) | {
            "epsilon": self.epsilon,
            "learning_rate": self.learner.learning_rate,
            "updates": self.learner.updates,
        }
        return nested_result(
            env_steps=env_steps,
            agent_steps=decisions,
            playing=playing,
            learning=learning,
            episodes=self.world.drain_episodes(),
            learned=learned,
        )

    def policy_weights(self) -> dict[str, np.ndarray]:
        """Return the network's weights, by the names of `train.rllib.modules.NetworkModule`."""
        return {
            NETWORK + name: weights for name, weights in weights_of(self.learner.network).items()
        }

    def torch_network(self) -> torch.nn.Module:
        """Return the network in torch. A world may keep it as a past self
        (`train.worlds.self_play`).
        """
        return network_with(self.experiment, self.world, self.policy_weights())

    def save_to_path(self, path: str) -> None:
        """Save both networks, the optimiser, the counters and what the world keeps.

        As with the other algorithms, the memory isn't saved.
        """
        target = {
            TARGET + name: weights for name, weights in weights_of(self.learner.target).items()
        }
        save_file({**self.policy_weights(), **target}, Path(path, WEIGHTS))
        self.learner.trainer.save_states(str(Path(path, TRAINER)))
        save_progress(self.world, Path(path))
        Path(path, COUNTERS).write_text(
            json.dumps({"updates": self.learner.updates, "games": self.games}) + "\n"
        )

    def restore_from_path(self, path: str) -> None:
        """Load what `save_to_path` saved. Raises `RunError` if the counters can't be read."""
        weights = load_file(Path(path, WEIGHTS))
        learner = self.learner
        set_weights(learner.network, _named(weights, NETWORK))
        set_weights(learner.target, _named(weights, TARGET))
        learner.trainer.load_states(str(Path(path, TRAINER)))
        learner.updates, self.games = _read_counters(Path(path, COUNTERS))
        restore_progress(self.world, Path(path), self.torch_network())
        # With the first seed, it would play the run's first games again.
        self.rng = np.random.default_rng([self.seed, learner.updates, int(self.games)])
        self.world.restart(int(self.rng.integers(1 << 31)))

    def stop(self) -> None:
        """Close the world."""
        self.world.close()

    def _mask(self) -> np.ndarray:
        mask = self.world.action_mask
        if mask is None or not self.settings.mask_actions:
            return np.ones((self.world.num_envs, self.num_actions), np.bool_)
        return mask.copy()


def _read_counters(path: Path) -> tuple[int, float]:
    """The updates that were made and the games that were played."""
    try:
        counters = parse_json(read_text(path, _MAX_COUNTERS))
        return int(counters["updates"]), float(counters["games"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise RunError(
            f"{path} can't be read ({reason(error)}); the checkpoint was damaged or copied in part"
        ) from error


def _named(weights: Mapping[str, np.ndarray], prefix: str) -> dict[str, np.ndarray]:
    return {
        name.removeprefix(prefix): value
        for name, value in weights.items()
        if name.startswith(prefix)
    }
