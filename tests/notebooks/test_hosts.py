"""The hosts whose packages the notebooks are tried with: `make hosted-notebooks`."""

from __future__ import annotations

import json
import os
import re
import sys
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from tests.notebooks import run_on_host
from tests.notebooks.run_on_host import HOSTS, kernel_of, make_environment, python_of

FILES = sorted(HOSTS.glob("*.txt"))
TOUCHED = {
    "ipykernel",
    "ipython",
    "ipywidgets",
    "matplotlib",
    "matplotlib-inline",
    "numpy",
    "pandas",
    "pillow",
    "traitlets",
}
"""What shows outputs, and what was the trouble of the past."""


def test_there_are_hosts_of_both_pythons():
    assert {python_of(path.stem) for path in FILES} == {"3.12", "3.13"}


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_each_pins_what_notebooks_touch_and_says_whose_list_of_which_day_it_is(path):
    text = path.read_text(encoding="utf-8")
    assert re.search(rf"Python {re.escape(python_of(path.stem))}\b", text)
    assert re.search(r"https://\S+, commit \w{7} of 2026-\d\d-\d\d\.", text)
    pins = [Requirement(line) for line in text.splitlines() if not line.startswith("#")]
    assert {pin.name.lower() for pin in pins} >= TOUCHED
    assert all(str(pin.specifier).startswith("==") for pin in pins)


def test_an_environment_has_the_hosts_packages_alone(tmp_path, monkeypatch):
    calls = []
    monkeypatch.setattr(run_on_host, "REPOSITORY", tmp_path)
    monkeypatch.setattr(
        run_on_host.subprocess, "run", lambda words, check: calls.append([*map(str, words)])
    )
    make_environment("colab-3.12", "uv")
    new, install = calls
    assert new[:2] == ["uv", "venv"]
    assert {"--clear", "--seed"} < set(new)
    assert new[-3:] == ["--python", "3.12", str(tmp_path / ".venv-colab-3.12")]
    assert install[:3] == ["uv", "pip", "install"]
    assert install[-2:] == ["--requirement", str(HOSTS / "colab-3.12.txt")]


@pytest.fixture
def done(monkeypatch):
    """What `main` does, in order; notebook 1 fails."""
    calls = []
    monkeypatch.setattr(os, "environ", {})
    monkeypatch.setattr(run_on_host, "find_uv", lambda: "uv")
    monkeypatch.setattr(run_on_host, "wheel", lambda folder: folder / "procsnake.whl")
    monkeypatch.setattr(run_on_host, "make_environment", lambda *words: calls.append(words))
    monkeypatch.setattr(
        run_on_host, "runs", lambda name, folder: calls.append(name) or name[0] != "1"
    )
    return calls


def test_a_failure_is_the_exit_code_and_the_rest_still_runs(monkeypatch, done):
    names = ["1_quickstart", "2_battlesnake_training"]
    monkeypatch.setattr(sys, "argv", ["run_on_host", "colab-3.12", *names])
    assert run_on_host.main() == 1
    assert [call for call in done if isinstance(call, str)] == names


def test_what_one_notebook_installs_is_not_there_for_one_of_other_extras(monkeypatch, done):
    names = ["2_battlesnake_training", "4_procgen", "7_human_in_the_loop", "3_heuristics"]
    monkeypatch.setattr(sys, "argv", ["run_on_host", "colab-3.12", *names])
    assert run_on_host.main() == 0
    new = ("colab-3.12", "uv")
    assert done == [
        *(new, "3_heuristics"),
        *(new, "2_battlesnake_training", "7_human_in_the_loop"),
        *(new, "4_procgen"),
    ]


def test_without_uv_a_sentence_says_what_to_install(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["run_on_host", "colab-3.12", "3_heuristics"])
    monkeypatch.setattr(run_on_host, "find_uv", lambda: None)
    assert run_on_host.main() == 1
    assert capsys.readouterr().err == "hosted-notebooks: uv is missing: pip install uv\n"


def test_the_kernel_is_the_environments(tmp_path):
    kernel_of(Path("/env"), tmp_path)
    said = json.loads((tmp_path / "kernels" / "host" / "kernel.json").read_text())
    assert said["argv"][0] == "/env/bin/python"
