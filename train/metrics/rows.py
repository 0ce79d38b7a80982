"""Turns RLlib's nested result of an iteration into the flat row that goes to progress.csv,
TensorBoard and the screen.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from envs.battlesnake.state import ABSENT
from train.metrics.levels import LEVEL_METRICS

LEVEL_RETURNS = "level_returns"
"""Metrics key: what `train.metrics.levels.level_returns` says of the episodes that ended, by
world, in parts.
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
_LATE_BEGINNINGS = ("episode_return_mean", "episode_len_mean", "mean_")
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
    `episode_return_mean_<world>` and `episode_len_mean_<world>`. None of these means is there if no
    episode ended, and no metric of an update if there was none. `seconds_<phase>` are wall seconds,
    summed over env runners. Metrics of modules other than the default one have the module's name in
    front."""
    played = result.get("env_runners", {})
    # A sum over nothing is NaN once there has been something to sum.
    if not played.get("num_env_steps_sampled", 0) > 0:
        return {}
    row = {"agent_steps_per_second": sum(played["num_agent_steps_sampled"].values()) / seconds}
    row |= _known(
        {
            name: played[name]
            for name in ("episode_return_mean", "episode_len_mean")
            if name in played
        }
    )
    row |= {"episodes": played["num_episodes"]}
    means = _known(played.get("episode_means", {}))
    row |= _by_world(means)
    row |= {
        f"mean_{name}": mean for name, mean in means.items() if name not in ("return", "length")
    }
    row |= {f"seconds_{phase}": spent for phase, spent in played["phase_seconds"].items()}
    if "learner_seconds" in result:
        row |= {"seconds_learner": result["learner_seconds"]}
    for module, learned in result.get("learners", {}).items():
        if module != _ALL_MODULES:
            prefix = "" if module == _DEFAULT_MODULE else f"{module}_"
            row |= {f"{prefix}{name}": value for name, value in _of_module(learned).items()}
    return {name: float(value) for name, value in row.items()}


def comes_late(name: str) -> bool:
    """Whether a column is missing until an episode has ended, or until a learned evaluation is
    tested.
    """
    return name in (*LEVEL_METRICS, *GATE_METRICS) or name.startswith(_LATE_BEGINNINGS)


def group_in_words(group: str) -> str:
    """Return a group of opponents, as the name of a column has it, as text for people: "3 × flood",
    "flood (duel)".
    """
    several = re.sub(r"(^|\+)(\d+)x", r"\1\2 × ", group)
    if several == group and "+" not in group:
        return f"{group} (duel)"
    return several


def _known(means: Mapping[str, float]) -> dict[str, float]:
    """Without the NaN that RLlib has for whatever it had a value of in an earlier iteration, and
    not in this one.
    """
    return {name: mean for name, mean in means.items() if not math.isnan(mean)}


def _by_world(means: dict[str, float]) -> dict[str, float]:
    """Takes out of `means` the columns that `train.worlds.mixture` adds: sums in a world over the
    share played there.
    """
    row: dict[str, float] = {}
    for name in [name for name in means if name.startswith("world_")]:
        share = means.pop(name)
        label = name.removeprefix("world_")
        for column, key in (("return", "episode_return_mean"), ("length", "episode_len_mean")):
            total = means.pop(f"{column}_{label}", math.nan)
            row |= {f"{key}_{label}": total / share} if share else {}
    return row


def _of_module(learned: Mapping[str, Any]) -> dict[str, float]:
    found = {
        _RENAMED.get(name, name): value
        for name, value in learned.items()
        if not isinstance(value, Mapping) and not name.startswith(_BOOK_KEEPING)
    }
    # Each optimiser's has the name `gradients_<optimiser>_global_norm`.
    norms = [
        found.pop(name)
        for name in list(found)
        if name.startswith("gradients_") and name.endswith("_global_norm")
    ]
    row = {**found, "gradient_norm": math.hypot(*norms)} if norms else found
    # After an iteration without an update, RLlib has NaN for the learning rate, too. A loss that is
    # NaN by itself stays.
    return row if _known(row) else {}


def episode_sums(columns: dict[str, np.ndarray]) -> dict[str, float]:
    """Return the sum of each column of `BatchEnv.drain_episodes`.

    The codes of `cause` are counted, each as `cause_<code>`. Those of Battlesnake are there also if
    nobody ended so."""
    sums: dict[str, float] = {}
    for name, column in columns.items():
        if name == "cause":
            codes, counts = np.unique(column, return_counts=True)
            sums |= dict.fromkeys((f"{name}_{code}" for code in range(ABSENT)), 0.0)
            sums |= {
                f"{name}_{code}": float(count) for code, count in zip(codes, counts, strict=True)
            }
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
    """Return the result of an iteration of an algorithm without RLlib, named and nested as RLlib's,
    for `progress_row`.

    It takes the steps of games, the decisions, the seconds of playing and learning, the columns of
    `BatchEnv.drain_episodes`, and the metrics of the updates."""
    count = len(episodes["return"])
    if count:
        means = {name: total / count for name, total in episode_sums(episodes).items()}
    else:
        means = {}
    if count:
        named = {"episode_return_mean": means["return"], "episode_len_mean": means["length"]}
    else:
        named = {}
    return {
        "env_runners": {
            "num_env_steps_sampled": env_steps,
            "num_agent_steps_sampled": {"default_agent": agent_steps},
            "phase_seconds": {"play": playing},
            "num_episodes": count,
            "episode_means": means,
            **named,
        },
        "learner_seconds": learning,
        "learners": {_DEFAULT_MODULE: learned},
    }


def means_of(told: list[dict[str, float]]) -> dict[str, float]:
    """Return the mean of each metric over the updates of an iteration; empty if there was none."""
    return {
        name: float(np.mean([update[name] for update in told]))
        for name in (told[0] if told else ())
    }
