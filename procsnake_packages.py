"""Whose packages Python would import under the names of procsnake's four.

Other projects also use the names `envs`, `agents`, `train` and `serve`. This module stands beside
the packages, because nobody else has its name: a module within `envs` couldn't be imported where
somebody else's `envs` is found. `require_own` refuses others' packages, and `prefer_own` has ours
found first. It imports nothing of ours."""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import importlib.util
import sys
import sysconfig
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType

HERE = Path(__file__).resolve().parent
"""The folder in which the packages lie: the repository, or where pip has installed them."""
OWN_PACKAGES = ("envs", "agents", "train", "serve")


class ShadowedPackageError(ImportError):
    """Python finds another project's package under the name of one of ours."""


def require_own(*names: str) -> None:
    """Raise `ShadowedPackageError` if another package than ours is imported, or would be, under one
    of these names.
    """
    for name in names:
        path = _place(name)
        if path not in (None, HERE / name):
            said = f"{path} hides procsnake's own package {name!r}, {HERE / name}"
            raise ShadowedPackageError(f"{said}. {_how_to_mend(name, path)}")


def _place(name: str) -> Path | None:
    """The folder or file that a package's name stands for; None if there is none."""
    module = sys.modules.get(name)
    spec = module.__spec__ if module else importlib.util.find_spec(name)
    if spec is None:
        return None
    if spec.submodule_search_locations:
        return Path(next(iter(spec.submodule_search_locations))).resolve()
    return Path(spec.origin).resolve() if spec.origin else None


def _how_to_mend(name: str, path: Path) -> str:
    if str(path.parent) in {sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}:
        return (
            "Another distribution has installed it: uninstall that, or install procsnake into an"
            " environment without it"
        )
    return (
        f"Python looks into {path.parent} first, as its working directory or by PYTHONPATH. Give"
        f" your {name!r} another name, or take the folder off the path: the command procsnake,"
        " unlike python -m procsnake, leaves the working directory out"
    )


class OwnPackages(importlib.abc.MetaPathFinder):
    """Finds procsnake's packages beside this module, whatever else is on the path."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname not in OWN_PACKAGES:
            return None
        return importlib.util.spec_from_file_location(fullname, HERE / fullname / "__init__.py")


def prefer_own() -> None:
    """Have procsnake's packages found first in this process. Ray's workers would look into the
    working directory before.
    """
    sys.meta_path.insert(0, OwnPackages())
