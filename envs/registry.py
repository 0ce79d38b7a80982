"""Makes worlds by name: `make("battlesnake", num_games=256)`, `make("procgen/coinrun",
levels="train:200")`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import Any

from envs.api import BatchEnv
from envs.common.errors import UnknownNameError
from envs.procgen.games import GAMES


def _make_procgen(game: str, **options: Any) -> BatchEnv:
    from envs.procgen.make import make_procgen

    return make_procgen(game, **options)


_FACTORIES: dict[str, str | Callable[..., BatchEnv]] = {
    "battlesnake": "envs.battlesnake:BattlesnakeVectorEnv",
    **{f"procgen/{game}": partial(_make_procgen, game) for game in GAMES},
}


def register(name: str, factory: str | Callable[..., BatchEnv]) -> None:
    """Add a world under `name`.

    `factory` is a callable, or "module:attribute", which is imported when the world is first made.
    """
    _FACTORIES[name] = factory


def names() -> list[str]:
    """Return the names that `make` knows, sorted."""
    return sorted(_FACTORIES)


def make(name: str, **options: Any) -> BatchEnv:
    """Build the world `name` with its own keyword options.

    Raises `UnknownNameError` for a name that is not registered, and `ConfigError` for options that
    the world refuses."""
    if name not in names():
        raise UnknownNameError("environment", name, names())
    factory = _FACTORIES[name]
    if isinstance(factory, str):
        module, _, attribute = factory.partition(":")
        factory = getattr(import_module(module), attribute)
    return factory(**options)
