"""What the generated pages share: tables, text that isn't Markdown, and how a page gets into the
site.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Sequence

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files


def add_page(files: Files, config: MkDocsConfig, name: str, text: str) -> None:
    """Have the site show `text`, Markdown, as the page `name`. Nothing is written beside the pages
    that lie in `docs`.
    """
    files.append(File.generated(config, name, content=text))


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a Markdown table of cells that are Markdown."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(
        f"| {' | '.join(cell.replace('|', '&#124;') for cell in line)} |" for line in lines
    )


def literal(text: str) -> str:
    """Return Markdown that shows `text` as it stands, but for `names in backquotes`, which stay
    code.
    """
    parts = re.split(r"(`[^`]+`)", " ".join(text.split()))
    return "".join(
        part if part.startswith("`") and len(part) > 1 else _escaped(part) for part in parts
    )


def code(text: str) -> str:
    """Return Markdown that shows `text` as code; nothing for no text. Backquotes and bars in it are
    shown, too.
    """
    return f"<code>{_escaped(text)}</code>" if text else ""


def _escaped(text: str) -> str:
    return re.sub(r"([\\`*_\[\]#])", r"\\\1", html.escape(text, quote=False))
