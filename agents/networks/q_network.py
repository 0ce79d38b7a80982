"""Gives any of the networks heads for Q-learning, which may be dueling, distributional and
noisy.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torch.nn.functional import linear

from agents import networks
from agents.networks.layers import orthogonal, take_heads_off
from agents.networks.options import QNetworkOptions

_FIRST_SCALE = 0.05
"""How far the first returns are from 0, in widths of the support."""


class QNetwork(nn.Module):
    """A network with heads for Q values in place of its own. `QNetworkOptions` are its options.

    forward: observations [B, …] → (Q values float32 [B, A], the highest of each row float32 [B]).
    So the greedy policy is the argmax, as it is for logits."""

    support: torch.Tensor

    def __init__(self, observation_shape: tuple[int, ...], num_actions: int, **values: Any) -> None:
        super().__init__()
        options = QNetworkOptions(**values)
        body_options = options.body_options or {}
        self.body = networks.build(options.body, observation_shape, num_actions, **body_options)
        features = take_heads_off(self.body)
        self.num_actions = num_actions
        self.num_atoms = options.num_atoms

        def head(outputs: int) -> nn.Linear | NoisyLinear:
            if options.noisy:
                return NoisyLinear(features, outputs, options.sigma0)
            return orthogonal(nn.Linear(features, outputs), 0.01)

        self.advantage = head(num_actions * self.num_atoms)
        self.value: nn.Linear | NoisyLinear | None = None
        if options.dueling:
            self.value = head(self.num_atoms)
        support = torch.linspace(options.v_min, options.v_max, self.num_atoms)
        self.register_buffer("support", support, persistent=False)
        if self.num_atoms > 1:
            self._expect_nothing()

    def _expect_nothing(self) -> None:
        """Begin with returns around 0.

        With all atoms equally likely, the first Q values would be the middle of the support. From
        there they would come down by one factor gamma^n with each update of the target network."""
        scale = _FIRST_SCALE * (self.support[-1] - self.support[0])
        near_zero = -self.support.abs() / scale
        with torch.no_grad():
            if self.value is None:
                self.advantage.bias.add_(near_zero.repeat(self.num_actions))
            else:
                self.value.bias.add_(near_zero)

    def forward(self, observations: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        values = q_values(self.atoms(observations), self.support)
        return values, values.max(-1).values

    def atoms(self, observations: torch.Tensor) -> torch.Tensor:
        """Return the logits of the distribution of returns, float32 [B, A, num_atoms]. With one
        atom these are the Q values.
        """
        features = self.body(observations)
        # Float32 also under autocast: differences between actions are small, and so are these
        # layers.
        with torch.autocast(features.device.type, enabled=False):
            features = features.float()
            atoms = self.advantage(features).reshape(-1, self.num_actions, self.num_atoms)
            if self.value is None:
                return atoms
            return self.value(features)[:, None, :] + atoms - atoms.mean(1, keepdim=True)

    def draw_noise(self, generator: torch.Generator | None = None) -> None:
        """Draw new noise for the heads, if they are noisy."""
        for layer in (self.advantage, self.value):
            if isinstance(layer, NoisyLinear):
                layer.draw_noise(generator)


def q_values(atoms: torch.Tensor, support: torch.Tensor) -> torch.Tensor:
    """Return the expected returns [B, A] from `QNetwork.atoms` [B, A, N] on the atoms of `support`
    [N].
    """
    # No matrix product: autocast would round it to bfloat16.
    if len(support) == 1:
        return atoms.squeeze(-1)
    return (atoms.softmax(-1) * support).sum(-1)


class NoisyLinear(nn.Module):
    """A linear layer whose weights are mean + sigma · noise, with factorised Gaussian noise,
    initialised as in section 3.2.
    """

    noise_in: torch.Tensor
    noise_out: torch.Tensor

    def __init__(self, inputs: int, outputs: int, sigma0: float) -> None:
        super().__init__()
        bound = inputs**-0.5
        self.weight = nn.Parameter(torch.empty(outputs, inputs).uniform_(-bound, bound))
        self.bias = nn.Parameter(torch.empty(outputs).uniform_(-bound, bound))
        self.weight_sigma = nn.Parameter(torch.full((outputs, inputs), sigma0 * bound))
        self.bias_sigma = nn.Parameter(torch.full((outputs,), sigma0 * bound))
        self.register_buffer("noise_in", torch.zeros(inputs), persistent=False)
        self.register_buffer("noise_out", torch.zeros(outputs), persistent=False)

    def forward(self, features: torch.Tensor) -> torch.Tensor:
        weight = self.weight + self.weight_sigma * torch.outer(self.noise_out, self.noise_in)
        return linear(features, weight, self.bias + self.bias_sigma * self.noise_out)

    def draw_noise(self, generator: torch.Generator | None = None) -> None:
        for noise in (self.noise_in, self.noise_out):
            drawn = torch.randn(noise.shape, generator=generator, device=noise.device)
            noise.copy_(drawn.sign() * drawn.abs().sqrt())
