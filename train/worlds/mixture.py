"""A mixture: several worlds side by side as one, for one policy, such as boards of several sizes or
several Procgen games.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from envs.api import BatchEnv
from envs.common.errors import ConfigError
from train.worlds.parts import joined_columns, seed_of_part, world_of
from train.worlds.state import carry_on, progress_of, remember

if TYPE_CHECKING:
    import torch

_COPIED = ("observations", "valid", "rewards", "terminated", "truncated", "final_observations")


class Mixture(BatchEnv):
    """Has the rows of several worlds, one world after the other.

    * `worlds`: The worlds, each as {name: …, options: {…}}.
    * `num_games`: The games of each world; by default each world's own number.

    The worlds must agree in observation space, actions and rows per game, as boards of any size do
    with `view: window` and a radius. `drain_episodes` has
    the columns that all worlds have, and three more for each world, by its label (its name, with a
    number if it comes again): `world_<label>`, bool, says that the episode was played there;
    `return_<label>` and `length_<label>` are its return and length there, and 0 elsewhere.

    Raises `ConfigError` for worlds that don't fit together.
    """

    worlds: Sequence[BatchEnv] = ()

    def __init__(self, *, worlds: Sequence[dict[str, Any]], num_games: int | None = None) -> None:
        if not worlds or not all(isinstance(world, dict) and "name" in world for world in worlds):
            raise ConfigError(
                f"worlds is {worlds!r}; it must be a list like [{{name: battlesnake, options:"
                " {width: 7}}, …]"
            )
        self.worlds = [
            world_of(world["name"], world.get("options", {}), num_games) for world in worlds
        ]
        self.labels = _labels([world["name"] for world in worlds])
        first = self.worlds[0]
        for world, label in zip(self.worlds, self.labels, strict=True):
            if _interface(world) != _interface(first):
                raise ConfigError(
                    f"worlds: {label} has {_interface(world)}, but {self.labels[0]} has"
                    f" {_interface(first)}; one policy can't play both"
                )
        super().__init__(
            num_games=sum(world.num_games for world in self.worlds),
            rows_per_game=first.rows_per_game,
            observation_space=first.single_observation_space,
            action_space=first.single_action_space,
        )
        # What is seen is the same everywhere, and so are the ways to show it.
        self.observation_contract = first.observation_contract
        self.views = first.views
        self.samples_actions = any(world.samples_actions for world in self.worlds)
        if first.action_mask is not None:
            self.action_mask = np.ones((self.num_envs, first.action_mask.shape[1]), np.bool_)
        ends = np.cumsum([world.num_envs for world in self.worlds]).tolist()
        self._rows = [
            slice(end - world.num_envs, end) for end, world in zip(ends, self.worlds, strict=True)
        ]
        self._count_steps()

    def restart(self, seed: int | None = None) -> None:
        for k, world in enumerate(self.worlds):
            world.restart(seed_of_part(seed, k))
        self._copy()

    def advance(self, actions: np.ndarray) -> None:
        for world, rows in zip(self.worlds, self._rows, strict=True):
            world.advance(actions[rows])
        self._copy()

    def drain_episodes(self) -> dict[str, np.ndarray]:
        drained = [world.drain_episodes() for world in self.worlds]
        for columns, rows in zip(drained, self._rows, strict=True):
            columns["row"] = columns["row"] + rows.start
        joined = joined_columns(drained)
        whose = np.repeat(np.arange(len(drained)), [len(columns["row"]) for columns in drained])
        for k, label in enumerate(self.labels):
            here = joined[f"world_{label}"] = whose == k
            joined |= {f"{name}_{label}": joined[name] * here for name in ("return", "length")}
        return joined

    def remember(self, network: torch.nn.Module) -> None:
        """Give each world the current policy."""
        for world in self.worlds:
            remember(world, network)

    def progress(self) -> list[dict[str, Any]]:
        """Return the progress of each world, in order."""
        return [progress_of(world) for world in self.worlds]

    def carry_on(self, progress: list[dict[str, Any]], network: torch.nn.Module) -> None:
        """Let each world continue from its part of `progress`."""
        for world, own in zip(self.worlds, progress, strict=True):
            carry_on(world, own, network)

    def picture(self, game: int = 0) -> np.ndarray:
        """Return a game's picture. Games are counted like rows: those of the first world come
        first.
        """
        for world in self.worlds[:-1]:
            if game < world.num_games:
                return world.picture(game)
            game -= world.num_games
        return self.worlds[-1].picture(game)

    def close_extras(self, **options: Any) -> None:
        for world in self.worlds:
            world.close(**options)

    def _count_steps(self) -> None:
        self.env_steps_per_advance = sum(world.env_steps_per_advance for world in self.worlds)

    def _copy(self) -> None:
        self._count_steps()
        for world, rows in zip(self.worlds, self._rows, strict=True):
            for name in _COPIED:
                getattr(self, name)[rows] = getattr(world, name)
            if self.action_mask is not None:
                self.action_mask[rows] = world.action_mask


def _interface(world: BatchEnv) -> tuple[Any, ...]:
    masked = world.action_mask is not None
    spaces = (world.single_observation_space, world.single_action_space)
    return *spaces, world.rows_per_game, masked, world.observation_contract


def _labels(names: Sequence[str]) -> list[str]:
    """Names as parts of column names, unique: `procgen/coinrun` → `coinrun`, a second `battlesnake`
    → `battlesnake_2`.
    """
    labels = []
    counts: Counter[str] = Counter()
    for name in names:
        label = name.rpartition("/")[2]
        counts[label] += 1
        labels.append(label if counts[label] == 1 else f"{label}_{counts[label]}")
    return labels
