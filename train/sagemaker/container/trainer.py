"""The training itself, on the machine that leads. The job's hyperparameters name the experiment.

The run is in the folder of SageMaker's checkpoints. So a job that was interrupted finds it again
and continues."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Sequence
from typing import Any

from envs.common.errors import ProcsnakeError
from train.config import Experiment
from train.run import RunResult, train
from train.runs.continuing.earlier import earlier_run
from train.sagemaker.container.files import Container
from train.sagemaker.hyperparameters import Task
from train.sagemaker.job import TRACKERS
from train.sagemaker.metric_lines import metric_line

_FAILED = 1
_STOPPED = 130


def main() -> int:
    """Train, or continue. Returns 0 for a finished run, and 130 for one that was stopped."""
    container = Container.here()
    try:
        task = Task.from_hyperparameters(container.hyperparameters(), container.code)
        for note in task.notes:
            print(f"note: {note}", flush=True)
        result = train_in_container(
            task.experiment, task.overrides, cluster=os.environ["RAY_ADDRESS"], container=container
        )
    except ProcsnakeError as error:
        print(f"procsnake: {error}", file=sys.stderr, flush=True)
        return _FAILED
    if not result.finished:
        return _STOPPED
    return 0


def train_in_container(
    experiment: str,
    overrides: Sequence[str] = (),
    *,
    cluster: str = "auto",
    container: Container | None = None,
) -> RunResult:
    """Train in a SageMaker container, on the Ray cluster at this address, or on the one that this
    process has joined.

    The run is in the folder of checkpoints; one that is already there is continued. The finished
    policy becomes model.tar.gz. Raises what `train.run.train` raises."""
    container = container or Container.here()
    run = earlier_run(container.checkpoints)
    new_experiment = None
    sizes: list[str] = []
    if run:
        # A job that resumes another may have another size.
        sizes = [override for override in overrides if override.startswith("scale.")]
    else:
        new_experiment = Experiment.load(experiment, overrides)
    result = train(
        new_experiment,
        runs_dir=container.checkpoints,
        resume=run,
        sizes=sizes,
        cluster=cluster,
        on_iteration=_print_metrics,
        command="procsnake launch",
        trackers=os.environ.get(TRACKERS, "").split(),
        # The job's own earlier life wrote it, on another machine; nobody else may write to its
        # bucket.
        trust=True,
    )
    if result.bundle:
        shutil.copytree(result.bundle, container.model, dirs_exist_ok=True)
    return result


def _print_metrics(row: dict[str, Any]) -> None:
    print(metric_line(row), flush=True)


if __name__ == "__main__":
    sys.exit(main())
