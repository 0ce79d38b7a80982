"""Finds the line of a user's own file (a network, an observation type, a reward function) that an
error came from.
"""

from __future__ import annotations

import re
import sysconfig
import traceback
from functools import cache
from importlib import metadata
from itertools import chain
from pathlib import Path

_FRAME = re.compile(r'File "([^"]+)", line (\d+), in (\S+)')
_OUR_FOLDERS = [
    Path(__file__).parents[2] / name
    for name in ("envs", "agents", "train", "serve", "procsnake", "procsnake_packages.py")
]
_GROUPS = (
    "procsnake.networks",
    "procsnake.observations",
    "procsnake.rewards",
    "procsnake.algorithms",
)
_LIBRARIES = ("site-packages", "dist-packages")


def place_of(error: BaseException) -> str:
    """Return " (FILE, line N, in FUNCTION)": the innermost line of a user's file, or else of any
    file; "" without a traceback.

    Lines in libraries that the user's line called, such as torch, don't count. For an error that
    Ray passes on from another process, it is the line there."""
    return users_place_of(error) or _written(_frames(error))


def users_place_of(error: BaseException) -> str:
    """Return " (FILE, line N, in FUNCTION)": the innermost line of a user's file; "" if none takes
    part.
    """
    return _written([frame for frame in _frames(error) if is_users(frame[0])])


def _frames(error: BaseException) -> list[tuple[str, str, str]]:
    return _FRAME.findall(
        getattr(error, "traceback_str", "") or "".join(traceback.format_exception(error))
    )


def _written(frames: list[tuple[str, str, str]]) -> str:
    if frames:
        return " ({}, line {}, in {})".format(*frames[-1])
    return ""


def is_users(file: str) -> bool:
    """Return whether a file is neither procsnake's, nor Python's, nor a library's. Installed
    packages with parts count as the user's.
    """
    path = Path(file)
    if file.startswith("<") or any(path.is_relative_to(folder) for folder in _OUR_FOLDERS):
        return False
    for folder in _LIBRARIES:
        if folder in path.parts:
            package = path.parts[path.parts.index(folder) + 1].removesuffix(".py")
            return package in _packages_with_parts()
    return not path.is_relative_to(sysconfig.get_path("stdlib"))


@cache
def _packages_with_parts() -> frozenset[str]:
    """Return the top-level modules that installed packages name in our groups of entry points."""
    points = chain.from_iterable(metadata.entry_points(group=group) for group in _GROUPS)
    return frozenset(re.split(r"[.:]", point.value)[0] for point in points)
