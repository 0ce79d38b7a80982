"""Trains several experiments into one folder, each as an ordinary run in a process of its own.

What is finished is not trained again, and what was interrupted goes on.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import yaml

from envs.common.command_line import write_whole
from train.config import Experiment
from train.runs.folder import BUNDLE, RunError, disk_errors, find_runs
from train.runs.history import Columns, read_columns

Say = Callable[[str], None]
_SECONDS_BETWEEN_LOOKS, _SECONDS_BETWEEN_LINES = 0.2, 60.0


@dataclass(frozen=True)
class Training:
    """One of the experiments that are trained."""

    title: str
    experiment: Experiment
    num_threads: int | None = None
    """The number of threads of its numerical libraries; None leaves it to them."""

    @property
    def file_name(self) -> str:
        """Its configuration and its log are called so."""
        return f"{self.experiment.name}-{self.experiment.seed}"


def train_all(trainings: Sequence[Training], folder: Path, *, jobs: int = 1, say: Say = print) -> list[Path]:
    """Train, up to `jobs` at a time, and return the finished runs in the order of `trainings`.

    `folder` gets the runs, and a configuration and a log for each. If one fails or this process is interrupted, the others are
    told to save and end. `say` gets a line whenever one begins or ends, and every minute. Raises `RunError`.
    """
    waiting, running, finished = list(range(len(trainings))), dict[int, subprocess.Popen[bytes]](), dict[int, Path]()
    next_line = time.monotonic() + _SECONDS_BETWEEN_LINES
    try:
        while waiting or running:
            while waiting and len(running) < jobs:
                number = waiting.pop(0)
                if done := look_for(folder / "runs", trainings[number].experiment, finished=True):
                    say(f"{trainings[number].title}: finished before, {done}")
                    finished[number] = done
                else:
                    running[number] = _begin(trainings[number], folder, say)
            for number in [number for number, process in running.items() if process.poll() is not None]:
                finished[number] = _end(trainings[number], folder, running.pop(number).returncode)
                say(f"{trainings[number].title}: done, {len(finished)} of {len(trainings)}")
            if running and time.monotonic() > next_line:
                next_line = time.monotonic() + _SECONDS_BETWEEN_LINES
                say("; ".join(_how_far(trainings[number], folder) for number in running))
            time.sleep(_SECONDS_BETWEEN_LOOKS if running else 0)
    finally:
        for process in running.values():
            process.terminate()
        for process in running.values():
            process.wait()
    return [finished[number] for number in range(len(trainings))]


def is_finished(folder: Path, experiment: Experiment) -> bool:
    """Whether `train_all` has nothing left to do for an experiment in this folder."""
    return look_for(folder / "runs", experiment, finished=True) is not None


def _begin(training: Training, folder: Path, say: Say) -> subprocess.Popen[bytes]:
    experiment = training.experiment
    with disk_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
        config = folder / f"{training.file_name}.yaml"
        write_whole(config, yaml.safe_dump(experiment.to_dict(), sort_keys=False))
    begun = look_for(folder / "runs", experiment, finished=False)
    what = ["--resume", str(begun)] if begun else ["--config", str(config), "--runs", str(folder / "runs")]
    say(f"{training.title}: {'going on with ' + str(begun) if begun else 'training'} …")
    with _log_of(training, folder).open("ab") as log:
        # In a session of its own, so that Ctrl-C reaches it once: from here.
        return subprocess.Popen(
            [sys.executable, "-m", "procsnake", "train", *what],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            env=_environment(training),
            start_new_session=True,
        )


def _end(training: Training, folder: Path, code: int) -> Path:
    done = look_for(folder / "runs", training.experiment, finished=True)
    if code or not done:
        raise RunError(
            f"{training.title} ended with exit code {code}; read {_log_of(training, folder)}. The same command goes on with "
            "what is not finished"
        )
    return done


def _log_of(training: Training, folder: Path) -> Path:
    return folder / f"{training.file_name}.log"


def _how_far(training: Training, folder: Path) -> str:
    """Told of a training that runs: its minutes, decisions and return."""
    begun = find_runs(folder / "runs", training.experiment)
    columns: Columns = read_columns(begun[-1]) if begun else {}
    if not len(columns.get("minutes", ())):
        return f"{training.title}: starting"
    figures = {name: columns[name][-1] for name in ("minutes", "agent_steps", "episode_return_mean") if name in columns}
    return f"{training.title}: {figures['minutes']:.1f} min, {figures['agent_steps']:,.0f} decisions, return " + (
        f"{figures['episode_return_mean']:.2f}" if "episode_return_mean" in figures else "not known yet"
    )


def look_for(runs: Path, experiment: Experiment, *, finished: bool) -> Path | None:
    """Return the newest run of exactly this experiment in the folder `runs` that has ended, or else that can be continued."""
    found = find_runs(runs, experiment)
    kept = [run for run in found if (run / BUNDLE / "card.json").is_file() == finished]
    return next((run for run in reversed(kept) if finished or any((run / "checkpoints").glob("[0-9]*"))), None)


def _environment(training: Training) -> dict[str, str]:
    """That of this process, with procsnake where it is now and the training's threads."""
    here = str(Path(__file__).parents[2])
    path = os.pathsep.join(filter(None, (here, os.environ.get("PYTHONPATH", ""))))
    return {
        **os.environ,
        "PYTHONPATH": path,
        **({"OMP_NUM_THREADS": str(training.num_threads)} if training.num_threads else {}),
    }
