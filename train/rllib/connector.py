"""The learner connector of PPO and Q-learning: it turns fragments into one batch of tensors."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from ray.rllib.connectors.connector_v2 import ConnectorV2
from ray.rllib.core import DEFAULT_MODULE_ID

from train.rollouts.fragment import Fragment


class FragmentsToBatch(ConnectorV2):
    """Joins the columns of all fragments into tensors on the module's device. A single fragment
    isn't copied.
    """

    # RLlib names its own episodes; it hands on whatever the env runners gave.
    def __call__(  # type: ignore[override]
        self, *, rl_module: Any, episodes: list[Fragment], **_: Any
    ) -> dict[str, dict[str, torch.Tensor]]:
        # RLlib tells connectors no device: learners on a GPU would get batches that lie elsewhere.
        device = device_of(rl_module[DEFAULT_MODULE_ID])
        batch = {}
        for name in episodes[0].columns:
            batch[name] = joined([part.columns[name] for part in episodes]).to(device)
        return {DEFAULT_MODULE_ID: batch}


def device_of(module: Any) -> torch.device:
    """Return the device on which a module's parameters are."""
    device: torch.device = next(module.parameters()).device
    return device


def joined(parts: list[np.ndarray]) -> torch.Tensor:
    """Return the arrays as one tensor. A single one isn't copied, if it can be written to."""
    if len(parts) > 1:
        return torch.from_numpy(np.concatenate(parts))
    # Arrays that come out of Ray's object store can't be written to, and torch knows no such
    # tensors.
    return torch.from_numpy(np.require(parts[0], requirements="W"))
