"""No pin is older than the first version without a hole that is known (`.ci/advisories.yaml`)."""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from packaging.utils import canonicalize_name
from packaging.version import Version

ROOT = Path(__file__).parents[1]
ADVISORIES = yaml.safe_load((ROOT / ".ci" / "advisories.yaml").read_text(encoding="utf-8"))
PINS = [
    ROOT / "constraints.txt",
    ROOT / "constraints-sagemaker.txt",
    *sorted((ROOT / ".ci" / "locks").glob("python-*.txt")),
    *sorted((ROOT / "serve" / "deploy").glob("*requirements.txt")),
    *sorted((ROOT / "train" / "sagemaker" / "image").glob("*requirements.txt")),
]
COMPOSED = sorted((ROOT / "serve" / "deploy").glob("compose*.yaml"))


def pinned(path: Path) -> Iterator[tuple[str, str]]:
    """Name and version of each package that a file pins."""
    for name, version in re.findall(
        r"^([A-Za-z0-9._-]+)==([^\s;\\]+)", path.read_text(encoding="utf-8"), re.MULTILINE
    ):
        yield canonicalize_name(name), version


def too_old(found: Iterator[tuple[str, str]], advisories: dict[str, dict[str, Any]]) -> list[str]:
    """The pins that have a hole."""
    return [
        f"{name} {version} < {advisories[name]['fixed']}: {', '.join(advisories[name]['ids'])}"
        for name, version in found
        if name in advisories and Version(version) < Version(str(advisories[name]["fixed"]))
    ]


@pytest.mark.parametrize("path", PINS, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_pinned_package_has_a_known_hole(path: Path) -> None:
    assert too_old(pinned(path), ADVISORIES["packages"]) == []


@pytest.mark.parametrize("path", COMPOSED, ids=lambda path: path.name)
def test_no_image_has_a_known_hole(path: Path) -> None:
    services = yaml.safe_load(path.read_text(encoding="utf-8"))["services"]
    texts = [
        service["image"].split(":-")[-1].rstrip("}")
        for service in services.values()
        if "image" in service
    ]
    images = iter([tuple(re.split(r"[:@-]", text)[:2]) for text in texts])
    assert texts
    assert too_old(images, ADVISORIES["images"]) == []


def test_the_list_is_dated_and_of_what_is_installed() -> None:
    assert isinstance(ADVISORIES["date"], datetime.date)
    installed = {name for path in PINS for name, _ in pinned(path)}
    assert ADVISORIES["packages"].keys() <= installed


def test_an_old_pin_is_named_with_its_holes(tmp_path: Path) -> None:
    (tmp_path / "lock.txt").write_text(
        "Pillow==12.1.1 \\\n    --hash=sha256:0\nflask==3.0; python_version < '3.11'\n"
    )
    (line,) = too_old(pinned(tmp_path / "lock.txt"), ADVISORIES["packages"])
    assert line.startswith("pillow 12.1.1 < 12.2.0: CVE-")
