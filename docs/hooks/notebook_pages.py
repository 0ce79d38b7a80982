"""Makes a page of each notebook, from its `py:percent` script, and so without what its cells print.
MkDocs calls this.
"""

from __future__ import annotations

from pathlib import Path

import jupytext
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import Files
from page_text import add_page

NOTEBOOKS = Path(__file__).parents[2] / "notebooks"
NOTE = """\
!!! note
    This page is the notebook `notebooks/{name}.ipynb` as text, without what its cells print. To run
    it, open it in Jupyter in a clone of the repository: `pip install jupyterlab`, then
    `jupyter lab notebooks/{name}.ipynb`. On
    [Colab, Kaggle and SageMaker Studio](../hosted-notebooks.md) its first cell installs procsnake.
"""


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages, as `notebooks/NAME.md`."""
    for script in sorted(NOTEBOOKS.glob("*.py")):
        add_page(files, config, f"notebooks/{script.stem}.md", page(script))
    return files


def page(script: Path) -> str:
    """Return the Markdown of a notebook, which begins with its title."""
    first, *rest = jupytext.read(script, fmt="py:percent").cells
    title, _, more = first.source.partition("\n")
    return "\n\n".join(
        [title, NOTE.format(name=script.stem), more.strip(), *map(_in_markdown, rest)]
    )


def _in_markdown(cell: dict[str, str]) -> str:
    if cell["cell_type"] == "markdown":
        return cell["source"]
    return f"```python\n{cell['source']}\n```"
