"""Every notebook runs from top to bottom with FAST, holds no outputs, and its .ipynb says what its
.py says.

Its first cell installs procsnake where it isn't. Here a stand-in of pip tells what it was asked
for, and installs nothing."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import jupytext
import pytest
from nbclient import NotebookClient
from packaging.requirements import Requirement

from serve.deploy.lock_requirements import setup_keywords

REPOSITORY = Path(__file__).parents[2]
NOTEBOOKS = sorted((REPOSITORY / "notebooks").glob("*.py"))
pytestmark = pytest.mark.filterwarnings("default")  # of Jupyter's own libraries


def by_name(path):
    return path.stem


def test_there_are_eight():
    assert [path.stem[0] for path in NOTEBOOKS] == list("12345678")


@pytest.mark.parametrize("source", NOTEBOOKS, ids=by_name)
def test_the_pair_is_in_step_and_holds_no_outputs(source):
    written = jupytext.read(source)
    stored = jupytext.read(source.with_suffix(".ipynb"))
    assert [(cell.cell_type, cell.source) for cell in stored.cells] == [
        (cell.cell_type, cell.source) for cell in written.cells
    ]
    assert not any(cell.get("outputs") or cell.get("execution_count") for cell in stored.cells)


def first_cell(source: Path) -> str:
    return next(cell.source for cell in jupytext.read(source).cells if cell.cell_type == "code")


def test_the_first_cells_are_one_but_for_what_a_notebook_needs():
    """The extras, and one more line for Procgen."""
    bare = {
        re.sub(r"\n *subprocess.*--no-deps.*|(?<=procsnake\[)[^]]*", "", first_cell(source))
        for source in NOTEBOOKS
    }
    assert len(bare) == 1
    extras = {
        extra
        for source in NOTEBOOKS
        for extra in re.findall(r"procsnake\[(.*?)\]", first_cell(source))[0].split(",")
    }
    assert extras <= set(setup_keywords()["extras_require"])


_PIP = "import json, os, sys; print(json.dumps(sys.argv[1:]), file=open(os.environ['ASKED'], 'a'))"


def asked_of_pip(
    source: Path, folder: Path, *, numpy: str | None, **variables: str
) -> list[list[str]]:
    """Run a notebook's first cell where there is nothing but a NumPy, and return the arguments of
    each call of pip.
    """
    (folder / "pip.py").write_text(_PIP)
    if numpy:
        (folder / "numpy.py").touch()
        (folder / f"numpy-{numpy}.dist-info").mkdir()
        (folder / f"numpy-{numpy}.dist-info" / "METADATA").write_text(
            f"Metadata-Version: 2.1\nName: numpy\nVersion: {numpy}\n"
        )
    environment = {
        "PYTHONPATH": str(folder),
        "ASKED": str(folder / "asked"),
        "PATH": os.environ["PATH"],
        **variables,
    }
    subprocess.run(
        [sys.executable, "-S", "-c", first_cell(source)],
        cwd=folder,
        env=environment,
        check=True,
        timeout=60,
    )
    asked = folder / "asked"
    return [json.loads(line) for line in asked.read_text().splitlines()] if asked.exists() else []


@pytest.mark.parametrize("source", NOTEBOOKS, ids=by_name)
def test_the_first_cell_installs_and_holds_numpy(source, tmp_path):
    command, *procgen = asked_of_pip(source, tmp_path, numpy="2.0.2")
    assert command[0] == "install"
    wanted, numpy = map(Requirement, command[1:])
    assert (wanted.name, wanted.url, str(numpy)) == ("procsnake", None, "numpy==2.0.2")
    assert [line[:2] for line in procgen] == (
        [["install", "--no-deps"]] if source.stem[0] in "46" else []
    )


@pytest.mark.parametrize("source", NOTEBOOKS, ids=by_name)
def test_nothing_that_a_first_cell_asks_for_needs_numpy_1(source, tmp_path):
    """MXNet does, and the Procgen of the extra `procgen`."""
    extras = Requirement(asked_of_pip(source, tmp_path, numpy=None)[0][1]).extras
    said = setup_keywords()["extras_require"]
    names = {Requirement(text).name for extra in extras for text in said[extra]}
    assert not names & {"mxnet", "gym3", "procgen", "procgen-mirror"}


def test_procgen_is_the_one_of_the_extra(tmp_path):
    (source,) = (path for path in NOTEBOOKS if path.stem[0] == "4")
    _, (_, _, *pinned) = asked_of_pip(source, tmp_path, numpy="2.0.2")
    procgen = [text.partition(";")[0] for text in setup_keywords()["extras_require"]["procgen"]]
    assert pinned[0].startswith("gym3==")
    assert pinned[1] in procgen


def test_the_package_can_come_from_elsewhere(tmp_path):
    ((_, wanted),) = asked_of_pip(
        NOTEBOOKS[0], tmp_path, numpy=None, PROCSNAKE_SOURCE="file:///a/procsnake.whl"
    )
    assert Requirement(wanted).url == "file:///a/procsnake.whl"


@pytest.mark.parametrize(
    "variables", [{}, {"PROCSNAKE_SOURCE": "file:///a/procsnake.whl"}], ids=["", "named"]
)
def test_in_a_clone_the_clone_is_installed(tmp_path, variables):
    """Nobody's package of that name from an index. A source that is named comes first."""
    (tmp_path / "a clone" / "notebooks").mkdir(parents=True)
    (tmp_path / "a clone" / "procsnake_packages.py").touch()
    ((_, wanted),) = asked_of_pip(
        NOTEBOOKS[0], tmp_path / "a clone" / "notebooks", numpy=None, **variables
    )
    assert Requirement(wanted).url == variables.get(
        "PROCSNAKE_SOURCE", (tmp_path / "a clone").as_uri()
    )


