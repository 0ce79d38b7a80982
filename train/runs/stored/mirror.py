"""Keeps a run in an object store. The run is written into a folder of this machine, and sent to the
store with each checkpoint.

A checkpoint there is valid once its list of files (`files.json`) exists, which is sent last and
removed first. So any machine that continues the run finds only whole checkpoints."""

from __future__ import annotations

import re
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path, PurePosixPath

from envs.common.errors import ConfigError
from train.runs.folder import CHECKPOINTS, CONFIG, LOCK, RunError, disk_errors
from train.runs.manifest import MANIFEST
from train.runs.stored.lock import STORED_LOCK, StoredLock, stored_lock
from train.runs.stored.object_store import StoredFolder


class Mirror:
    """Sends one run folder to its place in an object store, whose lock it holds."""

    def __init__(self, run: StoredFolder, lock: StoredLock) -> None:
        self.run = run
        self._lock = lock
        self._sent: dict[str, tuple[int, int]] = {}
        """The `_state` of each file when it was sent, by its name."""

    def send(self, folder: Path) -> None:
        """Send files that are new or changed, checkpoints after all others, and remove files there
        that are no longer here.

        Raises `LostRunError` if another process has taken the run over, and `RunError` if the place
        can't be written."""
        self._lock.require()
        with disk_errors(folder):
            here = {name: _state(folder / name) for name in _names_to_send(folder)}
        for name in sorted(here, key=_order):
            if self._sent.get(name) != here[name]:
                self.run.send(folder / name, name)
                self._sent[name] = here[name]
        gone = self._sent.keys() - here.keys()
        for name in sorted(gone, key=_order, reverse=True):
            self.run.remove(name)
            del self._sent[name]
        for checkpoint in sorted(_checkpoints_of(gone) - _checkpoints_of(here)):
            self.run.remove_folder(checkpoint)

    def fetch(self, folder: Path) -> None:
        """Copy the run into `folder`. Checkpoints that were never whole are removed there instead.

        Raises `RunError` if there is no run or it can't be read."""
        names = [name for name in self.run.names() if name != STORED_LOCK]
        if CONFIG not in names:
            raise RunError(f"{self.run} is not a run: it has no {CONFIG}")
        for name in names:
            if not _is_safe(name):
                raise RunError(f"{self.run} holds {name!r}, which is not a file of a run")
            checkpoint = _checkpoint_of(name)
            if checkpoint and f"{checkpoint}/{MANIFEST}" not in names:
                self.run.remove(name)
                continue
            file = folder / name
            self.run.fetch(name, file)
            self._sent[name] = _state(file)


def _state(file: Path) -> tuple[int, int]:
    """The size of a file in bytes, and the time of its last change in nanoseconds."""
    status = file.stat()
    return status.st_size, status.st_mtime_ns


def _names_to_send(folder: Path) -> list[str]:
    """The names of a run's files, without this machine's lock and without hidden files and folders,
    which are half-written.
    """
    files = (path.relative_to(folder) for path in folder.rglob("*") if path.is_file())
    return sorted(
        path.as_posix()
        for path in files
        if path.as_posix() != LOCK and not re.search(r"(^|/)\.", path.as_posix())
    )


def _is_safe(name: str) -> bool:
    path = PurePosixPath(name)
    return not path.is_absolute() and ".." not in path.parts and "\\" not in name


def _checkpoint_of(name: str) -> str:
    """The folder of the checkpoint to which a file belongs; empty for others."""
    parts = PurePosixPath(name).parts
    if parts[0] == CHECKPOINTS and len(parts) > 2:
        return "/".join(parts[:2])
    return ""


def _checkpoints_of(names: Iterable[str]) -> set[str]:
    return {_checkpoint_of(name) for name in names}


def _order(name: str) -> tuple[bool, bool, str]:
    """The key by which files are sent: checkpoints after all others, their lists of files last."""
    in_checkpoint = bool(_checkpoint_of(name))
    return in_checkpoint, in_checkpoint and name.endswith(f"/{MANIFEST}"), name


class UnsentError(RunError):
    """The last state of a run couldn't be sent; it stays on this machine."""


@contextmanager
def new_mirror(runs: StoredFolder, folder: Path) -> Iterator[Mirror]:
    """Mirror the new run in `folder` below `runs`. Raises `RunError` if another process writes a
    run of the same name.
    """
    with stored_lock(runs / folder.name) as lock:
        yield Mirror(runs / folder.name, lock)


@contextmanager
def staged() -> Iterator[Path]:
    """Yield a local folder for a run in an object store.

    It is removed at the end, unless `UnsentError` is raised."""
    folder = Path(tempfile.mkdtemp(prefix="procsnake-run-"))
    try:
        yield folder
    except UnsentError:
        raise
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def fetched(run: StoredFolder) -> Iterator[tuple[Path, Mirror]]:
    """Copy a run here to continue it, and yield its folder and its mirror.

    Raises `RunError` if there is no run or another process writes it."""
    if not run.key:
        raise ConfigError(f"{run} is a bucket; give the address of a run in it")
    with ExitStack() as stack:
        mirror = Mirror(run, stack.enter_context(stored_lock(run)))
        folder = stack.enter_context(staged()) / run.name
        with disk_errors(folder):
            mirror.fetch(folder)
        yield folder, mirror
