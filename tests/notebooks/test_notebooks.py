"""Every notebook runs from top to bottom with FAST, holds no outputs, and its .ipynb says what its
.py says.

Its first cell installs procsnake where it isn't. Here a stand-in of pip tells what it was asked
for, and installs nothing but links to procsnake."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterable
from importlib import metadata
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import jupytext
import packaging
import pytest
from packaging.requirements import Requirement

from procsnake import notebook as host
from procsnake.notebook import FOLDER, PROCGEN, missing, set_up
from serve.deploy.lock_requirements import setup_keywords
from tests.notebooks.running import execute

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


@pytest.mark.parametrize("source", NOTEBOOKS, ids=by_name)
def test_each_says_how_long_it_takes_and_what_comes_next(source):
    first, *_, last = jupytext.read(source).cells
    assert "**Time:**" in first.source
    assert re.search("^## Next$", last.source, re.MULTILINE)


def extras_of(source: Path) -> list[str]:
    return re.findall(r'set_up\("(.*?)"\)', first_cell(source))[0].split(",")


def test_the_first_cells_are_one_but_for_the_extras_and_short():
    bare = {re.sub(r'(?<=set_up\(").*?(?=")', "", first_cell(source)) for source in NOTEBOOKS}
    assert len(bare) == 1
    assert len(bare.pop().replace("\n\n", "\n").splitlines()) <= 12
    extras = {extra for source in NOTEBOOKS for extra in extras_of(source)}
    assert extras <= set(setup_keywords()["extras_require"])


_PIP = """import json, os, pathlib, sys
print(json.dumps(sys.argv[1:]), file=open(os.environ["ASKED"], "a"))
packages = pathlib.Path(__file__).parent
information = packages / "procsnake-0.1.0.dist-info"
if "--no-deps" in sys.argv and not information.exists():
    information.mkdir()
    (information / "METADATA").write_text(os.environ["METADATA"])
    for name in ("procsnake", "procsnake_packages.py"):
        (packages / name).symlink_to(f"{os.environ['REPOSITORY']}/{name}")
