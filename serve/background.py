"""Runs `procsnake serve` in the background, for notebooks and scripts."""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
import time
import weakref
from pathlib import Path
from types import TracebackType

from envs.common.errors import ProcsnakeError

_NAP_S = 0.05
_ANNOUNCEMENT = r"^serving .* at (http://\S+)"


class ServeError(ProcsnakeError):
    """A server ended, or didn't begin in time."""


class Background:
    """A running server. `url` answers when the constructor returns. `stop()`, or leaving a `with`
    block, ends it.

    `arguments` are those of `procsnake serve`, such as "flood", "--no-games". Without --port, any
    free port is taken. Raises `ServeError` with the end of the server's output if it ends, or if it
    doesn't answer within `patience_s` seconds."""

    def __init__(self, *arguments: str, patience_s: float = 300.0) -> None:
        # Of an option that is given twice the last one counts, in whatever form it is written.
        command = [
            sys.executable,
            "-u",
            "-m",
            "procsnake",
            "serve",
            "--port",
            "0",
            *map(str, arguments),
        ]
        self._folder = tempfile.TemporaryDirectory(prefix="procsnake-serve-")
        self.log = Path(self._folder.name) / "log.txt"
        with self.log.open("w") as log:
            self._process = subprocess.Popen(
                command, stdout=log, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL
            )
        weakref.finalize(self, self._process.terminate)  # also when the program that made it ends
        try:
            self.url = self._wait(time.monotonic() + patience_s)
        except BaseException:
            self.stop()
            raise

    def _wait(self, until: float) -> str:
        while time.monotonic() < until and self._process.poll() is None:
            announced = re.search(_ANNOUNCEMENT, self.log.read_text(), re.MULTILINE)
            if announced:
                return announced[1]
            time.sleep(_NAP_S)
        last = self.log.read_text().strip().splitlines()[-1:] or ["nothing"]
        raise ServeError(f"procsnake serve didn't begin to answer; it said: {last[0]}")

    def pids(self) -> list[int]:
        """Return the ids of the server's processes: the one that was started, and its children."""
        parent = self._process.pid
        return [
            parent,
            *map(int, Path(f"/proc/{parent}/task/{parent}/children").read_text().split()),
        ]

    def stop(self) -> None:
        """End the server and wait until it has ended. Its games are saved."""
        self._process.terminate()
        self._process.wait()
        self._folder.cleanup()

    def __enter__(self) -> Background:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()
