"""Sends the rows of a run to TensorBoard, and to Weights & Biases if that is asked for."""

from __future__ import annotations

import math
import socket
import struct
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from envs.common.errors import MissingDependencyError, pip_install
from train.config import Experiment
from train.runs.folder import EVENTS, disk_errors


class Tracking:
    """Logs the rows of a run's curve. `first` is the iteration with which this session begins."""

    def __init__(self, folder: Path, experiment: Experiment, *, first: int, wandb: bool) -> None:
        with disk_errors(folder):
            self._events = EventFile(folder / EVENTS, first=first)
        self._folder = folder
        self._wandb = _begin_wandb(folder, experiment) if wandb else None

    def log(self, row: Mapping[str, Any]) -> None:
        """Log a row of the curve at its `iteration`. Values that are no finite numbers are left out."""
        finite = {name: float(value) for name, value in row.items() if math.isfinite(value)}
        with disk_errors(self._folder):
            self._events.add(finite, row["iteration"])
        if self._wandb:
            self._wandb.log(finite, step=row["iteration"])

    def close(self) -> None:
        """Send what hasn't been sent yet."""
        if self._wandb:
            self._wandb.finish()


class EventFile:
    """A TensorBoard event file to which each row is appended in one write.

    tensorboardX's own writer uses a thread, which prints tracebacks when the disk is full. What earlier files hold from step
    `first` on is superseded, as a resumed run needs it.
    """

    def __init__(self, folder: Path, *, first: int) -> None:
        from tensorboardX.proto.event_pb2 import SessionLog

        folder.mkdir(exist_ok=True)
        self._path = folder / f"events.out.tfevents.{time.time_ns() // 1000}.{socket.gethostname()}"
        self._append(file_version="brain.Event:2")
        self._append(step=first, session_log=SessionLog(status=SessionLog.START))

    def add(self, values: Mapping[str, float], step: int) -> None:
        """Append one event with a scalar for each of `values`."""
        from tensorboardX.proto.summary_pb2 import Summary

        self._append(step=step, summary=Summary(value=[Summary.Value(tag=k, simple_value=v) for k, v in values.items()]))

    def _append(self, **fields: Any) -> None:
        from tensorboardX.proto.event_pb2 import Event
        from tensorboardX.record_writer import masked_crc32c

        content = Event(wall_time=time.time(), **fields).SerializeToString()
        length = struct.pack("<Q", len(content))
        checks = [struct.pack("<I", masked_crc32c(part)) for part in (length, content)]
        with open(self._path, "ab", buffering=0) as file:
            file.write(length + checks[0] + content + checks[1])


def require_wandb() -> Any:
    """Import and return the module wandb. Raises `MissingDependencyError` if it isn't installed."""
    try:
        import wandb
    except ImportError as error:
        raise MissingDependencyError("wandb", feature="--wandb", install=pip_install("wandb")) from error
    return wandb


def _begin_wandb(folder: Path, experiment: Experiment) -> Any:
    """The run in wandb has the folder's name, so a resumed run goes on there, too."""
    return require_wandb().init(
        project="procsnake", id=folder.name, name=folder.name, resume="allow", dir=str(folder), config=experiment.to_dict()
    )
