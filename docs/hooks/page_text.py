"""Writes Markdown for the generated pages: tables, code, and text that isn't Markdown."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Sequence

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files


def add_page(files: Files, config: MkDocsConfig, name: str, text: str) -> None:
    """Add Markdown `text` to the site as the page `name`, without writing a file into `docs`.

    A file of that name is a stub, which tells readers of the repository what makes the page.
    """
    stub = files.get_file_from_path(name)
    if stub is not None:
        files.remove(stub)
    files.append(File.generated(config, name, content=text))


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a Markdown table of cells that are Markdown."""
    return "\n".join(map(_row, [head, ["---"] * len(head), *rows]))


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cell.replace('|', '&#124;') for cell in cells)} |"


def literal(text: str) -> str:
    """Return Markdown that shows `text` as it stands, except `names in backquotes`, which stay
    code.
    """
    parts = re.split(r"(`[^`]+`)", " ".join(text.split()))
    for place, part in enumerate(parts):
        is_code = part.startswith("`") and len(part) > 1
        if not is_code:
            parts[place] = _escaped(part)
    return "".join(parts)


def code(text: str) -> str:
    """Return Markdown that shows `text` as code, backquotes and bars included; "" for no text."""
    if not text:
        return ""
    return f"<code>{_escaped(text)}</code>"


def _escaped(text: str) -> str:
    return re.sub(r"([\\`*_\[\]#])", r"\\\1", html.escape(text, quote=False))
