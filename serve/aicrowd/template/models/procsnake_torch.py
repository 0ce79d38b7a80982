"""procsnake's IMPALA for torch 1.5 on Ray 0.8.6: the same function of a picture as the network that
procsnake trains.

`custom_options` are depths (planes of each stage), blocks (residual blocks per stage), pooling
(flatten, average, max), hidden,
stem_stride (of the first convolution), offset and scales (float = (raw - offset) * scale), and
weights, the path in the
repository of an .npz to start from.
"""

from __future__ import annotations

import os

import numpy as np
from ray.rllib.agents.dqn.dqn_torch_model import DQNTorchModel
from ray.rllib.models import ModelCatalog
from ray.rllib.models.torch.torch_modelv2 import TorchModelV2
from ray.rllib.utils.framework import try_import_torch

torch, nn = try_import_torch()

# Workers have other working directories; the value travels with the model.
REPOSITORY = os.getcwd()
ROOT_OF_TWO = 2**0.5


def read_options(model_config, options):
    """Return the options, which Ray 0.8.6 hands on as keywords or as custom_model_config, or leaves
    in custom_options."""
    for key in ("custom_options", "custom_model_config"):
        found = model_config.get(key)
        if isinstance(found, dict):
            options = dict(found, **options)
    return options


def start(module, options):
    """Load the weights that the options name, if any, into `module`, whose parameters have
    procsnake's names."""
    if options.get("weights"):
        with np.load(os.path.join(REPOSITORY, options["weights"])) as arrays:
            module.load_state_dict({name: torch.from_numpy(arrays[name]) for name in arrays.files})


def orthogonal(layer, gain=ROOT_OF_TWO):
    nn.init.orthogonal_(layer.weight, gain)
    nn.init.zeros_(layer.bias)
    return layer


class Block(nn.Module):
    def __init__(self, planes, gain):
        super().__init__()
        self.first = orthogonal(nn.Conv2d(planes, planes, 3, padding=1))
        self.second = orthogonal(nn.Conv2d(planes, planes, 3, padding=1), gain)

    def forward(self, planes):
        return planes + self.second(self.first(planes.relu()).relu())


class Stage(nn.Module):
    def __init__(self, inputs, outputs, blocks, gain, stride):
        super().__init__()
        self.entry = orthogonal(nn.Conv2d(inputs, outputs, 3, stride, padding=1))
        self.blocks = nn.ModuleList(Block(outputs, gain) for _ in range(blocks))

    def forward(self, planes):
        planes = nn.functional.max_pool2d(self.entry(planes), 3, stride=2, padding=1)
        for block in self.blocks:
            planes = block(planes)
        return planes


class Heads(nn.Module):
    def __init__(self, features, num_actions):
        super().__init__()
        self.actor = orthogonal(nn.Linear(features, num_actions), 0.01)
        self.critic = orthogonal(nn.Linear(features, 1), 1.0)


def build_impala(module, shape, options):
    """Add the layers up to the heads to `module`. Returns how many features they give."""
    height, width, channels = shape
    depths, blocks, hidden = options["depths"], options.get("blocks", 2), options.get("hidden", 256)
    gain = ROOT_OF_TWO / max(1, blocks * len(depths))
    stride, stages = options.get("stem_stride", 1), []
    height, width = -(-height // stride), -(-width // stride)
    for depth in depths:
        stages.append(Stage(channels, depth, blocks, gain, 1 if stages else stride))
        channels, height, width = depth, (height + 1) // 2, (width + 1) // 2
    module.stages = nn.ModuleList(stages)
    module.pooling, module.offset = options.get("pooling", "flatten"), options.get("offset", 0.0)
    module.scales = torch.tensor(options.get("scales") or [1 / 255]).reshape(1, -1, 1, 1)
    inputs = channels * height * width if module.pooling == "flatten" else channels
    module.dense = orthogonal(nn.Linear(inputs, hidden))
    return hidden


def impala(module, pictures):
    """Return the features [B, hidden] of pictures [B, H, W, C]."""
    planes = pictures.float().permute(0, 3, 1, 2)
    planes = (planes - module.offset) * module.scales.to(planes.device)
    for stage in module.stages:
        planes = stage(planes)
    planes = planes.relu()
    if module.pooling == "average":
        planes = planes.mean((2, 3))
    elif module.pooling == "max":
        planes = planes.flatten(2).max(2)[0]
    else:
        # Rows, columns, planes: the order that procsnake flattens in.
        planes = planes.permute(0, 2, 3, 1).flatten(1)
    return module.dense(planes).relu()


class Body(nn.Module):
    def __init__(self, shape, options):
        super().__init__()
        self.features = build_impala(self, shape, options)

    def forward(self, pictures):
        return impala(self, pictures)


class ProcsnakeImpala(TorchModelV2, nn.Module):
    """The network of PPO, with policy and value."""

    def __init__(self, obs_space, action_space, num_outputs, model_config, name, **options):
        TorchModelV2.__init__(self, obs_space, action_space, num_outputs, model_config, name)
        nn.Module.__init__(self)
        options = read_options(model_config, options)
        self.heads = Heads(build_impala(self, obs_space.shape, options), num_outputs)
        self._values = None
        start(self, options)

    def forward(self, input_dict, state, seq_lens):
        features = impala(self, input_dict["obs"])
        self._values = self.heads.critic(features).squeeze(1)
        return self.heads.actor(features), state

    def value_function(self):
        return self._values


class ProcsnakeQ(DQNTorchModel):
    """The network of DQN and APEX, with Q values. Advantages and value have one linear layer
    each."""

    def __init__(
        self,
        obs_space,
        action_space,
        num_outputs,
        model_config,
        name,
        dueling=False,
        q_hiddens=(),
        dueling_activation="relu",
        use_noisy=False,
        sigma0=0.5,
        add_layer_norm=False,
        **options,
    ):
        # Ray's own heads have a hidden layer each: their constructor is left out.
        TorchModelV2.__init__(self, obs_space, action_space, num_outputs, model_config, name)
        nn.Module.__init__(self)
        options = read_options(model_config, options)
        self.body = Body(obs_space.shape, options)
        self.advantage = orthogonal(nn.Linear(self.body.features, action_space.n), 0.01)
        if dueling:
            self.value = orthogonal(nn.Linear(self.body.features, 1), 0.01)
        start(self, options)

    def forward(self, input_dict, state, seq_lens):
        return self.body(input_dict["obs"]), state

    def get_advantages_or_q_values(self, model_out):
        return self.advantage(model_out)

    def get_state_value(self, model_out):
        return self.value(model_out)


ModelCatalog.register_custom_model("procsnake_impala_torch", ProcsnakeImpala)
ModelCatalog.register_custom_model("procsnake_q_torch", ProcsnakeQ)
