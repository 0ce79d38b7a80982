"""Learns from demonstrations: one step of Adam on a batch of observations and the actions taken.

Imitation of a teacher (`train.imitation`) and cloning of recorded snakes (`train.cloning`) share
this."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import load_file, save_file

from envs.api import BatchEnv
from train.compute.allocator import keep_freed_memory
from train.compute.bfloat16 import has_fast_bfloat16
from train.compute.threads import ThreadTuner
from train.config import Experiment
from train.demonstrations.dataset import DemonstrationBatch
from train.rllib.modules import mask_logits
from train.runs.export import NETWORK_PREFIX, WEIGHTS, build_network
from train.settings import DemonstrationSettings
from train.worlds.symmetry import views_of

OPTIMIZER = "optimizer.pt"
_STEPS_DONE = "agent_steps"


class DemonstrationLearner:
    """A network for `world` and its optimiser. The run sets `fraction_done` (0..1)."""

    fraction_done = 0.0
    settings: DemonstrationSettings

    def __init__(self, experiment: Experiment, world: BatchEnv) -> None:
        keep_freed_memory()
        self.settings = settings = experiment.settings_as(DemonstrationSettings)
        torch.manual_seed(experiment.seed)
        self.seed = experiment.seed
        self.rng = np.random.default_rng(self.seed)
        self.world = world
        self.network = build_network(experiment, world)
        self.optimizer = torch.optim.Adam(self.network.parameters(), lr=settings.learning_rate)
        self._views = views_of(world) if settings.symmetries else None
        self._bf16 = has_fast_bfloat16() if settings.bf16 is None else settings.bf16
        self._threads = ThreadTuner(settings.num_threads)
        self.agent_steps = 0

    @property
    def learning_rate(self) -> float:
        """Adam's current step size."""
        if not self.settings.anneal_lr:
            return self.settings.learning_rate
        return self.settings.learning_rate * (1.0 - self.fraction_done)

    def update(self, batch: DemonstrationBatch) -> dict[str, float]:
        """Make a step of Adam on the cross entropy of the demonstrated shares and the error of the
        values. Returns metrics.

        The batch is shown in one of the world's equivalent views, if the settings say so.
        """
        batch = self._in_a_view(batch)
        shares = torch.from_numpy(batch.shares)
        worth = torch.from_numpy(self._worth(batch))
        has_worth = ~worth.isnan()
        with torch.autocast("cpu", torch.bfloat16, enabled=self._bf16):
            logits, values = self.network(torch.from_numpy(batch.observations))
        logits = mask_logits(logits.float(), torch.from_numpy(batch.masks))
        values = values.float()
        cross_entropy = torch.nn.functional.cross_entropy(logits, shares)
        errors = torch.where(has_worth, values - worth.nan_to_num(), 0.0)
        vf_loss = errors.square().sum() / has_worth.sum().clamp(min=1)
        self.optimizer.param_groups[0]["lr"] = self.learning_rate
        self.optimizer.zero_grad()
        (cross_entropy + self.settings.vf_coef * vf_loss).backward()
        self.optimizer.step()
        accuracy = (logits.argmax(dim=1) == shares.argmax(dim=1)).float().mean()
        return {
            "cross_entropy": float(cross_entropy.detach()),
            "vf_loss": float(vf_loss.detach()),
            "accuracy": float(accuracy),
        }

    def logits(self, observations: np.ndarray, masks: np.ndarray) -> np.ndarray:
        """Return the network's logits, float32 (n, A), the lowest number where an action isn't
        allowed.
        """
        with torch.no_grad(), torch.autocast("cpu", torch.bfloat16, enabled=self._bf16):
            logits, _ = self.network(torch.from_numpy(observations))
        masked_logits: np.ndarray = mask_logits(logits.float(), torch.from_numpy(masks)).numpy()
        return masked_logits

    def policy_weights(self) -> dict[str, np.ndarray]:
        """Return the network's weights, by the names of `train.rllib.modules.NetworkModule`."""
        return {
            NETWORK_PREFIX + name: tensor.numpy()
            for name, tensor in self.network.state_dict().items()
        }

    def load_policy_weights(self, weights: Mapping[str, Any]) -> None:
        """Take over weights, arrays or tensors, in the form of `policy_weights`."""
        self.network.load_state_dict(
            {name.removeprefix(NETWORK_PREFIX): torch.as_tensor(w) for name, w in weights.items()}
        )

    def save_to_path(self, path: str) -> None:
        """Save the network, the optimiser and the counter."""
        weights = {
            NETWORK_PREFIX + name: tensor.contiguous()
            for name, tensor in self.network.state_dict().items()
        }
        save_file(weights, str(Path(path, WEIGHTS)))
        torch.save(
            {**self.optimizer.state_dict(), _STEPS_DONE: self.agent_steps}, Path(path, OPTIMIZER)
        )

    def restore_from_path(self, path: str) -> None:
        """Load what `save_to_path` saved. Random draws don't repeat those of the run's start."""
        self.load_policy_weights(load_file(str(Path(path, WEIGHTS))))
        state = torch.load(Path(path, OPTIMIZER), weights_only=True)
        self.agent_steps = state.pop(_STEPS_DONE)
        self.optimizer.load_state_dict(state)
        self.rng = np.random.default_rng([self.seed, self.agent_steps])

    def stop(self) -> None:
        """Close the world."""
        self.world.close()

    def _worth(self, batch: DemonstrationBatch) -> np.ndarray:
        """What the value head learns of each demonstration, float32 (B,); NaN for nothing. Here it
        is the return.
        """
        return batch.returns

    def _in_a_view(self, batch: DemonstrationBatch) -> DemonstrationBatch:
        """The same demonstrations as they are in one of the world's equivalent views, drawn at
        random.
        """
        if self._views is None:
            return batch
        view = int(self.rng.integers(len(self._views.pictures)))
        in_the_world = self._views.actions[view]
        pictures = np.ascontiguousarray(self._views.pictures[view](batch.observations))
        return batch._replace(
            observations=pictures,
            masks=batch.masks[:, in_the_world],
            shares=batch.shares[:, in_the_world],
        )
