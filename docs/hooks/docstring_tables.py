"""Turns tables in docstrings into Markdown's form. In docstrings they are drawn with rows of =,
which read well in `help()`. mkdocstrings calls this.
"""

from __future__ import annotations

import re
from typing import Any

from griffe import Extension, Object

_TABLE = re.compile(r"^( *=+(?: =+)+)$\n(.*?)^\1$(?:\n(.*?)^\1$)?", re.MULTILINE | re.DOTALL)


class DocstringTables(Extension):
    """Rewrites the tables in all docstrings."""

    def on_object(self, *, obj: Object, **_: Any) -> None:
        """Rewrite the tables in the docstring of one module, class, function or attribute."""
        if obj.docstring:
            obj.docstring.value = with_bars(obj.docstring.value)


def with_bars(text: str) -> str:
    """Return a docstring with its tables in Markdown's form. A table without a head gets an empty
    one.
    """
    return _TABLE.sub(_as_markdown, text)


def _as_markdown(match: re.Match[str]) -> str:
    rule, head, body = match.groups()
    if not body:
        body = head
        head = ""
    starts = [column.start() for column in re.finditer("=+", rule)]
    rows = [_cells(head, starts), ["---"] * len(starts)]
    for line in body.rstrip("\n").split("\n"):
        cells = _cells(line, starts)
        if cells[0]:
            rows.append(cells)
        else:  # A row goes on in the next line.
            rows[-1] = [f"{before} {after}".strip() for before, after in zip(rows[-1], cells)]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def _cells(line: str, starts: list[int]) -> list[str]:
    return [line[start:end].strip() for start, end in zip(starts, [*starts[1:], None])]
