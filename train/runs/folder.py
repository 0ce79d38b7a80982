"""A run on disk: `config.yaml`, `progress.csv`, TensorBoard events, `checkpoints/`, `bundle/`,
`report.html`.

All files except `progress.csv` and the events are written atomically. A row that was cut off is
dropped when the run continues."""

from __future__ import annotations

import csv
import glob
import io
import itertools
import json
import math
import os
import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml

from envs.common.addresses import require_path
from envs.common.errors import ProcsnakeError, reason
from envs.common.shell_command import shell_command
from envs.common.strangers import own_files
from envs.common.strangers.bounded import MAX_YAML_BYTES, parse_json, parse_yaml, read_text
from envs.common.whole_files import not_through_links, replace_whole
from train.config import Experiment
from train.runs.manifest import write_manifest

CONFIG = "config.yaml"
CURVE = "progress.csv"
CHECKPOINTS = "checkpoints"
EVENTS = "tensorboard"
BUNDLE = "bundle"
COUNTERS = "counters.json"
REPORT = "report.html"
LOCK = ".lock"
ASKED = "asked_for"
"""Key of the note in `config.yaml`: the experiment as it was before it was fitted to a cluster."""
GENERATIONS = "generations"
"""The folder where a run that learns an evaluation makes its generations
(`train.learned_evaluation`).
"""
CONFIG_SIGNATURE = "config.yaml.hmac"
_OF_A_START = {CONFIG, CONFIG_SIGNATURE, CHECKPOINTS, CURVE, EVENTS, LOCK}
"""The files and folders that the start of a run makes, before its first iteration."""
_BEST = "best-"
_DAMAGED = "damaged-"
_MAX_COUNTERS = 1 << 20
_MAX_CURVE = 256 << 20

Save = Callable[[Path], Any]
"""Writes a checkpoint into an empty folder."""
Checkpoint = tuple[Path, dict[str, Any]]
"""The folder of a checkpoint, and the run's counters when it was written."""


class RunError(ProcsnakeError):
    """A run folder can't be made, read, continued or written to."""


@contextmanager
def disk_errors(path: Path) -> Iterator[None]:
    """Turn a full disk, missing rights, a file in the way and the like into a `RunError` of one
    line.
    """
    try:
        yield
    except (FileExistsError, NotADirectoryError) as error:
        require_place(Path(error.filename or path))
        raise RunError(
            f"{error.filename or path} can't be made: {error.strerror or error}. Name another place"
        ) from error
    except OSError as error:
        next_commands = {}
        if os.path.isfile(path / CONFIG):
            next_commands["what was saved before is whole"] = ("train", "--resume", path)
        raise RunError(
            f"{error.filename or path} can't be written or read: {error.strerror or error}. "
            "Free some space or check the rights.",
            next_commands=next_commands,
        ) from error


def require_place(folder: Path) -> None:
    """Raise `RunError` unless this folder is there or can be made, and files can be made in it.
    Nothing is made.

    An address such as s3://bucket/runs raises `ConfigError`.
    """
    require_path(folder)
    nearest = next(
        path for path in (folder.absolute(), *folder.absolute().parents) if os.path.exists(path)
    )
    if not nearest.is_dir():
        raise RunError(f"{nearest} is a file where a folder is needed; name another place")
    if not os.access(nearest, os.W_OK | os.X_OK):
        raise RunError(f"{nearest} can't be written to; check the rights, or name another place")


def resume_command(path: str | Path) -> str:
    """Return the shell command that continues the run in this folder."""
    return shell_command("train", "--resume", path)


def not_a_run(path: Path) -> RunError:
    """Return the error for a folder that holds no run."""
    return RunError(
        f"{path} is not a run: it has no {CONFIG}. Runs are in runs/.",
        next_commands={"list what can be trained": ("train", "--list")},
    )


