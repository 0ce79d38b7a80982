"""The lock of a run, also as Windows has it: msvcrt's contract, kept by a stand-in that locks bytes
of real files.
"""

from __future__ import annotations

import fcntl
import importlib.util
import os
import struct
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

from train.runs import lock
from train.runs.folder import RunError

LK_NBLCK = 2
"""Of Microsoft's sys/locking.h: lock so many bytes from the file's position on, or fail at once."""


def locking(descriptor: int, mode: int, nbytes: int) -> None:
    """Like msvcrt's: who has the file open has the lock, and whoever else tries gets EACCES, which
    is a PermissionError.
    """
    assert mode == LK_NBLCK
    try:
        fcntl.fcntl(
            descriptor,
            fcntl.F_OFD_SETLK,
            struct.pack("hhqqi4x", fcntl.F_WRLCK, os.SEEK_CUR, 0, nbytes, 0),
        )
    except BlockingIOError as error:
        raise PermissionError(13, "Permission denied") from error


def on_windows(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The module as Windows would import it."""
    monkeypatch.setitem(sys.modules, "msvcrt", SimpleNamespace(locking=locking, LK_NBLCK=LK_NBLCK))
    monkeypatch.setitem(sys.modules, "fcntl", None)
    monkeypatch.setattr(sys, "platform", "win32")
    monkeypatch.setattr(
        os, "kill", lambda *_: pytest.fail("os.kill with 0 sends Ctrl-C on Windows")
    )
    spec = importlib.util.spec_from_file_location("windows_lock", lock.__file__)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(params=["linux", "windows"])
def module(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    return lock if request.param == "linux" else on_windows(monkeypatch)


def test_only_one_holds_a_run(module: ModuleType, tmp_path: Path) -> None:
    told = f"is being written by process {os.getpid()} on "
    with module.locked(tmp_path), pytest.raises(RunError, match=told), module.locked(tmp_path):
        pass
    with module.locked(tmp_path):
        pass


@pytest.mark.parametrize("link", ["symbolic", "hard"])
def test_a_lock_that_is_another_file_of_the_users_stays_as_it_is(
    module: ModuleType, tmp_path: Path, link: str
) -> None:
    thesis = tmp_path / "thesis.txt"
    run = tmp_path / "run"
    thesis.write_text("years of work")
    run.mkdir()
    (
        (run / lock.LOCK).symlink_to(thesis)
        if link == "symbolic"
        else (run / lock.LOCK).hardlink_to(thesis)
    )
    with (
        pytest.raises(RunError, match=r"it is a link|is not a lock that procsnake wrote"),
        module.locked(run),
    ):
        pass
    assert thesis.read_text() == "years of work"


def test_a_lock_that_leads_to_nothing_makes_no_file(tmp_path: Path) -> None:
    (tmp_path / lock.LOCK).symlink_to(tmp_path / "new")
    with pytest.raises(RunError, match="it is a link"), lock.locked(tmp_path):
        pass
    assert not (tmp_path / "new").exists()


def test_a_pipe_is_no_lock(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / lock.LOCK)
    with pytest.raises(RunError, match="not a regular file"), lock.locked(tmp_path):
        pass


def test_what_a_dead_process_left_here_is_no_lock(module: ModuleType, tmp_path: Path) -> None:
    (tmp_path / lock.LOCK).write_text(f'{{"pid": 99999999, "host": "{lock.socket.gethostname()}"}}')
    with module.locked(tmp_path):
        pass


def test_a_run_of_another_machine_is_told(module: ModuleType, tmp_path: Path) -> None:
    (tmp_path / lock.LOCK).write_text('{"pid": 1, "host": "elsewhere"}')
    with (
        pytest.raises(RunError, match="last written by process 1 on elsewhere"),
        module.locked(tmp_path),
    ):
        pass
