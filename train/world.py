"""From an experiment to its world: the form that crosses process borders is RLlib's `env_config`."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import envs
from envs.api import BatchEnv
from envs.errors import ConfigError
from train.config import Experiment


def world_options(experiment: Experiment) -> dict[str, Any]:
    """The `env_config` of an experiment: `name`, `imports`, and the world's own options."""
    env = experiment.env
    return {**env.options, "name": env.name, "imports": list(env.imports)}


def make_world(env_config: dict[str, Any]) -> BatchEnv:
    """Build the world `env_config["name"]` from the other items; modules in `imports` are imported first (they register it).

    Raises `UnknownNameError` or `ConfigError` for a world or options that don't exist.
    """
    options = dict(env_config)
    name = options.pop("name")
    for module in options.pop("imports", ()):
        try:
            import_module(module)
        except ImportError as error:
            raise ConfigError(f"env.imports: the module {module!r} can't be imported: {error}") from error
    try:
        return envs.make(name, **options)
    except TypeError as error:
        raise ConfigError(f"the world {name!r} can't be made with options {sorted(options)}: {error}") from error
