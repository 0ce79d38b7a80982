"""Reserves a run in an object store for one process.

The lock is a small file there, which is only written conditionally.
"""

from __future__ import annotations

import json
import os
import secrets
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from train.runs.folder import RunError
from train.runs.stored.object_store import ConditionalFile, StoredFolder, conditional_file

STORED_LOCK = "lock.json"
STALE_SECONDS = 300.0
"""A holder that hasn't written for so long is gone."""
_BEAT_SECONDS = 60.0


class LostRunError(RunError):
    """Another process has taken a run over."""


class StoredLock:
    """The lock of a run that this process holds. A thread renews it every minute."""

    def __init__(
        self, run: StoredFolder, file: ConditionalFile, version: str, content: bytes
    ) -> None:
        self._run = run
        self._file = file
        self._version = version
        self._content = content
        self._is_lost = False
        self._ended = threading.Event()
        self._guard = threading.Lock()
        self._thread = threading.Thread(target=self._beat, daemon=True)
        self._thread.start()

    def require(self) -> None:
        """Renew the lock.

        Raises `LostRunError` if another process has it; then nothing more may be written."""
        with self._guard:
            version = None
            if not self._is_lost:
                version = self._file.write(self._content, self._version)
            if version is None:
                self._is_lost = True
                raise LostRunError(
                    f"another process continues {self._run}; this one ends without changing it"
                )
            self._version = version

    def release(self) -> None:
        """Release the run. The lock is removed, unless another process has taken it over."""
        self._ended.set()
        self._thread.join()
        try:
            self.require()
        except RunError:
            return
        self._file.remove()

    def _beat(self) -> None:
        while not self._ended.wait(_BEAT_SECONDS):
            try:
                self.require()
            except RunError:
                # A network that fails for a while is no reason to stop; the next checkpoint tells.
                continue


@contextmanager
def stored_lock(run: StoredFolder) -> Iterator[StoredLock]:
    """Reserve the run. Of two processes that try at once, one gets it. Raises `RunError`, which
    names who holds it.
    """
    file = conditional_file(run, STORED_LOCK)
    holder = {"host": socket.gethostname(), "pid": os.getpid(), "nonce": secrets.token_hex(8)}
    content = json.dumps(holder).encode()
    stale_version = None
    if existing := file.read():
        holder_text, stale_version, age = existing
        if age < STALE_SECONDS:
            raise _held(run, holder_text, STALE_SECONDS - age)
    version = file.write(content, stale_version)
    if version is None:
        # Another process was faster.
        holder_text = (file.read() or (b"{}",))[0]
        raise _held(run, holder_text, STALE_SECONDS)
    lock = StoredLock(run, file, version, content)
    try:
        yield lock
    finally:
        lock.release()


def forget_stored_lock(run: StoredFolder) -> None:
    """Remove the lock of a process that no longer runs. If it still does, it ends at its next
    checkpoint.
    """
    conditional_file(run, STORED_LOCK).remove()


def _held(run: StoredFolder, content: bytes, seconds: float) -> RunError:
    try:
        holder = json.loads(content)
    except ValueError:
        holder = {}
    who = "another process"
    if isinstance(holder, dict):
        who = f"process {holder.get('pid', '?')} on {holder.get('host', '?')}"
    return RunError(
        f"{run} is being written by {who}. Wait for it, or stop it with Ctrl-C, which saves. If it"
        f" was killed, the run can be taken over in {seconds:.0f} s"
    )
