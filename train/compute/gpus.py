"""Refuses a run on this machine that needs more GPUs than torch finds."""

from __future__ import annotations

from envs.common.columns import counted
from envs.common.errors import ConfigError
from train.config import Experiment


def require_gpus(experiment: Experiment) -> None:
    """Raise `ConfigError` if this machine has fewer GPUs than the learners need. (RLlib itself
    would fail with an assertion.)
    """
    needed = experiment.num_gpus_per_learner * max(1, experiment.num_learners)
    if not needed:
        return
    import torch

    available = torch.cuda.device_count()
    if needed > available:
        if torch.version.cuda:
            without = ""
        else:
            without = f", because torch {torch.__version__} is built without CUDA"
        raise ConfigError(
            f"num_gpus_per_learner takes {counted(needed, 'GPU')} in all, but torch finds"
            f" {available} on this machine{without}; on the CPU: --set num_gpus_per_learner=0"
        )
