"""Turns RLlib's nested result of an iteration into a flat row.

The row goes to progress.csv, TensorBoard and the screen.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from envs.battlesnake.state import ABSENT
from train.metrics.levels import LEVEL_METRICS

LEVEL_RETURNS = "level_returns"
"""The key in RLlib's metrics of the returns by level of the episodes that ended, by world, in the
parts that `train.metrics.levels.level_returns` returns.
"""
GATE_METRICS = (
    "test_games",
    "test_llr",
    "test_score",
    "test_elo",
    "test_elo_low",
    "test_elo_high",
    "accepted",
)
"""Columns of a learned evaluation's tests (`train.learned_evaluation`), which are missing until
there has been one.
"""
_MEANS = ("episode_return_mean", "episode_len_mean")
_LATE_BEGINNINGS = (*_MEANS, "mean_")
# RLlib's own names, which are not worth the seconds that importing it takes.
_ALL_MODULES = "__all_modules__"
_DEFAULT_MODULE = "default_policy"
_RENAMED = {"default_optimizer_learning_rate": "learning_rate"}
_BOOK_KEEPING = ("num_", "module_train_batch_size", "weights_seq_no", "diff_num_grad")


def progress_row(result: Mapping[str, Any], seconds: float) -> dict[str, float]:
    """Return the columns of an iteration that took `seconds`; empty if no env runner brought any
    experience.

    The names are RLlib's own wherever it has one. `mean_<column>` are means, over the episodes that
    ended, of the world's own columns of `BatchEnv.drain_episodes`. A mixture of worlds also has
    `episode_return_mean_<world>` and `episode_len_mean_<world>`. These means are missing if no
    episode ended, and metrics of an update are missing without an update. `seconds_<phase>` are
    wall seconds, summed over env runners. Metrics of modules other than the default one have the
    module's name in front."""
    sampled = result.get("env_runners", {})
    # A sum over nothing is NaN once there has been something to sum.
    if not sampled.get("num_env_steps_sampled", 0) > 0:
        return {}
    decisions = sum(sampled["num_agent_steps_sampled"].values())
    row = {"agent_steps_per_second": decisions / seconds}
    row |= _without_nan({name: sampled[name] for name in _MEANS if name in sampled})
    row["episodes"] = sampled["num_episodes"]
    means = _without_nan(sampled.get("episode_means", {}))
    row |= _by_world(means)
    for name, mean in means.items():
        if name not in ("return", "length"):
            row[f"mean_{name}"] = mean
    for phase, phase_seconds in sampled["phase_seconds"].items():
        row[f"seconds_{phase}"] = phase_seconds
    if "learner_seconds" in result:
        learning = result["learner_seconds"]
        row["seconds_learner"] = 0.0 if math.isnan(learning) else learning
    for module, metrics in result.get("learners", {}).items():
        if module == _DEFAULT_MODULE:
            row |= _of_module(metrics)
        elif module != _ALL_MODULES:
            row |= {f"{module}_{name}": value for name, value in _of_module(metrics).items()}
    return {name: float(value) for name, value in row.items()}


def comes_late(name: str) -> bool:
    """Return whether a column is missing until an episode has ended, or until a learned evaluation
    is tested.
    """
    return name in (*LEVEL_METRICS, *GATE_METRICS) or name.startswith(_LATE_BEGINNINGS)


def group_in_words(group: str) -> str:
    """Return a group of opponents in words: "3 × flood" for `3xflood` in the name of a column,
    "flood (duel)" for `flood`.
    """
    several = re.sub(r"(^|\+)(\d+)x", r"\1\2 × ", group)
    if several == group and "+" not in group:
        return f"{group} (duel)"
    return several


def _without_nan(means: Mapping[str, float]) -> dict[str, float]:
    """The means without NaN, which RLlib has for a metric that had a value in an earlier iteration
    only.
    """
    return {name: mean for name, mean in means.items() if not math.isnan(mean)}


