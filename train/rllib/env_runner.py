"""The env runner: it plays a whole `BatchEnv` at once, and returns fragments instead of episodes.

Each algorithm has a subclass beside its learner (`train.ppo.PPORunner`, `train.dqn.QRunner`), which
chooses actions and what to store of each step. This file has the methods that RLlib calls, and the
loop over the steps."""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import ray
import torch
from ray.actor import ActorHandle
from ray.exceptions import RayError
from ray.rllib.callbacks.utils import make_callback
from ray.rllib.core import DEFAULT_AGENT_ID, DEFAULT_MODULE_ID
from ray.rllib.core.columns import Columns
from ray.rllib.env import INPUT_ENV_SINGLE_SPACES, INPUT_ENV_SPACES
from ray.rllib.env.env_runner import NUM_ENV_STEP_FAILURES_LIFETIME
from ray.rllib.env.single_agent_env_runner import SingleAgentEnvRunner
from ray.rllib.utils.framework import get_device
from ray.rllib.utils.metrics import (
    EPISODE_LEN_MEAN,
    EPISODE_RETURN_MAX,
    EPISODE_RETURN_MEAN,
    EPISODE_RETURN_MIN,
    NUM_AGENT_STEPS_SAMPLED,
    NUM_AGENT_STEPS_SAMPLED_LIFETIME,
    NUM_ENV_STEPS_SAMPLED,
    NUM_ENV_STEPS_SAMPLED_LIFETIME,
    NUM_EPISODES,
    NUM_EPISODES_LIFETIME,
    SAMPLE_TIMER,
    WEIGHTS_SEQ_NO,
)

from envs.api import BatchEnv
from train.compute.allocator import keep_freed_memory
from train.metrics import work
from train.metrics.levels import level_returns
from train.metrics.rows import LEVEL_RETURNS, episode_sums
from train.rllib.batched_config import BatchedConfig
from train.rllib.env_runner_failures import RestartDelayedError, cause_of
from train.rllib.episode_callbacks import EpisodeCallbacks
from train.rllib.fragment_flow import Played
from train.rllib.modules import NetworkModule
from train.rllib.weight_servers import WeightSource, newer_weights
from train.rollouts.columns import ACTION_MASK
from train.rollouts.fragment import Fragment
from train.worlds.state import carry_on, progress_of, remember
from train.worlds.symmetry import RandomViews

_LOGGER = logging.getLogger(__name__)
_MOST_FAILURES_OF_A_WORLD = 3
EPISODE_SUMS = "episode_sums"
"""Metrics key: the sum of each column over the episodes that ended. Divide by `NUM_EPISODES` for
means.
"""
ROLLOUTS = "rollouts"
"""Key of the number of rollouts that were played, also before a resume, in a runner's progress."""
PHASE_SECONDS = "phase_seconds"
"""Metrics key: the wall seconds of each phase: env, inference, collation."""

Cut = list[tuple[np.ndarray, np.ndarray]]
"""For each step with truncated episodes, their entries, int64 (F,), and their last observations (F,
…).
"""


