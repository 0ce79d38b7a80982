"""The locks (`make locks`) have what setup.py asks for, in constraints.txt's versions, with hashes
and no addresses.
"""

from __future__ import annotations

import re
import shlex
from importlib import metadata
from pathlib import Path

import pytest
from packaging.markers import Marker
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import Version

from serve.deploy.lock_requirements import setup_keywords

ROOT = Path(__file__).parents[1]
LOCKS = ROOT / ".ci" / "locks"
_REQUIRED = SpecifierSet(setup_keywords()["python_requires"])
PYTHONS = [f"3.{minor}" for minor in range(40) if _REQUIRED.contains(f"3.{minor}.0")]
LINUX = {
    "sys_platform": "linux",
    "platform_machine": "x86_64",
    "platform_system": "Linux",
    "os_name": "posix",
    "extra": "",
}
CHOSEN_BY_HAND = {"torch"}
BESIDE_NUMPY_2 = {"gym3", "procgen", "procgen-mirror"}
"""They ask for old versions and work with newer ones. pyproject.toml tells uv so, and the Makefile
installs them with `--no-deps`."""
NEWER_THAN_ASKED_FOR = {"numpy", "cffi", "imageio-ffmpeg"}


def locked(python: str) -> dict[str, str]:
    """The versions by name."""
    text = (LOCKS / f"python-{python}.txt").read_text(encoding="utf-8")
    return dict(re.findall(r"^([a-z0-9-]+)==(\S+) \\$", text, re.MULTILINE))


def applies(marker: Marker | None, python: str) -> bool:
    return marker is None or marker.evaluate(
        {**LINUX, "python_version": python, "python_full_version": f"{python}.0"}
    )


def test_there_is_one_for_each_python():
    assert sorted(path.name for path in LOCKS.glob("python-*.txt")) == sorted(
        f"python-{python}.txt" for python in PYTHONS
    )
    (made,) = re.findall(
        r"^PYTHONS := (.*)$", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE
    )
    assert made.split() == PYTHONS


@pytest.mark.parametrize("python", PYTHONS)
def test_it_has_what_setup_asks_for(python):
    about = setup_keywords()
    versions = locked(python)
    for text in [
        *about["install_requires"],
        *about["extras_require"]["dev"],
        *about["extras_require"]["procgen"],
    ]:
        wanted = Requirement(text)
        name = canonicalize_name(wanted.name)
        if name in CHOSEN_BY_HAND or not applies(wanted.marker, python):
            continue
        assert name in versions, f"{text} is missing; run make locks"
        assert wanted.specifier.contains(versions[name], prereleases=True), (
            f"{name} {versions[name]} isn't {text}"
        )


@pytest.mark.parametrize("python", PYTHONS)
def test_its_versions_are_those_that_were_tried(python):
    lines = re.findall(
        r"^[^#\n].*", (ROOT / "constraints.txt").read_text(encoding="utf-8"), re.MULTILINE
    )
    pins = [pin for pin in map(Requirement, lines) if applies(pin.marker, python)]
    tried = {canonicalize_name(pin.name): str(pin.specifier).removeprefix("==") for pin in pins}
    assert {
        name: version for name, version in locked(python).items() if tried.get(name) != version
    } == {}


@pytest.mark.parametrize("python", PYTHONS)
def test_whatever_a_locked_package_needs_is_locked(python):
    """As far as the packages' own metadata are at hand: in the versions that are installed here."""
    versions = locked(python)
    seen = 0
    for name, version in versions.items():
        try:
            found = metadata.distribution(name)
        except metadata.PackageNotFoundError:
            continue
        if found.version != version:
            continue
        seen += 1
        for need in (
            one for one in map(Requirement, found.requires or []) if applies(one.marker, python)
        ):
            inner = canonicalize_name(need.name)
            assert inner in versions, f"{name} needs {need}"
            if name in BESIDE_NUMPY_2 and inner in NEWER_THAN_ASKED_FOR:
                continue
            assert need.specifier.contains(versions[inner], prereleases=True), (
                f"{name} needs {need}"
            )
    assert seen > 100


@pytest.mark.parametrize("python", PYTHONS)
def test_nothing_holds_numpy_back(python):
    assert Version(locked(python)["numpy"]) >= Version("2")
    assert "mxnet" not in locked(python)


@pytest.mark.parametrize("python", PYTHONS)
def test_the_procgen_of_the_lock_is_installed(python):
    script = (ROOT / ".ci/install").read_text(encoding="utf-8")
    (words,) = re.findall(
        r"install --no-deps .*? constraints.txt ((?:.*\\\n)*.*)$", script, re.MULTILINE
    )
    wanted = [Requirement(text) for text in shlex.split(words.replace("\\\n", " "))]
    assert {one.name for one in wanted if applies(one.marker, python)} == BESIDE_NUMPY_2 & locked(
        python
    ).keys()


@pytest.mark.parametrize("python", PYTHONS)
def test_every_file_has_a_hash_and_nothing_says_where_it_came_from(python):
    text = (LOCKS / f"python-{python}.txt").read_text(encoding="utf-8")
    entries = re.split(r"^(?=[a-z])", text, flags=re.MULTILINE)[1:]
    assert len(entries) == len(locked(python)) > 150
    for entry in entries:
        head, *rest = entry.rstrip().split(" \\\n")
        assert re.fullmatch(r"[a-z0-9-]+==[^\s@]+", head)
        assert rest
        assert all(re.fullmatch(r" {4}--hash=sha256:[0-9a-f]{64}", line) for line in rest)
    assert "://" not in text
    assert not re.search(r"^\s*--(?!hash=)", text, re.MULTILINE)


@pytest.mark.parametrize("python", PYTHONS)
def test_no_cuda_comes_along(python):
    """torch is installed first, in the build that one wants; from PyPI, it would bring gigabytes
    for a GPU.
    """
    assert not [
        name for name in locked(python) if name.startswith(("torch", "nvidia-", "cuda-", "triton"))
    ]