def _by_world(means: dict[str, float]) -> dict[str, float]:
    """Take the columns of `train.worlds.mixture` out of `means`, and return the means by world.

    `means` has for each world the share of episodes that were played there, and its part of the
    mean over all episodes."""
    row: dict[str, float] = {}
    labels = [name.removeprefix("world_") for name in means if name.startswith("world_")]
    for label in labels:
        share = means.pop(f"world_{label}")
        for column, key in (("return", "episode_return_mean"), ("length", "episode_len_mean")):
            part = means.pop(f"{column}_{label}", math.nan)
            if share:
                row[f"{key}_{label}"] = part / share
    return row


def _of_module(metrics: Mapping[str, Any]) -> dict[str, float]:
    """A module's own metrics of its updates; empty if there was no update."""
    row = {
        _RENAMED.get(name, name): value
        for name, value in metrics.items()
        if not isinstance(value, Mapping) and not name.startswith(_BOOK_KEEPING)
    }
    # Each optimiser has a norm of its own, `gradients_<optimiser>_global_norm`.
    norms = [name for name in row if re.fullmatch("gradients_.*_global_norm", name)]
    if norms:
        row["gradient_norm"] = math.hypot(*(row.pop(name) for name in norms))
    # After an iteration without an update, all metrics of RLlib are NaN, the learning rate too, and
    # only what APEX counts in any case isn't. A loss that is NaN by itself stays.
    if math.isnan(row.get("learning_rate", 0.0)):
        return _without_nan(row)
    return row


def episode_sums(columns: dict[str, np.ndarray]) -> dict[str, float]:
    """Return the sum of each column of `BatchEnv.drain_episodes`.

    The codes of `cause` are counted, each as `cause_<code>`. Battlesnake's codes are always there,
    with 0 if nobody died of them."""
    sums: dict[str, float] = {}
    for name, column in columns.items():
        if name == "cause":
            codes, counts = np.unique(column, return_counts=True)
            sums |= dict.fromkeys((f"{name}_{code}" for code in range(ABSENT)), 0.0)
            for code, count in zip(codes, counts, strict=True):
                sums[f"{name}_{code}"] = float(count)
        elif name not in ("row", "game", "killer", "level"):
            sums[name] = float(column.sum(dtype=np.float64))
    return sums


def nested_result(
    *,
    env_steps: int,
    agent_steps: int,
    playing: float,
    learning: float,
    episodes: dict[str, np.ndarray],
    learned: dict[str, float],
) -> dict[str, Any]:
    """Return the result of an iteration of an algorithm without RLlib, for `progress_row`. It is
    named and nested as RLlib's results.

    `env_steps` are steps of games and `agent_steps` decisions; `playing` and `learning` are
    seconds. `episodes` are the columns of `BatchEnv.drain_episodes`, and `learned` the metrics of
    the updates."""
    count = len(episodes["return"])
    sampled: dict[str, Any] = {
        "num_env_steps_sampled": env_steps,
        "num_agent_steps_sampled": {"default_agent": agent_steps},
        "phase_seconds": {"play": playing},
        "num_episodes": count,
        "episode_means": {},
    }
    if count:
        means = {name: total / count for name, total in episode_sums(episodes).items()}
        sampled["episode_means"] = means
        sampled["episode_return_mean"] = means["return"]
        sampled["episode_len_mean"] = means["length"]
    return {
        "env_runners": sampled,
        "learner_seconds": learning,
        "learners": {_DEFAULT_MODULE: learned},
    }


def means_of(updates: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """Return the mean of each metric over the updates of an iteration; empty if there was none."""
    if not updates:
        return {}
    return {name: _mean_of(name, updates) for name in updates[0]}


def _mean_of(name: str, updates: Sequence[Mapping[str, float]]) -> float:
    return float(np.mean([update[name] for update in updates]))
