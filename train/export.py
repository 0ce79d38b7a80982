"""From trained weights to a policy bundle."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from agents import bundle, networks
from envs.api import BatchEnv
from train.config import Experiment
from train.world import make_world, world_options

if TYPE_CHECKING:
    import numpy as np
    import torch

_NETWORK_PREFIX = "network."


def build_network(experiment: Experiment, world: BatchEnv) -> torch.nn.Module:
    """A fresh network for `world`. Raises `UnknownNameError` or `ConfigError`."""
    shape, actions = world.single_observation_space.shape, int(world.single_action_space.n)
    return networks.build(experiment.network.name, shape, actions, **experiment.network.options)


def export_bundle(
    directory: Path,
    *,
    experiment: Experiment,
    weights: dict[str, np.ndarray],
    metrics: dict[str, Any],
    provenance: dict[str, Any],
    command: str,
) -> Path:
    """Write the policy with `weights` (the state of a `train.modules.NetworkModule`) as a bundle, in float32."""
    import torch

    world = make_world({**world_options(experiment), "num_games": 1})
    network = build_network(experiment, world)
    network.load_state_dict(
        {
            name.removeprefix(_NETWORK_PREFIX): torch.as_tensor(value)
            for name, value in weights.items()
            if name.startswith(_NETWORK_PREFIX)
        }
    )
    counters = ("env_steps", "agent_steps", "iteration")
    card = {
        "environment": {"name": experiment.env.name, "options": experiment.env.options},
        **_contracts(experiment, world),
        "network": {"name": experiment.network.name, "options": experiment.network.options},
        "algorithm": experiment.algorithm,
        "config": experiment.to_dict(),
        "seeds": [experiment.seed],
        "steps": {name: int(metrics[name]) for name in counters},
        "metrics": {name: value for name, value in metrics.items() if name not in counters},
        "versions": provenance["versions"],
        "git_commit": provenance["git_commit"],
        "command": command,
    }
    world.close()
    return bundle.export(directory, network=network.eval(), card=card)


def _contracts(experiment: Experiment, world: BatchEnv) -> dict[str, Any]:
    """What the policy sees and does; worlds with several observation types tell which by `observation.contract()`."""
    name, space = experiment.env.name, world.single_observation_space
    observation = getattr(world, "observation", None)
    return {
        "observation": observation.contract() if observation else {"type": name, "version": 1},
        "observation_shape": list(space.shape),
        "observation_dtype": str(space.dtype),
        "action": {"type": name, "version": 1, "num_actions": int(world.single_action_space.n)},
    }