class RunFolder:
    """The folder of one run."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.address = ""
        """The run's address in an object store; "" if it is kept in this folder alone."""
        self._columns: list[str] = []

    @property
    def place(self) -> str | Path:
        """The address or the folder by which the run is resumed."""
        return self.address or self.path

    @classmethod
    def create(cls, runs_dir: Path, experiment: Experiment, note: Mapping[str, Any]) -> RunFolder:
        """Make the folder `runs_dir/<name>-<time>` and write the config as `set_up` does."""
        require_path(runs_dir)
        stem = f"{experiment.name}-{time.strftime('%Y%m%d-%H%M%S')}"
        with disk_errors(runs_dir):
            runs_dir.mkdir(parents=True, exist_ok=True)
            for path in _numbered(runs_dir / stem):
                try:
                    path.mkdir()
                    break
                except FileExistsError:
                    continue
        return cls.set_up(path, experiment, note)

    @classmethod
    def set_up(cls, path: Path, experiment: Experiment, note: Mapping[str, Any]) -> RunFolder:
        """Write the resolved `config.yaml` with `note` (versions, …) into the folder `path`, which
        is made if it is missing.
        """
        with disk_errors(path):
            (path / CHECKPOINTS).mkdir(parents=True, exist_ok=True)
            text = yaml.safe_dump({**experiment.to_dict(), "run": dict(note)}, sort_keys=False)
            replace_whole(path / CONFIG, text)
        folder = cls(path)
        folder.sign_config()
        return folder

    def change(self, experiment: Experiment) -> None:
        """Write the budget and the target of `experiment` into `config.yaml`. Its note stays."""
        note = parse_yaml(read_text(self.path / CONFIG, MAX_YAML_BYTES)).get("run") or {}
        own = experiment.to_dict()
        changed = {key: own[key] for key in ("budget", "stop")}
        if ASKED in note:
            note[ASKED] = {**note[ASKED], **changed}
        before = Experiment.load(self.path / CONFIG).to_dict()
        RunFolder.set_up(self.path, Experiment.from_dict({**before, **changed}), note)

    @classmethod
    def open(cls, path: Path) -> tuple[RunFolder, Experiment]:
        """Open an existing run. Returns the run and its experiment. Raises `RunError` if `path` is
        no run.
        """
        require_path(path)
        if not os.path.isfile(path / CONFIG):
            raise not_a_run(path)
        return cls(path), Experiment.load(path / CONFIG)

    def remove_unless_used(self) -> None:
        """Remove the folder of a run whose start failed, unless it already holds something like a
        checkpoint.
        """
        names = {path.name for path in self.path.glob("*")}
        has_checkpoint = any(self.path.glob(f"{CHECKPOINTS}/*"))
        if names <= _OF_A_START and not has_checkpoint and not self.curve():
            shutil.rmtree(self.path, ignore_errors=True)

    def sign_config(self) -> None:
        """Sign `config.yaml` as this machine's own (`envs.common.strangers.own_files`)."""
        with disk_errors(self.path):
            signature = own_files.sign((self.path / CONFIG).read_bytes())
            replace_whole(self.path / CONFIG_SIGNATURE, signature)

    def has_own_config(self) -> bool:
        """Return whether this machine wrote `config.yaml` in its current form."""
        try:
            signature = (self.path / CONFIG_SIGNATURE).read_text(encoding="ascii")
            return own_files.is_signed((self.path / CONFIG).read_bytes(), signature)
        except (OSError, ValueError):
            return False

    # The curve.

    def append(self, row: Mapping[str, Any]) -> None:
        """Add a row to `progress.csv`. If the row has new columns, the whole file is written
        again.
        """
        new = [name for name in row if name not in self._columns]
        with disk_errors(self.path):
            if new:
                rows = self.curve()
                self._columns += new
                replace_whole(self.path / CURVE, _csv(self._columns, [*rows, row], header=True))
                return
            with open(self.path / CURVE, "ab", opener=not_through_links) as file:
                file.write(_csv(self._columns, [row], header=False).encode())

    @property
    def columns(self) -> list[str]:
        """The columns that `progress.csv` has so far."""
        return list(self._columns)

    def curve(self, *, whole_rows: bool = False) -> list[dict[str, str]]:
        """Return the rows of `progress.csv`, as text.

        With `whole_rows`, a last row that was cut off is left out."""
        try:
            text = read_text(self.path / CURVE, _MAX_CURVE)
            if whole_rows:
                # Half a number is a number, too, so only the end of its line tells that a row is
                # whole.
                text = text[: text.rfind("\n") + 1]
            return list(csv.DictReader(io.StringIO(text, newline="")))
        except (FileNotFoundError, NotADirectoryError):
            return []
        except OSError as error:
            raise RunError(
                f"{self.path / CURVE} can't be read: {error.strerror or error}. Check the rights"
            ) from error
        except (ValueError, csv.Error) as error:
            raise RunError(
                f"{self.path / CURVE} can't be read: {error}. Put back the run's own file, or"
                " remove it"
            ) from error

    def rewind(self, iteration: int) -> None:
        """Drop the rows after `iteration`, and a last row that was cut off, because a resumed run
        writes them again.
        """
        with disk_errors(self.path):
            rows = [row for row in self.curve(whole_rows=True) if _iteration(row) <= iteration]
            self._columns = []
            text = ""
            if rows:
                self._columns = list(rows[0])
                text = _csv(self._columns, rows, header=True)
            replace_whole(self.path / CURVE, text)

    # Checkpoints.

    def save_checkpoint(self, save: Save, counters: Mapping[str, Any], keep: int) -> Path:
        """Call `save(folder)` on a hidden folder, add `counters`, then give the folder its name.

        Keep the newest `keep` checkpoints.
        """
        with disk_errors(self.path):
            target = self._save_as(f"{counters['iteration']:08d}", save, counters)
            for old in self.checkpoints()[:-keep]:
                self._remove(old)
        return target

    def save_best(self, save: Save, counters: Mapping[str, Any]) -> Path:
        """Save a checkpoint as the best one, and remove the previous best when it is whole."""
        with disk_errors(self.path):
            target = self._save_as(f"{_BEST}{counters['iteration']:08d}", save, counters)
            # A run that goes on from before its best reaches a better one at an earlier iteration,
            # so order says nothing.
            for old in self.best_checkpoints():
                if old != target:
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
            write_manifest(fresh)
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
        # Renamed first: a kill during the removal must not leave a folder that looks like a
        # checkpoint.
        doomed = checkpoint.with_name(f".{checkpoint.name}.old")
        os.replace(checkpoint, doomed)
        shutil.rmtree(doomed, ignore_errors=True)

    def checkpoints(self) -> list[Path]:
        """Return the checkpoints, oldest first.

        Copied ones may be damaged; `train.runs.continuing.resuming` checks them."""
        return self._listed("[0-9]*")

    def newest_checkpoint(self) -> Checkpoint | None:
        """Return the newest checkpoint and its counters."""
        checkpoints = self.checkpoints()
        if not checkpoints:
            return None
        return checkpoints[-1], read_counters(checkpoints[-1])

    def best_checkpoint(self) -> Checkpoint | None:
        """Return the checkpoint with the highest value of the experiment's `best_metric`, and its
        counters.
        """
        candidates = [(path, read_counters(path)) for path in self.best_checkpoints()]
        return max(candidates, key=lambda checkpoint: checkpoint[1]["best"], default=None)

    def best_checkpoints(self) -> list[Path]:
        """Return the checkpoints saved as the best, by iteration.

        There is more than one only if a session was killed."""
        return self._listed(f"{_BEST}*")

    def _listed(self, pattern: str) -> list[Path]:
        return sorted(path for path in (self.path / CHECKPOINTS).glob(pattern) if path.is_dir())

    def set_aside(self, checkpoint: Path) -> Path:
        """Rename a damaged checkpoint so that no run continues from it. Returns its new path."""
        names = _numbered(checkpoint.with_name(f"{_DAMAGED}{checkpoint.name}"))
        with disk_errors(self.path):
            target = next(path for path in names if not path.exists())
            os.replace(checkpoint, target)
        return target

    def forget_after(self, iteration: int) -> None:
        """Remove the checkpoints that are later than `iteration`."""
        with disk_errors(self.path):
            for checkpoint in self.checkpoints():
                if int(checkpoint.name) > iteration:
                    self._remove(checkpoint)

    def clean(self) -> None:
        """Remove what a killed session left half-written."""
        for path in (self.path / CHECKPOINTS).glob(".*"):
            shutil.rmtree(path, ignore_errors=True)


