"""From an experiment to its world: the form that crosses process borders is RLlib's `env_config`."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import envs
from envs.api import BatchEnv
from envs.errors import ConfigError
from train.config import Experiment

_FOR_TRAINING = ("rnd", "augment", "self_play")

envs.register("several", "train.several_worlds:SeveralWorlds")
envs.register("curriculum", "train.curriculum:Curriculum")


def world_options(experiment: Experiment) -> dict[str, Any]:
    """The `env_config` of an experiment: `name`, `imports`, and the world's own options."""
    env = experiment.env
    return {**env.options, "name": env.name, "imports": list(env.imports)}


def without_training(options: dict[str, Any]) -> dict[str, Any]:
    """The options of a world without those that are for training only: the world that a policy is measured in."""
    return {name: value for name, value in options.items() if name not in _FOR_TRAINING}


def make_world(env_config: dict[str, Any]) -> BatchEnv:
    """Build the world `env_config["name"]` from the other items; modules in `imports` are imported first (they register it).

    With `rnd` (options of `train.rnd.CuriousWorld`) it pays for novelty, too, with `augment` (names for
    `train.augmented_world.AugmentedWorld`) its pictures are changed at random, with `self_play` (options of
    `train.self_play.SelfPlay`) some of the snakes are opponents of a pool. Raises `UnknownNameError` or `ConfigError` for
    a world or options that don't exist.
    """
    options = dict(env_config)
    name, rnd, augment = options.pop("name"), options.pop("rnd", None), options.pop("augment", None)
    # A curriculum's stages have one pool together.
    self_play = None if name == "curriculum" else options.pop("self_play", None)
    for module in options.pop("imports", ()):
        try:
            import_module(module)
        except ImportError as error:
            raise ConfigError(f"env.imports: the module {module!r} can't be imported: {error}") from error
    try:
        world = envs.make(name, **options)
    except TypeError as error:
        raise ConfigError(f"the world {name!r} can't be made with options {sorted(options)}: {error}") from error
    if self_play is not None:
        world = _with_opponents(world, self_play)
    # Novelty is that of the game's own pictures, so it comes first.
    world = world if rnd is None else _make_curious(world, rnd)
    return world if augment is None else _make_augmented(world, augment)


def _make_curious(world: BatchEnv, rnd: dict[str, Any]) -> BatchEnv:
    from train.rnd import CuriousWorld

    try:
        return CuriousWorld(world, **rnd)
    except TypeError as error:
        raise ConfigError(f"env.options.rnd is {rnd!r}: {error}") from error


def _make_augmented(world: BatchEnv, names: Any) -> BatchEnv:
    from train.augmented_world import AugmentedWorld

    return AugmentedWorld(world, names)


def _with_opponents(world: BatchEnv, options: Any) -> BatchEnv:
    from train.self_play import SelfPlay

    try:
        return SelfPlay(world, **options)
    except TypeError as error:
        raise ConfigError(f"env.options.self_play is {options!r}: {error}") from error
