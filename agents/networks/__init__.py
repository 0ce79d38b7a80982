"""Builds networks by name: `build("snake-cnn", (21, 21, 12), 3)`. torch is imported when the first one is built."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from envs.common.errors import ConfigError, UnknownNameError

if TYPE_CHECKING:
    import torch

__all__ = ["build", "class_path", "names"]

_NETWORKS = {
    "impala": "agents.networks.impala:Impala",
    "mlp": "agents.networks.mlp:MLP",
    "q-network": "agents.networks.q_network:QNetwork",
    "recurrent": "agents.networks.recurrent:Recurrent",
    "starter-pack": "agents.networks.starter_pack:StarterPack",
    "snake-cnn": "agents.networks.snake_cnn:SnakeCNN",
}


def names() -> list[str]:
    """Return the names that `build` knows, sorted."""
    return sorted(_NETWORKS)


def class_path(name: str) -> str:
    """Return the place of a network's class as "module:class". Raises `UnknownNameError`."""
    if name not in _NETWORKS:
        raise UnknownNameError("network", name, names())
    return _NETWORKS[name]


def build(name: str, observation_shape: tuple[int, ...], num_actions: int, **options: Any) -> torch.nn.Module:
    """Build a fresh network: forward(observations [B, *observation_shape]) → (logits float32 [B, A], values float32 [B]).

    Observations are uint8, or of any real dtype. The caller applies the action mask. Raises `UnknownNameError` for a name that
    it doesn't know, and `ConfigError` for options that it doesn't know or can't use.
    """
    module, _, attribute = class_path(name).partition(":")
    network_class = getattr(import_module(module), attribute)
    try:
        return network_class(tuple(observation_shape), num_actions, **options)
    except (TypeError, ValueError) as error:
        raise ConfigError(f"network {name!r} can't be built for {observation_shape} with options {options}: {error}") from error
