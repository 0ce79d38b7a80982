"""A curriculum: worlds in sequence from easy to hard, such as small boards first and more snakes
later.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from envs.api import BatchEnv
from envs.common.errors import ConfigError
from train.worlds.parts import joined_columns, seed_of_part, world_of
from train.worlds.self_play import SelfPlay
from train.worlds.state import carry_on, progress_of, remember

if TYPE_CHECKING:
    import torch


class Curriculum(BatchEnv):
    """Plays the worlds of several stages, one after the other.

    * `stages`: The stages in order, each as {until: decisions, name: …, options: {…}}; the last one
      has no `until`. A stage ends when that many decisions were taken in all. Each env runner
      counts its own decisions.
    * `num_games`: The games of each stage; by default each world's own number.
    * `self_play`: The options of `train.worlds.self_play.SelfPlay` for every stage, with one pool
      for all.

    Stages may differ in board size, number of snakes and rules. Observations and actions must be
    the same, as they are for snakes with `view: window` and a radius. There are as many rows as the
    widest stage needs; rows that a stage doesn't need are never `valid`. When the stage changes,
    running episodes are truncated, and `drain_episodes` leaves them out. It has the columns that
    all stages have, and `stage`. Checkpoints hold the stage and the count.

    Raises `ConfigError` for stages that don't fit together.
    """

    worlds: Sequence[BatchEnv] = ()

    def __init__(
        self,
        *,
        stages: Sequence[dict[str, Any]],
        num_games: int | None = None,
        self_play: dict[str, Any] | None = None,
    ) -> None:
        self.until = _limits(stages)
        self.worlds = [
            world_of(stage["name"], stage.get("options", {}), num_games) for stage in stages
        ]
        first = self.worlds[0]
        for k, world in enumerate(self.worlds):
            if _interface(world) != _interface(first):
                raise ConfigError(
                    f"stages[{k}] has {_interface(world)}, but stages[0] has {_interface(first)};"
                    " they must agree"
                )
        # Rows a game differ between stages; trainers only look at the rows.
        super().__init__(
            num_games=max(world.num_envs for world in self.worlds),
            rows_per_game=1,
            observation_space=first.single_observation_space,
            action_space=first.single_action_space,
        )
        # What is seen is the same in all stages, and so are the ways to show it.
        self.observation_contract = first.observation_contract
        self.views = first.views
        self.samples_actions = self.worlds[-1].samples_actions
        if first.action_mask is not None:
            self.action_mask = np.ones((self.num_envs, first.action_mask.shape[1]), np.bool_)
        if self_play is not None:
            self.worlds = _with_one_pool(self.worlds, self_play)
        self.stage = 0
        self.decisions = 0
        self.env_steps_per_advance = first.env_steps_per_advance
        self._seed: int | None = None
        self._columns: list[dict[str, np.ndarray]] = []

    def remember(self, network: torch.nn.Module) -> None:
        """Give the running stage's world the current policy."""
        remember(self.worlds[self.stage], network)

    def progress(self) -> dict[str, Any]:
        """Return `stage`, the `decisions` taken so far, and `world`, the progress of the stage's
        world.
        """
        return {
            "stage": self.stage,
            "decisions": self.decisions,
            "world": progress_of(self.worlds[self.stage]),
        }

    def carry_on(self, progress: dict[str, Any], network: torch.nn.Module) -> None:
        """Continue in the stage that was reached, with new games."""
        self.stage = progress["stage"]
        self.decisions = progress["decisions"]
        carry_on(self.worlds[self.stage], progress["world"], network)

    def restart(self, seed: int | None = None) -> None:
        self._seed = seed
        self._begin_stage()
        self._show()
        self.rewards[:] = 0
        self.terminated[:] = self.truncated[:] = False

    def advance(self, actions: np.ndarray) -> None:
        world = self.worlds[self.stage]
        rows = slice(0, world.num_envs)
        self.decisions += int(world.valid.sum())
        world.advance(actions[rows])
        self.rewards[:] = 0
        self.terminated[:] = self.truncated[:] = False
        for name in ("rewards", "terminated", "truncated", "final_observations"):
            getattr(self, name)[rows] = getattr(world, name)
        if self.stage < len(self.until) and self.decisions >= self.until[self.stage]:
            going_on = np.flatnonzero(world.valid & ~(world.terminated | world.truncated))
            self.final_observations[going_on] = world.observations[going_on]
            self.truncated[going_on] = True
            self._take_columns()
            self.stage += 1
            self._begin_stage()
        self._show()

    def drain_episodes(self) -> dict[str, np.ndarray]:
        self._take_columns()
        parts = self._columns
        self._columns = []
        return joined_columns(parts)

    def picture(self, game: int = 0) -> np.ndarray:
        """Return the picture of the running stage's game with row `game`; here each row counts as a
        game.
        """
        world = self.worlds[self.stage]
        return world.picture(game // world.rows_per_game)

    def close_extras(self, **options: Any) -> None:
        for world in self.worlds:
            world.close(**options)

    def _begin_stage(self) -> None:
        self.worlds[self.stage].restart(seed_of_part(self._seed, self.stage))

    def _take_columns(self) -> None:
        columns = self.worlds[self.stage].drain_episodes()
        self._columns.append({**columns, "stage": np.full(len(columns["row"]), self.stage)})

    def _show(self) -> None:
        world = self.worlds[self.stage]
        self.env_steps_per_advance = world.env_steps_per_advance
        rows = slice(0, world.num_envs)
        self.observations[rows] = world.observations
        self.valid[rows] = world.valid
        self.valid[world.num_envs :] = False
        if self.action_mask is not None:
            self.action_mask[rows] = world.action_mask


def _with_one_pool(worlds: Sequence[BatchEnv], options: dict[str, Any]) -> list[SelfPlay]:
    first = SelfPlay(worlds[0], **options)
    return [first, *(SelfPlay(world, **options, pool=first.pool) for world in worlds[1:])]


def _limits(stages: Sequence[dict[str, Any]]) -> list[int]:
    """The decisions after which each stage but the last ends."""
    if not stages or not all(isinstance(stage, dict) and "name" in stage for stage in stages):
        raise ConfigError(
            f"stages is {stages!r}; it must be a list like [{{until: 1e6, name: battlesnake,"
            " options: {…}}, …]"
        )
    until = [stage.get("until") for stage in stages]
    limits = [limit for limit in map(_decisions, until[:-1]) if limit is not None]
    if len(limits) != len(stages) - 1 or until[-1] is not None or sorted(set(limits)) != limits:
        raise ConfigError(
            f"stages end after {until} decisions; every one but the last needs `until`, a number,"
            " and they must increase"
        )
    return limits


def _decisions(limit: Any) -> int | None:
    """A limit as a whole number; None unless it is finite. YAML 1.1 reads 1e6 as text."""
    if isinstance(limit, bool):
        return None
    try:
        return int(float(limit))
    except (TypeError, ValueError, OverflowError):
        return None


def _interface(world: BatchEnv) -> tuple[Any, ...]:
    masked = world.action_mask is not None
    return (
        world.single_observation_space,
        world.single_action_space,
        masked,
        world.observation_contract,
    )
