"""A network of a user's own: its mistakes are named before a run starts, and bfloat16 outputs are
brought back to float32.
"""

from __future__ import annotations

import numpy as np
import pytest
import torch
from gymnasium.spaces import Box, Discrete

from agents import networks
from envs.common.errors import ConfigError
from tests.train.experiments import toy
from train.rllib.modules import NetworkModule
from train.runs.export import check_network
from train.settings.sections import EnvSettings
from train.worlds.build import make_world, world_options


class Plain(torch.nn.Module):
    """Ends in the layers that autocast runs in bfloat16, as most networks would that nobody
    warned.
    """

    def __init__(self, observation_shape, num_actions):
        super().__init__()
        self.actor = torch.nn.Linear(torch.Size(observation_shape).numel(), num_actions)

    def forward(self, observations):
        logits = self.actor(observations.flatten(1).float())
        return logits, logits[:, 0]


class LeavesAutocast(Plain):
    """Multiplies what autocast made bfloat16 by hand with float32, which torch refuses."""

    def forward(self, observations):
        logits, values = super().forward(observations)
        with torch.autocast("cpu", enabled=False):
            return logits @ torch.eye(logits.shape[1]), values


class TwoValues(Plain):
    def forward(self, observations):
        logits, _ = super().forward(observations)
        return logits, logits[:, :2]


class Fails(Plain):
    def forward(self, observations):
        return self.head(observations)


@pytest.fixture
def world():
    made = make_world({**world_options(toy("identity")), "num_games": 1})
    yield made
    made.close()


def asked(kind, world, bf16=True):
    check_network(
        kind(world.single_observation_space.shape, int(world.single_action_space.n)),
        world,
        bf16=bf16,
    )


def test_one_whose_outputs_autocast_lowers_is_taken(world):
    asked(Plain, world)
    asked(LeavesAutocast, world, bf16=False)


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        (
            LeavesAutocast,
            (
                r"the network fails under bfloat16 autocast \(the setting bf16: false turns it"
                r" off\).*in forward"
            ),
        ),
        (TwoValues, r"the network returns \(2, \d\) and \(2, 2\) for two observations"),
        (Fails, r"the network fails for observations .*AttributeError.*head.*line \d+"),
    ],
)
def test_a_mistake_is_the_networks_not_the_worlds(kind, message, world):
    with pytest.raises(ConfigError, match=message):
        asked(kind, world)


def test_rollouts_are_float32_whatever_the_network_ends_with():
    networks.register("ends-in-bfloat16", Plain)
    config = {"name": "ends-in-bfloat16", "options": {}, "bf16": True}
    module = NetworkModule(
        observation_space=Box(0, 255, (4,), np.uint8), action_space=Discrete(3), model_config=config
    )
    logits, values = module.rollout(torch.zeros((5, 4), dtype=torch.uint8))
    assert (logits.dtype, values.dtype, logits.shape, values.shape) == (
        torch.float32,
        torch.float32,
        (5, 3),
        (5,),
    )


def test_a_part_that_yaml_cannot_hold_is_refused_with_its_name():
    def hunter(events):
        return events[:, 0]

    with pytest.raises(
        ConfigError, match=r"env\.options\.rewards is <function .*given by its name: 'tests\.train"
    ):
        EnvSettings(name="battlesnake", options={"rewards": hunter})
