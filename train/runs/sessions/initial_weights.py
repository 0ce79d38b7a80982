"""Reads the weights with which a run begins (`Experiment.init_from`)."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np

from agents import bundle
from envs.common.errors import ConfigError
from train.config import Experiment, list_experiments
from train.runs.export import NETWORK_PREFIX, build_network, contracts
from train.worlds.build import single_world


def initial_weights(experiment: Experiment) -> dict[str, np.ndarray]:
    """Return the weights of the policy `init_from`, by the names of
    `train.rllib.modules.NetworkModule`.

    Raises `BundleError` for a policy that can't be read, and `ConfigError` if its observations or
    its network differ from the experiment's."""
    from safetensors.numpy import load

    assert experiment.init_from
    if experiment.init_from in list_experiments():
        raise ConfigError(
            f"{experiment.init_from} is an experiment, which has to be trained before"
            f" {experiment.name} can begin.",
            next_commands={"this trains both": ("train", experiment.name)},
        )
    policy = bundle.load(experiment.init_from)
    with closing(single_world(experiment)) as world:
        experiments = contracts(experiment, world)
        network = build_network(experiment, world)
    for name in ("observation", "observation_shape"):
        policys = json.dumps(getattr(policy.card, name))
        if policys != json.dumps(experiments[name]):
            raise ConfigError(
                f"{experiment.init_from} can't be the beginning: its {name} is {policys}, the"
                f" experiment's {json.dumps(experiments[name])}. Choose the env.options that it was"
                " trained with"
            )
    weights = load(policy.weights)
    shapes = {name: tuple(tensor.shape) for name, tensor in network.state_dict().items()}
    if shapes != {name: value.shape for name, value in weights.items()}:
        own = experiment.policy_network
        raise ConfigError(
            f"{experiment.init_from} can't be the beginning: its network is"
            f" {_in_words(policy.card.network)}, the experiment's"
            f" {_in_words({'name': own.name, 'options': own.options})}. --init-from on the command"
            " line takes over the policy's network"
        )
    return {NETWORK_PREFIX + name: value.astype(np.float32) for name, value in weights.items()}


def as_overrides(init_from: str) -> list[str]:
    """Return the overrides that make an experiment start from a policy: its path, network, and
    observation.

    Raises `BundleError` for a policy that can't be read.
    """
    card = bundle.load(init_from).card
    if Path(init_from).exists():
        init_from = str(Path(init_from).absolute())
    overrides = [f"init_from={json.dumps(init_from)}", f"network={json.dumps(dict(card.network))}"]
    # Only Battlesnake's worlds have several kinds of observation.
    observation = card.environment.get("options", {}).get("observation")
    if observation is not None:
        overrides.append(f"env.options.observation={json.dumps(observation)}")
    return overrides


def _in_words(network: Any) -> str:
    return f"{network['name']} {json.dumps(network['options'])}"