def test_the_fifth_proposes_what_the_stack_was_given(tmp_path, monkeypatch):
    stack = (REPOSITORY / "train" / "sagemaker" / "stack.yaml").read_text()
    written = re.findall(r"^ +(PROCSNAKE_\w+)=\$\{", stack, re.MULTILINE)
    (source,) = (path for path in NOTEBOOKS if path.stem[0] == "5")
    (reading,) = (
        cell.source
        for cell in jupytext.read(source).cells
        if 'Path("../../procsnake.env")' in cell.source
    )
    (tmp_path / "clone" / "notebooks").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "clone" / "notebooks")
    alone = {"Path": Path}
    there = {"Path": Path}
    exec(reading, alone)
    (tmp_path / "procsnake.env").write_text("".join(f"{name}=my-{name}\n" for name in written))
    exec(reading, there)
    names = ("STACK", "CPU", "GPU")
    assert [alone[name] for name in names] == ["NAME", "ml.c5.4xlarge", "ml.g5.2xlarge"]
    assert sorted(there[name] for name in names) == sorted(f"my-{name}" for name in written)


def test_where_procsnake_is_already_nothing_is_installed(tmp_path):
    (tmp_path / "procsnake").mkdir()
    (tmp_path / "procsnake" / "__init__.py").touch()
    assert asked_of_pip(NOTEBOOKS[0], tmp_path, numpy="2.0.2") == []


@pytest.mark.long
@pytest.mark.parametrize("source", NOTEBOOKS, ids=by_name)
def test_runs_from_top_to_bottom(source, tmp_path, monkeypatch):
    monkeypatch.setenv("FAST", "1")
    monkeypatch.setenv(
        "PYTHONPATH", os.pathsep.join([str(REPOSITORY), os.environ.get("PYTHONPATH", "")])
    )
    notebook = jupytext.read(source)
    NotebookClient(
        notebook,
        timeout=300,
        kernel_name="python3",
        resources={"metadata": {"path": str(tmp_path)}},
    ).execute()
    outputs = [
        output for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs
    ]
    # JupyterLab removes films, SVG and much else from the HTML of a notebook that came from
    # somewhere else.
    assert not any("text/html" in output.get("data", {}) for output in outputs)
    said = "".join(
        output.text
        for output in outputs
        if output.output_type == "stream" and output.name == "stderr"
    )
    assert [line for line in said.splitlines() if not line.startswith("procsnake: compiling")] == []
    assert said.count("\n") <= 1
