from __future__ import annotations

import pytest

from tests.agents.bundles import make_bundle


@pytest.fixture(scope="session")
def bundle_path(tmp_path_factory):
    """A bundle of an untrained snake for 11x11 boards, rotated window. Don't change it."""
    return make_bundle(tmp_path_factory.mktemp("bundles") / "snake")
