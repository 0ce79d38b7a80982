"""Gives the site the colours and the logo of the viewer and of reports. MkDocs calls this."""

from __future__ import annotations

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

from agents.measure.pages import logo
from envs.common.palette import declarations


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add `palette.css` and `logo.svg`."""
    light, dark = (declarations(is_dark=is_dark) for is_dark in (False, True))
    styles = f':root {{ {light} }}\n[data-md-color-scheme="slate"] {{ {dark} }}\n'
    for name, content in (("palette.css", styles), ("logo.svg", logo())):
        files.append(File.generated(config, name, content=content))
    return files
