"""Reads single keys from a terminal, as names of actions."""

from __future__ import annotations

import os
import re
import select
import signal
import socket
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from types import TracebackType

from envs.battlesnake.state import MOVE_NAMES
from envs.common.errors import ConfigError

GO_ON = "go on"
HINT = "hint"
UNDO = "undo"
NEW = "new"
QUIT = "quit"
KEYS = {
    **dict(zip("wsad", MOVE_NAMES, strict=True)),
    **dict(zip(("\x1b[A", "\x1b[B", "\x1b[D", "\x1b[C"), MOVE_NAMES, strict=True)),
    **dict(zip(("\x1bOA", "\x1bOB", "\x1bOD", "\x1bOC"), MOVE_NAMES, strict=True)),
    " ": GO_ON,
    "h": HINT,
    "u": UNDO,
    "n": NEW,
    "q": QUIT,
    "\x04": QUIT,
}
"""What a key sends, and what it does. Arrows are sent in one of two ways, as the terminal is
set.
"""
_KEY = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|O[@-~])|.", re.DOTALL)
"""One key: an escape sequence (ECMA-48), of which no letter may be taken for a key, or else a
letter.
"""
_BEGUN = re.compile(r"\x1b(?:\[[0-?]*[ -/]*|O)?")
"""The beginning of an escape sequence, or the Escape key alone. The rest comes at once, if not with
the same bytes.
"""
_MOST_BYTES = 64
_REST_S = 0.05


class Keyboard:
    """A context manager in which standard input gives single keys, which aren't shown.

    Raises `ConfigError` if standard input isn't a terminal, or the system has no POSIX terminals.
    """

    def __enter__(self) -> Keyboard:
        try:
            import termios
            import tty
        except ModuleNotFoundError as error:
            raise ConfigError(
                "the game in the terminal needs a POSIX terminal; leave out --terminal"
            ) from error
        if not sys.stdin.isatty():
            raise ConfigError(
                "the game in the terminal needs a keyboard, but standard input is not a terminal;"
                " try --browser"
            )
        self._file = sys.stdin.fileno()
        self._unread = ""
        with ExitStack() as stack:
            self._signals = stack.enter_context(_signals())
            stack.callback(
                termios.tcsetattr, self._file, termios.TCSADRAIN, termios.tcgetattr(self._file)
            )
            tty.setcbreak(self._file)
            self._opened = stack.pop_all()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._opened.close()

    def read(self, timeout: float | None = None) -> str | None:
        """Return the next key's action; None if `timeout` seconds pass first. Keys without an
        action are ignored.
        """
        until = time.monotonic() + timeout if timeout is not None else None
        while True:
            if not self._unread:
                if not self._wait(until):
                    return None
                self._unread = self._input()
            while (
                _BEGUN.fullmatch(self._unread) and select.select([self._file], [], [], _REST_S)[0]
            ):
                self._unread += self._input()
            action, self._unread = next_action(self._unread)
            if action is not None:
                return action

    def _wait(self, until: float | None) -> bool:
        """Wait for a key. Returns whether one is pressed before `until`, by `time.monotonic()`."""
        while True:
            rest = max(0.0, until - time.monotonic()) if until is not None else None
            ready = select.select([self._file, self._signals], [], [], rest)[0]
            if self._signals not in ready:
                return bool(ready)
            self._signals.recv(_MOST_BYTES)

    def _input(self) -> str:
        """What was typed; the end of the input is Ctrl-D."""
        content = os.read(self._file, _MOST_BYTES)
        if not content:
            return "\x04"
        return content.decode("utf-8", "replace")


@contextmanager
def _signals() -> Iterator[socket.socket]:
    """Open what every signal makes readable.

    A signal that comes in the last microseconds before `select` waits doesn't end the waiting:
    Ctrl-C would be heard only with the next key."""
    reader, writer = socket.socketpair()
    with reader, writer:
        writer.setblocking(False)
        before = signal.set_wakeup_fd(writer.fileno(), warn_on_full_buffer=False)
        try:
            yield reader
        finally:
            signal.set_wakeup_fd(before)


def next_action(text: str) -> tuple[str | None, str]:
    """Return the action of a text's first key, None for a key without one, and the rest of the
    text.
    """
    key = _KEY.match(text)[0]  # type: ignore[index]  # any letter is a key
    rest = text[len(key) :]
    if len(key) == 1:
        return KEYS.get(key.lower()), rest
    return KEYS.get(key), rest
