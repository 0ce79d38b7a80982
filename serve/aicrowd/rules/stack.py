"""Rules about what is installed: versions that exist for Python 3.7 and run with Ray 0.8.6, and a
Dockerfile with them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from packaging.requirements import InvalidRequirement, Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from serve.aicrowd.submission import Breach, Submission

_PATH = "requirements.txt"
_PYTHON = {
    "python_version": "3.7",
    "python_full_version": "3.7.16",
    "sys_platform": "linux",
    "platform_system": "Linux",
}


@dataclass(frozen=True)
class _Package:
    """The versions of a package that the competition's stack takes."""

    works: str
    """The specifier of the versions that work."""
    too_new: tuple[str, ...]
    """Versions that don't work, one of which pip would install if the requirement allowed it."""
    needed: bool = False
    """Whether something breaks if the package isn't pinned."""


_STACK = {
    "ray": _Package("==0.8.6", ("0.8.7", "1.13.0", "2.7.2"), needed=True),
    "gym": _Package("==0.17.2", ("0.17.3", "0.18.3", "0.26.2"), needed=True),
    "numpy": _Package(">=1.16,<1.20", ("1.20.3", "1.21.6"), needed=True),
    "protobuf": _Package(">=3.8,<3.21", ("3.21.12", "4.24.4"), needed=True),
    "procgen": _Package(">=0.10.1,<=0.10.4", ("0.10.7",), needed=True),
    "tensorflow": _Package("==2.2.*", ("2.3.4", "2.11.0")),
    "torch": _Package(">=1.3,<1.14", ("2.0.0",)),
    "redis": _Package(">=3.3.2,<3.5", ("3.5.3", "5.0.8")),
    "scipy": _Package("<1.8", ()),
    "pandas": _Package("<1.4", ()),
    "matplotlib": _Package("<3.6", ()),
    "scikit-learn": _Package("<1.1", ()),
    "pillow": _Package("<10", ()),
    "imageio": _Package("<2.32", ()),
    "mlflow": _Package("<2", ()),
}
"""The bounds of the first eight were tried, or Ray 0.8.6 and Procgen demand them. The others end
with the last for 3.7.
"""
_NAMES = {"tensorflow-gpu": "tensorflow", "tensorflow-cpu": "tensorflow"}


def requirements(submission: Submission) -> Iterator[Breach]:
    """Yield a breach for each wrong or missing pin in requirements.txt and in the files that it
    includes.
    """
    if _PATH not in submission.files or not submission.text(_PATH).strip():
        return
    requirement_of: dict[str, tuple[str, Requirement]] = {}
    for path, line in _lines(submission, _PATH, ()):
        try:
            one = Requirement(line)
        except InvalidRequirement as error:
            yield Breach(
                path, f"pip can't read {line!r} ({str(error).splitlines()[0]})", "Correct the line"
            )
            continue
        if one.marker and not one.marker.evaluate(_PYTHON):
            continue
        name: str = canonicalize_name(one.name)
        name = _NAMES.get(name, name)
        if name in requirement_of and str(requirement_of[name][1].specifier) != str(one.specifier):
            yield Breach(
                path,
                f"{name} is there twice, as {requirement_of[name][1]} and {one}",
                "Keep one of them",
            )
        requirement_of[name] = path, one
    for name, package in _STACK.items():
        if name in requirement_of:
            yield from _judged(name, package, *requirement_of[name])
        elif package.needed:
            yield Breach(
                _PATH,
                f"{name} is not pinned",
                f"Add {name}{package.works}; 2020's stack needs that",
            )
    framework = "torch" if submission.is_torch else "tensorflow"
    if submission.config and framework not in requirement_of:
        yield Breach(
            _PATH,
            f"{framework} isn't there, which trains the experiment",
            f"Add {framework}, as an export pins it",
        )


def _lines(submission: Submission, path: str, within: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    """The file and the line of each requirement. Of pip's options, only -r is followed."""
    for line in submission.text(path).splitlines():
        line = re.sub(r"(^|\s)#.*", "", line).strip()
        included = re.match(r"(?:-r|--requirement)[\s=]*(\S+)", line)
        if included and included[1] not in (path, *within) and included[1] in submission.files:
            yield from _lines(submission, included[1], (*within, path))
        elif line and not line.startswith("-"):
            yield path, line


def _judged(name: str, package: _Package, path: str, one: Requirement) -> Iterator[Breach]:
    works = SpecifierSet(package.works)
    fix = f"Set {name}{package.works}; 2020's stack needs that"
    pins = [specifier.version for specifier in one.specifier if specifier.operator in ("==", "===")]
    for pin in pins:
        try:
            # 2.2.* stands for any of them.
            version = Version(pin.replace(".*", ".0"))
        except InvalidVersion:
            yield Breach(path, f"{name} is {pin}, which is not a version", fix)
            return
        if version not in works:
            yield Breach(
                path, f"{name} is {pin}, which that stack doesn't have or doesn't run with", fix
            )
            return
    admits = [version for version in package.too_new if version in one.specifier]
    if not pins and (admits or (package.needed and not one.specifier)):
        yield Breach(
            path,
            f"{name} is not pinned" + (f": {one} takes {admits[-1]}, too" if admits else ""),
            fix,
        )


def dockerfile(submission: Submission) -> Iterator[Breach]:
    """Yield a breach for each fault of the Dockerfile. A Dockerfile has to install everything,
    because nothing else is installed with it.
    """
    text = re.sub(r"^\s*#.*$", "", submission.text("Dockerfile"), flags=re.MULTILINE)
    if "Dockerfile" not in submission.files:
        return
    if not re.search(r"^\s*FROM\s+\S", text, re.MULTILINE | re.IGNORECASE):
        yield Breach("Dockerfile", "it has no FROM", "Remove it, or take the one of an export")
        return
    named = re.findall(r"python[-:=@]{0,2}\s*(3\.\d+)|-py(3\d+)_", text, re.IGNORECASE)
    versions = {first or f"3.{second[1:]}" for first, second in named}
    for version in sorted(versions - {"3.7"}):
        fix = "Install Python 3.7, as the Dockerfile of an export does"
        yield Breach(
            "Dockerfile", f"it installs Python {version}, which Ray 0.8.6 doesn't run on", fix
        )
    if not versions and re.search(
        r"^\s*FROM\s+(\S*/)?python(:(latest|3)?\b|\s|@|$)", text, re.MULTILINE | re.IGNORECASE
    ):
        yield Breach(
            "Dockerfile",
            "it takes the newest Python, which Ray 0.8.6 doesn't run on",
            "FROM python:3.7",
        )
    if _PATH not in text and not re.search(r"\bray\b", text):
        yield Breach(
            "Dockerfile",
            "it installs no requirements.txt, and nothing else is installed where there is one",
            "Add it",
        )
