"""Makes a page of each notebook, from its `py:percent` script and the kept outputs of its cells.
MkDocs calls this.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jupytext
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import Files
from notebook_outputs import code_hash, read
from page_text import add_page

NOTEBOOKS = Path(__file__).parents[2] / "notebooks"
NOTE = """\
!!! note
    This page is the notebook `notebooks/{name}.ipynb`. {outputs} To run it, open it in Jupyter in a
    clone of the repository: `pip install jupyterlab`, then `jupyter lab notebooks/{name}.ipynb`. On
    [Colab, Kaggle and SageMaker Studio](../hosted-notebooks.md) its first cell installs procsnake.
"""
IN_MINIATURE = (
    "Its outputs are of a run in miniature, with `FAST=1`, which is too short for some of what the"
    " text says."
)
IN_FULL = "Its outputs are of a run of {minutes:.0f} min on two shared cores."
NO_OUTPUTS = "It is shown without what its cells print."


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages, as `notebooks/NAME.md`."""
    for script in sorted(NOTEBOOKS.glob("*.py")):
        add_page(files, config, f"notebooks/{script.stem}.md", page(script))
    return files


def page(script: Path) -> str:
    """Return the Markdown of a notebook, which begins with its title."""
    first, *rest = jupytext.read(script, fmt="py:percent").cells
    title, _, more = first.source.partition("\n")
    kept = read(script.stem)
    outputs = {cell["code"]: _output(cell) for cell in kept["cells"]}
    note = NOTE.format(name=script.stem, outputs=_about(kept))
    return "\n\n".join([title, note, more.strip(), *(_in_markdown(cell, outputs) for cell in rest)])


def _about(kept: dict[str, Any]) -> str:
    if not kept["cells"]:
        return NO_OUTPUTS
    return IN_MINIATURE if kept["fast"] else IN_FULL.format(minutes=max(1, kept["minutes"]))


def _in_markdown(cell: dict[str, str], outputs: dict[str, str]) -> str:
    if cell["cell_type"] == "markdown":
        return cell["source"]
    code = f"```python\n{cell['source']}\n```"
    return f"{code}\n\n{outputs.get(code_hash(cell['source']), '')}"


def _output(cell: dict[str, Any]) -> str:
    text = f"````text\n{cell['text']}\n````" if cell["text"] else ""
    pictures = [
        f"![What the cell above draws](../pictures/notebooks/{name})" for name in cell["pictures"]
    ]
    return "\n\n".join([text, *pictures])
