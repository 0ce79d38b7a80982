"""Distributed prioritised experience replay (Ape-X: Horgan et al. 2018, arXiv 1803.00933).

This file has the configuration, the env runner, the replay shard and the learner's loop; targets,
loss and learner are those of `train.dqn`. Env runners send rollouts with first priorities directly
to their replay shard. The shard draws batches for the learner and gets new priorities back. Each
runs at its own pace; they wait for each other only to keep `replay_ratio`."""

from __future__ import annotations

import time
import uuid
from typing import Any

import numpy as np
import ray
import torch
from ray.actor import ActorHandle
from ray.exceptions import RayError
from ray.rllib.algorithms.algorithm_config import AlgorithmConfig
from ray.rllib.core import DEFAULT_MODULE_ID
from ray.rllib.env.env_runner_group import EnvRunnerGroup
from ray.rllib.utils.actor_manager import FaultAwareApply, FaultTolerantActorManager
from ray.rllib.utils.metrics import LEARNER_RESULTS, SYNCH_WORKER_WEIGHTS_TIMER, TIMERS

from envs.common.errors import ConfigError
from train.cluster.live import spread
from train.dqn import Drawn, QAlgorithm, QConfig, QRunner
from train.rllib.batched_algorithm import LEARNER_SECONDS
from train.rllib.env_runner import Cut
from train.rllib.modules import QModule
from train.rllib.weight_servers import WeightServers, WeightSource
from train.rollouts.n_step import GOES_ON, TERMINATED, TRUNCATED, n_step_returns, next_cell
from train.rollouts.replay_buffer import ReplayBuffer, Rollout
from train.settings import APEXSettings
from train.settings.schedule import value_at

_PLAY = "play"
_SAMPLE = "sample"
_REQUESTS_IN_FLIGHT = 2
_SECONDS_AN_ITERATION = 1.0
_PATIENCE = 0.01


class APEXRunner(QRunner):
    """Explores by its place on the ladder of epsilons, works out first priorities, and sends
    rollouts to a replay shard.
    """

    config: APEXConfig

    def make_env(self) -> None:
        super().make_env()
        games = np.arange(self.env.num_games) + max(0, self.worker_index - 1) * self.env.num_games
        total = max(1, self.config.num_env_runners) * self.env.num_games
        settings = self.config.settings
        ladder = ladder_epsilons(total, settings.epsilon_base, settings.epsilon_exponent)[games]
        self.epsilons = np.repeat(ladder, self.env.rows_per_game).astype(np.float32)
        self._tail: dict[str, np.ndarray] | None = None
        self._pushed: list[Any] = []

    def play_and_push(self, shards: list[Any], source: WeightSource) -> Any:
        """Play one rollout with the newest weights, and send it to this runner's shard. Returns the
        metrics.
        """
        self.take_newest_weights(source)
        (rollout,) = self.sample()
        self._pushed.append(shards[rollout.worker % len(shards)].add.remote(rollout))
        # A shard that falls behind slows its runners down, before rollouts fill the memory of the
        # machine.
        excess = len(self._pushed) - _REQUESTS_IN_FLIGHT
        if excess > 0:
            _, self._pushed = ray.wait(self._pushed, num_returns=excess, fetch_local=False)
        return self.get_metrics()

    def own_columns(self, size: int) -> dict[str, np.ndarray]:
        return {
            **super().own_columns(size),
            "taken": np.empty(size, np.float32),
            "best": np.empty(size, np.float32),
        }

    def _note_values(
        self, entry: dict[str, np.ndarray], q_values: torch.Tensor, actions: torch.Tensor
    ) -> None:
        entry["taken"][:] = q_values.gather(1, actions[:, None]).squeeze(1).cpu().numpy()
        entry["best"][:] = q_values.max(-1).values.cpu().numpy()

    def collate(self, columns: dict[str, np.ndarray], cut: Cut, steps: int) -> Rollout:
        taken = columns.pop("taken")
        best = columns.pop("best")
        rollout = super().collate(columns, cut, steps)
        # Where an episode was cut off, what follows is worth what its last observation promises.
        final = np.zeros_like(taken)
        if len(rollout.final_entries):
            final[rollout.final_entries] = self._values(
                rollout.final_observations, columns["rows"][rollout.final_entries]
            )
        rollout.priorities = self._first_priorities(
            rollout, {"taken": taken, "best": best, "final": final}
        )
        return rollout

    def _first_priorities(self, rollout: Rollout, values: dict[str, np.ndarray]) -> np.ndarray:
        """|n-step TD error| of the starts that the rollout completes, by the network that played;
        see `Rollout`.
        """
        n_step = self.config.settings.n_step
        columns = rollout.columns
        by_name = {**values, "rewards": columns["rewards"], "endings": columns["endings"]}
        tail = self._tail or {
            name: np.zeros((n_step, self.num_envs), column.dtype)
            for name, column in by_name.items()
        }
        grids = {}
        for name, column in by_name.items():
            grid = np.zeros((rollout.steps, self.num_envs), column.dtype)
            grid[columns["steps"], columns["rows"]] = column
            grids[name] = np.concatenate([tail[name], grid])
        self._tail = {name: grid[-n_step:].copy() for name, grid in grids.items()}
        errors = first_td_errors(grids, n_step, self.config.settings.gamma)
        return errors.astype(np.float32)


