"""From an experiment to its world: the form that crosses process borders is RLlib's `env_config`."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import envs
from envs.api import BatchEnv
from envs.errors import ConfigError
from train.config import Experiment

envs.register("several", "train.several_worlds:SeveralWorlds")


def world_options(experiment: Experiment) -> dict[str, Any]:
    """The `env_config` of an experiment: `name`, `imports`, and the world's own options."""
    env = experiment.env
    return {**env.options, "name": env.name, "imports": list(env.imports)}


def make_world(env_config: dict[str, Any]) -> BatchEnv:
    """Build the world `env_config["name"]` from the other items; modules in `imports` are imported first (they register it).

    With `rnd` (options of `train.rnd.CuriousWorld`) it pays for novelty, too. Raises `UnknownNameError` or `ConfigError` for a
    world or options that don't exist.
    """
    options = dict(env_config)
    name, rnd = options.pop("name"), options.pop("rnd", None)
    for module in options.pop("imports", ()):
        try:
            import_module(module)
        except ImportError as error:
            raise ConfigError(f"env.imports: the module {module!r} can't be imported: {error}") from error
    try:
        world = envs.make(name, **options)
    except TypeError as error:
        raise ConfigError(f"the world {name!r} can't be made with options {sorted(options)}: {error}") from error
    return world if rnd is None else _make_curious(world, rnd)


def _make_curious(world: BatchEnv, rnd: dict[str, Any]) -> BatchEnv:
    from train.rnd import CuriousWorld

    try:
        return CuriousWorld(world, **rnd)
    except TypeError as error:
        raise ConfigError(f"env.options.rnd is {rnd!r}: {error}") from error
