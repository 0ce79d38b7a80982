"""RLlib's offline evaluation: how likely the current policy finds recorded decisions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from ray.rllib.core.columns import Columns

from agents.networks.q_network import QNetwork
from envs.common.errors import ConfigError

if TYPE_CHECKING:
    from train.rllib.batched_config import BatchedConfig

OFFLINE_EVALUATION = frozenset(
    {
        "input_",
        "input_read_method",
        "input_read_method_kwargs",
        "input_read_schema",
        "input_read_sample_batches",
        "input_read_batch_size",
        "input_filesystem",
        "input_filesystem_kwargs",
        "input_compress_columns",
        "materialize_data",
        "materialize_mapped_data",
        "map_batches_kwargs",
        "iter_batches_kwargs",
        "ignore_final_observation",
        "prelearner_class",
        "prelearner_buffer_class",
        "prelearner_buffer_kwargs",
    }
)
"""RLlib's fields of recorded data. Here its offline evaluation alone reads them."""


def unlikelihood(
    runner: Any, *, module_id: str, config: Any, batch: dict[str, Any], fwd_out: dict[str, Any]
) -> torch.Tensor:
    """Return the mean of -log π(recorded action): 0 for a policy that would do the same.

    It serves as RLlib's `offline_loss_for_module_fn`. PPO's losses need advantages, which recorded
    rows lack."""
    if isinstance(runner.module[module_id].unwrapped().network, QNetwork):
        raise ConfigError(
            "a network of Q values has no probabilities of actions; say how it is judged:"
            " config.evaluation(offline_loss_for_module_fn=…)"
        )
    log_probabilities = torch.log_softmax(fwd_out[Columns.ACTION_DIST_INPUTS], -1)
    return -log_probabilities.gather(1, batch[Columns.ACTIONS].long()[:, None]).mean()


def check_offline_evaluation(config: BatchedConfig, changed: list[str]) -> None:
    """Raise `ConfigError` if recorded data would have no effect, or if the policy can't be
    evaluated on it. `changed` are the user's settings among `OFFLINE_EVALUATION`.
    """
    evaluates = config.offline_evaluation_interval or config.num_offline_eval_runners
    if changed and not evaluates:
        raise ConfigError(
            f"RLlib's setting {changed[0]} is for evaluations on recorded data here; ask for them"
            " with config.evaluation(offline_evaluation_interval=1), or learn from recorded games"
            " with `procsnake train --from-games`"
        )
    if config.offline_evaluation_duration != 1 and not config.num_offline_eval_runners:
        raise ConfigError(
            "offline_evaluation_duration is how many batches each runner in a process of its own"
            " judges, and there are no such runners: set"
            " config.evaluation(num_offline_eval_runners=1), or have this process judge more"
            " batches: config.evaluation(dataset_num_iters_per_eval_runner=3)"
        )
    if evaluates and config.settings.is_recurrent:
        raise ConfigError(
            "a policy with a memory (lstm_units) can't be evaluated on recorded decisions"
        )
