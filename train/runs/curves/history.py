"""Reads what a run has written so far: its configuration and its curve."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from envs.common.strangers.bounded import MAX_YAML_BYTES, parse_yaml, read_text
from train.runs.folder import CONFIG, CURVE, RunError, RunFolder, not_a_run

Columns = dict[str, np.ndarray]
"""`progress.csv` by column, each float64 (iterations,), NaN where a value is missing."""
_ALWAYS = ("iteration", "env_steps", "agent_steps", "minutes")
_MOST = 1e30
"""Beyond it, sums and products of what a stranger's curve holds would overflow."""


def read_columns(folder: Path) -> Columns:
    """Read `progress.csv` of a run. Values that are missing, cut off or beyond 10³⁰ are NaN.

    Raises `RunError` if a column is missing that every curve has.
    """
    rows = RunFolder(folder).curve()
    if not rows:
        return {}
    names = list(filter(None, rows[0]))
    lacking = [name for name in _ALWAYS if name not in names]
    if lacking:
        raise RunError(
            f"{folder / CURVE} has no column {lacking[0]!r}. Put back the run's own file, or"
            " remove it"
        )
    return {name: _column(rows, name) for name in names}


def _column(rows: Sequence[Mapping[str, str | None]], name: str) -> np.ndarray:
    return np.array([_number(row.get(name)) for row in rows])


def _number(text: str | None) -> float:
    try:
        number = float(text or "nan")
    except ValueError:
        return math.nan
    if abs(number) <= _MOST:
        return number
    return math.nan


def read_config(folder: Path) -> dict[str, Any]:
    """Read a run's `config.yaml` as plain values. Raises `RunError` if there is none or it can't be
    read.
    """
    try:
        config = parse_yaml(read_text(folder / CONFIG, MAX_YAML_BYTES))
    except (FileNotFoundError, NotADirectoryError) as error:
        raise not_a_run(folder) from error
    except OSError as error:
        raise RunError(
            f"{folder / CONFIG} can't be read: {error.strerror or error}. Check the rights"
        ) from error
    except ValueError as error:
        raise RunError(f"{folder / CONFIG} can't be read as YAML: {error}") from error
    if not isinstance(config, dict):
        raise RunError(
            f"{folder / CONFIG} holds no experiment but {type(config).__name__}. Put back the run's"
            " own file"
        )
    return config
