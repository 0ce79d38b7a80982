"""RLlib's episode call-backs, for the rows of a world. Episodes are only built if a call-back is
registered, or if they are recorded.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from ray.rllib.callbacks.callbacks import RLlibCallback
from ray.rllib.callbacks.utils import make_callback
from ray.rllib.core.columns import Columns
from ray.rllib.env.single_agent_episode import SingleAgentEpisode

from train.rollouts.columns import ACTION_MASK

if TYPE_CHECKING:
    from train.rllib.env_runner import BatchEnvRunner
    from train.rllib.recording import Recorder

_OF_EPISODES = ("on_episode_created", "on_episode_start", "on_episode_step", "on_episode_end")


class EpisodeCallbacks:
    """Builds a `SingleAgentEpisode` for each row, and calls the registered call-backs as RLlib
    does.

    `on_episode_created` and `on_episode_start` come before the row's first decision,
    `on_episode_step` after each of its decisions, and `on_episode_end` after the last one. A row
    that waits for its game's end has no episode."""

    def __init__(self, runner: BatchEnvRunner) -> None:
        self._runner = runner
        self._episodes: dict[int, SingleAgentEpisode] = {}
        self._ended: list[SingleAgentEpisode] = []
        self._recorder: Recorder | None = None
        if _is_recorded(runner):
            self._recorder = _recorder(runner)

    @staticmethod
    def are_asked_for(runner: BatchEnvRunner) -> bool:
        """Whether any call-back of episodes is registered, or episodes are recorded."""
        config = runner.config
        objects = runner._callbacks
        by_function = any(getattr(config, f"callbacks_{name}") for name in _OF_EPISODES)
        if by_function or _is_recorded(runner):
            return True
        return any(
            any(
                getattr(type(one), name) is not getattr(RLlibCallback, name)
                for name in _OF_EPISODES
            )
            for one in objects
        )

    def forget(self) -> None:
        """Drop the running episodes, because the games restart."""
        self._episodes.clear()

    def before_decision(self, rows: np.ndarray) -> None:
        """Begin the episodes of `rows`, int64 (n,), that have none yet."""
        world = self._runner.env
        for row in (int(row) for row in rows if int(row) not in self._episodes):
            self._episodes[row] = SingleAgentEpisode(
                observation_space=world.single_observation_space,
                action_space=world.single_action_space,
            )
            self._call("on_episode_created", row)
            self._episodes[row].add_env_reset(
                observation=world.observations[row].copy(), infos=self._info(row)
            )
            self._call("on_episode_start", row)

    def after_step(
        self, rows: np.ndarray, actions: np.ndarray, entry: dict[str, np.ndarray]
    ) -> None:
        """Record the outcome of the decisions of `rows`; `actions` are those of all rows of the
        world, and `entry` is the runner's data of the decisions.
        """
        world = self._runner.env
        for position, row in enumerate(map(int, rows)):
            episode = self._episodes[row]
            output = dict(episode.get_infos(-1))
            if Columns.ACTION_LOGP in entry:
                output[Columns.ACTION_LOGP] = float(entry[Columns.ACTION_LOGP][position])
            terminated = bool(world.terminated[row])
            truncated = bool(world.truncated[row])
            ended = terminated or truncated
            observations = world.final_observations if ended else world.observations
            info = {} if ended else self._info(row)
            episode.add_env_step(
                observation=observations[row].copy(),
                action=int(actions[row]),
                reward=float(world.rewards[row]),
                infos=info,
                terminated=terminated,
                truncated=truncated and not terminated,
                extra_model_outputs=output,
            )
            self._call("on_episode_step", row)
            if ended:
                self._call("on_episode_end", row, prev_episode_chunks=[])
                del self._episodes[row]
                if self._recorder:
                    self._ended.append(episode)

    def record(self) -> None:
        """Write the episodes that have ended since the last call."""
        if self._recorder:
            self._recorder.record(self._ended)
            self._ended = []

    def stop(self) -> None:
        """Write the remaining episodes."""
        if self._recorder:
            self._recorder.stop()

    def _info(self, row: int) -> dict[str, Any]:
        mask = self._runner.env.action_mask
        if mask is None:
            return {}
        return {ACTION_MASK: mask[row].copy()}

    def _call(self, which: str, row: int, **further: Any) -> None:
        runner = self._runner
        make_callback(
            which,
            callbacks_objects=runner._callbacks,
            callbacks_functions=getattr(runner.config, f"callbacks_{which}"),
            kwargs={
                "episode": self._episodes[row],
                "env_runner": runner,
                "metrics_logger": runner.metrics,
                "env": runner.env,
                "rl_module": runner.module,
                "env_index": row,
                **further,
            },
        )


def _is_recorded(runner: BatchEnvRunner) -> bool:
    return bool(runner.config.output) and not runner.config.in_evaluation


def _recorder(runner: BatchEnvRunner) -> Recorder:
    # Here, because RLlib's writer brings in Ray's data library, which takes seconds.
    from train.rllib.recording import Recorder

    return Recorder(runner)