class BatchEnvRunner(SingleAgentEnvRunner):
    """Plays one `BatchEnv`, with one forward pass per step over the rows that are to act.

    Rows that are not valid are neither computed nor stored: entries lie one after the other in flat
    arrays, in order of time. `train.worlds.build.make_world` explains `env_config`. The config's
    `num_envs_per_env_runner` isn't used, because the world knows its rows. Everything that isn't
    about playing (weights, state, health) is inherited from RLlib.

    RLlib calls `make_env`, `get_spaces` and `make_module` when it makes a runner. The algorithms
    call `play`, `play_by_reference` and `carry_on`. Both call `sample` and `get_metrics`, because
    RLlib's evaluation samples, too.

    A subclass fills in four steps, which `_play` calls in this order:

    1. `own_columns(size)` makes the arrays for its data of each decision.
    2. `decide(entry, …)` chooses the actions of the rows that are to act.
    3. `note_outcome(entry, …)` stores the world's answer.
    4. `collate(columns, …)` makes a fragment of the rollout: for PPO, with advantages."""

    config: BatchedConfig
    # RLlib declares these as None until they are made.
    env: BatchEnv
    module: NetworkModule

    inference_only = False
    """Whether the runner's module leaves out what only learners need. Here it is False, because
    advantages need the critic.
    """
    _episodes: EpisodeCallbacks | None = None
    _views: RandomViews | None = None
    _failed_at: float | None = None
    _server: ActorHandle | None = None

    def apply(self, func: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Call `func` on this runner. If it raises, the next call ends the process, so that Ray
        starts another one; until `delay_between_env_runner_restarts_s` is over, calls are refused.

        RLlib's own method ends the process at once; here the caller learns the cause first.
        """
        if self._failed_at is not None:
            delay = self.config.delay_between_env_runner_restarts_s
            if time.monotonic() < self._failed_at + delay:
                raise RestartDelayedError(f"it is restarted {delay:g} seconds after its failure")
            sys.exit(1)
        try:
            return func(self, *args, **kwargs)
        except Exception:
            self._failed_at = time.monotonic()
            raise

    @property
    def device(self) -> torch.device:
        """Where the policy answers."""
        return torch.device(self._device)

    def make_env(self) -> None:
        if self.env is not None:
            self.env.close()
        keep_freed_memory()
        if not self.worker_index and self.config.plays_on_gpu:
            # RLlib would have it play on the CPU.
            self._device = get_device(self.config, self.config.num_gpus_per_learner)
        self.env = self.config.make_world()
        self.num_envs = self.env.num_envs
        self._needs_initial_reset = True
        self._buffer: dict[str, np.ndarray] = {}
        self._rollouts = 0
        self._draw_seeds()
        if self._episodes is None and EpisodeCallbacks.are_asked_for(self):
            self._episodes = EpisodeCallbacks(self)
        self._call_back("on_environment_created", env=self.env, env_context=self.config.env_config)

    def _call_back(self, which: str, **arguments: Any) -> None:
        """Call what was registered for an event."""
        make_callback(
            which,
            callbacks_objects=self._callbacks,
            callbacks_functions=getattr(self.config, f"callbacks_{which}"),
            kwargs={"env_runner": self, "metrics_logger": self.metrics, **arguments},
        )

    def _draw_seeds(self) -> None:
        """Seed games, actions and views. With the seeds that it began with, a run that goes on
        would repeat its beginning.
        """
        known = [self.config.seed or 0, self.worker_index or 0, self._rollouts]
        entropy = np.random.SeedSequence(None if self.config.seed is None else known)
        self._env_seed, torch_seed = (int(word) for word in entropy.generate_state(2))
        self._generator = torch.Generator(self._device).manual_seed(torch_seed)

    def make_module(self) -> None:
        spec = self.config.get_rl_module_spec(
            spaces=self.get_spaces(), inference_only=self.inference_only
        )
        module = spec.build()
        assert isinstance(module, NetworkModule)
        self.module = module.to(self._device)

    def get_spaces(self) -> dict[str, Any]:
        if self.env is None:
            return self.spaces
        single = (self.env.single_observation_space, self.env.single_action_space)
        return {
            INPUT_ENV_SPACES: (self.env.observation_space, self.env.action_space),
            INPUT_ENV_SINGLE_SPACES: single,
            DEFAULT_MODULE_ID: single,
        }

    def play(self) -> tuple[Any, Any]:
        """Play one rollout. Returns it and the metrics."""
        (rollout,) = self.sample()
        return rollout, self.get_metrics()

    def play_by_reference(self, *, parts: int) -> tuple[Played, Any]:
        """Play one fragment, and put it into Ray's object store, in `parts`. Returns its references
        and the metrics.
        """
        (fragment,) = self.sample()
        references = [ray.put([part]) for part in fragment.split(parts)]
        return Played(references, self._weights_seq_no), self.get_metrics()

    def take_newest_weights(self, source: WeightSource) -> None:
        """Take over the newest weights, if they are newer than this runner's."""
        if self._server is None:
            self._server = source.nearest()
        try:
            state = newer_weights(self._server, self._weights_seq_no)
        except RayError:
            # It may be lost for good, so the next fragment looks for the nearest one again.
            self._server = state = None
        if state is not None:
            self.set_state(state)

    def sample(  # type: ignore[override]  # fragments where RLlib has episodes
        self,
        *,
        num_timesteps: int | None = None,
        num_episodes: int | None = None,
        explore: bool | None = None,
        random_actions: bool = False,
        force_reset: bool = False,
    ) -> list[Any]:
        """Play the config's `rollout_fragment_length` steps of every game, and return one fragment.

        As in RLlib, `num_timesteps` is the minimum of steps over all games, and `num_episodes` the
        minimum of episodes. Games restart with `num_episodes` or `force_reset`, and continue with
        `num_timesteps`. `num_episodes` may take several fragments, of which only the last one holds
        its experience.

        The fragment's columns are views of this runner's buffer, so the next call overwrites them.
        With `concurrency` the call after it does, because the last fragment is still in use."""
        explores = self.config.explore if explore is None else explore
        steps = self.config.rollout_steps(self.num_envs)
        if num_timesteps is not None:
            steps = max(1, -(-num_timesteps // self.env.env_steps_per_advance))
        if num_episodes is not None:
            # By single steps: at most one episode per row more than asked for.
            steps = 1
        fragments: list[Any] = []
        ended = 0
        with self.metrics.log_time(SAMPLE_TIMER), torch.inference_mode():
            if force_reset or self._needs_initial_reset or num_episodes is not None:
                self.env.restart(self._env_seed if self._needs_initial_reset else None)
                self._needs_initial_reset = False
                self._forget_games()
            remember(self.env, self.module.network)
            while not fragments or ended < (num_episodes or 0):
                fragments.append(self._play_on(steps, explores, random_actions))
                self._log_steps(fragments[-1])
                columns = self.env.drain_episodes()
                ended += self._log_episodes(columns)
                if self.config.in_evaluation or num_episodes is not None:
                    self._log_as_rllib(columns)
        self._rollouts += 1
        self.metrics.log_value(WEIGHTS_SEQ_NO, self._weights_seq_no, window=1)
        self._call_back("on_sample_end", samples=fragments)
        if self._episodes:
            self._episodes.record()
        return fragments

    def _forget_games(self) -> None:
        """Forget what belongs to the games that were played, because all games begin anew."""
        if self._episodes:
            self._episodes.forget()

    def stop(self) -> None:
        if self._episodes:
            self._episodes.stop()
        super().stop()

    def get_metrics(self) -> dict[str, Any]:
        return self.metrics.reduce()

    def progress(self) -> dict[str, Any]:
        """Return what a checkpoint keeps of this runner: its world's progress, and how often it
        played.
        """
        return {"world": progress_of(self.env), ROLLOUTS: self._rollouts}

    def carry_on(self, progress: dict[str, Any]) -> None:
        """Continue from `progress`, with new games."""
        carry_on(self.env, progress["world"], self.module.network)
        self._rollouts = progress[ROLLOUTS]
        self._draw_seeds()
        self._needs_initial_reset = True

    def _play_on(self, steps: int, explore: bool, random_actions: bool) -> Fragment:
        """Play a fragment. If the world fails, it is made anew where the configuration says so."""
        for _ in range(_MOST_FAILURES_OF_A_WORLD):
            try:
                return self._play(steps, explore, random_actions)
            except Exception as error:
                if not self.config.restart_failed_sub_environments:
                    raise
                _LOGGER.warning("a world failed and is created again: %s", cause_of(error))
                self.metrics.log_value(NUM_ENV_STEP_FAILURES_LIFETIME, 1, reduce="lifetime_sum")
                self._make_world_anew()
        return self._play(steps, explore, random_actions)

    def _make_world_anew(self) -> None:
        """Go on with a new world, which knows what the last one knew, and other seeds."""
        progress = self.progress()
        self.make_env()
        self.carry_on({**progress, ROLLOUTS: progress[ROLLOUTS] + 1})
        self.env.restart(self._env_seed)
        self._needs_initial_reset = False
        self._forget_games()

    def _play(self, steps: int, explore: bool, random_actions: bool) -> Fragment:
        env = self.env
        module = self.module
        clock = time.perf_counter
        module.eval()
        buffer = self._allocate(steps)
        cut: Cut = []
        self._inference = stepping = 0.0
        self._env_steps = 0
        end = 0
        began = clock()
        actions = np.zeros(self.num_envs, np.int64)
        for step in work.counted("step", steps):
            start = end
            rows = np.flatnonzero(env.valid)
            end = start + len(rows)
            entry = {name: column[start:end] for name, column in buffer.items()}
            entry["steps"][:] = step
            self._observe(entry, rows)
            if self._episodes:
                self._episodes.before_decision(rows)
            before = clock()
            self.decide(entry, explore, random_actions)
            chosen = entry[Columns.ACTIONS]
            if self._views:
                actions[rows] = self._views.in_the_world(chosen)
            else:
                actions[rows] = chosen
            self._env_steps += env.env_steps_per_advance
            decided = clock()
            env.advance(actions)
            stepping += clock() - decided
            self._inference += decided - before
            self.note_outcome(entry, rows, start, cut)
            if self._episodes:
                self._episodes.after_step(rows, actions, entry)
        fragment = self.collate({name: column[:end] for name, column in buffer.items()}, cut, steps)
        collation = clock() - began - stepping - self._inference
        phases = {"env": stepping, "inference": self._inference, "collation": collation}
        for phase, seconds in phases.items():
            self.metrics.log_value((PHASE_SECONDS, phase), seconds, reduce="sum")
        return fragment

    def _allocate(self, steps: int) -> dict[str, np.ndarray]:
        """Flat columns with room for every row at every step."""
        size = steps * self.num_envs
        space = self.env.single_observation_space
        if len(self._buffer.get("rows", ())) != size:
            self._buffer = {
                Columns.OBS: self._empty((size, *space.shape), space.dtype),
                Columns.ACTIONS: np.empty(size, np.int64),
                "steps": np.empty(size, np.int64),
                "rows": np.empty(size, np.int64),
                "rewards": np.empty(size, np.float32),
                **self.own_columns(size),
            }
            if self.env.action_mask is not None:
                self._buffer[ACTION_MASK] = np.empty(
                    (size, int(self.env.single_action_space.n)), np.bool_
                )
        return self._buffer

    def _empty(self, shape: tuple[int, ...], dtype: Any) -> np.ndarray:
        """An array whose way to the device is short: a GPU takes pinned memory over by itself, in
        an eighth of the time.
        """
        if self._device.type != "cuda":
            return np.empty(shape, dtype)
        return torch.empty(
            shape, dtype=torch.from_numpy(np.empty(0, dtype)).dtype, pin_memory=True
        ).numpy()

    def _observe(self, entry: dict[str, np.ndarray], rows: np.ndarray) -> None:
        entry["rows"][:] = rows
        np.take(self.env.observations, rows, axis=0, out=entry[Columns.OBS], mode="clip")
        if self.env.action_mask is not None:
            np.take(self.env.action_mask, rows, axis=0, out=entry[ACTION_MASK], mode="clip")
        if self._views:
            self._views.show(entry[Columns.OBS], entry.get(ACTION_MASK))

    def own_columns(self, size: int) -> dict[str, np.ndarray]:
        """Return empty arrays (size, …) for this runner's data of each decision besides
        observations, masks, actions and rewards.
        """
        raise NotImplementedError

    def decide(self, entry: dict[str, np.ndarray], explore: bool, random_actions: bool) -> None:
        """Write the actions of the rows that are to act, and the runner's data of the decision.

        `entry` holds this step's part of each column; observations and masks are filled in."""
        raise NotImplementedError

    def note_outcome(
        self, entry: dict[str, np.ndarray], rows: np.ndarray, start: int, cut: Cut
    ) -> None:
        """Write the rewards of `rows`, int64 (n,), and whether their episodes ended. The first
        row's entry is `start`; `cut` takes the last observations of truncated episodes.
        """
        raise NotImplementedError

    def collate(self, columns: dict[str, np.ndarray], cut: Cut, steps: int) -> Any:
        """Return the rollout of `steps` steps in the form that the algorithm learns from."""
        raise NotImplementedError

    def _note_cut(self, rows: np.ndarray, start: int, cut: Cut) -> None:
        """Add what `rows` saw last where they were truncated. The first row's entry is `start`."""
        own = np.flatnonzero((self.env.truncated & ~self.env.terminated)[rows])
        if len(own):
            cut.append((start + own, self.env.final_observations[rows[own]]))

    def _joined(self, cut: Cut) -> tuple[np.ndarray, np.ndarray]:
        """All steps' entries, int64 (F,), and last observations (F, …)."""
        space = self.env.single_observation_space
        none = (np.empty(0, np.int64), np.empty((0, *space.shape), space.dtype))
        entries, observations = (np.concatenate(parts) for parts in zip(none, *cut, strict=True))
        return entries, observations

    def _mask_of(self, entry: dict[str, np.ndarray]) -> torch.Tensor | None:
        """Return the actions that the rows may take, bool [n, A]; None if all may be taken."""
        if ACTION_MASK not in entry:
            return None
        return torch.from_numpy(entry[ACTION_MASK]).to(self._device)

    def _values(self, observations: np.ndarray, rows: np.ndarray) -> np.ndarray:
        before = time.perf_counter()
        values = self._rate(observations, rows).cpu().numpy()
        self._inference += time.perf_counter() - before
        return values

    def _rate(self, observations: np.ndarray, rows: np.ndarray) -> torch.Tensor:
        """Values of what `rows` see."""
        return self.module.rollout(torch.from_numpy(observations).to(self._device))[1]

    def _log_steps(self, fragment: Fragment) -> None:
        env_steps = fragment.env_steps()
        agent_steps = fragment.agent_steps()
        self.metrics.log_value(NUM_ENV_STEPS_SAMPLED, env_steps, reduce="sum")
        self.metrics.log_value(
            (NUM_AGENT_STEPS_SAMPLED, DEFAULT_AGENT_ID), agent_steps, reduce="sum"
        )
        # An evaluation of duration "auto" asks for the throughput.
        paced = self.config.in_evaluation
        self.metrics.log_value(
            NUM_ENV_STEPS_SAMPLED_LIFETIME, env_steps, reduce="lifetime_sum", with_throughput=paced
        )
        self.metrics.log_value(
            (NUM_AGENT_STEPS_SAMPLED_LIFETIME, DEFAULT_AGENT_ID), agent_steps, reduce="lifetime_sum"
        )

    def _log_episodes(self, columns: dict[str, np.ndarray]) -> int:
        """Returns how many there were."""
        count = len(columns["row"])
        self.metrics.log_value(NUM_EPISODES, count, reduce="sum")
        self.metrics.log_value(NUM_EPISODES_LIFETIME, count, reduce="lifetime_sum")
        for name, total in episode_sums(columns).items():
            self.metrics.log_value((EPISODE_SUMS, name), total, reduce="sum")
        for world, pairs in level_returns(columns, self.config.world_name).items():
            self.metrics.log_value((LEVEL_RETURNS, world), pairs, reduce="item_series")
        return count

    def _log_as_rllib(self, columns: dict[str, np.ndarray]) -> None:
        """Log the results of an evaluation by RLlib's names, over the newest
        `metrics_num_episodes_for_smoothing` episodes.
        """
        window = self.config.metrics_num_episodes_for_smoothing
        returns = columns["return"].tolist()
        lengths = columns["length"].tolist()
        for episode_return, length in zip(returns, lengths, strict=True):
            for key, value in ((EPISODE_RETURN_MEAN, episode_return), (EPISODE_LEN_MEAN, length)):
                self.metrics.log_value(key, value, window=window)
            for reduce, key in (("min", EPISODE_RETURN_MIN), ("max", EPISODE_RETURN_MAX)):
                self.metrics.log_value(key, episode_return, reduce=reduce, window=window)
