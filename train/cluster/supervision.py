"""The training as a process of the head.

Runs it, passes on its output, and asks it to save when something is wrong.
"""

from __future__ import annotations

import collections
import math
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from train.cluster.control import ControlServer
from train.cluster.hosts import ClusterError
from train.cluster.memory import evidence, oom_kills
from train.cluster.node_watch import NodeWatch

TERMINATED = 128 + signal.SIGTERM
"""The exit code of a run that was stopped by SIGTERM."""
_LAST_WORDS = 30


class Supervision:
    """Runs the training on the head."""

    def __init__(
        self,
        command: Sequence[str],
        environment: Mapping[str, str],
        control: ControlServer,
        node: NodeWatch,
        say: Callable[[str], None],
    ) -> None:
        """Start the command. `environment` is added to this process's own variables."""
        self._control = control
        self._node = node
        self._say = say
        self._kills_before = oom_kills()
        self._trainer = subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="backslashreplace",
            bufsize=1,
            env={**os.environ, **environment},
        )
        self._words: collections.deque[str] = collections.deque(maxlen=_LAST_WORDS)
        self._echo = threading.Thread(
            target=_echo, args=(self._trainer.stdout, self._words), daemon=True
        )
        self._echo.start()
        self._ends_at = math.inf
        self._was_killed = False

    def run(self, stop: threading.Event, *, grace_seconds: float, lost_seconds: float) -> int:
        """Wait until the training ends, and return the exit code.

        When `stop` is set, and when a machine or this machine's Ray node is lost, the training is
        asked to save and end. It is killed if that takes longer than `grace_seconds` or
        `lost_seconds`. Raises `ClusterError` if a machine or the node was lost, and with the end of
        the training's output if it fails."""
        trouble = ""
        is_stopped = False
        while self._trainer.poll() is None:
            if stop.is_set() and not is_stopped:
                is_stopped = True
                self._ask_to_end("SIGTERM", grace_seconds)
            if not trouble and (trouble := self._trouble()):
                self._ask_to_end(trouble, lost_seconds)
            self._kill_if_late()
            time.sleep(0.1)
        self._echo.join(5.0)
        self._say(f"the training ended with {self._trainer.returncode}")
        if is_stopped and not trouble:
            return TERMINATED
        if trouble := trouble or self._trouble():
            raise ClusterError(f"{trouble}; start again from the last checkpoint")
        if self._trainer.returncode:
            raise ClusterError(
                f"the training ended with {self._cause()}: {''.join(self._words)[-900:].strip()}"
            )
        return 0

    def _trouble(self) -> str:
        if lost := self._control.lost():
            return f"lost the machine {', '.join(lost)}"
        return self._node.died()

    def _ask_to_end(self, reason: str, seconds: float) -> None:
        self._say(f"{reason}: the trainer is asked to save and end")
        if self._ends_at == math.inf:
            # A second signal would end it without saving.
            self._trainer.terminate()
        self._ends_at = min(self._ends_at, time.monotonic() + seconds)

    def _kill_if_late(self) -> None:
        if time.monotonic() > self._ends_at and not self._was_killed:
            self._say("the trainer did not end in time and is killed")
            self._trainer.kill()
            self._was_killed = True

    def _cause(self) -> str:
        code = self._trainer.returncode
        if code == -signal.SIGKILL:
            return f"{code} ({evidence(self._kills_before)})"
        return str(code)


def _echo(stream: Any, words: collections.deque[str]) -> None:
    with stream:
        for line in stream:
            words.append(line)
            # If nobody read on, the training would end at its next word. A log whose disk is full
            # is no reason for that.
            with suppress(OSError):
                sys.stdout.write(line)
                sys.stdout.flush()
