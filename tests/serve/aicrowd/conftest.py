"""Bundles as training leaves them, with networks that were never trained but decide clearly."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.serve.aicrowd.entries import make_bundle


@pytest.fixture(scope="session", autouse=True)
def warm() -> None:
    """No server listens in these tests, so no kernels need to be compiled before."""


@pytest.fixture(scope="session")
def bundle_of(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """The bundle of a recipe of `tests.serve.aicrowd.entries`, made once."""
    made: dict[str, Path] = {}

    def bundle(recipe: str) -> Path:
        if recipe not in made:
            made[recipe] = make_bundle(tmp_path_factory.mktemp(recipe) / "bundle", recipe)
        return made[recipe]

    return bundle