"""


def metadata_of(name: str, version: str, requires: Iterable[str] = ()) -> str:
    """What pip writes of an installed distribution for `importlib.metadata`."""
    lines = ["Metadata-Version: 2.1", f"Name: {name}", f"Version: {version}"]
    return "\n".join([*lines, *(f"Requires-Dist: {text}" for text in requires)]) + "\n"


def requirements() -> list[str]:
    """What a wheel of procsnake says that it requires."""
    return [
        *setup_keywords()["install_requires"],
        *(
            f"{text.partition(';')[0]}; extra == '{extra}'"
            for extra, texts in setup_keywords()["extras_require"].items()
            for text in texts
        ),
    ]


def asked_of_pip(
    source: Path, folder: Path, *, numpy: str | None, cwd: Path | None = None, **variables: str
) -> list[list[str]]:
    """Run a notebook's first cell where there are only `packaging` and perhaps a NumPy, and return
    the arguments of each call of pip.
    """
    packages = folder / "site-packages"
    packages.mkdir()
    (packages / "pip.py").write_text(_PIP)
    (packages / "packaging").symlink_to(Path(packaging.__file__).parent)
    if numpy:
        (packages / "numpy.py").touch()
        information = packages / f"numpy-{numpy}.dist-info"
        information.mkdir()
        (information / "METADATA").write_text(metadata_of("numpy", numpy))
    environment = {
        "PYTHONPATH": str(packages),
        "REPOSITORY": str(REPOSITORY),
        "METADATA": metadata_of("procsnake", "0.1.0", requirements()),
        "ASKED": str(folder / "asked"),
        "PATH": os.environ["PATH"],
        **variables,
    }
    subprocess.run(
        [sys.executable, "-S", "-c", first_cell(source)],
        cwd=cwd or folder,
        env=environment,
        check=True,
        timeout=60,
    )
    asked = folder / "asked"
    return [json.loads(line) for line in asked.read_text().splitlines()] if asked.exists() else []


def is_procgens(source: Path) -> bool:
    return source.stem[0] in "46"


@pytest.mark.parametrize("source", [NOTEBOOKS[0], NOTEBOOKS[3]], ids=by_name)
def test_the_first_cell_installs_and_holds_numpy(source, tmp_path):
    if is_procgens(source) and sys.version_info >= (3, 13):
        with pytest.raises(subprocess.CalledProcessError):
            asked_of_pip(source, tmp_path, numpy="2.0.2")
        return
    package, extras, *procgen = asked_of_pip(source, tmp_path, numpy="2.0.2")
    assert package == ["install", "--no-deps", "procsnake"]
    wanted, numpy = map(Requirement, extras[1:])
    assert (wanted.name, wanted.extras, str(wanted.specifier), str(numpy)) == (
        "procsnake",
        set(extras_of(source)),
        "==0.1.0",
        "numpy==2.0.2",
    )
    assert procgen == ([["install", "--no-deps", *PROCGEN]] if is_procgens(source) else [])


@pytest.mark.parametrize("source", NOTEBOOKS, ids=by_name)
def test_nothing_that_a_first_cell_asks_for_needs_numpy_1(source):
    """MXNet does, and the Procgen of the extra `procgen`."""
    said = setup_keywords()["extras_require"]
    names = {Requirement(text).name for extra in extras_of(source) for text in said[extra]}
    assert not names & {"mxnet", "gym3", "procgen", "procgen-mirror"}


def test_procgen_is_the_one_of_the_extra():
    procgen = [text.partition(";")[0] for text in setup_keywords()["extras_require"]["procgen"]]
    assert PROCGEN[0].startswith("gym3==")
    assert PROCGEN[1] in procgen


def test_the_package_can_come_from_elsewhere(tmp_path):
    package, _ = asked_of_pip(
        NOTEBOOKS[0], tmp_path, numpy=None, PROCSNAKE_SOURCE="file:///a/procsnake.whl"
    )
    assert package[-1] == "file:///a/procsnake.whl"


def clone(folder: Path) -> Path:
    """What a first cell and Python's imports see of a clone."""
    (folder / "notebooks").mkdir(parents=True)
    for name in ("procsnake", "procsnake_packages.py"):
        (folder / name).symlink_to(REPOSITORY / name)
    return folder


@pytest.mark.parametrize(
    ("where", "installed"), [("notebooks", ".."), (".", "."), ("..", "./procsnake")]
)
def test_in_a_clone_or_beside_it_the_clone_is_installed(tmp_path, where, installed):
    """Nobody's package of that name from an index, even where Python can import the clone."""
    cwd = clone(tmp_path / "work" / "procsnake") / where
    package, _ = asked_of_pip(NOTEBOOKS[0], tmp_path, numpy=None, cwd=cwd)
    assert package[-1] == installed


def test_in_a_clone_a_source_that_is_named_comes_first(tmp_path):
    cwd = clone(tmp_path / "procsnake") / "notebooks"
    wheel = "file:///a/procsnake.whl"
    package, _ = asked_of_pip(NOTEBOOKS[0], tmp_path, numpy=None, cwd=cwd, PROCSNAKE_SOURCE=wheel)
    assert package[-1] == wheel


def test_any_other_folder_of_that_name_is_no_procsnake(tmp_path):
    """Python takes it for a namespace package."""
    (tmp_path / "work" / "procsnake").mkdir(parents=True)
    package, _ = asked_of_pip(NOTEBOOKS[0], tmp_path, numpy=None, cwd=tmp_path / "work")
    assert package[-1] == "procsnake"


