"""Registers the worlds' names with Ray, for `AlgorithmConfig.environment("battlesnake")`.

RLlib's own algorithms get the environment with one player, which Gymnasium knows; `train`'s play
the whole batch."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from gymnasium.wrappers import DtypeObservation
from ray.tune import register_env
from ray.tune.registry import ENV_CREATOR, _global_registry

import envs
from envs.procgen.games import GAMES


def register_worlds() -> None:
    """Register every world that `envs.names()` lists and Ray doesn't know yet."""
    for name in envs.names():
        if not _global_registry.contains(ENV_CREATOR, name):
            register_env(name, partial(make_environment, name))


def make_environment(name: str, options: Any) -> Any:
    """Make the environment of a world for RLlib's own algorithms, with RLlib's `env_config` as
    options.

    Observations are float32, because RLlib's networks take no integers. For a world that has no
    single-player environment, this is the batch itself."""
    if name == "battlesnake":
        from envs.battlesnake.gym_env import BattlesnakeEnv

        return DtypeObservation(BattlesnakeEnv(**options), np.float32)
    game = name.removeprefix("procgen/")
    if game in GAMES:
        from envs.procgen.gym_env import ProcgenEnv

        return DtypeObservation(ProcgenEnv(game, **options), np.float32)
    return envs.make(name, **options)
