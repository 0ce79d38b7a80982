"""Reads the weights with which a run begins (`Experiment.init_from`)."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np

from agents import bundle
from envs.common.errors import ConfigError
from envs.common.shell_command import shell_command
from train.config import Experiment, list_experiments
from train.runs.export import NETWORK_PREFIX, build_network, contracts
from train.worlds.build import single_world


def initial_weights(experiment: Experiment) -> dict[str, np.ndarray]:
    """Return the weights of the policy `init_from`, by the names of
    `train.rllib.modules.NetworkModule`.

    Raises `BundleError` for a policy that can't be read, and `ConfigError` if it sees something
    else than the experiment's world shows, or has another network."""
    from safetensors.numpy import load

    assert experiment.init_from
    if experiment.init_from in list_experiments():
        raise ConfigError(
            f"{experiment.init_from} is an experiment, which has to be trained before"
            f" {experiment.name} can begin; this trains both:"
            f" {shell_command('train', experiment.name)}"
        )
    loaded = bundle.load(experiment.init_from)
    with closing(single_world(experiment)) as world:
        shown = contracts(experiment, world)
        network = build_network(experiment, world)
    card = loaded.card
    for what in ("observation", "observation_shape"):
        own = json.dumps(getattr(card, what))
        wanted = json.dumps(shown[what])
        if own != wanted:
            raise ConfigError(
                f"{experiment.init_from} can't be the beginning: its {what} is {own}, the"
                f" experiment's {wanted}. Choose the env.options that it was trained with"
            )
    weights = load(loaded.weights)
    shapes = {name: tuple(tensor.shape) for name, tensor in network.state_dict().items()}
    if shapes != {name: value.shape for name, value in weights.items()}:
        raise ConfigError(
            f"{experiment.init_from} can't be the beginning: its network is"
            f" {_in_words(card.network)}, the experiment's"
            f" {_in_words({'name': experiment.policy_network.name, 'options': experiment.policy_network.options})}."
            " --init-from on the command line takes over the policy's network"
        )
    return {NETWORK_PREFIX + name: value.astype(np.float32) for name, value in weights.items()}


def as_overrides(init_from: str) -> list[str]:
    """Return the overrides that have an experiment begin with a policy: where it is, its network,
    and what it sees.

    Raises `BundleError` for a policy that can't be read.
    """
    card = bundle.load(init_from).card
    place = str(Path(init_from).absolute()) if Path(init_from).exists() else init_from
    overrides = [f"init_from={json.dumps(place)}", f"network={json.dumps(dict(card.network))}"]
    # Only Battlesnake's worlds have several kinds of observation.
    observation = card.environment.get("options", {}).get("observation")
    return overrides + (
        [f"env.options.observation={json.dumps(observation)}"] if observation is not None else []
    )


def _in_words(network: Any) -> str:
    return f"{network['name']} {json.dumps(network['options'])}"
