"""Makes the world of an experiment. Between processes its description travels as RLlib's
`env_config`.
"""

from __future__ import annotations

from typing import Any

import envs
from envs.api import BatchEnv
from envs.common.errors import ConfigError
from envs.common.parts import import_modules
from train.config import Experiment

_FOR_TRAINING = ("rnd", "augment", "self_play")
_CURRICULUM = "curriculum"
_MIXTURE = "mixture"

envs.register(_MIXTURE, "train.worlds.mixture:Mixture")
envs.register(_CURRICULUM, "train.worlds.curriculum:Curriculum")


def world_options(experiment: Experiment) -> dict[str, Any]:
    """Return the `env_config` of an experiment: `name`, `imports`, and the world's own options."""
    env = experiment.env
    return {**env.options, "name": env.name, "imports": experiment.modules}


def without_training(options: dict[str, Any]) -> dict[str, Any]:
    """Return the options of a world without those for training only."""
    return {name: value for name, value in options.items() if name not in _FOR_TRAINING}


def measured(options: dict[str, Any]) -> dict[str, Any]:
    """Return the options, with `name`, of the world that measures a policy trained in the world of
    `options`.

    Options for training only are left out. A curriculum is replaced by its last stage, because
    measuring would advance a curriculum, and each measurement would start where the last one ended.
    Options beside the `stages` replace those of the last stage. The same holds for a curriculum in
    a mixture."""
    plain = without_training(options)
    if plain["name"] == _CURRICULUM:
        last = plain.pop("stages")[-1]
        return measured({**last.get("options", {}), **plain, "name": last["name"]})
    if plain["name"] == _MIXTURE:
        plain["worlds"] = [_measured_part(world) for world in plain["worlds"]]
    return plain


def _measured_part(world: dict[str, Any]) -> dict[str, Any]:
    options = without_training(world.get("options", {}))
    if world["name"] == _CURRICULUM:
        # It stays one: its rows are games to a mixture, whatever the last stage calls a game.
        options["stages"] = options["stages"][-1:]
    return {**world, "options": options}


def single_world(experiment: Experiment) -> BatchEnv:
    """Build the experiment's world without what is for training only, of one game. Raises what
    `make_world` raises.
    """
    return make_world(without_training({**world_options(experiment), "num_games": 1}))


def make_world(env_config: dict[str, Any]) -> BatchEnv:
    """Build the world `env_config["name"]` with the other items as options. Modules in `imports`
    are imported first.

    * `rnd` (options of `train.worlds.rnd.CuriousWorld`) adds rewards for novelty.
    * `augment` (names for `train.worlds.augmentation.AugmentedWorld`) changes pictures at random.
    * `self_play` (options of `train.worlds.self_play.SelfPlay`) makes some of the snakes opponents
      from a pool.

    Raises `UnknownNameError` or `ConfigError` for a world or options that don't exist.
    """
    options = dict(env_config)
    name = options.pop("name")
    rnd = options.pop("rnd", None)
    augment = options.pop("augment", None)
    # A curriculum's stages have one pool together.
    self_play = None
    if name != _CURRICULUM:
        self_play = options.pop("self_play", None)
    import_modules(options.pop("imports", ()))
    try:
        world = envs.make(name, **options)
    except TypeError as error:
        raise ConfigError(
            f"the world {name!r} can't be made with options {sorted(options)}: {error}"
        ) from error
    if self_play is not None:
        world = _with_opponents(world, self_play)
    # Novelty is that of the game's own pictures, so it comes first.
    if rnd is not None:
        world = _make_curious(world, rnd)
    if augment is not None:
        world = _make_augmented(world, augment)
    return world


def _make_curious(world: BatchEnv, rnd: dict[str, Any]) -> BatchEnv:
    from train.worlds.rnd import CuriousWorld

    try:
        return CuriousWorld(world, **rnd)
    except TypeError as error:
        raise ConfigError(f"env.options.rnd is {rnd!r}: {error}") from error


def _make_augmented(world: BatchEnv, names: Any) -> BatchEnv:
    from train.worlds.augmentation import AugmentedWorld

    return AugmentedWorld(world, names)


def _with_opponents(world: BatchEnv, options: Any) -> BatchEnv:
    from train.worlds.self_play import SelfPlay

    try:
        return SelfPlay(world, **options)
    except TypeError as error:
        raise ConfigError(f"env.options.self_play is {options!r}: {error}") from error
