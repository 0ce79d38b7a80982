"""Sends the rows of a run to TensorBoard and, on demand, to Weights & Biases or MLflow.

Training continues if one of the last two fails: the run's own `progress.csv` has all rows.
"""

from __future__ import annotations

import math
import os
import re
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol

from envs.common.errors import ConfigError, MissingDependencyError, UnknownNameError, pip_install
from envs.common.plain_values import flat
from envs.common.strangers.printable import in_one_line
from train.config import Experiment
from train.runs.folder import EVENTS, disk_errors
from train.runs.sessions.event_file import EventFile
from train.runs.sessions.progress import Progress

PROJECT = "procsnake"
"""The project of Weights & Biases, and the experiment of MLflow, to which runs belong unless the
tool's environment variables name another.
"""
_RUN = "procsnake.run"
_MAX_MLFLOW_PARAMS = 100
_MAX_MLFLOW_VALUE = 500
"""MLflow's limits: parameters of one request, and characters of a value that every version of its
server takes.
"""


class Tracker(Protocol):
    """A service to which the rows of one run go. Its methods may raise any exception."""

    def log(self, values: Mapping[str, float], iteration: int) -> None:
        """Send a row's finite values."""

    def close(self) -> None:
        """Send what hasn't been sent yet."""


class WeightsAndBiases:
    """A run at Weights & Biases. It has the folder's name, so a resumed run continues it.

    `WANDB_MODE=offline` keeps all on this machine."""

    def __init__(self, folder: Path, experiment: Experiment) -> None:
        self._run = import_module("wandb").init(
            project=os.environ.get("WANDB_PROJECT", PROJECT),
            id=folder.name,
            name=folder.name,
            resume="allow",
            dir=str(folder),
            config=experiment.to_dict(),
        )

    def log(self, values: Mapping[str, float], iteration: int) -> None:
        """Send a row's finite values."""
        self._run.log(dict(values), step=iteration)

    def close(self) -> None:
        """Send what hasn't been sent yet."""
        self._run.finish()


class MLflow:
    """A run on the server that `MLFLOW_TRACKING_URI` names, by default a file in this folder.

    A resumed run continues the one with its folder's name. Steps that are trained again then appear
    twice."""

    def __init__(self, folder: Path, experiment: Experiment) -> None:
        # A server that doesn't answer would hold up every iteration for minutes.
        os.environ.setdefault("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "2")
        os.environ.setdefault("MLFLOW_HTTP_REQUEST_TIMEOUT", "10")
        mlflow = import_module("mlflow")
        self._client = mlflow.MlflowClient()
        self._metric = mlflow.entities.Metric
        self._param = mlflow.entities.Param
        self._id = self._run_of(folder, experiment)

    def log(self, values: Mapping[str, float], iteration: int) -> None:
        """Send a row's finite values."""
        now = time.time_ns() // 1_000_000
        metrics = [
            self._metric(_allowed(name), value, now, iteration) for name, value in values.items()
        ]
        self._client.log_batch(self._id, metrics=metrics)

    def close(self) -> None:
        """Mark the run as ended."""
        self._client.set_terminated(self._id)

    def _run_of(self, folder: Path, experiment: Experiment) -> str:
        """Return the id of the run with the folder's name, which is made if there is none."""
        name = os.environ.get("MLFLOW_EXPERIMENT_NAME", PROJECT)
        project = self._client.get_experiment_by_name(name)
        if project:
            number = project.experiment_id
        else:
            number = self._client.create_experiment(name)
        earlier = self._client.search_runs([number], f"tags.`{_RUN}` = '{folder.name}'")
        if earlier:
            self._client.update_run(earlier[0].info.run_id, status="RUNNING")
            return str(earlier[0].info.run_id)
        run = self._client.create_run(number, run_name=folder.name, tags={_RUN: folder.name})
        run_id = str(run.info.run_id)
        params = [
            self._param(_allowed(key), str(value)[:_MAX_MLFLOW_VALUE])
            for key, value in flat(experiment.to_dict()).items()
        ]
        for start in range(0, len(params), _MAX_MLFLOW_PARAMS):
            self._client.log_batch(run_id, params=params[start : start + _MAX_MLFLOW_PARAMS])
        return run_id


_TRACKERS: dict[str, Callable[[Path, Experiment], Tracker]] = {
    "wandb": WeightsAndBiases,
    "mlflow": MLflow,
}


def require_trackers(names: Iterable[str]) -> None:
    """Raise `UnknownNameError` for unknown trackers, and `MissingDependencyError` for one that
    isn't installed.
    """
    for name in names:
        if name not in _TRACKERS:
            raise UnknownNameError("tracker", name, list(_TRACKERS))
        try:
            import_module(name)
        except ImportError as error:
            install = pip_install(f"procsnake[{name}]")
            raise MissingDependencyError(name, feature=f"--{name}", install=install) from error


class Tracking:
    """Logs the rows of a run's curve to TensorBoard and to the trackers of these names.

    `first` is the iteration with which this session begins. Raises `ConfigError` if a tracker can't
    be started. One that fails later gets no more rows, which `progress` says."""

    def __init__(
        self,
        folder: Path,
        experiment: Experiment,
        *,
        first: int,
        trackers: Sequence[str],
        progress: Progress,
    ) -> None:
        with disk_errors(folder):
            self._events = EventFile(folder / EVENTS, first=first)
        self._folder = folder
        self._progress = progress
        self._trackers = {name: _begin(name, folder, experiment) for name in trackers}

    def log(self, row: Mapping[str, Any]) -> None:
        """Log a row of the curve at its `iteration`. Values that aren't finite are left out."""
        finite = {name: float(value) for name, value in row.items() if math.isfinite(value)}
        with disk_errors(self._folder):
            self._events.add(finite, row["iteration"])
        for name, tracker in list(self._trackers.items()):
            try:
                tracker.log(finite, row["iteration"])
            except Exception as error:
                # Whatever another party's library raises is no reason to stop training.
                del self._trackers[name]
                self._tell(f"{name} gets no more rows", error)

    def close(self) -> None:
        """Send what hasn't been sent yet."""
        for name, tracker in self._trackers.items():
            try:
                tracker.close()
            except Exception as error:
                # Whatever it raises, as in `log`.
                self._tell(f"{name} may lack the last rows", error)

    def _tell(self, what: str, error: Exception) -> None:
        self._progress.say(f"{what}: {_line(error)}. The run's own progress.csv has all")


def _begin(name: str, folder: Path, experiment: Experiment) -> Tracker:
    try:
        return _TRACKERS[name](folder, experiment)
    except Exception as error:
        # Each tracker has errors of its own, and those of the libraries below it.
        raise ConfigError(
            f"--{name} can't begin: {_line(error)}. Look at its settings, or leave it out"
        ) from error


def _line(error: Exception) -> str:
    return in_one_line(error) or type(error).__name__


def _allowed(name: str) -> str:
    """A name of a metric or a parameter as MLflow takes it."""
    return re.sub(r"[^\w./ -]", "_", name)
