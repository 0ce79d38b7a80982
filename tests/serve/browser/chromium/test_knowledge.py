"""What the page of a game says where the archive knows less than the whole game."""

from __future__ import annotations

import time

import pytest

from serve.archive.database import ABANDONED_AFTER_S
from serve.archive.store import GameStore
from serve.server import running
from tests.serve.archive.played import play, tell, uneven_game
from tests.serve.browser.chromium.pages import (
    arena_of,
    expect_turn,
    open_first_game,
    store_of,
)

pytestmark = pytest.mark.long


def test_where_our_knowledge_ends_is_said(page, tmp_path):
    played = uneven_game()
    died = len(played.requests[0])
    end = played.ends[0]["turn"]
    store = store_of(tmp_path, played, [0])
    with running(arena_of(store)) as url:
        open_first_game(page, url)
        assert page.locator("#hole").is_visible()
        page.keyboard.press("End")
        expect_turn(page, end)
        told = page.locator("#why .warn").inner_text()
        assert (
            told == f"Turns {died} to {end - 1} are not known: an engine tells a dead snake only"
            " the end."
        )
        fates = dict(
            zip(
                page.locator("#snakes .gone .name").all_inner_texts(),
                page.locator("#snakes .fate").all_inner_texts(),
            )
        )
        assert fates.pop("snake 0").endswith(f", turn {died}")
        assert set(fates.values()) == {f"out, between turns {died} and {end}"}
        page.goto("about:blank")
    store.close()


def test_our_other_snake_goes_on_with_the_game(page, tmp_path):
    played = uneven_game()
    died = len(played.requests[0])
    end = played.ends[0]["turn"]
    store = store_of(tmp_path, played, [0, 1])
    with running(arena_of(store)) as url:
        page.goto(f"{url}/watch/{played.game_id}/thinker?you=you-0#turn={died + 2}")
        expect_turn(page, died + 2)
        assert int(page.locator("#slider").get_attribute("max")) == end
        assert page.locator("#hole").is_hidden()
        assert "This snake is dead and decides no more." in page.locator("#why").inner_text()
        page.locator("#snakes a", has_text="snake 1").click()
        page.locator("#why tr.played").wait_for()
        expect_turn(page, died + 2)
        page.goto("about:blank")
    store.close()


def test_a_game_that_fell_silent_has_no_known_end(page, tmp_path):
    played = play(seed=1)
    store = GameStore(f"sqlite:///{tmp_path}/games.db")
    for event in list(played.events(0))[:4]:
        tell(store, "thinker", event)
    assert store.flush()
    store._database.close_abandoned(time.time() + ABANDONED_AFTER_S + 60)
    with running(arena_of(store)) as url:
        open_first_game(page, url)
        page.keyboard.press("End")
        expect_turn(page, 2)
        assert "No request arrived after turn 2" in page.locator("#why .bad").first.inner_text()
        page.goto("about:blank")
    store.close()


def test_a_late_answer_is_told_from_the_board(page, tmp_path):
    store = GameStore(f"sqlite:///{tmp_path}/games.db")
    played = play(seed=3)
    events = list(played.events(0))
    kind, body, move = events[3]
    for event in [*events[:3], (kind, body, (move + 1) % 4), *events[4:]]:
        tell(store, "thinker", event)
    assert store.flush()
    with running(arena_of(store)) as url:
        open_first_game(page, url)
        page.locator("#slider").fill("2")
        assert "came too late or got lost" in page.locator("#why .bad").inner_text()
        page.locator("#slider").fill("1")
        assert page.locator("#why .bad").count() == 0
        page.goto("about:blank")
    store.close()


def test_how_snakes_want_to_look_is_shown(page, tmp_path):
    played = play(seed=1)
    for body in [*played.requests[0], *played.ends]:
        body["board"]["snakes"][0]["customizations"] = {
            "color": "#ff8800",
            "head": "evil",
            "tail": "bolt",
        }
        body["you"] |= {"customizations": body["board"]["snakes"][0]["customizations"]}
    store = store_of(tmp_path, played, [0])
    with running(arena_of(store)) as url:
        open_first_game(page, url)
        assert page.locator("#snakes .look").all_inner_texts() == ["head evil, tail bolt"]
        assert "#ff8800" in page.locator("#board .snake").evaluate_all(
            "all => all.map(node => node.getAttribute('fill'))"
        )
        page.goto("about:blank")
    store.close()
