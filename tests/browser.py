"""Headless Chromium, driven by Playwright."""

from __future__ import annotations

import shlex
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
FLAGS = shlex.split(
    "--no-sandbox --disable-gpu --disable-quic --no-first-run "
    "--disable-background-networking --disable-component-update --disable-sync"
)
PATIENCE_MS = 20_000


@contextmanager
def launched() -> Iterator[Any]:
    """A browser of Playwright's; a test that asks for one fails where none is installed."""
    playwright = pytest.importorskip(
        "playwright.sync_api", reason="playwright is missing: pip install playwright"
    )
    path = next(filter(None, map(shutil.which, BROWSERS)), None)
    if path is None:
        pytest.fail(
            f"none of {', '.join(BROWSERS)} is installed; as root: apt-get install -y chromium"
        )
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=path, args=FLAGS)
        yield browser
        browser.close()


@contextmanager
def page_of(chromium: Any, *, expected: str = "", **options: Any) -> Iterator[Any]:
    """A page that fails the test if a script of it fails or wants what its policy forbids; but for
    what is `expected`.
    """
    context = chromium.new_context(**options)
    trouble = []
    context.set_default_timeout(PATIENCE_MS)
    page = context.new_page()
    page.on("pageerror", lambda error: trouble.append(str(error)))
    page.on("console", lambda message: message.type == "error" and trouble.append(message.text))
    page.on("dialog", lambda dialog: trouble.append(f"a dialog says {dialog.message}"))
    try:
        yield page
    finally:
        context.close()
    assert [text for text in trouble if not (expected and expected in text)] == []
