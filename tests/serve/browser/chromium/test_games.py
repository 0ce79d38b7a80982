"""The page of all games in headless Chromium: live and past ones, strangers' names, and a server
that is gone.
"""

from __future__ import annotations

import pytest

from serve.archive.store import GameStore
from serve.doctor import CHECK_PREFIX
from serve.server import running
from tests.browser import page_of
from tests.serve.archive.played import play, tell
from tests.serve.browser.chromium.pages import (
    HOSTILE,
    arena_of,
    expect_turn,
    referee,
    store_of,
)

pytestmark = pytest.mark.long


def test_a_game_appears_is_followed_and_finishes(page, site):
    game = referee(site)
    frames = game.play()
    for _ in range(4):
        next(frames)
    page.goto(site)
    card = page.locator("#live a")
    card.locator("svg .head").nth(1).wait_for()
    assert card.locator("svg .head").count() == 2
    assert page.locator("#live .you").count() == 1
    card.click()
    expect_turn(page, 2)
    assert page.locator("#about").inner_text().startswith("live")
    assert page.locator("#follow").get_attribute("aria-pressed") == "true"
    next(frames)
    expect_turn(page, 3)
    for _ in frames:
        pass
    page.locator("#about .won, #about .lost, #about .draw").wait_for()
    assert page.locator("#follow").is_hidden()
    page.locator("header a").click()
    page.locator("#past tr").wait_for()
    page.locator("#no-live").wait_for()


def test_many_games_at_once_all_appear(page, site):
    games = [referee(site, seed=seed) for seed in range(3)]
    playing = []
    for game in games:
        frames = game.play()
        for _ in range(3):
            next(frames)
        playing.append(frames)
    page.goto(site)
    page.wait_for_function("() => document.querySelectorAll('#live li svg .head').length === 6")
    for frames in playing:
        frames.close()


def test_past_games_are_paged(page, tmp_path):
    store = GameStore(f"sqlite:///{tmp_path}/games.db")
    for seed in range(30):
        played = play(seed=seed, num_snakes=1, agent="random", ruleset="solo")
        for event in [*list(played.events(0))[:2], ("end", played.ends[0], None)]:
            tell(store, "thinker", event)
    assert store.flush(30)
    with running(arena_of(store)) as url:
        page.goto(url)
        page.locator("#older").click()
        page.wait_for_function("() => document.querySelectorAll('#past tr').length === 5")
        assert page.locator("#page").inner_text() == "Games 26 to 30"
        assert page.locator("#older").is_disabled()
        page.locator("#newer").click()
        page.wait_for_function("() => document.querySelectorAll('#past tr').length === 25")
        assert page.locator("#deaths li").count() >= 1
        assert page.locator("#figures").inner_text().startswith("Games")
        page.goto("about:blank")
    store.close()


def test_checks_of_the_doctor_are_marked_and_not_counted(page, tmp_path):
    check = play(seed=2)
    for body in [*check.requests[0], *check.ends]:
        body["game"]["id"] = f"{CHECK_PREFIX}1"
    store = store_of(tmp_path, check, [0])
    with running(arena_of(store)) as url:
        page.goto(url)
        assert page.locator("#past .tag").inner_text() == "check"
        page.locator("#figures", has_text="and 1 check, not counted").wait_for()
        assert page.locator("#figures").inner_text().split("\n")[1].startswith("0")
        page.goto("about:blank")
    store.close()


def test_strangers_names_are_text_and_run_nothing(page, site):
    game = referee(site, names=["me", *HOSTILE[:3]], rivals=("greedy", "greedy", "random"), size=11)
    frames = game.play()
    for _ in range(4):
        next(frames)
    page.goto(site)
    page.locator("#live bdi").first.wait_for()
    live = page.locator("#live bdi").all_inner_texts()
    assert HOSTILE[0][:39] in {text[:39] for text in live}
    assert "evilname" in live
    page.locator("#live a").click()
    page.locator("#snakes li").first.wait_for()
    assert "evilname" in page.locator("#snakes").inner_text()
    for _ in frames:
        pass
    page.locator("#about .won, #about .lost, #about .draw").wait_for()
    page.goto(site)
    page.locator("#past tr").wait_for()
    assert "<img src=x onerror=" in page.locator("#past").inner_text()
    assert page.evaluate("[...document.images].map(image => image.getAttribute('src'))") == [
        "/viewer/favicon.svg"
    ]
    assert "pwned" not in page.title()


def test_what_is_injected_all_the_same_stays_dead(chromium, site):
    """The policy itself, should a page ever be wrong: with it nothing runs that would run without
    it.
    """
    image = "<img src='data:image/png,broken' onerror='window.pwned = true'>"
    for bypass in (False, True):
        with page_of(chromium, expected="Content Security Policy", bypass_csp=bypass) as page:
            page.goto(site)
            page.evaluate("image => document.body.insertAdjacentHTML('beforeend', image)", image)
            page.wait_for_function("() => document.querySelector('body > img').complete")
            assert page.evaluate("window.pwned === true") == bypass


def test_it_says_when_the_server_is_gone_and_goes_on_when_it_is_back(chromium, site):
    with page_of(chromium, expected="ERR_FAILED") as page:
        page.goto(site)
        page.locator("#no-live").wait_for()
        page.route("**/api/**", lambda route: route.abort())
        page.locator("#trouble", has_text="doesn't answer").wait_for()
        page.unroute("**/api/**")
        page.locator("#trouble").wait_for(state="hidden")
