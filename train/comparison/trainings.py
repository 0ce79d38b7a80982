"""Trains several experiments into one folder, each as an ordinary run in a process of its own.

The processes run here or on a Ray cluster. A finished experiment is not trained again, and an
interrupted one is continued.
"""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from envs.common.whole_files import write_whole
from train.comparison.places import LOST, Begin, Running, on_this_machine
from train.config import Experiment
from train.runs.continuing.further import fraction_done, minutes_left
from train.runs.curves.history import Columns, read_columns
from train.runs.folder import BUNDLE, RunError, disk_errors, find_runs
from train.runs.lock import forget_lock

Say = Callable[[str], None]
_SECONDS_BETWEEN_LOOKS = 0.2
_SECONDS_BETWEEN_LINES = 60.0
_MOST_LOSSES = 3
_ENDING_SIGNALS = [signal.SIGTERM]
# Windows has no SIGHUP.
if hasattr(signal, "SIGHUP"):
    _ENDING_SIGNALS.append(signal.SIGHUP)


@dataclass(frozen=True)
class Training:
    """One of the experiments that are trained."""

    title: str
    experiment: Experiment
    num_threads: int | None = None
    """The number of threads of its numerical libraries; None leaves it to them."""

    @property
    def file_name(self) -> str:
        """The name of its configuration and of its log, without the suffix."""
        return f"{self.experiment.name}-{self.experiment.seed}"


@contextmanager
def _interrupted_by_signals() -> Iterator[None]:
    """Have SIGTERM and SIGHUP (a closed terminal) interrupt as Ctrl-C does, unless they are ignored
    or handled already.

    They would end this process alone, because trainings have sessions of their own. Signals reach
    only the main thread."""

    def interrupt(number: int, frame: Any) -> None:
        raise KeyboardInterrupt

    in_main = threading.current_thread() is threading.main_thread()
    ours = [
        number
        for number in _ENDING_SIGNALS
        if in_main and signal.getsignal(number) is signal.SIG_DFL
    ]
    for number in ours:
        signal.signal(number, interrupt)
    try:
        yield
    finally:
        for number in ours:
            signal.signal(number, signal.SIG_DFL)


@_interrupted_by_signals()
def train_all(
    trainings: Sequence[Training],
    folder: Path,
    *,
    jobs: int = 1,
    say: Say = print,
    begin: Begin = on_this_machine,
) -> list[Path]:
    """Train, up to `jobs` at a time, and return the finished runs in the order of `trainings`.

    `folder` gets the runs, and a configuration and a log for each. If one fails or this process is
    interrupted, by Ctrl-C, SIGTERM or a closed terminal, the others are told to save and end. One
    whose machine is lost continues elsewhere, up to three times. `say` gets a line whenever one
    begins or ends, and every minute. Raises `RunError`."""
    waiting = list(range(len(trainings)))
    running = dict[int, Running]()
    finished = dict[int, Path]()
    losses = dict.fromkeys(waiting, 0)
    next_line = time.monotonic() + _SECONDS_BETWEEN_LINES
    try:
        while waiting or running:
            while waiting and len(running) < jobs:
                number = waiting.pop(0)
                if done := look_for(folder / "runs", trainings[number].experiment, finished=True):
                    say(f"{trainings[number].title}: finished before, {done}")
                    finished[number] = done
                else:
                    running[number] = _begin(trainings[number], folder, say, begin)
            for number, code in _exit_codes(running).items():
                del running[number]
                if code == LOST and losses[number] < _MOST_LOSSES:
                    losses[number] += 1
                    _release(trainings[number], folder, say)
                    waiting.insert(0, number)
                    continue
                finished[number] = _end(trainings[number], folder, code)
                say(f"{trainings[number].title}: done, {len(finished)} of {len(trainings)}")
            if running and time.monotonic() > next_line:
                next_line = time.monotonic() + _SECONDS_BETWEEN_LINES
                say("; ".join(_how_far(trainings[number], folder) for number in running))
            if running:
                time.sleep(_SECONDS_BETWEEN_LOOKS)
    finally:
        for one in running.values():
            one.terminate()
        for one in running.values():
            one.wait()
    return [finished[number] for number in range(len(trainings))]


