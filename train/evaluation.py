"""Measuring the policy while it is trained: Battlesnake against built-in agents, other worlds by their returns."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from agents import evaluation, make
from envs.api import BatchEnv
from envs.battlesnake.vector_env import BattlesnakeVectorEnv
from envs.errors import ConfigError
from train.config import Experiment
from train.world import make_world, without_training, world_options

if TYPE_CHECKING:
    import torch

_SEED_OFFSET = 1_000_003
_GAMES_AT_ONCE = 64


class Evaluator:
    """Says when an evaluation is due and carries it out.

    The policy takes the likeliest action, as an exported one does. Every evaluation of a run plays the same games (their seed
    is the run's own plus a constant), so differences between two are the policy's. Raises `UnknownNameError` for opponents
    that don't exist, `ConfigError` for snakes with a memory.
    """

    def __init__(self, experiment: Experiment) -> None:
        assert experiment.evaluation is not None
        self.experiment, self.settings = experiment, experiment.evaluation
        self._seed = experiment.seed + _SEED_OFFSET
        games = min(self.settings.games, _GAMES_AT_ONCE)
        options = without_training({**world_options(experiment), **self.settings.env_options, "num_games": games})
        self._world = make_world(options)
        if isinstance(self._world, BattlesnakeVectorEnv):
            if experiment.is_recurrent:
                raise ConfigError(
                    "snakes with a memory (ppo.lstm_units) can't be evaluated: agents look at each board by itself."
                    " Set evaluation: null, or ppo.lstm_units: 0"
                )
            self._opponents = {name: make(name) for group in self.settings.opponents for name in group}

    def is_due(self, counters: Mapping[str, Any]) -> bool:
        """True if so much was trained since the last evaluation; `counters` as the run keeps them."""
        iterations = counters["iteration"] - counters.get("evaluated_iteration", 0)
        minutes = counters["minutes"] - counters.get("evaluated_minutes", 0.0)
        by_iterations, by_minutes = self.settings.every_iterations, self.settings.every_minutes
        return bool(
            (by_iterations is not None and iterations >= by_iterations) or (by_minutes is not None and minutes >= by_minutes)
        )

    def evaluate(self, weights: Mapping[str, np.ndarray]) -> dict[str, float]:
        """Metrics of the policy with `weights` (the state of a `NetworkModule`), and `seconds_evaluation`.

        Battlesnake, for each group of opponents: `win_rate_vs_<group>`, `draw_rate_vs_…`, `mean_turns_vs_…`,
        `mean_length_vs_…`; `win_rate`, the mean over the groups. Other worlds: `evaluation_return_mean`,
        `evaluation_len_mean`. Raises as `agents.evaluation.play_games` does.
        """
        from train.export import network_with

        began = time.monotonic()
        if isinstance(self._world, BattlesnakeVectorEnv):
            metrics = self._against_opponents(self._world, weights)
        else:
            network = network_with(self.experiment, self._world, weights)
            metrics = episode_means(network, self._world, episodes=self.settings.games, seed=self._seed)
        return {**metrics, "seconds_evaluation": time.monotonic() - began}

    def _against_opponents(self, world: BattlesnakeVectorEnv, weights: Mapping[str, np.ndarray]) -> dict[str, float]:
        from train.export import policy_in_memory

        policy, state = policy_in_memory(self.experiment, weights), world.state
        metrics: dict[str, float] = {}
        for group in self.settings.opponents:
            (score,) = evaluation.evaluate(
                policy,
                [[self._opponents[name] for name in group]],
                num_games=self.settings.games,
                width=state.width,
                height=state.height,
                settings=state.settings,
                seed=self._seed,
                max_turns=world.max_turns,
            )
            label = group_label(group)
            metrics |= {
                f"win_rate_vs_{label}": score.win_rate,
                f"draw_rate_vs_{label}": score.draws / score.games,
                f"mean_turns_vs_{label}": score.mean_turns,
                f"mean_length_vs_{label}": score.mean_length,
            }
        rates = [metrics[f"win_rate_vs_{group_label(group)}"] for group in self.settings.opponents]
        return {**metrics, "win_rate": sum(rates) / len(rates)}


def group_label(group: Sequence[str]) -> str:
    """A group of opponents in the name of a column: `3xrandom`, `flood+2xgreedy`."""
    counts = {name: group.count(name) for name in group}
    return "+".join(name if count == 1 else f"{count}x{name}" for name, count in counts.items())


def episode_means(network: torch.nn.Module, world: BatchEnv, *, episodes: int, seed: int) -> dict[str, float]:
    """Mean return and length of `episodes` episodes (rounded up to the same number for each row), likeliest actions.

    As many of each row, because short episodes would be too many among the first that end. A `network` with a memory carries
    it along from step to step in each row.
    """
    import torch

    from train.modules import mask_logits

    per_row = -(-episodes // world.num_envs)
    ended = np.zeros(world.num_envs, np.int64)
    returns, lengths = [], []
    world.restart(seed)
    world.drain_episodes()
    actions = np.zeros(world.num_envs, np.int64)
    network = network.one_step() if (remembers := hasattr(network, "one_step")) else network
    state = torch.zeros(world.num_envs, network.state_size if remembers else 0)
    while (ended < per_row).any():
        rows = np.flatnonzero(world.valid)
        with torch.inference_mode():
            seen = torch.from_numpy(world.observations[rows])
            logits, _, *after = network(seen, state[rows]) if remembers else network(seen)
            if remembers:
                state[rows] = after[0]
            mask = None if world.action_mask is None else torch.from_numpy(world.action_mask[rows])
            actions[rows] = mask_logits(logits, mask).argmax(-1).numpy()
        world.advance(actions)
        state[world.terminated | world.truncated] = 0.0
        columns = world.drain_episodes()
        for row, episode_return, length in zip(columns["row"], columns["return"], columns["length"], strict=True):
            ended[row] += 1
            if ended[row] <= per_row:
                returns.append(float(episode_return))
                lengths.append(int(length))
    return {"evaluation_return_mean": sum(returns) / len(returns), "evaluation_len_mean": sum(lengths) / len(lengths)}