def test_what_a_notebook_writes_goes_into_a_folder_that_git_ignores(tmp_path, monkeypatch):
    """The first cell may run twice."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(subprocess, "run", None)
    set_up("serve")
    set_up("serve")
    assert Path.cwd() == tmp_path / FOLDER
    assert list(tmp_path.iterdir()) == [tmp_path / FOLDER]
    ignored = (REPOSITORY / ".gitignore").read_text(encoding="utf-8").splitlines()
    assert f"/notebooks/{FOLDER}/" in ignored


def test_what_is_missing_is_told_by_name_and_version(monkeypatch):
    here = {"flask": "3.1.3", "uvicorn": "0.53.0", "torch": "2.13.0+cpu"}

    def version(name: str) -> str:
        if name not in here:
            raise metadata.PackageNotFoundError(name)
        return here[name]

    said = [
        "flask>=3.1,<4; extra == 'serve'",
        "uvicorn>=0.54; extra == 'serve'",
        "torch==2.13.0; extra == 'train'",
        "boto3; extra == 'aws'",
        "rich>=13",
    ]
    monkeypatch.setattr(metadata, "requires", lambda name: said)
    monkeypatch.setattr(metadata, "version", version)
    assert missing("serve,train") == ["uvicorn", "rich"]
    assert missing("aws") == ["boto3", "rich"]


def not_installed(name: str) -> Any:
    raise metadata.PackageNotFoundError(name)


def test_a_procsnake_that_pip_did_not_install_is_refused_with_the_command(tmp_path, monkeypatch):
    """Otherwise pip would take any procsnake from an index."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(subprocess, "run", None)
    monkeypatch.setattr(metadata, "requires", not_installed)
    monkeypatch.setattr(metadata, "version", not_installed)
    assert missing("serve") == ["procsnake"]
    with pytest.raises(RuntimeError, match=f"%pip install {re.escape(str(REPOSITORY))}$"):
        set_up("serve")


def test_where_procgen_has_no_wheel_the_runtime_that_has_one_is_named(monkeypatch):
    monkeypatch.setattr(subprocess, "run", None)
    monkeypatch.setattr(host, "find_spec", lambda name: None)
    monkeypatch.setattr(host, "sys", SimpleNamespace(version_info=(3, 13, 0)))
    with pytest.raises(RuntimeError, match=r"runtime version 2026\.07, which has Python 3\.12"):
        set_up("serve,train,procgen-numpy2")


def test_a_folder_that_cannot_be_made_is_said_before_anything_is_installed(tmp_path, monkeypatch):
    (tmp_path / FOLDER).touch()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(subprocess, "run", None)
    monkeypatch.setattr(host, "missing", lambda extras: ["flask"])
    with pytest.raises(RuntimeError, match="can't be made: File exists") as refusal:
        set_up("serve")
    assert "%cd" in str(refusal.value)


def test_the_fifth_proposes_what_the_stack_was_given(tmp_path, monkeypatch):
    stack = (REPOSITORY / "train" / "sagemaker" / "stack.yaml").read_text()
    written = re.findall(r"^ +(PROCSNAKE_\w+)=\$\{", stack, re.MULTILINE)
    (source,) = (path for path in NOTEBOOKS if path.stem[0] == "5")
    (reading,) = (
        cell.source
        for cell in jupytext.read(source).cells
        if 'Path("../../../procsnake.env")' in cell.source
    )
    work = tmp_path / "clone" / "notebooks" / FOLDER
    work.mkdir(parents=True)
    monkeypatch.chdir(work)
    alone = {"Path": Path}
    there = {"Path": Path}
    exec(reading, alone)
    (tmp_path / "procsnake.env").write_text("".join(f"{name}=my-{name}\n" for name in written))
    exec(reading, there)
    names = ("STACK", "CPU", "GPU")
    assert [alone[name] for name in names] == ["NAME", "ml.c5.4xlarge", "ml.g5.2xlarge"]
    assert sorted(there[name] for name in names) == sorted(f"my-{name}" for name in written)


def test_where_everything_is_already_nothing_is_installed(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(subprocess, "run", None)
    exec(first_cell(NOTEBOOKS[0]), {})


@pytest.mark.long
@pytest.mark.parametrize("source", NOTEBOOKS, ids=by_name)
def test_runs_from_top_to_bottom(source, tmp_path, monkeypatch):
    monkeypatch.setenv("FAST", "1")
    monkeypatch.setenv(
        "PYTHONPATH", os.pathsep.join([str(REPOSITORY), os.environ.get("PYTHONPATH", "")])
    )
    notebook = execute(source.stem, tmp_path, timeout=300)
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