def _numbered(path: Path) -> Iterator[Path]:
    """Yield `path`, then `path`-2, `path`-3, …"""
    yield path
    for number in itertools.count(2):
        yield path.with_name(f"{path.name}-{number}")


def read_counters(checkpoint: Path) -> dict[str, Any]:
    """Read a checkpoint's counters. Raises `RunError` if they can't be read."""
    path = checkpoint / COUNTERS
    try:
        counters = parse_json(read_text(path, _MAX_COUNTERS))
        if isinstance(counters["iteration"], int):
            return counters
        raise ValueError(f"iteration is {counters['iteration']!r}")
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise RunError(
            f"{path} can't be read ({reason(error)}); the checkpoint was damaged or copied in part"
        ) from error


def find_runs(runs_dir: str | os.PathLike[str], experiment: Experiment) -> list[Path]:
    """Return the folders under `runs_dir` of runs of exactly this experiment, oldest first,
    finished or not.

    For a run that was fitted to a cluster, the original experiment counts. Raises `RunError` if
    `runs_dir` can't be read."""
    runs = []
    with disk_errors(Path(runs_dir)):
        configs = sorted(Path(runs_dir).glob(f"{glob.escape(experiment.name)}-*/{CONFIG}"))
    for config in configs:
        try:
            is_same = _before_fitting(config) == experiment
        except ProcsnakeError:
            # A run of another version of procsnake may have settings that this one doesn't know.
            is_same = False
        if is_same:
            runs.append(config.parent)
    return runs


def _before_fitting(config: Path) -> Experiment:
    """The experiment of a `config.yaml`, as it was before it was fitted to a cluster."""
    experiment = Experiment.load(config)
    note = parse_yaml(read_text(config, MAX_YAML_BYTES)).get("run")
    if isinstance(note, dict) and isinstance(note.get(ASKED), dict):
        return Experiment.from_dict(note[ASKED])
    return experiment


def _iteration(row: Mapping[str, Any]) -> float:
    """The row's iteration, infinity for a row without one."""
    text = row.get("iteration") or ""
    if text.isdecimal() and len(text) < 19:
        return int(text)
    return math.inf


def _csv(columns: list[str], rows: Sequence[Mapping[str, Any]], *, header: bool) -> str:
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, columns, restval="", lineterminator="\n")
    if header:
        writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def _flush(folder: Path) -> None:
    """Write the files through to the disk.

    The folder gets its name afterwards, so that a power cut can't leave an empty checkpoint."""
    for path in folder.rglob("*"):
        if path.is_file():
            descriptor = os.open(path, os.O_RDONLY)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
