"""A run on disk: `config.yaml`, `progress.csv`, TensorBoard events, `checkpoints/`, `bundle/`, `report.html`.

Nothing is ever seen half-written.
"""

from __future__ import annotations

import csv
import io
import json
import os
import shutil
import time
from collections.abc import Callable, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml

from envs.errors import ProcsnakeError
from train.config import Experiment

CONFIG, CURVE, CHECKPOINTS, EVENTS, BUNDLE, COUNTERS, REPORT = (
    "config.yaml", "progress.csv", "checkpoints", "tensorboard", "bundle", "counters.json", "report.html",
)  # fmt: skip
_BEST = "best-"

Save = Callable[[Path], Any]
"""Writes a checkpoint into an empty folder."""
Checkpoint = tuple[Path, dict[str, Any]]
"""The folder of a checkpoint, and the run's counters when it was written."""


class RunError(ProcsnakeError):
    """A run folder that can't be made, read, continued or written to."""


@contextmanager
def disk_errors(path: Path):
    """Turn a full disk, missing rights and the like into one line."""
    try:
        yield
    except OSError as error:
        raise RunError(
            f"{error.filename or path} can't be written or read: {error.strerror or error}. "
            f"Free some space or check the rights; what was saved before is whole: procsnake train --resume {path}"
        ) from error