def first_td_errors(grids: dict[str, np.ndarray], n_step: int, gamma: float) -> np.ndarray:
    """Return the n-step TD errors of the first T of T + n steps, float64 (T, R).

    An error is |n-step return + discounted best value then - value of the action taken|. `grids`,
    each (T + n, R), are `rewards`, `endings` (`train.rollouts.n_step`), the Q values `taken` and
    `best`, and `final`, the best values of the last observations of truncated episodes."""
    length, rows = grids["rewards"].shape
    starts = np.arange((length - n_step) * rows)
    returns, steps, last = n_step_returns(
        starts, grids["rewards"][None], grids["endings"][None], n_step, gamma
    )
    ending = grids["endings"].reshape(-1)[last]
    best = grids["best"].reshape(-1)
    final = grids["final"].reshape(-1)
    cases = [ending == TERMINATED, ending == TRUNCATED, ending == GOES_ON]
    following = np.select(
        cases, [np.zeros(len(last)), final[last], best[next_cell(last, length, rows)]]
    )
    errors = returns + gamma**steps * following - grids["taken"].reshape(-1)[starts]
    return np.abs(errors).reshape(-1, rows)


def ladder_epsilons(count: int, base: float, exponent: float) -> np.ndarray:
    """Return the epsilons of `count` rows, float64 (count,): base^(1 + exponent · i / (count - 1))
    for row i (page 6).
    """
    return base ** (1 + exponent * np.arange(count) / max(1, count - 1))


class ReplayShard(FaultAwareApply):
    """A part of the replay memory in a process of its own. It holds the rings of every
    `num_shards`-th env runner.
    """

    def __init__(self, config: APEXConfig, shard: int) -> None:
        self.config = config
        self._shards = config.num_shards
        rings = len(range(shard, config.num_env_runners, self._shards))
        self._replay = ReplayBuffer.of(
            config.settings,
            num_rings=max(1, rings),
            seed=(config.seed or 0) + shard,
            num_parts=self._shards,
        )
        # A restarted shard has lost its memory: what was drawn before means nothing to it.
        self._life = uuid.uuid4().hex

    def add(self, rollout: Rollout) -> None:
        """Store a rollout of one of this shard's env runners."""
        rollout.worker //= self._shards
        self._replay.add(rollout)

    def sample(
        self, *, batch_size: int, num_batches: int, beta: float
    ) -> tuple[str, float, list[Drawn]]:
        """Return (an id that changes with each restart of the shard, the sum of its priorities,
        batches).

        There are no batches until the shard has its part of `learning_starts`. Learners in other
        processes fetch their batches from here."""
        ready = (
            self._replay.added * self._shards >= self.config.settings.learning_starts
            and len(self._replay) > 0
        )
        count = num_batches if ready else 0
        drawn = (self._replay.sample(batch_size, beta=beta) for _ in range(count))
        batches = [Drawn.of(batch, num_references=self.config.num_learners) for batch in drawn]
        return self._life, self._replay.total_priority, batches

    def update_priorities(
        self, life: str, errors: list[tuple[np.ndarray, np.ndarray, np.ndarray]]
    ) -> None:
        """Set new priorities by the cells, stamps and TD errors of batches. Batches from before a
        restart are ignored.
        """
        if life == self._life:
            for cells, stamps, td_errors in errors:
                self._replay.update_priorities(cells, stamps, td_errors)


