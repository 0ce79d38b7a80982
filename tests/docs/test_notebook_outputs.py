"""What the pages of notebooks show of their outputs is of today's cells."""

from __future__ import annotations

import io
import os
import runpy
import sys
from pathlib import Path

import jupytext
import pytest
from PIL import Image

HOOKS = Path(__file__).parents[2] / "docs" / "hooks"
OUTPUTS = runpy.run_path(str(HOOKS / "notebook_outputs.py"), run_name="outputs")
NOTEBOOKS = sorted(OUTPUTS["NOTEBOOKS"].glob("*.py"))
FEW_BYTES = 2 << 20


@pytest.fixture(scope="module")
def page():
    sys.path.insert(0, str(HOOKS))
    yield runpy.run_path(str(HOOKS / "notebook_pages.py"), run_name="pages")["page"]
    sys.path.remove(str(HOOKS))


def kept(path: Path) -> list[dict]:
    return OUTPUTS["read"](path.stem)["cells"]


WITH_OUTPUTS = [path for path in NOTEBOOKS if kept(path)]


def test_some_have_outputs_and_no_others_are_kept():
    assert WITH_OUTPUTS
    names = {path.stem for path in OUTPUTS["KEPT"].glob("*.json")}
    assert names == {path.stem for path in WITH_OUTPUTS}


@pytest.mark.parametrize("path", WITH_OUTPUTS, ids=lambda path: path.stem)
def test_outputs_are_of_todays_cells(path):
    """If this fails: make outputs."""
    codes = [cell.source for cell in jupytext.read(path).cells if cell.cell_type == "code"]
    assert [cell["code"] for cell in kept(path)] == [OUTPUTS["code_hash"](code) for code in codes]


@pytest.mark.parametrize("path", WITH_OUTPUTS, ids=lambda path: path.stem)
def test_its_page_shows_them_and_nothing_of_the_machine(path, page):
    shown = page(path)
    for cell in kept(path):
        assert cell["text"] in shown
        assert not any(folder in cell["text"] for folder in ("/tmp/", "/home/", "/work/"))
        for name in cell["pictures"]:
            assert f"(../pictures/notebooks/{name})" in shown


@pytest.mark.parametrize("path", WITH_OUTPUTS, ids=lambda path: path.stem)
def test_no_output_is_an_object_at_an_address(path):
    assert not any(" at 0x" in cell["text"] for cell in kept(path))


def main_with(monkeypatch, outputs, *words, fails=()):
    """Run the tool, with `outputs` by notebook as what is kept. Returns the exit code, and what was
    run and kept as (notebook, in miniature).
    """
    kept_now = []

    def execute(name, folder):
        if name in fails:
            raise OUTPUTS["NotebookFailedError"](name)
        return (name, os.environ["FAST"])

    names = OUTPUTS["main"].__globals__
    nothing = {"fast": True, "cells": []}
    monkeypatch.setattr(os, "environ", {})
    monkeypatch.setattr(sys, "argv", ["notebook_outputs.py", *words])
    monkeypatch.setitem(names, "read", lambda name: outputs.get(name, nothing))
    monkeypatch.setitem(names, "execute", execute)
    monkeypatch.setitem(names, "keep", lambda ran, *_, fast, **__: kept_now.append((*ran, fast)))
    return OUTPUTS["main"](), kept_now


def stale(*, fast):
    return {"fast": fast, "cells": [{"code": "another"}]}


def test_stale_outputs_alone_are_made_anew_and_in_the_way_in_which_they_were_kept(monkeypatch):
    cells = [
        {"code": OUTPUTS["code_hash"](cell.source)}
        for cell in jupytext.read(NOTEBOOKS[1]).cells
        if cell.cell_type == "code"
    ]
    outputs = {
        NOTEBOOKS[0].stem: stale(fast=True),
        NOTEBOOKS[1].stem: {"fast": True, "cells": cells},
        NOTEBOOKS[7].stem: stale(fast=False),
    }
    assert main_with(monkeypatch, outputs) == (
        0,
        [(NOTEBOOKS[0].stem, "1", True), (NOTEBOOKS[7].stem, "0", False)],
    )


def test_a_notebook_that_is_named_may_run_in_full(monkeypatch):
    name = NOTEBOOKS[0].stem
    outputs = {name: stale(fast=True)}
    assert main_with(monkeypatch, outputs, "--full", name) == (0, [(name, "0", False)])


def test_after_a_failure_the_others_run_and_the_exit_code_is_1(monkeypatch, capsys):
    first, second = (path.stem for path in NOTEBOOKS[:2])
    outputs = {first: stale(fast=True), second: stale(fast=True)}
    assert main_with(monkeypatch, outputs, fails=[first]) == (1, [(second, "1", True)])
    assert first in capsys.readouterr().err


def test_every_picture_is_shown_once_and_all_are_small():
    shown = [name for path in WITH_OUTPUTS for cell in kept(path) for name in cell["pictures"]]
    files = [path for path in OUTPUTS["KEPT"].iterdir() if path.suffix != ".json"]
    assert sorted(shown) == sorted(path.name for path in files)
    assert sum(path.stat().st_size for path in files) <= FEW_BYTES


def test_a_long_text_keeps_its_ends_and_no_colours_folders_or_progress():
    lines = [f"line {k}" for k in range(100)]
    text = "10 %\r20 %\rdone\n\x1b[31mrun: /tmp/abc/workshop/runs/1\x1b[0m\n" + "\n".join(lines)
    tidied = OUTPUTS["tidy"](text).splitlines()
    assert tidied[:3] == ["done", "run: workshop/runs/1", "line 0"]
    assert "…" in tidied
    assert tidied[-1] == "line 99"


def test_a_command_is_named_without_its_environment():
    text = "check it: /home/ada/workshop/.venv/bin/procsnake export check entry"
    assert OUTPUTS["tidy"](text) == "check it: procsnake export check entry"


def test_a_film_has_fewer_frames_and_lasts_as_long():
    frames = [Image.new("RGB", (8, 8), (2 * k, 0, 0)) for k in range(120)]
    film = io.BytesIO()
    frames[0].save(film, "GIF", save_all=True, append_images=frames[1:], duration=50)
    smaller = Image.open(io.BytesIO(OUTPUTS["small"](film.getvalue())))
    assert smaller.n_frames == 60
    assert smaller.info["duration"] == 100
