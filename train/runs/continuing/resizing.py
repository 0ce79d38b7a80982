"""Continues a run with another number of processes.

Everything else in an experiment is fixed once its run has begun.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from envs.common.errors import ConfigError
from train.cluster.sizes import sized, steps_per_update, with_workers
from train.config import Experiment
from train.settings.scale import Local

_RUNNERS = "num_env_runners"
_SIZES = (_RUNNERS, "num_learners", "num_gpus_per_learner", "scale")
_SAME_BATCH = 1.1


def is_size(override: str) -> bool:
    """Return whether a "dotted.key=value" override sets how many processes run and where."""
    return override.partition("=")[0].partition(".")[0] in _SIZES


def resized(experiment: Experiment, overrides: Sequence[str]) -> Experiment:
    """Return the experiment of a run with other sizes, which "dotted.key=value" overrides name.

    As for a `scale`, PPO keeps the size of its batch, by longer or shorter fragments, and APEX gets
    replay shards for its env runners. Raises `ConfigError` for an override of anything else, and
    for a number of env runners with which PPO can't keep its batch, because the curve would then
    mix two experiments."""
    if other := [override for override in overrides if not is_size(override)]:
        raise ConfigError(
            f"{other[0]!r} would change the experiment, whose run has begun; --resume takes"
            f" sizes only: {', '.join(_SIZES)}.…. For anything else start a new run: --config"
            " RUN/config.yaml with --set"
        )
    if not overrides:
        return experiment
    changed = experiment.override(overrides)
    workers = changed.num_env_runners
    # `sized` and `with_workers` work out the other sizes from the number of env runners before.
    changed = dataclasses.replace(changed, num_env_runners=experiment.num_env_runners)
    if changed.scale != experiment.scale:
        changed = sized(changed)
    elif workers != experiment.num_env_runners:
        if not isinstance(changed.scale, Local):
            scale = dataclasses.replace(changed.scale, workers=max(1, workers))
            changed = dataclasses.replace(changed, scale=scale)
        changed = with_workers(changed, workers)
    _check_batch(experiment, changed)
    return changed


def _check_batch(before: Experiment, after: Experiment) -> None:
    if not before.settings.learns_from_rollouts:
        return
    old = steps_per_update(before)
    new = steps_per_update(after)
    if max(old, new) > _SAME_BATCH * min(old, new):
        raise ConfigError(
            f"with {after.num_env_runners} env runners a batch would have {new:,} game steps, but"
            f" the run learned from {old:,} until now, so it would be another experiment; take"
            " fewer env runners"
        )