class APEXConfig(QConfig):
    """RLlib's configuration of a run of APEX."""

    settings: APEXSettings
    has_weight_servers = True

    def __init__(self, algo_class: type | None = None) -> None:
        super().__init__(algo_class or APEX)
        self.settings = APEXSettings()
        self.max_requests_in_flight_per_env_runner = _REQUESTS_IN_FLIGHT
        self.reporting(min_time_s_per_iteration=_SECONDS_AN_ITERATION)

    def validate(self) -> None:
        if not (self.num_env_runners or self.in_evaluation):
            raise ConfigError(
                "apex plays in processes of its own; set one at least:"
                " config.env_runners(num_env_runners=1)"
            )
        super().validate()

    @property
    def num_shards(self) -> int:
        """Number of replay shards, at most one per env runner: an unfed shard would let learning
        start too early.
        """
        return min(self.settings.num_replay_shards, max(1, self.num_env_runners))

    def runner_and_module(self) -> tuple[type[APEXRunner], type[QModule]]:
        return APEXRunner, QModule


class APEX(QAlgorithm):
    """An RLlib `Algorithm`. It is the learner's loop; an iteration takes about a second.

    It needs at least one remote env runner.

    Shards and env runners that die are restarted. A restarted shard begins with an empty memory.
    """

    config: APEXConfig

    @classmethod
    def get_default_config(cls) -> APEXConfig:
        return APEXConfig()

    def setup(self, config: AlgorithmConfig) -> None:  # type: ignore[override]
        super().setup(config)
        # Untyped, because Ray's type of an actor says that it may also be the class itself.
        shard_class: Any = ray.remote(ReplayShard).options(num_cpus=0, max_restarts=-1, **spread())
        self._shard_actors: list[ActorHandle] = [
            shard_class.remote(self.config, k) for k in range(self.config.num_shards)
        ]
        self.shards = FaultTolerantActorManager(
            self._shard_actors, max_remote_requests_in_flight_per_actor=_REQUESTS_IN_FLIGHT
        )
        # By reference: hundreds of them would take longer to pack, for every rollout, than to play
        # it.
        self._shards_reference = ray.put(self._shard_actors)
        self._weights = WeightServers(
            self.config.custom_resources_per_learner,
            self.config.env_runner_state_server_max_concurrency,
        )
        self._rng = np.random.default_rng(self.config.seed)
        self._masses: dict[int, float] = {}
        self._lives: dict[int, str] = {}
        self._pings: dict[int, ray.ObjectRef] = {}
        self._updates = self._restored_runners = self._restored_shards = 0
        self._trained = 0
        self._steps_before_learning: float | None = None

    def training_step(self) -> None:
        self._restore_shards()
        self._fetch_played()
        if self._owed() < self._most_owed():
            arguments = {"shards": self._shards_reference, "source": self._weights.source}
            self.env_runner_group.foreach_env_runner_async(
                "play_and_push", tag=_PLAY, kwargs=arguments
            )
        self._request_batches()
        for shard, (life, mass, batches) in self._fetch_batches():
            self._masses[shard] = mass
            # A shard may be back before anybody asked it in vain, so that only its new life tells.
            self._restored_shards += self._lives.get(shard, life) != life
            self._lives[shard] = life
            if not batches:
                time.sleep(_PATIENCE)
                continue
            if self._steps_before_learning is None:
                self._steps_before_learning = self.agent_steps()
            self._learn_all(shard, life, batches)
        self._log_pace()

    def restore_env_runners(self, env_runner_group: EnvRunnerGroup) -> list[int]:
        restored = super().restore_env_runners(env_runner_group)
        if env_runner_group is self.env_runner_group:
            self._restored_runners += len(restored)
        return restored

    def restore_from_path(self, *args: Any, **kwargs: Any) -> None:
        super().restore_from_path(*args, **kwargs)
        self._publish_weights()

    def cleanup(self) -> None:
        for actor in self._shard_actors:
            ray.kill(actor)
        self._weights.stop()
        super().cleanup()

    def _fetch_played(self) -> None:
        # A learner that is ahead has nothing else to wait for.
        if self.shards.num_outstanding_async_reqs(_SAMPLE):
            patience = 0.0
        else:
            patience = _PATIENCE
        results = self._answers(
            lambda actors: actors.fetch_ready_async_reqs(tags=_PLAY, timeout_seconds=patience)
        )
        if results:
            self._log_played([metrics for _, metrics in results])

    def _owed(self) -> float:
        """Decisions that the learner still has to learn from, for the ratio; negative when it is
        ahead.
        """
        if self._steps_before_learning is None:
            return 0.0
        return (
            self.config.settings.replay_ratio * (self.agent_steps() - self._steps_before_learning)
            - self._trained
        )

    def _most_owed(self) -> float:
        """Env runners wait while the learner owes more than this: enough to keep it busy until they
        have played again.
        """
        settings = self.config.settings
        return 2 * _REQUESTS_IN_FLIGHT * settings.batches_per_request * settings.train_batch_size

    def _request_batches(self) -> None:
        settings = self.config.settings
        request = settings.batches_per_request * settings.train_batch_size
        if self._owed() < request * self.shards.num_outstanding_async_reqs(_SAMPLE):
            return
        masses = [self._masses[k] for k in self.shards.actor_ids() if self._masses.get(k)]
        # Of a shard that hasn't said how much it holds the others' mean is assumed.
        guess = sum(masses) / len(masses) if masses else 1.0
        weights = np.array([self._masses.get(k) or guess for k in self.shards.actor_ids()])
        shard = int(self._rng.choice(self.shards.actor_ids(), p=weights / weights.sum()))
        arguments = {
            "batch_size": settings.train_batch_size,
            "num_batches": settings.batches_per_request,
            "beta": value_at(settings.priority_beta, self.agent_steps()),
        }
        self.shards.foreach_actor_async(
            "sample", tag=_SAMPLE, kwargs=arguments, remote_actor_ids=[shard]
        )

    def _fetch_batches(self) -> list[tuple[int, Any]]:
        for patience in (0.0, _PATIENCE):
            results = self.shards.fetch_ready_async_reqs(tags=_SAMPLE, timeout_seconds=patience)
            if len(results):
                return [
                    (result.actor_id, result.get())
                    for result in results.result_or_errors
                    if result.ok
                ]
        return []

    def _learn_all(self, shard: int, life: str, batches: list[Drawn]) -> None:
        began = time.perf_counter()
        errors = []
        for drawn in batches:
            errors.append((drawn.cells, drawn.stamps, self._learn(drawn, self.agent_steps())))
            self._trained += len(drawn.cells)
            self._updates += 1
            if self._updates % self.config.settings.weight_push_freq == 0:
                self._publish_weights()
        self._shard_actors[shard].update_priorities.remote(life, errors)
        self.metrics.log_value(LEARNER_SECONDS, time.perf_counter() - began, reduce="sum")

    def _publish_weights(self) -> None:
        with self.metrics.log_time((TIMERS, SYNCH_WORKER_WEIGHTS_TIMER)):
            self._weights.publish(self.learner_group)

    def _restore_shards(self) -> None:
        """Take shards that answer again back into service.

        An answer counts however late it comes. RLlib's own probe asks anew each time and waits as
        long as it is told; a busy machine that always took a little longer never had its shard
        back."""
        for shard in self.shards.actor_ids():
            if not self.shards.is_actor_healthy(shard) and shard not in self._pings:
                self._pings[shard] = self._shard_actors[shard].ping.remote()
        for shard, ping in list(self._pings.items()):
            if not ray.wait([ping], timeout=0)[0]:
                continue
            del self._pings[shard]
            try:
                ray.get(ping)
            except RayError:
                continue  # It is still being restarted.
            self.shards.set_actor_state(shard, healthy=True)
            self._masses.pop(shard, None)

    def _log_pace(self) -> None:
        steps = self.agent_steps() - (self._steps_before_learning or 0.0)
        pace = {
            "replay_ratio": self._trained / max(1.0, steps),
            "restored_env_runners": self._restored_runners,
            "restored_shards": self._restored_shards,
        }
        self.metrics.log_dict(pace, key=(LEARNER_RESULTS, DEFAULT_MODULE_ID), window=1)
