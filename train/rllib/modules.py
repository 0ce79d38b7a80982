"""Makes a network of `agents.networks` an RLlib module."""

from __future__ import annotations

import copy
from typing import Any

import torch
from gymnasium.spaces import Box, Discrete
from ray.rllib.core.columns import Columns
from ray.rllib.core.rl_module.apis import InferenceOnlyAPI, ValueFunctionAPI
from ray.rllib.core.rl_module.torch import TorchRLModule

from agents import networks
from agents.networks.q_network import QNetwork
from agents.networks.recurrent import Recurrent
from agents.networks.separate_value import SeparateValue
from envs.common.parts import import_modules
from train.compute.data_parallel import DataParallel
from train.rollouts.columns import ACTION_MASK
from train.rollouts.recurrent import STATE, STRETCH, stretch_lengths

ADVANTAGE_PREDS = "advantage_preds"
"""Key of the advantages float32 [B] that `SeparateValueModule` predicts in training."""
ATOMS = "atoms"
NEXT_ATOMS = "next_atoms"
TARGET_ATOMS = "target_atoms"
"""Keys of what `QModule` returns in training: the atoms of the observations, of the next ones, and
of these by the target.
"""


def mask_logits(logits: torch.Tensor, mask: torch.Tensor | None) -> torch.Tensor:
    """Give the masked actions probability 0, without infinities that would spoil entropies and
    gradients.
    """
    if mask is None:
        return logits
    return torch.where(mask, logits, torch.finfo(logits.dtype).min)


class NetworkModule(TorchRLModule, ValueFunctionAPI):
    """A network as an RLlib module. `model_config` has the network's `name` and `options`, `bf16`,
    and modules (`imports`).

    With `bf16`, rollouts and learning run under bfloat16 autocast. Inference (`forward_inference`)
    is always float32, so it agrees with the exported policy."""

    observation_space: Box
    action_space: Discrete
    model_config: dict[str, Any]
    network: torch.nn.Module
    parallel: DataParallel | None = None
    """What divides the learner's passes among threads of the CPU."""

    def setup(self) -> None:
        config = self.model_config
        import_modules(config.get("imports", ()))
        self.network = networks.build(
            config["name"],
            self.observation_space.shape,
            int(self.action_space.n),
            **config["options"],
        )
        self.bf16 = config["bf16"]

    def rollout(self, observations: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Return (unmasked logits float32 [B, A], values float32 [B]), computed in the precision
        that learning uses.
        """
        with torch.autocast(observations.device.type, torch.bfloat16, enabled=self.bf16):
            logits, values = self.network(observations)
        return logits.float(), values.float()

    def _forward(self, batch: dict[str, Any], **kwargs: Any) -> dict[str, torch.Tensor]:
        return self._output(batch, self.network(batch[Columns.OBS]))

    def _forward_train(self, batch: dict[str, Any], **kwargs: Any) -> dict[str, torch.Tensor]:
        answer = self.parallel or self.rollout
        return self._output(batch, answer(batch[Columns.OBS]))

    def _output(
        self, batch: dict[str, Any], output: tuple[torch.Tensor, ...]
    ) -> dict[str, torch.Tensor]:
        logits, values = output
        return {
            Columns.ACTION_DIST_INPUTS: mask_logits(logits, batch.get(ACTION_MASK)),
            Columns.VF_PREDS: values,
        }

    def compute_values(self, batch: dict[str, Any], embeddings: Any = None) -> torch.Tensor:
        return self.rollout(batch[Columns.OBS])[1]


class RecurrentModule(NetworkModule):
    """The network `recurrent` as an RLlib module, with the `model_config` of `NetworkModule`."""

    network: Recurrent

    def recall(
        self, observations: torch.Tensor, state: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Make one step of rows with their states. Returns what `Recurrent` returns, in the
        precision that learning uses.
        """
        return self._through(
            observations,
            torch.ones(len(observations), dtype=torch.int64, device=state.device),
            state,
        )

    def _forward_train(self, batch: dict[str, Any], **kwargs: Any) -> dict[str, torch.Tensor]:
        lengths = stretch_lengths(batch[STRETCH])
        logits, values, _ = self._through(
            batch[Columns.OBS], lengths, batch[STATE][lengths.cumsum(0) - lengths]
        )
        return self._output(batch, (logits, values))

    def _through(self, *arguments: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        with torch.autocast(arguments[0].device.type, torch.bfloat16, enabled=self.bf16):
            return self.network(*arguments)


class SeparateValueModule(NetworkModule):
    """The network `separate-value` as an RLlib module, with the `model_config` of `NetworkModule`.

    It learns in two phases: from minibatches with actions the policy, from those without the
    values. Each answers by its own network alone."""

    network: SeparateValue

    def _forward_train(self, batch: dict[str, Any], **kwargs: Any) -> dict[str, torch.Tensor]:
        observations = batch[Columns.OBS]
        with torch.autocast(observations.device.type, torch.bfloat16, enabled=self.bf16):
            if Columns.ACTIONS not in batch:
                return {Columns.VF_PREDS: self.network.values(observations)}
            logits, advantages = self.network.logits_and_advantages(
                observations, batch[Columns.ACTIONS].long()
            )
        return {
            Columns.ACTION_DIST_INPUTS: mask_logits(logits, batch.get(ACTION_MASK)),
            ADVANTAGE_PREDS: advantages,
        }

    def compute_values(self, batch: dict[str, Any], embeddings: Any = None) -> torch.Tensor:
        observations = batch[Columns.OBS]
        with torch.autocast(observations.device.type, torch.bfloat16, enabled=self.bf16):
            return self.network.values(observations)


class QModule(NetworkModule, InferenceOnlyAPI):
    """A `q-network` and its target network, with the `model_config` of `NetworkModule`. Env runners
    have no target network.
    """

    network: QNetwork
    target: QNetwork

    def setup(self) -> None:
        super().setup()
        self.target = copy.deepcopy(self.network).requires_grad_(False)

    def get_non_inference_attributes(self) -> list[str]:
        return ["target"]

    def atoms(self, network: QNetwork, observations: torch.Tensor) -> torch.Tensor:
        """Return `QNetwork.atoms` of `network` (this module's own or its target), in the precision
        that learning uses.
        """
        with torch.autocast(observations.device.type, torch.bfloat16, enabled=self.bf16):
            return network.atoms(observations)

    def _forward_train(self, batch: dict[str, Any], **kwargs: Any) -> dict[str, torch.Tensor]:
        """`QNetwork.atoms` of the observations, and of the next ones by both networks without
        gradients.
        """
        with torch.no_grad():
            following = {
                NEXT_ATOMS: self.atoms(self.network, batch[Columns.NEXT_OBS]),
                TARGET_ATOMS: self.atoms(self.target, batch[Columns.NEXT_OBS]),
            }
        return {ATOMS: self.atoms(self.network, batch[Columns.OBS]), **following}
