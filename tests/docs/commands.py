"""The `procsnake …` commands of README and docs: found in their code blocks, one a line."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

REPOSITORY = Path(__file__).parents[2]
DOCS = REPOSITORY / "docs"
PAGES = (REPOSITORY / "README.md", *sorted(DOCS.glob("*.md")), *sorted(DOCS.glob("lab/*.md")))
_BLOCK = re.compile(r"^( *)```(\w*)[^\n]*\n(.*?)^\1```$", re.MULTILINE | re.DOTALL)
_SHELL = ("", "bash", "sh", "console")
_BEFORE = re.compile(r"^([A-Z_][A-Z_0-9]*=\S* )*(\.venv[-\w]*/bin/(python -m )?)?(?=procsnake )")
"""What may stand before the command: variables, and where it was installed."""


@dataclass(frozen=True)
class Command:
    """One of them, as a reader would copy it: the line, with the explanation behind its #."""

    page: str
    text: str

    @cached_property
    def words(self) -> list[str]:
        """What a shell makes of it, without `procsnake`. $(…) stays one word."""
        return shlex.split(
            re.sub(r'"?\$\([^)]*\)"?', "0123456789abcdef", self.text), comments=True
        )[1:]

    def __str__(self) -> str:
        return f"{self.page}: {self.text}"


def commands() -> list[Command]:
    """All of them, in order, each once."""
    found = [
        Command(page.relative_to(DOCS).as_posix() if DOCS in page.parents else page.name, text)
        for page in PAGES
        for _, kind, block in _BLOCK.findall(page.read_text(encoding="utf-8"))
        if kind in _SHELL
        for text in _of(block)
    ]
    return list(dict.fromkeys(found))


def _of(block: str) -> list[str]:
    lines = [_BEFORE.sub("", line.strip()) for line in block.replace("\\\n", " ").splitlines()]
    return [
        re.split(r"\s+&&\s+|\s+\|\s+|\s+&$", line)[0]
        for line in lines
        if line.startswith("procsnake ")
    ]
