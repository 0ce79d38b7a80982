"""Makes a policy bundle from trained weights."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from agents import bundle, networks
from agents.card import Card
from envs.api import BatchEnv
from envs.common.errors import ConfigError
from envs.common.plain_values import without_folders
from train.config import Experiment
from train.rllib.env_runner_failures import cause_of
from train.worlds.build import single_world, without_training

if TYPE_CHECKING:
    import torch
    from ray.rllib.core.rl_module.rl_module import RLModule

    from agents.policy import Policy

NETWORK_PREFIX = "network."
WEIGHTS = "weights.safetensors"
"""The file that holds the weights in checkpoints of algorithms without Ray. The other checkpoints
are RLlib's.
"""


def build_network(experiment: Experiment, world: BatchEnv) -> torch.nn.Module:
    """Build the experiment's network for `world`. Raises `UnknownNameError` or `ConfigError`."""
    shape = world.single_observation_space.shape
    actions = int(world.single_action_space.n)
    network = experiment.policy_network
    return networks.build(network.name, shape, actions, **network.options)


def check_network(network: torch.nn.Module, world: BatchEnv, *, bf16: bool) -> None:
    """Run the network on two observations of `world`, to find mistakes in a user's own network
    before training.

    With `bf16`, it runs under bfloat16 autocast as well. Raises `ConfigError` if it fails, or if it
    returns other shapes than (logits [B, A], values [B]). A network with a memory is not
    checked."""
    import torch

    if hasattr(network, "one_step"):
        return
    space = world.single_observation_space
    actions = int(world.single_action_space.n)
    observations = torch.from_numpy(np.zeros((2, *space.shape), space.dtype))
    # Whether under autocast, and what the message says of it.
    precisions = {False: ""}
    if bf16:
        precisions[True] = " under bfloat16 autocast (the setting bf16: false turns it off)"
    for autocast, when in precisions.items():
        try:
            with torch.no_grad(), torch.autocast("cpu", torch.bfloat16, enabled=autocast):
                logits, values = network(observations)
            shapes = tuple(logits.shape), tuple(values.shape)
        except Exception as error:
            raise ConfigError(
                f"the network fails{when} for observations {space.dtype} {observations.shape}:"
                f" {cause_of(error)}"
            ) from error
        if shapes != ((2, actions), (2,)):
            raise ConfigError(
                f"the network returns {shapes[0]} and {shapes[1]} for two observations; it must"
                f" return logits {(2, actions)} and values (2,)"
            )


def network_with(
    experiment: Experiment, world: BatchEnv, weights: Mapping[str, np.ndarray]
) -> torch.nn.Module:
    """Return the network with `weights` (the state of a `train.rllib.modules.NetworkModule`).

    It is float32, on the CPU and in evaluation mode.
    """
    import torch

    network = build_network(experiment, world)
    state = {
        name.removeprefix(NETWORK_PREFIX): torch.as_tensor(value)
        for name, value in weights.items()
        if name.startswith(NETWORK_PREFIX)
    }
    network.load_state_dict(state)
    return network.eval()


def checkpointed_weights(checkpoint: Path) -> dict[str, np.ndarray]:
    """Return the state of the default module in a run's checkpoint."""
    if (checkpoint / WEIGHTS).is_file():
        from safetensors.numpy import load_file

        return load_file(checkpoint / WEIGHTS)
    return module_of(checkpoint).get_state()


def module_of(checkpoint: Path) -> RLModule:
    """Return RLlib's default module in a run's checkpoint."""
    from ray.rllib.core.rl_module.rl_module import RLModule

    return RLModule.from_checkpoint(
        checkpoint / "learner_group" / "learner" / "rl_module" / "default_policy"
    )


def policy_in_memory(experiment: Experiment, weights: Mapping[str, np.ndarray]) -> Policy:
    """Return the policy with `weights` as an agent that plays by torch, without writing any
    file.
    """
    from safetensors.torch import save

    from agents.policy import Policy

    with closing(single_world(experiment)) as world:
        network = network_with(experiment, world, weights)
        card = Card.from_dict(_card(experiment, world))
    state = save({name: tensor.contiguous() for name, tensor in network.state_dict().items()})
    return Policy(bundle.Bundle(Path(experiment.name), card, b"", state), backend="torch")


def export_bundle(
    directory: Path,
    *,
    experiment: Experiment,
    weights: Mapping[str, np.ndarray],
    metrics: dict[str, Any],
    provenance: dict[str, Any],
    command: str,
) -> Path:
    """Write the policy with `weights` (the state of a `train.rllib.modules.NetworkModule`) as a
    bundle, in float32.
    """
    counters = ("env_steps", "agent_steps", "iteration")
    with closing(single_world(experiment)) as world:
        card = {
            **_card(experiment, world),
            "steps": {name: int(metrics[name]) for name in counters},
            "metrics": {name: value for name, value in metrics.items() if name not in counters},
            "versions": provenance["versions"],
            "git_commit": provenance["git_commit"],
            "command": command,
        }
        return bundle.export(directory, network=network_with(experiment, world, weights), card=card)


def _card(experiment: Experiment, world: BatchEnv) -> dict[str, Any]:
    """The part of the policy's card that is known before it is trained."""
    return {
        "environment": {
            "name": experiment.env.name,
            "options": without_training(experiment.env.options),
        },
        **contracts(experiment, world),
        "network": {
            "name": experiment.policy_network.name,
            "options": experiment.policy_network.options,
        },
        "algorithm": experiment.algorithm,
        "config": without_folders(_completed(experiment).to_dict()),
        "seeds": [experiment.seed],
    }


def _completed(experiment: Experiment) -> Experiment:
    """The experiment with all settings that it trained with, whether they were set or derived."""
    env = experiment.env
    settings = experiment.settings.completed_for(env.name, env.options)
    return replace(experiment, settings=settings)


def contracts(experiment: Experiment, world: BatchEnv) -> dict[str, Any]:
    """Return the card's entries on what the policy sees and does.

    A world with several types of observations describes the current one by `observation_contract`.
    """
    name = experiment.env.name
    space = world.single_observation_space
    return {
        "observation": world.observation_contract or {"type": name, "version": 1},
        "observation_shape": list(space.shape),
        "observation_dtype": str(space.dtype),
        "action": {"type": name, "version": 1, "num_actions": int(world.single_action_space.n)},
    }
