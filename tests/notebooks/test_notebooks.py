"""Every notebook runs from top to bottom with FAST, holds no outputs, and its .ipynb says what its .py says."""

from __future__ import annotations

import os
from pathlib import Path

import jupytext
import pytest
from nbclient import NotebookClient

REPOSITORY = Path(__file__).parents[2]
NOTEBOOKS = sorted((REPOSITORY / "notebooks").glob("*.py"))
pytestmark = pytest.mark.filterwarnings("default")  # of Jupyter's own libraries


def by_name(path):
    return path.stem


def test_there_are_seven():
    assert [path.stem[0] for path in NOTEBOOKS] == list("1234567")


@pytest.mark.parametrize("source", NOTEBOOKS, ids=by_name)
def test_the_pair_is_in_step_and_holds_no_outputs(source):
    written, stored = jupytext.read(source), jupytext.read(source.with_suffix(".ipynb"))
    assert [(cell.cell_type, cell.source) for cell in stored.cells] == [(cell.cell_type, cell.source) for cell in written.cells]
    assert not any(cell.get("outputs") or cell.get("execution_count") for cell in stored.cells)


@pytest.mark.long
@pytest.mark.parametrize("source", NOTEBOOKS, ids=by_name)
def test_runs_from_top_to_bottom(source, tmp_path, monkeypatch):
    monkeypatch.setenv("FAST", "1")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(REPOSITORY), os.environ.get("PYTHONPATH", "")]))
    notebook = jupytext.read(source)
    NotebookClient(notebook, timeout=300, kernel_name="python3", resources={"metadata": {"path": str(tmp_path)}}).execute()
    outputs = [output for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs]
    # JupyterLab removes films, SVG and much else from the HTML of a notebook that came from somewhere else.
    assert not any("text/html" in output.get("data", {}) for output in outputs)
    said = "".join(output.text for output in outputs if output.output_type == "stream" and output.name == "stderr")
    assert [line for line in said.splitlines() if not line.startswith("procsnake: compiling")] == []
    assert said.count("\n") <= 1
