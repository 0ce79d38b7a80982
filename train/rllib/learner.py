"""Learns also if experience is lost that came by reference, which lies with whoever made it until
it is fetched.
"""

from __future__ import annotations

from typing import Any

import torch
from ray.rllib.algorithms.algorithm_config import AlgorithmConfig
from ray.rllib.core.learner.torch.torch_learner import TorchLearner
from ray.rllib.core.learner.training_data import TrainingData

from train.rllib.env_runner_failures import LostExperienceError


class SparingLearner(TorchLearner):
    """Learns again from a fragment of its last batch if all of a batch is lost, because the other
    learners count on it.
    """

    def build(self) -> None:
        self._spare: list[Any] = []
        super().build()

    def _make_batch_if_necessary(self, training_data: TrainingData) -> Any:
        """RLlib's hook for the batch of an update. What was lost with the machine that made it
        isn't in it.
        """
        if training_data.episodes is not None:
            if not (training_data.episodes or self._spare):
                raise LostExperienceError(
                    "all fragments of a learner's first batch were lost with the machines or"
                    " processes that played them; look at their logs, and begin anew or go on with:"
                    " train --resume"
                )
            training_data.episodes = training_data.episodes or self._spare
            self._spare = training_data.episodes[:1]
        return super()._make_batch_if_necessary(training_data)

    def postprocess_gradients_for_module(
        self,
        *,
        module_id: str,
        config: AlgorithmConfig | None = None,
        module_gradients_dict: dict[Any, torch.Tensor],
    ) -> dict[Any, torch.Tensor]:
        """Limit and log gradients. RLlib's own method loses those that are logged and not
        limited.
        """
        processed = super().postprocess_gradients_for_module(
            module_id=module_id, config=config, module_gradients_dict=module_gradients_dict
        )
        return processed or module_gradients_dict
