"""Adds procsnake's files to a clone of AIcrowd's starter kit, and keeps every line of the clone."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

from envs.common.errors import ConfigError
from serve.aicrowd.folder import Files
from serve.aicrowd.git_files import listed_files

_THE_KITS = (
    "aicrowd_helpers/",
    "algorithms/__init__.py",
    "callbacks.py",
    "Dockerfile",
    "envs/procgen_env_wrapper.py",
    "preprocessors/",
    "requirements.txt",
    "requirements-cpu.txt",
    "rollout.py",
    "train.py",
    "utils/loader.py",
)
"""Files that stay the clone's if it has them. All other files of procsnake have names that the kit
doesn't use.
"""
_NOT_THE_KITS = (".git", "outputs", "__pycache__")
_REGISTER = """

from algorithms import procsnake_registry  # noqa: E402

CUSTOM_ALGORITHMS.update(procsnake_registry.CUSTOM_ALGORITHMS)
"""
_CALL_BACK = """

from procsnake_callbacks import LogRawReturn  # noqa: E402


class CustomCallbacks(LogRawReturn, CustomCallbacks):
    \"\"\"The ones above, and what procsnake logs.\"\"\"
"""
_DEFAULT = re.compile(r"(EXPERIMENT_DEFAULT=)[\"']?[^\"'\s]+[\"']?")
_ROLLOUT = re.compile(r"(\bpython3?\s+)(?:\./)?rollout\.py\b")
_STAND_IN = "utils/rollout_on_ray_086.py"


@dataclass(frozen=True)
class Merged:
    """An entry made of a clone of the starter kit and procsnake's files."""

    files: Files
    notes: list[str]
    """A sentence about each file of the clone of which procsnake has another version."""
    of_the_kit: list[str]
    """The paths of the clone's files."""


def merge(clone: Path, ours: Files, experiment: str) -> Merged:
    """Add procsnake's files to those of a clone.

    Raises `ConfigError` if `clone` is not a starter kit, whose run.sh must name an experiment.
    """
    theirs, links = _read(clone)
    run_sh = theirs.get("run.sh", b"").decode("utf-8", "replace")
    if not _DEFAULT.search(run_sh):
        raise ConfigError(
            f"{clone} is not a clone of the starter kit: it has no run.sh that sets"
            " EXPERIMENT_DEFAULT. Leave out --starter-kit to do without one"
        )
    notes = [f"{name} links to something outside the kit, and was left out." for name in links]
    edited, edits = _edited(theirs, ours, experiment)
    notes += edits
    for name in sorted((theirs.keys() & ours.keys()) - edited.keys()):
        stays = name.startswith(_THE_KITS)
        if stays:
            edited[name] = theirs[name]
        if theirs[name] != ours[name]:
            owner, other = ("the kit's", "procsnake's") if stays else ("procsnake's", "the kit's")
            notes.append(f"{name} is {owner}; {other} was left out.")
    registry = {"algorithms/procsnake_registry.py": ours["algorithms/registry.py"]}
    files = {**theirs, **ours, **registry, **edited}
    return Merged(files, notes, sorted(theirs))


def _edited(theirs: Files, ours: Files, experiment: str) -> tuple[Files, list[str]]:
    """The files of the clone to which something is added, and a sentence about each."""
    run_sh = _ROLLOUT.sub(rf"\g<1>{_STAND_IN}", theirs["run.sh"].decode("utf-8", "replace"))
    edited = {"run.sh": _DEFAULT.sub(rf'\g<1>"{experiment}"', run_sh).encode()}
    notes = [
        f"run.sh is the kit's, but it names {experiment} and starts rollouts through {_STAND_IN}."
    ]
    for name, addition, what in (
        ("algorithms/registry.py", _REGISTER, "procsnake's algorithms"),
        ("callbacks.py", _CALL_BACK, "raw_return and raw_length"),
    ):
        if name in theirs:
            edited[name] = _appended(theirs[name], addition)
            notes.append(f"{name} is the kit's, with {what} added at its end.")
    if "requirements.txt" in theirs:
        pins, added = _requirements(theirs["requirements.txt"], ours["requirements.txt"])
        edited["requirements.txt"] = pins
        notes.append(f"requirements.txt is the kit's, with {', '.join(added) or 'nothing'} added.")
    if ".gitignore" in theirs:
        edited[".gitignore"] = _with_lines(theirs[".gitignore"], ours[".gitignore"])
    return edited, notes


def _read(clone: Path) -> tuple[Files, list[str]]:
    """The clone's files, without those that git ignores, and the names of the links that don't
    lead to any of these.
    """
    files: Files = {}
    links: list[str] = []
    for name in listed_files(clone):
        path = clone / name
        if path.is_symlink() and not _leads_to_a_file(path, clone):
            links.append(str(name))
        elif path.is_file():
            files[str(name)] = path.read_bytes()
    return files, links


def _leads_to_a_file(link: Path, clone: Path) -> bool:
    """Whether a link leads to a file of the clone's own: a stranger's may lead to the user's
    keys.
    """
    end = Path(os.path.realpath(link))
    root = os.path.realpath(clone)
    return (
        end.is_file()
        and end.is_relative_to(root)
        and not set(end.relative_to(root).parts) & set(_NOT_THE_KITS)
    )


def _appended(content: bytes, addition: str) -> bytes:
    text = content.decode("utf-8", "replace")
    if addition in text:
        return content
    return (text.rstrip("\n") + "\n" + addition).encode()


def _with_lines(content: bytes, more: bytes) -> bytes:
    have = content.decode("utf-8", "replace").splitlines()
    return (
        "\n".join([*have, *(line for line in more.decode().splitlines() if line not in have)])
        + "\n"
    ).encode()


def _requirements(content: bytes, more: bytes) -> tuple[bytes, list[str]]:
    """The clone's lines, followed by ours for packages that it doesn't name. TensorFlow's three
    names count as one package.
    """
    have = content.decode("utf-8", "replace").splitlines()
    named = {_package(line) for line in have}
    added = [
        line
        for line in more.decode().splitlines()
        if _package(line) and _package(line) not in named
    ]
    return ("\n".join([*have, *added]) + "\n").encode(), added


def _package(line: str) -> str:
    match = re.match(r"\s*([A-Za-z0-9][\w.-]*)", line)
    name = match[1].lower().replace("_", "-") if match else ""
    if name in ("tensorflow-gpu", "tensorflow-cpu"):
        return "tensorflow"
    return name
