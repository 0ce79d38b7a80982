"""The experiments that the exporter is tested with, and bundles of them."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import torch

from agents import bundle
from agents.card import Card
from train.config import Experiment
from train.runs.export import build_network
from train.worlds.build import make_world, world_options

_GAME = "env.name=procgen/starpilot"
_SMALL = [_GAME, "env.options.num_games=8", "budget.total_agent_steps=8000000"]
_ALL = "[color-jitter, crop-resize, cutout, flip, pad-crop, rotate, translate]"
_Q = [_GAME, "num_env_runners=2", "env.options.num_games=4", "env.options.levels=all"]
RECIPES: dict[str, tuple[str, list[str]]] = {
    "ppo": ("procgen-ppo", ["ppo.num_steps=32", "ppo.num_minibatches=4", *_SMALL]),
    "cpu": ("procgen-ppo-cpu", ["ppo.num_steps=32", *_SMALL]),
    "lars": (
        "procgen-ppo-lars",
        ["ppo.num_steps=32", "ppo.num_minibatches=4", f"env.options.augment={_ALL}", *_SMALL],
    ),
    "max": (
        "procgen-ppo",
        [
            "network.options.pooling=max",
            "network.options.depths=[8,16]",
            "network.options.blocks=1",
            *_SMALL,
        ],
    ),
    "dqn": ("procgen-ppo", ["algorithm=dqn", *_Q]),
    "apex": ("procgen-ppo", ["algorithm=apex", "apex.n_step=5", "apex.train_batch_size=64", *_Q]),
    "apex-atoms": (
        "procgen-ppo",
        ["algorithm=apex", "apex.num_atoms=11", "apex.v_min=-5", "apex.v_max=20", *_Q],
    ),
}
"""From a name to a built-in experiment and what is different."""


def experiment(recipe: str, *overrides: str) -> Experiment:
    base, changes = RECIPES[recipe]
    return Experiment.load(base, [*changes, *overrides])


def settings(recipe: str, *overrides: str) -> dict[str, Any]:
    """The settings of an experiment that nobody trained."""
    return experiment(recipe, *overrides).to_dict()


def make_bundle(directory: Path, recipe: str, *overrides: str) -> Path:
    """A bundle as `procsnake train` writes it, of a fresh network whose heads are scaled up, so
    that actions differ.
    """
    chosen = experiment(recipe, *overrides)
    world = make_world({**world_options(chosen), "num_games": 1})
    try:
        torch.manual_seed(1)
        network = build_network(chosen, world)
        with torch.no_grad():
            for name, weight in network.named_parameters():
                if name.startswith(("heads.actor", "advantage", "value")):
                    weight.mul_(100)
                if name.endswith("bias"):
                    weight.uniform_(-0.1, 0.1)
        return bundle.export(directory, network=network, card=_card(chosen, world))
    finally:
        world.close()


def _card(chosen: Experiment, world) -> Card:
    network = chosen.policy_network
    return Card(
        environment={"name": chosen.env.name, "options": chosen.env.options},
        observation={"type": chosen.env.name, "version": 1},
        observation_shape=list(world.single_observation_space.shape),
        action={"type": chosen.env.name, "version": 1, "num_actions": 15},
        network=dataclasses.asdict(network),
        algorithm=chosen.algorithm,
        config=chosen.to_dict(),
        seeds=[chosen.seed],
    )
