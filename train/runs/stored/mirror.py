"""Keeps a run in an object store: it is written here, in a folder of its own, and sent there with
each checkpoint.

A checkpoint there counts once its list of files (`files.json`) is there, which is sent last and
removed first. So whoever goes on with the run, on any machine, finds whole checkpoints only."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
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
        """By file, its size and the time of its last change when it was sent."""

    def send(self, folder: Path) -> None:
        """Send what is new: first what checkpoints build on, then new checkpoints, then take old
        ones away.

        Raises `LostRunError` if another process has taken the run over, and `RunError` if the place
        can't be written."""
        self._lock.require()
        with disk_errors(folder):
            here = {
                str(path.relative_to(folder).as_posix()): path
                for path in sorted(folder.rglob("*"))
                if path.is_file()
            }
            here = {name: path for name, path in here.items() if _is_sent(name)}
            state = {
                name: (path.stat().st_size, path.stat().st_mtime_ns) for name, path in here.items()
            }
        for name in sorted(here, key=_order):
            if self._sent.get(name) != state[name]:
                self.run.send(here[name], name)
                self._sent[name] = state[name]
        gone = self._sent.keys() - here.keys()
        for name in sorted(gone, key=_order, reverse=True):
            self.run.remove(name)
            del self._sent[name]
        for checkpoint in sorted(
            {_checkpoint_of(name) for name in gone} - {_checkpoint_of(name) for name in here}
        ):
            self.run.remove_folder(checkpoint)

    def fetch(self, folder: Path) -> None:
        """Bring the run here, but for checkpoints that were never whole, which are removed there.
        Raises `RunError`.
        """
        names = [name for name in self.run.names() if name != STORED_LOCK]
        if CONFIG not in names:
            raise RunError(f"{self.run} is no run: it has no {CONFIG}")
        for name in names:
            if not _is_safe(name):
                raise RunError(f"{self.run} holds {name!r}, which is no file of a run")
            checkpoint = _checkpoint_of(name)
            if checkpoint and f"{checkpoint}/{MANIFEST}" not in names:
                self.run.remove(name)
                continue
            file = folder / name
            self.run.fetch(name, file)
            self._sent[name] = (file.stat().st_size, file.stat().st_mtime_ns)


def _is_sent(name: str) -> bool:
    """What is half-written stays here; such files and folders are hidden. So is the lock of this
    machine.
    """
    return name != LOCK and not any(part.startswith(".") for part in PurePosixPath(name).parts)


def _is_safe(name: str) -> bool:
    path = PurePosixPath(name)
    return not path.is_absolute() and ".." not in path.parts and "\\" not in name


def _checkpoint_of(name: str) -> str:
    """The folder of the checkpoint to which a file belongs; empty for others."""
    parts = PurePosixPath(name).parts
    if parts[0] == CHECKPOINTS and len(parts) > 2:
        return "/".join(parts[:2])
    return ""


def _order(name: str) -> tuple[bool, bool, str]:
    """Checkpoints come after everything else, and their lists of files last."""
    return (
        bool(_checkpoint_of(name)),
        bool(_checkpoint_of(name)) and name.endswith(f"/{MANIFEST}"),
        name,
    )


class UnsentError(RunError):
    """The last state of a run couldn't be sent; it stays on this machine."""


@contextmanager
def new_mirror(runs: StoredFolder, folder: Path) -> Iterator[Mirror]:
    """Keep the new run in `folder` below `runs`. Raises `RunError` if another process writes a run
    of the same name.
    """
    with stored_lock(runs / folder.name) as lock:
        yield Mirror(runs / folder.name, lock)


@contextmanager
def staged() -> Iterator[Path]:
    """A folder of this machine for a run that is kept elsewhere. It is removed at the end, unless
    `UnsentError` is raised.
    """
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
    """The run, brought here to go on with, and its mirror. Raises `RunError` if there is none or
    another process writes it.
    """
    if not run.key:
        raise ConfigError(f"{run} is a bucket; give the address of a run in it")
    with ExitStack() as stack:
        mirror = Mirror(run, stack.enter_context(stored_lock(run)))
        folder = stack.enter_context(staged()) / run.name
        with disk_errors(folder):
            mirror.fetch(folder)
        yield folder, mirror
