"""The pages on narrow and wide screens, in light and dark, and by keyboard."""

from __future__ import annotations

import re

import pytest

from tests.browser import page_of
from tests.serve.browser.chromium.pages import (
    HOSTILE,
    open_first_game,
    play_out,
    referee,
)

pytestmark = pytest.mark.long


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 1280])
def test_it_fits_phones_and_desks_in_light_and_dark(chromium, site, scheme, width):
    play_out(
        referee(
            site,
            rivals=("greedy", "random"),
            names=["me" * 100, "b" * 200, HOSTILE[0] * 3],
            size=11,
        )
    )
    with page_of(chromium, color_scheme=scheme, viewport={"width": width, "height": 740}) as page:
        page.goto(site)
        page.locator("#past a").wait_for()
        assert overflow(page) <= 0
        dark_paper = page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert (sum(map(int, re.findall(r"\d+", dark_paper))) < 200) == (scheme == "dark")
        page.locator("#past a").click()
        page.locator("#why table").wait_for()
        assert overflow(page) <= 0
        for control in ("#first", "#back", "#play", "#onward", "#last", "#speed"):
            box = page.locator(control).bounding_box()
            assert box["height"] >= 36, control
            assert box["x"] + box["width"] <= width, control


def overflow(page):
    return page.evaluate(
        "document.documentElement.scrollWidth - document.documentElement.clientWidth"
    )


def test_every_control_has_a_name_and_can_be_reached_by_tab(page, site):
    play_out(referee(site))
    open_first_game(page, site)
    page.keyboard.press("ArrowRight")
    nameless = page.evaluate(
        """() => {
            const controls = document.querySelectorAll("button, input, select, a, svg[role=img]");
            const label = (node) => node.getAttribute("aria-label")
                ?? node.labels?.[0]?.textContent ?? node.textContent;
            return [...controls]
                .filter(node => !node.closest("[hidden]") && !label(node).trim())
                .map(node => node.outerHTML);
        }"""
    )
    assert nameless == []
    reached = set()
    for _ in range(20):
        page.keyboard.press("Tab")
        reached.add(page.evaluate("document.activeElement.id"))
    assert {"first", "back", "play", "onward", "last", "speed", "slider", "thoughts"} <= reached
    assert "Turn" not in page.locator("#status").inner_text()
    assert "turn 1" in page.locator("#status").inner_text()
