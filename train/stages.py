"""Trainings that build on each other: an experiment whose `init_from` names another one starts from
its result.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

from envs.common.errors import ConfigError
from train.comparison.trainings import look_for
from train.config import Experiment, list_experiments
from train.runs.sessions.initial_weights import as_overrides

Train = Callable[[Experiment, Path | None], Any]
"""Trains an experiment, or goes on with its run in the folder. Returns the `RunResult`."""


def first_stages(experiment: Experiment) -> list[Experiment]:
    """Return the experiments to train before this one, in order, with its seed; mostly none."""
    if experiment.init_from not in list_experiments():
        return []
    before = dataclasses.replace(Experiment.load(experiment.init_from), seed=experiment.seed)
    return [*first_stages(before), before]


def require_one_stage(experiment: Experiment, what: str) -> None:
    """Raise `ConfigError` if an experiment has earlier stages. `what` names the command or option
    that trains a single one.
    """
    if stages := first_stages(experiment):
        raise ConfigError(
            f"{experiment.name} begins where {stages[-1].name} ends, and {what} trains one"
            " experiment alone.",
            next_commands={"this trains both, one after the other": ("train", experiment.name)},
        )


def train_stages(
    experiment: Experiment, runs: Path, train: Train, say: Callable[[str], None]
) -> Any:
    """Train the stages of an experiment and then itself, in the folder `runs`. Returns the last
    `RunResult`.

    Finished stages aren't trained again, and interrupted ones are continued. If a stage is
    interrupted, the later ones don't start."""
    stages = [*first_stages(experiment), experiment]
    begins_with: Path | None = None
    for number, stage in enumerate(stages, 1):
        if begins_with:
            stage = stage.override(as_overrides(str(begins_with)))
        done = look_for(runs, stage, finished=True) if number < len(stages) else None
        if done:
            say(f"stage {number} of {len(stages)}: {done} is finished")
            begins_with = done
            continue
        say(f"stage {number} of {len(stages)}: {stage.name}, by {stage.algorithm}")
        result = train(stage, look_for(runs, stage, finished=False))
        if not result.finished:
            say(f"stage {number} of {len(stages)} was interrupted; repeat the command to continue")
            return result
        begins_with = result.path
    return result
