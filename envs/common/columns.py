"""Text in columns and numbers of things, for what commands print."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from envs.common.printable import printable

_NUMBER = re.compile(r"[-+−]?[\d,]*\.?\d+(e[-+]?\d+)?%?|[-–?†]?")


def in_columns(
    rows: Iterable[Sequence[str]], heads: Sequence[str] = (), *, indent: str = ""
) -> str:
    """Return the rows, each of as many cells, as lines whose columns are as wide as their widest
    cell.

    A column of numbers stands on the right, any other on the left. `heads` name the columns in a
    line above. Cells may be strangers' texts: what a terminal would obey is escaped."""
    cells = [[printable(cell) for cell in row] for row in rows]
    right = [all(_NUMBER.fullmatch(cell) for cell in column) for column in zip(*cells, strict=True)]
    lines = [list(heads), *cells] if heads else cells
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join(indent + _line(line, widths, right or [False] * len(widths)) for line in lines)


def _line(cells: Sequence[str], widths: Sequence[int], right: Sequence[bool]) -> str:
    placed = (
        cell.rjust(width) if on_right else cell.ljust(width)
        for cell, width, on_right in zip(cells, widths, right, strict=True)
    )
    return "  ".join(placed).rstrip()


def counted(number: int, thing: str) -> str:
    """Return "1 seed", "2 seeds": a number of things whose plural has an s."""
    if number == 1:
        return f"{number} {thing}"
    return f"{number} {thing}s"