class RunFolder:
    """The folder of one run."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._columns: list[str] = []

    @classmethod
    def create(cls, runs_dir: Path, experiment: Experiment, note: Mapping[str, Any]) -> RunFolder:
        """Make `runs_dir/<name>-<time>`; see `set_up`."""
        stem = f"{experiment.name}-{time.strftime('%Y%m%d-%H%M%S')}"
        with disk_errors(runs_dir):
            runs_dir.mkdir(parents=True, exist_ok=True)
            for suffix in ("", *(f"-{k}" for k in range(2, 1000))):
                path = runs_dir / f"{stem}{suffix}"
                try:
                    path.mkdir()
                    break
                except FileExistsError:
                    continue
        return cls.set_up(path, experiment, note)

    @classmethod
    def set_up(cls, path: Path, experiment: Experiment, note: Mapping[str, Any]) -> RunFolder:
        """Write the resolved `config.yaml` with `note` (versions, …) into the folder `path`, which is made if need be."""
        with disk_errors(path):
            (path / CHECKPOINTS).mkdir(parents=True, exist_ok=True)
            text = yaml.safe_dump({**experiment.to_dict(), "run": dict(note)}, sort_keys=False)
            cls._write(path / CONFIG, text)
        return cls(path)

    @classmethod
    def open(cls, path: Path) -> tuple[RunFolder, Experiment]:
        """An existing run and its experiment. Raises `RunError` if `path` is none."""
        if not (path / CONFIG).is_file():
            raise RunError(f"{path} is no run: it has no {CONFIG}. Runs lie in runs/; start one with procsnake train")
        return cls(path), Experiment.load(path / CONFIG)

    # The curve.

    def append(self, row: Mapping[str, Any]) -> None:
        """Add a row to `progress.csv`. New columns are taken in; the file is then written anew."""
        new = [name for name in row if name not in self._columns]
        with disk_errors(self.path):
            if new:
                rows = self.curve()
                self._columns += new
                self._write(self.path / CURVE, _csv(self._columns, [*rows, row], header=True))
                return
            with open(self.path / CURVE, "ab") as file:
                file.write(_csv(self._columns, [row], header=False).encode())

    @property
    def columns(self) -> list[str]:
        """The columns that `progress.csv` has so far."""
        return list(self._columns)

    def curve(self) -> list[dict[str, str]]:
        """The rows of `progress.csv`, as text."""
        try:
            with open(self.path / CURVE, newline="", encoding="utf-8") as file:
                return list(csv.DictReader(file))
        except FileNotFoundError:
            return []

    def rewind(self, iteration: int) -> None:
        """Drop the rows after `iteration`, and a last row that was cut off: a resumed run writes them anew."""
        with disk_errors(self.path):
            rows = [row for row in self.curve() if row["iteration"].isdigit() and int(row["iteration"]) <= iteration]
            self._columns = list(rows[0]) if rows else []
            self._write(self.path / CURVE, _csv(self._columns, rows, header=True) if rows else "")

    # Checkpoints.

    def save_checkpoint(self, save: Save, counters: Mapping[str, Any], keep: int) -> Path:
        """Call `save(folder)` on a hidden folder, add `counters`, then give it its name; keep the newest `keep`."""
        with disk_errors(self.path):
            target = self._save_as(f"{counters['iteration']:08d}", save, counters)
            for old in self.checkpoints()[:-keep]:
                self._remove(old)
        return target

    def save_best(self, save: Save, counters: Mapping[str, Any]) -> Path:
        """The same for the best checkpoint; the one before it goes when this one is whole."""
        with disk_errors(self.path):
            target = self._save_as(f"{_BEST}{counters['iteration']:08d}", save, counters)
            for old in self._all_best()[:-1]:
                self._remove(old)
        return target

    def _save_as(self, name: str, save: Save, counters: Mapping[str, Any]) -> Path:
        target = self.path / CHECKPOINTS / name
        fresh = target.with_name(f".{name}.part")
        shutil.rmtree(fresh, ignore_errors=True)
        try:
            fresh.mkdir(parents=True)
            save(fresh)
            (fresh / COUNTERS).write_text(json.dumps(dict(counters), indent=2) + "\n")
            _flush(fresh)
        except BaseException:
            # On a full disk, what could not be finished only takes up room.
            shutil.rmtree(fresh, ignore_errors=True)
            raise
        shutil.rmtree(target, ignore_errors=True)
        os.replace(fresh, target)
        return target

    @staticmethod
    def _remove(checkpoint: Path) -> None:
        # Renamed first: a kill during the removal must not leave a folder that looks like a checkpoint.
        doomed = checkpoint.with_name(f".{checkpoint.name}.old")
        os.replace(checkpoint, doomed)
        shutil.rmtree(doomed, ignore_errors=True)

    def checkpoints(self) -> list[Path]:
        """Complete checkpoints, oldest first."""
        return sorted(path for path in (self.path / CHECKPOINTS).glob("[0-9]*") if (path / COUNTERS).is_file())

    def newest_checkpoint(self) -> Checkpoint | None:
        """The newest complete checkpoint and its counters."""
        return _last(self.checkpoints())

    def best_checkpoint(self) -> Checkpoint | None:
        """The checkpoint with the highest value of the experiment's `best_metric`, and its counters."""
        return _last(self._all_best())

    def _all_best(self) -> list[Path]:
        return sorted(path for path in (self.path / CHECKPOINTS).glob(f"{_BEST}*") if (path / COUNTERS).is_file())

    def forget_after(self, iteration: int) -> None:
        """Remove the checkpoints that are later than `iteration`."""
        with disk_errors(self.path):
            for checkpoint in self.checkpoints():
                if int(checkpoint.name) > iteration:
                    self._remove(checkpoint)

    def clean(self) -> None:
        """Remove what a killed session left."""
        for path in (self.path / CHECKPOINTS).glob(".*"):
            shutil.rmtree(path, ignore_errors=True)

    @staticmethod
    def _write(path: Path, text: str) -> None:
        part = path.with_name(f".{path.name}.part")
        part.write_text(text, encoding="utf-8")
        os.replace(part, path)


def _last(checkpoints: list[Path]) -> Checkpoint | None:
    return (checkpoints[-1], json.loads((checkpoints[-1] / COUNTERS).read_text())) if checkpoints else None


def find_runs(runs_dir: str | os.PathLike[str], experiment: Experiment) -> list[Path]:
    """Folders under `runs_dir` of runs of exactly this experiment, oldest first, finished or not."""
    found = []
    for config in sorted(Path(runs_dir).glob(f"{experiment.name}-*/{CONFIG}")):
        try:
            same = Experiment.load(config) == experiment
        except ProcsnakeError:
            # Of another version of procsnake, whose keys are no longer known.
            same = False
        if same:
            found.append(config.parent)
    return found


def _csv(columns: list[str], rows: list[Mapping[str, Any]], *, header: bool) -> str:
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, columns, restval="", lineterminator="\n")
    if header:
        writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def _flush(folder: Path) -> None:
    """Have the disk hold the files before the folder gets its name, so that a power cut can't leave an empty checkpoint."""
    for path in folder.rglob("*"):
        if path.is_file():
            descriptor = os.open(path, os.O_RDONLY)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
