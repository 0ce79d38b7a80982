"""The training itself, on the machine that leads: `procsnake train` on what the job's hyperparameters say.

The run folder lies where SageMaker keeps checkpoints, so a job that was interrupted finds it again and goes on.
"""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path
from typing import Any

from envs.errors import ProcsnakeError
from train.config import Experiment
from train.manifest import is_whole
from train.run import train
from train.run_folder import CHECKPOINTS, CONFIG
from train.sagemaker.container import Container
from train.sagemaker.hyperparameters import Task
from train.sagemaker.metric_lines import metric_line

_FAILED, _STOPPED = 1, 130


def main() -> int:
    """Train, or go on. Returns 0 for a finished run, 130 for one that was stopped and saved."""
    container = Container.here()
    try:
        task = Task.from_hyperparameters(container.hyperparameters())
        for note in task.notes:
            print(f"note: {note}", flush=True)
        run = found_run(container.checkpoints)
        result = train(
            None if run else Experiment.load(_source(task, container), task.overrides),
            runs_dir=container.checkpoints,
            resume=run,
            cluster=os.environ["RAY_ADDRESS"],
            on_iteration=_print_metrics,
            command="procsnake launch",
        )
    except ProcsnakeError as error:
        print(f"procsnake: {error}", file=sys.stderr, flush=True)
        return _FAILED
    if result.bundle:
        shutil.copytree(result.bundle, container.model, dirs_exist_ok=True)
    return 0 if result.finished else _STOPPED


def found_run(checkpoints: Path) -> Path | None:
    """The newest run that an earlier life of the job left, without checkpoints of which only a part reached S3."""
    runs = sorted(config.parent for config in checkpoints.glob(f"*/{CONFIG}"))
    if not runs:
        return None
    for checkpoint in (runs[-1] / CHECKPOINTS).glob("[!.]*"):
        if not is_whole(checkpoint):
            print(f"{checkpoint.name} is incomplete and left out", flush=True)
            shutil.rmtree(checkpoint)
    return runs[-1]


def _source(task: Task, container: Container) -> str | Path:
    """The file that the job carries, or a built-in experiment."""
    carried = container.code / task.experiment
    return carried if carried.is_file() else task.experiment


def _print_metrics(row: dict[str, Any]) -> None:
    print(metric_line(row), flush=True)


if __name__ == "__main__":
    sys.exit(main())
