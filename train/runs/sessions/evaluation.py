"""Measures the policy while it is trained: against opponents, or by the returns of episodes.

The world says which (`BatchEnv.evaluation`).
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from agents import make
from agents.measure import evaluation
from agents.measure.evaluation.anchored_elo import AnchoredGames, elo_against
from agents.measure.evaluation.episodes import GAMES_AT_ONCE, Answer, by_logits, play
from envs.api import BatchEnv
from envs.battlesnake.observations import choose_observation
from envs.battlesnake.vector_env import BattlesnakeVectorEnv
from envs.common.errors import ConfigError
from envs.wrappers import layers
from train.config import Experiment
from train.worlds.build import make_world, measured, world_options

if TYPE_CHECKING:
    import torch

_SEED_OFFSET = 1_000_003


class Evaluator:
    """Decides when an evaluation is due, and runs it.

    The policy acts as in `procsnake evaluate` (`BatchEnv.samples_actions`): in Procgen it samples
    its actions, elsewhere it takes the likeliest. Every evaluation of a run plays the same games
    with the same draws (their seed is the run's own plus a constant), so differences between two
    evaluations come from the policy. A curriculum is always measured in its last stage
    (`train.worlds.build.measured`). Raises `UnknownNameError` for opponents that don't exist, and
    `ConfigError` for more of them than the board or the policy takes, and for snakes with a memory.
    """

    def __init__(self, experiment: Experiment) -> None:
        assert experiment.evaluation is not None
        self.experiment = experiment
        self.settings = experiment.evaluation
        self._seed = experiment.seed + _SEED_OFFSET
        games = min(self.settings.games, GAMES_AT_ONCE)
        options = {**world_options(experiment), **self.settings.env_options, "num_games": games}
        self._world = make_world(measured(options))
        if self._world.evaluation == "opponents":
            if experiment.is_recurrent:
                raise ConfigError(
                    "snakes with a memory (ppo.lstm_units) can't be evaluated: agents look at each"
                    " board by itself. Set evaluation: null, or ppo.lstm_units: 0"
                )
            names = itertools.chain.from_iterable(self.settings.opponents)
            self._opponents = {name: make(name) for name in names}
            for group in self.settings.opponents:
                self._require_a_game_against(group)

    def is_due(self, counters: Mapping[str, Any]) -> bool:
        """Return whether an evaluation is due, by the run's `counters`."""
        iterations = counters["iteration"] - counters.get("evaluated_iteration", 0)
        minutes = counters["minutes"] - counters.get("evaluated_minutes", 0.0)
        by_iterations = self.settings.every_iterations
        by_minutes = self.settings.every_minutes
        return bool(
            (by_iterations is not None and iterations >= by_iterations)
            or (by_minutes is not None and minutes >= by_minutes)
        )

    def evaluate(self, weights: Mapping[str, np.ndarray]) -> dict[str, float]:
        """Return metrics of the policy with `weights` (the state of a `NetworkModule`), and
        `seconds_evaluation`.

        On Battlesnake these are, for each group of opponents, `win_rate_vs_<group>`,
        `draw_rate_vs_…`, `mean_turns_vs_…` and `mean_length_vs_…`, and `win_rate`, the mean over
        the groups; with `ratings` also `elo` (`agents.measure.evaluation.anchored_elo`). On other
        worlds they are `evaluation_return_mean` and `evaluation_len_mean`. Raises what
        `agents.measure.evaluation.play_games` raises."""
        from train.runs.export import network_with

        began = time.monotonic()
        if self._world.evaluation == "opponents":
            metrics = self._against_opponents(weights)
        else:
            network = network_with(self.experiment, self._world, weights)
            metrics = self._episode_means(network)
        return {**metrics, "seconds_evaluation": time.monotonic() - began}

    def _episode_means(self, network: torch.nn.Module) -> dict[str, float]:
        # A Q network's values aren't logits, so its policy draws nothing.
        learned_logits = self.experiment.policy_network.name != "q-network"
        samples = self._world.samples_actions and learned_logits
        return episode_means(
            network, self._world, episodes=self.settings.games, seed=self._seed, sample=samples
        )

    def _snakes(self) -> BattlesnakeVectorEnv:
        *_, world = layers(self._world)
        assert isinstance(world, BattlesnakeVectorEnv)
        return world

    def _require_a_game_against(self, group: Sequence[str]) -> None:
        """Play a turn among the opponents, one of them in the policy's seat.

        Raises `ConfigError` if they can't play there. Otherwise the run would end at its first
        evaluation."""
        world = self._snakes()
        state = world.state
        others = [self._opponents[name] for name in group]
        try:
            choose_observation(world.observation, 1 + len(group))
            evaluation.play_games(
                [others[0], *others],
                num_games=1,
                width=state.width,
                height=state.height,
                settings=state.settings,
                seed=self._seed,
                max_turns=1,
            )
        except ConfigError as error:
            raise ConfigError(
                f"evaluation.opponents: the policy can't meet {group_label(group)} in its world:"
                f" {error}. Name fewer or other opponents, or a larger board"
            ) from error

    def _against_opponents(self, weights: Mapping[str, np.ndarray]) -> dict[str, float]:
        from train.runs.export import policy_in_memory

        world = self._snakes()
        policy = policy_in_memory(self.experiment, weights)
        state = world.state
        metrics: dict[str, float] = {}
        rated: list[AnchoredGames] = []
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
            if ratings := self.settings.ratings:
                assert score.points is not None
                rated.append(
                    AnchoredGames(score.points, score.games, [ratings[name] for name in group])
                )
            label = group_label(group)
            metrics |= {
                f"win_rate_vs_{label}": score.win_rate,
                f"draw_rate_vs_{label}": score.draws / score.games,
                f"mean_turns_vs_{label}": score.mean_turns,
                f"mean_length_vs_{label}": score.mean_length,
            }
        if rated:
            metrics["elo"] = elo_against(rated)
        rates = [metrics[f"win_rate_vs_{group_label(group)}"] for group in self.settings.opponents]
        return {**metrics, "win_rate": sum(rates) / len(rates)}


def group_label(group: Sequence[str]) -> str:
    """Return a group of opponents as it is written in column names: `3xrandom`,
    `flood+2xgreedy`.
    """
    counts = {name: group.count(name) for name in group}
    labels = [f"{count}x{name}" for name, count in counts.items()]
    return "+".join(label.removeprefix("1x") for label in labels)


def episode_means(
    network: torch.nn.Module, world: BatchEnv, *, episodes: int, seed: int, sample: bool = False
) -> dict[str, float]:
    """Return the mean return and length of `episodes` episodes, rounded up to the same number for
    each row.

    The policy takes the likeliest actions, or with `sample` draws them by their probabilities. A
    `network` with a memory keeps it from step to step in each row."""
    generator = np.random.default_rng(seed) if sample else None
    answer = by_logits(_answer_of(network, world.num_envs), generator)
    returns, lengths = play(world, answer, episodes, seed)
    return {
        "evaluation_return_mean": float(returns.mean()),
        "evaluation_len_mean": float(lengths.mean()),
    }


def _answer_of(network: torch.nn.Module, num_rows: int) -> Answer:
    import torch

    from agents.networks.recurrent import Recurrent

    def answer(observations: np.ndarray, begins: np.ndarray) -> np.ndarray:
        with torch.inference_mode():
            logits, _ = network(torch.from_numpy(observations))
        return logits.float().numpy()

    if not isinstance(network, Recurrent):
        return answer

    one_step = network.one_step()
    state = torch.zeros(num_rows, one_step.state_size)

    def answer_with_memory(observations: np.ndarray, begins: np.ndarray) -> np.ndarray:
        nonlocal state
        with torch.inference_mode():
            state[begins] = 0.0
            logits, _, state = one_step(torch.from_numpy(observations), state)
        return logits.float().numpy()

    return answer_with_memory
