"""Gives the site the colours and the logo of the viewer and of reports, and weighs its search.

MkDocs calls this."""

from __future__ import annotations

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

from agents.measure.pages import logo
from envs.common.palette import declarations

_SEARCH_WEIGHTS = {"lab": 0.1, "api": 0.5}
"""By folder, beside the users' pages' 1."""


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add `palette.css` and `logo.svg`."""
    light, dark = (declarations(is_dark=is_dark) for is_dark in (False, True))
    styles = f':root {{ {light} }}\n[data-md-color-scheme="slate"] {{ {dark} }}\n'
    for name, content in (("palette.css", styles), ("logo.svg", logo())):
        files.append(File.generated(config, name, content=content))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Let a search find users' pages before the laboratory and the API."""
    weight = _SEARCH_WEIGHTS.get(page.file.src_uri.partition("/")[0])
    if weight is not None:
        page.meta.setdefault("search", {"boost": weight})
    return markdown
