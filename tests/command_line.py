"""Runs `procsnake` in this process, as a test would type it."""

from __future__ import annotations

import io
import shlex

import pytest

import procsnake


class Terminal(io.StringIO):
    """A stream that says that it is a terminal."""

    def isatty(self) -> bool:
        return True


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    """Return the exit code and what was printed on stdout and on stderr."""
    try:
        code = procsnake.main(arguments)
    except SystemExit as ending:
        code = ending.code
    printed = capsys.readouterr()
    return code, printed.out, printed.err


def typed(capsys: pytest.CaptureFixture[str], line: str) -> tuple[int, str, str]:
    """As `run`, with the words of a line as a shell splits them."""
    return run(capsys, *shlex.split(line))
