"""Bundles of untrained networks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from agents import bundle, networks
from envs.battlesnake.observations import PLANE_SCALES, EgocentricPlanes

OPTIONS = {
    "snake-cnn": {
        "channels": [8, 8],
        "strides": [2, 2],
        "hidden": 32,
        "scales": list(PLANE_SCALES),
    },
    "mlp": {"hidden_sizes": [32], "scales": list(PLANE_SCALES)},
    "q-network": {"body_options": {"hidden_sizes": [32]}},
}


def make_network(name: str, shape: tuple[int, ...], num_actions: int) -> Any:
    """A random network whose logits differ by about one, so that its choices mean something."""
    import torch

    torch.manual_seed(7)
    network = networks.build(name, shape, num_actions, **OPTIONS[name])
    actions = network.advantage if name == "q-network" else network.heads.actor
    with torch.no_grad():
        actions.weight.mul_(100)
    return network


def make_card(
    observation: EgocentricPlanes, network: str = "snake-cnn", size: int = 11
) -> dict[str, Any]:
    """A card as training writes it, for square boards."""
    return {
        "environment": {"name": "battlesnake", "options": {"width": size, "height": size}},
        "observation": observation.contract(),
        "observation_shape": list(observation.space(size, size).shape),
        "action": {"type": "discrete", "version": 1, "num_actions": observation.num_actions},
        "network": {"name": network, "options": OPTIONS[network]},
        "algorithm": "ppo",
        "config": {"ppo": {"gamma": 0.99}},
        "seeds": [3],
        "steps": {"agent_steps": 12},
        "metrics": {"episode_return_mean": -0.5},
    }


def make_bundle(
    path: Path,
    observation: EgocentricPlanes | None = None,
    network: str = "snake-cnn",
    size: int = 11,
) -> Path:
    """Export an untrained network."""
    observation = observation or EgocentricPlanes(rotate=True)
    card = make_card(observation, network, size)
    made = make_network(network, tuple(card["observation_shape"]), observation.num_actions)
    return bundle.export(path, network=made, card=card)
