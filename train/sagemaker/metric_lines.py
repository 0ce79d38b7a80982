"""The line that a job prints per iteration.

The container writes it, SageMaker's patterns find it, and `following` reads it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from envs.common.errors import UnknownNameError

_NAMES = {
    "iteration": "training_iteration",
    "env_steps": "num_env_steps_sampled_lifetime",
    "agent_steps": "num_agent_steps_sampled_lifetime",
    "agent_steps_per_second": "agent_steps_per_second",
    "minutes": "minutes",
    "episode_return_mean": "episode_return_mean",
    "episode_len_mean": "episode_len_mean",
    "win_rate": "win_rate",
}
"""Columns of progress.csv, and RLlib's names for them."""
_NUMBER = "([-+0-9.eE]+)"
_START = "procsnake-metrics"


def metric_line(row: Mapping[str, Any]) -> str:
    """Return an iteration's line. Figures that the row doesn't have are left out."""
    figures = [f"{_NAMES[column]}={row[column]:.6g}" for column in _NAMES if column in row]
    return " ".join([_START, *figures])


def parse_metric_line(line: str) -> dict[str, float]:
    """Return the figures of a line by RLlib's names; empty for any other line."""
    if _START not in line:
        return {}
    return {name: float(text) for name, text in re.findall(rf" (\w+)={_NUMBER}", line)}


def metric_name(column: str) -> str:
    """Return SageMaker's name for a column of progress.csv.

    Raises `UnknownNameError` if it isn't in the lines of jobs."""
    name = _NAMES.get(column, column)
    if name not in _NAMES.values():
        raise UnknownNameError("metric of a job", column, _NAMES)
    return name


def metric_definitions() -> list[dict[str, str]]:
    """Return the patterns that SageMaker looks for in the log (`MetricDefinitions`)."""
    return [{"Name": name, "Regex": f"[ ]{name}={_NUMBER}"} for name in _NAMES.values()]
