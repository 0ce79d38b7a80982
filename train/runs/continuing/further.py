"""Finds out how far a run is, and gives one that has ended more minutes of training.

It continues from the same weights and optimiser state.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from agents.player import EVALUATION
from envs.common.errors import ConfigError
from train.config import Experiment
from train.runs.folder import BUNDLE, COUNTERS, Checkpoint, RunFolder
from train.settings.sections import Budget

_TARGET_REACHED = "target_reached"


def fraction_done(budget: Budget, counters: Mapping[str, Any]) -> float:
    """Return the part of the budget that is used: from 0 to 1 or slightly more; 1 once the target
    is reached.
    """
    if counters.get(_TARGET_REACHED):
        return 1.0
    fraction = 0.0
    if budget.total_agent_steps:
        fraction = counters["agent_steps"] / budget.total_agent_steps
    if budget.max_minutes is not None:
        of_minutes = 1.0
        if budget.max_minutes:
            of_minutes = counters["minutes"] / budget.max_minutes
        fraction = max(fraction, of_minutes)
    return fraction


def minutes_left(minutes: float, fraction: float) -> float:
    """Return how long the rest takes, at the speed of the `minutes` that the `fraction` took; NaN
    while nothing is done.
    """
    return max(0.0, minutes * (1 / fraction - 1)) if fraction else float("nan")


def exported(folder: RunFolder, start: Checkpoint) -> Path | None:
    """Return the bundle or the evaluation that an ended run has exported since its checkpoint
    `start`; None if it has yet to be exported.
    """
    for path, written_last in ((folder.path / BUNDLE, "card.json"), (folder.path / EVALUATION, "")):
        last = path / written_last
        if last.is_file() and last.stat().st_mtime >= (start[0] / COUNTERS).stat().st_mtime:
            return path
    return None


def why_ended(experiment: Experiment, counters: Mapping[str, Any]) -> str:
    """Return a sentence on why a run has nothing left to train."""
    if counters.get(_TARGET_REACHED) and experiment.stop:
        return f"its target is reached ({experiment.stop.metric} of {experiment.stop.at_least:g})"
    return f"its budget is used up ({experiment.budget.in_words})"


def further(
    experiment: Experiment, start: Checkpoint, minutes: float
) -> tuple[Experiment, Checkpoint]:
    """Return the experiment and the checkpoint with which a run continues from its checkpoint
    `start` for `minutes` more.

    The minutes replace the run's budget of any kind. A target already reached no longer ends the
    run. Raises `ConfigError` unless minutes are above 0."""
    if not 0 < minutes < float("inf"):
        raise ConfigError(
            f"--minutes is {minutes:g}; with --resume it is how many more minutes the run is"
            " trained, above 0"
        )
    path, counters = start
    budget = Budget(max_minutes=counters["minutes"] + minutes)
    goes_on = replace(experiment, budget=budget)
    if counters.get(_TARGET_REACHED):
        goes_on = replace(goes_on, stop=None)
    counters = {name: value for name, value in counters.items() if name != _TARGET_REACHED}
    return goes_on, (path, counters)
