"""The only learner connector: it turns fragments into one batch of tensors per module."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from ray.rllib.connectors.connector_v2 import ConnectorV2

from train.rollouts.fragment import Fragment


class FragmentsToBatch(ConnectorV2):
    """Joins the columns of all fragments of a module into tensors on the learner's device. A single fragment isn't copied."""

    def __init__(self, *args: Any, device: torch.device | None = None, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._learner_device = device

    # RLlib names its own episodes; it hands on whatever the env runners gave.
    def __call__(self, *, episodes: list[Fragment], **_: Any) -> dict[str, dict[str, torch.Tensor]]:  # type: ignore[override]
        batch = {}
        for module_id in sorted({fragment.module_id for fragment in episodes}):
            own = [fragment.columns for fragment in episodes if fragment.module_id == module_id]
            batch[module_id] = {name: self._tensor([columns[name] for columns in own]) for name in own[0]}
        return batch

    def _tensor(self, parts: list[np.ndarray]) -> torch.Tensor:
        # Arrays that come out of Ray's object store can't be written to, and torch knows no such tensors.
        whole = np.require(parts[0], requirements="W") if len(parts) == 1 else np.concatenate(parts)
        return torch.from_numpy(whole).to(self._learner_device)


def fragments_to_batch(observation_space: Any, action_space: Any, device: torch.device | None = None) -> FragmentsToBatch:
    """Make the connector. `AlgorithmConfig.training(learner_connector=…)` takes this function, and each learner calls it."""
    return FragmentsToBatch(observation_space, action_space, device=device)
