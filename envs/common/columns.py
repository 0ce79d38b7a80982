"""Text in columns and numbers of things, for what commands print."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from envs.common.strangers.printable import printable

_NUMBER = re.compile(r"[-+−]?[\d,]*\.?\d+(e[-+]?\d+)?%?|[-–?†]?")


def in_columns(
    rows: Iterable[Sequence[str]], heads: Sequence[str] = (), *, indent: str = ""
) -> str:
    """Return the rows, each of as many cells, as lines whose columns are as wide as their widest
    cell.

    Columns of numbers are aligned right, others left. `heads` name the columns in a first line.
    Cells may be untrusted text: terminal control characters are escaped."""
    lines = [list(map(printable, row)) for row in rows]
    is_right = [all(map(_NUMBER.fullmatch, column)) for column in zip(*lines, strict=True)]
    if heads:
        lines.insert(0, list(heads))
        is_right = is_right or [False] * len(heads)
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join(indent + _line(line, widths, is_right) for line in lines)


def _line(cells: Sequence[str], widths: Sequence[int], is_right: Sequence[bool]) -> str:
    """Return one line, with each cell in its column's width, on the right or the left of it."""
    padded = []
    for cell, width, on_right in zip(cells, widths, is_right, strict=True):
        padded.append(cell.rjust(width) if on_right else cell.ljust(width))
    return "  ".join(padded).rstrip()


def counted(number: int, thing: str) -> str:
    """Return "1 seed", "2 seeds": a number of things whose plural has an s."""
    if number == 1:
        return f"{number} {thing}"
    return f"{number} {thing}s"
