"""An arena, and a page that looks at it."""

from __future__ import annotations

import pytest

from serve.archive.store import GameStore
from serve.server import running
from tests.browser import page_of
from tests.serve.browser.chromium.pages import arena_of


@pytest.fixture
def site(tmp_path):
    """URL of an arena without games."""
    store = GameStore(f"sqlite:///{tmp_path}/games.db")
    with running(arena_of(store)) as url:
        yield url
    store.close()


@pytest.fixture
def page(
    chromium, site
):  # after the site, so that it's closed before: a page that asks a server that ends is in trouble
    with page_of(chromium, reduced_motion="reduce") as page:
        yield page
