"""Gives any of the networks a memory: an LSTM between its layers and its heads."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torch.nn.utils.rnn import pack_sequence, pad_packed_sequence

from agents import networks
from agents.networks.layers import Heads, take_heads_off
from agents.networks.options import RecurrentOptions


class Recurrent(nn.Module):
    """A network up to its heads → LSTM → heads of its own. `RecurrentOptions` are its options.

    Unlike other networks it answers for stretches of episodes, and passes its memory along. forward
    takes

    * observations, float or uint8 [B, …], in order of time within each stretch,
    * `lengths` of the S stretches, whose sum is B,
    * the state, float32 [S, 2 · units], before the first entry of each stretch; it is 0 at the
      beginning of an episode;

    and returns (logits float32 [B, A], values float32 [B], state after the last entry of each
    stretch [S, 2 · units]). The LSTM is that of Hochreiter and Schmidhuber 1997, with orthogonal
    weights and zero biases as in CleanRL's ppo_atari_lstm.py."""

    def __init__(self, observation_shape: tuple[int, ...], num_actions: int, **values: Any) -> None:
        super().__init__()
        options = RecurrentOptions(**values)
        units = options.units
        body_options = options.body_options or {}
        self.body = networks.build(options.body, observation_shape, num_actions, **body_options)
        features = take_heads_off(self.body)
        self.lstm = nn.LSTM(features, units, batch_first=True)
        for name, parameter in self.lstm.named_parameters():
            if "bias" in name:
                nn.init.zeros_(parameter)
            else:
                nn.init.orthogonal_(parameter, 1.0)
        self.heads = Heads(units, num_actions)

    def forward(
        self, observations: torch.Tensor, lengths: torch.Tensor, state: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        features = self.body(observations)
        # Float32 also under autocast: rounding errors would add up from step to step.
        with torch.autocast(features.device.type, enabled=False):
            stretches = pack_sequence(
                features.float().split(lengths.tolist()), enforce_sorted=False
            )
            hidden, cell = (part.contiguous()[None] for part in state.chunk(2, -1))
            packed, after = self.lstm(stretches, (hidden, cell))
            outputs, _ = pad_packed_sequence(packed, batch_first=True)
            real = torch.arange(outputs.shape[1], device=outputs.device) < lengths[:, None]
        return *self.heads(outputs[real]), torch.cat(after, -1)[0]

    def one_step(self) -> OneStep:
        """Return the same network in the form that plays one step at a time."""
        return OneStep(self)


class OneStep(nn.Module):
    """A `Recurrent` that answers for one entry of each stretch: observations [B, …], state [B, 2 ·
    units] → the same three.
    """

    def __init__(self, network: Recurrent) -> None:
        super().__init__()
        self.network = network
        self.state_size = 2 * network.lstm.hidden_size

    def forward(
        self, observations: torch.Tensor, state: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        network = self.network
        hidden, cell = (part.contiguous()[None] for part in state.chunk(2, -1))
        outputs, after = network.lstm(network.body(observations)[:, None], (hidden, cell))
        return *network.heads(outputs[:, 0]), torch.cat(after, -1)[0]
