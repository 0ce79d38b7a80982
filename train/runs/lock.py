"""A lock that lets only one process at a time write into a run."""

from __future__ import annotations

import json
import os
import socket
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from envs.common.whole_files import not_through_links
from train.runs.folder import LOCK, RunError, disk_errors

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl

_BEHIND_THE_TEXT = 1 << 20
"""Windows lets nobody read a byte that another process has locked. There, the lock is a byte far
behind the holder's name.
"""

_BEGINNING = '{"pid": '
"""The beginning of a lock's text."""


@contextmanager
def locked(run: Path) -> Iterator[None]:
    """Reserve the run folder for this process.

    The kernel releases the lock of a process that dies, so on one machine a lock is never stale.
    Machines that share a folder may not share locks; then the name that an unfinished run has left
    in the file counts. Raises `RunError`, naming the holder, if another process holds the lock, and
    if the file isn't a lock, which is then left alone."""
    with ExitStack() as stack:
        with disk_errors(run):
            file = stack.enter_context(
                open(run / LOCK, "a+", encoding="utf-8", opener=not_through_links)
            )
        _refuse_other_files(file, run)
        _take(file, run)
        try:
            yield
        finally:
            _write(file, "")


def forget_lock(run: Path) -> None:
    """Remove the lock of a machine that no longer runs."""
    (run / LOCK).unlink(missing_ok=True)


def _refuse_other_files(file: Any, run: Path) -> None:
    """Raise `RunError` for a file that is not a lock. By a hard link it may be any file of the
    user's.
    """
    file.seek(0)
    try:
        beginning = file.read(len(_BEGINNING))
    except ValueError:
        beginning = "no text"
    # A power cut may have cut a lock short.
    if not _BEGINNING.startswith(beginning):
        raise RunError(
            f"{run / LOCK} is not a lock that procsnake wrote. Look at what it is, and move it away"
        )


def _take(file: Any, run: Path) -> None:
    here = socket.gethostname()
    try:
        _reserve(file)
        is_held = False
    except BlockingIOError:
        is_held = True
    except OSError:
        # A file system without locks.
        is_held = _is_alive_here(_holder(file), here)
    holder = _holder(file)
    who = f"process {holder.get('pid', '?')} on {holder.get('host', '?')}"
    if is_held:
        raise RunError(
            f"{run} is being written by {who}. Wait for it, or stop it with Ctrl-C, which saves"
        )
    if holder and holder.get("host") != here:
        raise RunError(
            f"{run} was last written by {who}, which did not say that it has ended; this machine is"
            f" {here}. If it has, remove {run / LOCK} and try again"
        )
    _write(file, json.dumps({"pid": os.getpid(), "host": here}))


def _reserve(file: Any) -> None:
    """Lock the file for as long as it is open. Raises `BlockingIOError` if another process has
    locked it.
    """
    if sys.platform == "win32":
        os.lseek(file.fileno(), _BEHIND_THE_TEXT, os.SEEK_SET)
        try:
            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
        except PermissionError as error:
            raise BlockingIOError(*error.args) from error
    else:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _holder(file: Any) -> dict[str, Any]:
    """The "pid" and "host" that the lock names; empty for a lock that nobody holds."""
    file.seek(0)
    try:
        holder = json.loads(file.read(4096) or "{}")
    except (ValueError, RecursionError):
        return {}
    if not isinstance(holder, dict):
        return {}
    return holder


def _is_alive_here(holder: dict[str, Any], here: str) -> bool:
    if (
        holder.get("host") != here
        or not isinstance(holder.get("pid"), int)
        or holder["pid"] in (0, os.getpid())
    ):
        return False
    if sys.platform == "win32":
        return True  # There, os.kill with 0 sends Ctrl-C.
    try:
        os.kill(holder["pid"], 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):
        return True
    return True


def _write(file: Any, text: str) -> None:
    file.seek(0)
    file.truncate()
    file.write(text)
    file.flush()
