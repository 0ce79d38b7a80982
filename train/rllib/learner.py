"""Maps the methods that RLlib calls on a learner to those of an algorithm's learner.

Our learners (`train.ppo.PPOLearner`, `train.dqn.DQNLearner`) read from top to bottom; this file
shows who calls their methods, and when. `LearnerGroup.update` calls `Learner.update` in each
process that learns, and that calls, in this order:

| RLlib calls | which hands on to |
|---|---|
| `before_gradient_based_update` | `before_update`: schedules |
| `_create_iterator_if_necessary` | `minibatches`: what to learn from, one step after the other |
| `_make_batch_if_necessary` | the learner connector, which makes one batch of the fragments |
| for each minibatch `RLModule.forward_train` | `train.rllib.modules` |
| for each minibatch `compute_loss_for_module` | `loss` |
| for each minibatch `postprocess_gradients_for_module` | RLlib's limit of the gradients' norm |
| for each minibatch `apply_gradients` | the step of the optimiser |
| `after_gradient_based_update` | `after_update`: what follows from the update |
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from ray.rllib.algorithms.algorithm_config import AlgorithmConfig
from ray.rllib.core import DEFAULT_MODULE_ID
from ray.rllib.core.learner.torch.torch_learner import TorchLearner
from ray.rllib.core.learner.training_data import TrainingData
from ray.rllib.policy.sample_batch import MultiAgentBatch, SampleBatch

from train.compute.allocator import keep_freed_memory
from train.compute.threads import ThreadTuner
from train.rllib.batched_config import BatchedConfig
from train.rllib.env_runner_failures import LostExperienceError
from train.rllib.modules import NetworkModule


class FragmentLearner(TorchLearner):
    """An RLlib `Learner` of one module, which learns from fragments.

    If a whole batch is lost with its machines, the learner reuses a fragment of its last batch,
    because the other learners wait for it."""

    config: BatchedConfig
    metrics_window = 1
    """Over how many minibatches the metrics of `loss` are averaged."""

    def build(self) -> None:
        keep_freed_memory()
        self._threads = ThreadTuner(self.threads_to_learn())
        self._spare: list[Any] = []
        super().build()
        if self._torch_compile_forward_train:
            # RLlib compiles a module that stands alone, and passes by those in a `MultiRLModule`.
            self.network_module.compile(self._torch_compile_cfg)

    # What an algorithm fills in.

    def threads_to_learn(self) -> int | None:
        """Return how many threads of torch learn; None if that is to be measured."""
        return self.config.settings.num_threads

    def before_update(self, timesteps: dict[str, Any]) -> None:
        """Prepare for an update. `timesteps` is what the algorithm gave it."""

    def minibatches(self, batch: SampleBatch) -> Iterator[SampleBatch]:
        """Yield the update's minibatches, one per step of the optimiser. The step is made before
        the next one is requested.
        """
        yield batch

    def loss(
        self, answers: dict[str, torch.Tensor], batch: dict[str, Any]
    ) -> tuple[torch.Tensor, dict[str, Any]]:
        """Return the loss of a minibatch and its metrics. `answers` is what the module's
        `forward_train` returned for it.
        """
        raise NotImplementedError

    def after_update(self) -> None:
        """Finish an update, e.g. update a target network."""

    def set_lr(self, lr: float) -> None:
        """Set the learning rate of an update, unless the user's schedulers do."""
        if self._lr_scheduler_classes is None:
            for optimizer in self._named_optimizers.values():
                self._set_optimizer_lr(optimizer, lr=lr)

    @property
    def network_module(self) -> NetworkModule:
        """The module that learns."""
        module = self.module[DEFAULT_MODULE_ID].unwrapped()
        assert isinstance(module, NetworkModule)
        return module

    # What RLlib calls, in this order.

    def before_gradient_based_update(self, *, timesteps: dict[str, Any]) -> None:
        super().before_gradient_based_update(timesteps=timesteps)
        self.before_update(timesteps)

    def _create_iterator_if_necessary(
        self, *, training_data: TrainingData, **kwargs: Any
    ) -> Iterator[MultiAgentBatch]:
        """Say what `Learner.update` goes through. RLlib would make minibatches of its own."""
        batch = self._make_batch_if_necessary(training_data=training_data)
        for minibatch in self.minibatches(batch.policy_batches[DEFAULT_MODULE_ID]):
            yield MultiAgentBatch({DEFAULT_MODULE_ID: minibatch}, env_steps=minibatch.count)

    def _make_batch_if_necessary(self, training_data: TrainingData) -> Any:
        """Make the batch of an update. What was lost with the machine that made it isn't in it."""
        if training_data.episodes is not None:
            if not (training_data.episodes or self._spare):
                raise LostExperienceError(
                    "all fragments of a learner's first batch were lost with the machines or"
                    " processes that played them; look at their logs, and start again or"
                    " continue with: train --resume"
                )
            training_data.episodes = training_data.episodes or self._spare
            self._spare = training_data.episodes[:1]
        return super()._make_batch_if_necessary(training_data)

    def compute_loss_for_module(
        self,
        *,
        module_id: str,
        config: AlgorithmConfig,
        batch: dict[str, Any],
        fwd_out: dict[str, Any],
    ) -> torch.Tensor:
        loss, metrics = self.loss(fwd_out, batch)
        self.metrics.log_dict(metrics, key=module_id, window=self.metrics_window)
        return loss

    def postprocess_gradients_for_module(
        self,
        *,
        module_id: str,
        config: AlgorithmConfig | None = None,
        module_gradients_dict: dict[Any, torch.Tensor],
    ) -> dict[Any, torch.Tensor]:
        """Limit and log gradients. RLlib's own method loses gradients that are logged but not
        limited.
        """
        processed = super().postprocess_gradients_for_module(
            module_id=module_id, config=config, module_gradients_dict=module_gradients_dict
        )
        return processed or module_gradients_dict

    def apply_gradients(self, gradients_dict: dict[Any, torch.Tensor]) -> None:
        """Make a step of the optimiser, without RLlib's two checks of each gradient for values that
        aren't finite. Leaves schedulers and gradient scalers, if any, to RLlib.

        With `torch_skip_nan_gradients` there is no step for gradients that aren't finite: RLlib's
        own method would take it, and spoil the weights. A gradient scaler skips the step itself,
        and needs the call to lower its scale.
        """
        # Stacked, so that a GPU is waited for once.
        sums = torch.stack([gradient.sum() for gradient in gradients_dict.values()])
        has_helpers = self._grad_scalers is not None or self._lr_scheduler_classes is not None
        if not has_helpers and sums.isfinite().all():
            for reference, gradient in gradients_dict.items():
                self._params[reference].grad = gradient
            for optimizer in self._named_optimizers.values():
                optimizer.step()
            return
        if self.config.torch_skip_nan_gradients and self._grad_scalers is None:
            is_finite = [gradient.isfinite().all() for gradient in gradients_dict.values()]
            if not torch.stack(is_finite).all():
                return
        super().apply_gradients(gradients_dict)

    def after_gradient_based_update(self, *, timesteps: dict[str, Any]) -> None:
        super().after_gradient_based_update(timesteps=timesteps)
        self.after_update()
