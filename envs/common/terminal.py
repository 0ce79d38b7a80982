"""Text and pictures in a terminal, some of them redrawn in place."""

from __future__ import annotations

import os
import shutil
import sys
import time
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from rich.console import Console
    from rich.live import Live
    from typing_extensions import Self


def wants_color() -> bool:
    """Whether pictures on stdout should be in colour: on a terminal, unless NO_COLOR is set
    (https://no-color.org).
    """
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR")


def columns() -> int | None:
    """Return how many characters wide pictures on stdout may be; None without a terminal."""
    if sys.stdout.isatty():
        return shutil.get_terminal_size().columns
    return None


def text_console(stream: TextIO, *, quiet: bool = False) -> Console:
    """Return Rich's console for `stream`. It redraws text only on a terminal.

    Left alone, Rich would turn each line into an HTML box in a notebook, which is cut at its edge.
    And because Jupyter sets FORCE_COLOR, Rich would take a pipe for a terminal."""
    from rich.console import Console

    return Console(
        file=stream,
        highlight=False,
        quiet=quiet,
        force_jupyter=False,
        force_terminal=stream.isatty(),
    )


class Redrawn:
    """A context manager for text on a terminal that each `show` replaces. The text is cut at the
    terminal's edges.

    `live` is False where nothing can be redrawn; `show` then prints nothing. The last text stays
    when the context ends."""

    def __init__(self, stream: TextIO) -> None:
        from rich.live import Live

        console = text_console(stream)
        self.live = console.is_terminal and not console.is_dumb_terminal
        # What others print to a file stays there, and isn't drawn above the text.
        with_stdout = sys.stdout.isatty()
        self._live: Live | None = None
        if self.live:
            self._live = Live(console=console, auto_refresh=False, redirect_stdout=with_stdout)

    def __enter__(self) -> Redrawn:
        return self

    def __exit__(self, *_: object) -> None:
        if self._live:
            self._live.stop()

    def show(self, text: str) -> None:
        """Replace the text that is shown. It may have escape sequences for colours."""
        from rich.text import Text

        if self._live:
            # Only now: where nothing is shown, no empty line is left.
            self._live.start()
            self._live.update(Text.from_ansi(text, no_wrap=True, overflow="crop"), refresh=True)


class Progress:
    """A context manager that shows progress on stderr if the work takes more than two seconds.

    On a terminal the line is redrawn. Elsewhere a line is printed now and then, or none if `lines`
    is False."""

    def __init__(self, *, lines: bool = True) -> None:
        self._lines = lines
        self._began = time.monotonic()
        self._told = 0.0
        self._screen = Redrawn(sys.stderr)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._screen.__exit__()

    def show(self, text: str) -> None:
        """Show the progress, with the seconds taken so far."""
        now = time.monotonic()
        if now - self._began < _QUIET_S:
            return
        line = f"{text}, {now - self._began:.0f} s"
        self._screen.show(line)
        if self._lines and not self._screen.live and now - self._told > _BETWEEN_LINES_S:
            self._told = now
            print(line, file=sys.stderr, flush=True)


_QUIET_S = 2.0


_BETWEEN_LINES_S = 5.0


def draw_all(pictures: Iterable[str], delay: float | Callable[[], float]) -> None:
    """Draw each board over the last one, `delay` seconds apart. Without a terminal, print only the
    last one.

    If `delay` is a function, it is called after each board.
    """
    picture = ""
    with Redrawn(sys.stdout) as screen:
        for picture in pictures:
            screen.show(picture)
            if screen.live:
                time.sleep(delay() if callable(delay) else delay)
    if not screen.live:
        print(picture)
