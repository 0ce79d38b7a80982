"""The hosts whose packages the notebooks are tried with: `make hosted-notebooks`."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from tests.notebooks.run_on_host import HOSTS, kernel_of, python_of

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


def test_the_kernel_is_the_environments(tmp_path):
    kernel_of(Path("/env"), tmp_path)
    said = json.loads((tmp_path / "kernels" / "host" / "kernel.json").read_text())
    assert said["argv"][0] == "/env/bin/python"
