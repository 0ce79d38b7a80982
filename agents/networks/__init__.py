"""Builds networks by name: `build("snake-cnn", (21, 21, 12), 3)`. torch is imported when the first
one is built.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from envs.common.errors import ConfigError
from envs.common.parts import Parts
from envs.common.users_code import users_place_of

if TYPE_CHECKING:
    import torch

__all__ = ["build", "class_path", "names", "register"]

_BUILT_IN = {
    "impala": "agents.networks.impala:Impala",
    "mlp": "agents.networks.mlp:MLP",
    "q-network": "agents.networks.q_network:QNetwork",
    "recurrent": "agents.networks.recurrent:Recurrent",
    "separate-value": "agents.networks.separate_value:SeparateValue",
    "starter-pack": "agents.networks.starter_pack:StarterPack",
    "snake-cnn": "agents.networks.snake_cnn:SnakeCNN",
}
_NETWORKS = Parts("network", "procsnake.networks", _BUILT_IN)


def register(name: str, network: type | str) -> None:
    """Add a network under `name`: a class as `build` describes it, or its place as
    "module:class".
    """
    _NETWORKS.register(name, network)


def names() -> list[str]:
    """Return the names that `build` knows, sorted."""
    return _NETWORKS.names()


def class_path(name: str) -> str:
    """Return the place of a network's class as "module:class". Raises what
    `envs.common.parts.Parts.find` raises.
    """
    return _NETWORKS.path(name)


def build(
    name: str, observation_shape: tuple[int, ...], num_actions: int, **options: Any
) -> torch.nn.Module:
    """Build a fresh network: forward(observations [B, *observation_shape]) → (logits float32 [B,
    A], values float32 [B]).

    Observations are uint8, or of any real dtype. The caller applies the action mask. Your own
    network is named "module:class". Raises `UnknownNameError` for an unknown name, and
    `ConfigError` for unknown or invalid options and for a module that wasn't imported by name
    (`envs.common.parts`)."""
    network_class = _NETWORKS.find(name)
    try:
        return network_class(tuple(observation_shape), num_actions, **options)
    except Exception as error:
        place = users_place_of(error)
        if not place and not isinstance(error, TypeError | ValueError):
            raise
        raise ConfigError(
            f"network {name!r} can't be built for {observation_shape} with options {options}:"
            f" {error}{place}"
        ) from error