def _exit_codes(running: Mapping[int, Running]) -> dict[int, int]:
    """The exit codes, or `LOST`, of those that have ended."""
    codes = {number: training.poll() for number, training in running.items()}
    return {number: code for number, code in codes.items() if code is not None}


def is_finished(folder: Path, experiment: Experiment) -> bool:
    """Return whether `train_all` has nothing left to do for an experiment in this folder."""
    return look_for(folder / "runs", experiment, finished=True) is not None


def _begin(training: Training, folder: Path, say: Say, begin: Begin) -> Running:
    experiment = training.experiment
    with disk_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
        config = folder / f"{training.file_name}.yaml"
        write_whole(config, yaml.safe_dump(experiment.to_dict(), sort_keys=False))
    interrupted = look_for(folder / "runs", experiment, finished=False)
    # Whole paths, because a machine of a cluster has another working directory.
    if interrupted:
        say(f"{training.title}: continuing {interrupted} …")
        words = ["--resume", str(interrupted.absolute())]
    else:
        say(f"{training.title}: training …")
        words = ["--config", str(config.absolute()), "--runs", str((folder / "runs").absolute())]
    return begin(words, _log_of(training, folder), training.num_threads)


def _end(training: Training, folder: Path, code: int) -> Path:
    again = "Repeat the command to continue"
    if code == LOST:
        raise RunError(
            f"{training.title} lost its machine {_MOST_LOSSES + 1} times; look at the cluster's"
            f" nodes. {again}"
        )
    done = look_for(folder / "runs", training.experiment, finished=True)
    if code or not done:
        raise RunError(
            f"{training.title} ended with exit code {code}; read {_log_of(training, folder)}."
            f" {again}"
        )
    return done


def _release(training: Training, folder: Path, say: Say) -> None:
    """Let another machine go on with a training whose machine was lost."""
    say(f"{training.title}: its machine was lost; it continues elsewhere")
    if interrupted := look_for(folder / "runs", training.experiment, finished=False):
        forget_lock(interrupted)


def _log_of(training: Training, folder: Path) -> Path:
    return folder / f"{training.file_name}.log"


def _how_far(training: Training, folder: Path) -> str:
    """A line about a training that runs: its minutes, those left, decisions and return."""
    runs = find_runs(folder / "runs", training.experiment)
    columns: Columns = read_columns(runs[-1]) if runs else {}
    if not len(columns.get("minutes", ())):
        return f"{training.title}: starting"
    minutes = columns["minutes"][-1]
    decisions = columns["agent_steps"][-1]
    counters = {"minutes": minutes, "agent_steps": decisions}
    left = minutes_left(minutes, fraction_done(training.experiment.budget, counters))
    # It is NaN for iterations in which no episode ended.
    returns = columns.get("episode_return_mean", np.zeros(0))
    known = returns[np.isfinite(returns)]
    episode_return = f"{known[-1]:.2f}" if len(known) else "not known yet"
    return (
        f"{training.title}: {minutes:.1f} min, about {left:.0f} left, {decisions:,.0f} decisions,"
        f" return {episode_return}"
    )


def look_for(runs: Path, experiment: Experiment, *, finished: bool) -> Path | None:
    """Return the newest run of exactly this experiment in the folder `runs` that has ended, or, if
    not `finished`, that can be continued. None if there is none.
    """
    for run in reversed(find_runs(runs, experiment)):
        if (run / BUNDLE / "card.json").is_file() != finished:
            continue
        if finished or any((run / "checkpoints").glob("[0-9]*")):
            return run
    return None
