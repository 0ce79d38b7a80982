"""The page on which a person plays, in headless Chromium: by keys, by swipes, by buttons, against
the clock, to the end.
"""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
import sys

import pytest

from envs.battlesnake.recording import Recording
from envs.battlesnake.state import MOVE_NAMES
from serve.browser.by_hand.routes import play_app
from serve.server import running
from tests.browser import page_of
from tests.serve.browser.by_hand.games import DOWN, LEFT, RIGHT, UP, arrays, game_of, same
from tests.serve.browser.chromium.pages import expect_turn

pytestmark = pytest.mark.long
PHONE = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True}


@pytest.fixture
def game(tmp_path):
    """Circling snakes beside a person who has room: it begins at (1, 1)."""
    return game_of(tmp_path, "circles", "circles", width=11, height=11, seed=2)


@pytest.fixture
def site(game):
    with running(play_app(game)) as url:
        yield url


@pytest.fixture
def page(chromium, site):
    with page_of(chromium, reduced_motion="reduce") as page:
        open_page(page, site)
        yield page


def open_page(page, site):
    page.goto(site)
    page.locator("#turn").wait_for()


def played(game):
    return [moves[0] for moves in game.moves]


def head_on_screen(page):
    """Where the person's head is drawn, in cells from the lower left."""
    x, y = page.locator("#board .snake .head").evaluate_all(
        "all => all.map(c => [c.cx, c.cy].map(l => l.baseVal.value))"
    )[0]
    return x - 0.5, 11 - y - 0.5


def test_keys_play_turn_by_turn_and_the_board_is_the_engines(page, game):
    keys = ["ArrowRight", "d", "ArrowUp", "W", "ArrowLeft", "s", " "]
    moves = [RIGHT, RIGHT, UP, UP, LEFT, DOWN, DOWN]
    for turn, key in enumerate(keys, 1):
        page.keyboard.press("Space" if key == " " else key)
        expect_turn(page, turn)
        head = game.board()["snakes"][0]["body"][0]
        assert head_on_screen(page) == (head["x"], head["y"])
    assert played(game) == moves
    page.keyboard.press("ArrowUp")
    page.locator("#notice", has_text="up leads into your own neck").wait_for()
    assert game.turn == len(keys)


def test_hint_and_undo_by_key_and_by_button(page, game):
    first = arrays(game)
    for turn in range(2):
        hint = MOVE_NAMES[game.hint(turn=turn).move]
        page.keyboard.press("h")
        page.locator("#hint-text", has_text=f"would go {hint}").wait_for()
        assert page.locator("#board .arrow.chosen").count() == 1
        page.keyboard.press("ArrowRight")
        expect_turn(page, turn + 1)
        assert page.locator("#hint-text").inner_text() == ""
        assert page.locator("#board .arrow").count() == 0
    page.keyboard.press("u")
    expect_turn(page, 1)
    page.locator("#undo").click()
    expect_turn(page, 0)
    assert same(arrays(game), first)
    assert page.locator("#undo").is_disabled()


def test_with_a_clock_the_snake_goes_on_by_itself_until_it_is_paused(page, game):
    def wait_for_turn(turn):
        page.wait_for_function(
            "least => Number(document.getElementById('turn').textContent.slice(5)) >= least",
            arg=turn,
        )

    page.locator("#clock").select_option("2000")
    page.wait_for_timeout(500)
    assert game.turn == 0, "the clock waits for the first key"
    page.keyboard.press("ArrowRight")
    wait_for_turn(2)
    page.keyboard.press("ArrowUp")
    wait_for_turn(game.turn + 2)
    page.keyboard.press("Space")
    page.locator("#go", has_text="Start").wait_for()
    stopped = game.turn
    page.wait_for_timeout(2500)
    assert game.turn == stopped
    moves = played(game)
    assert set(moves) == {RIGHT, UP}
    assert moves == sorted(moves, reverse=True), "right, then up, and each goes on without a key"


def test_the_end_is_told_the_rest_watched_and_the_game_begun_anew(page, game):
    for turn in range(1, 11):
        page.keyboard.press("ArrowUp") if turn == 1 else page.keyboard.press("Space")
        expect_turn(page, turn)
    told = page.locator("#ending")
    assert told.get_attribute("role") == "status"
    assert told.inner_text() == "You are out. You left the board on turn 10. The others play on."
    assert "left the board" in page.locator("#snakes").inner_text()
    assert page.locator("#hint").is_disabled()
    page.locator("#go", has_text="Watch on").click()
    page.locator("#links a").wait_for(timeout=60_000)
    assert told.inner_text().startswith(("You lose. You left the board on turn 10. ", "A draw"))
    page.locator("#links a").click()
    page.locator("#slider").wait_for()
    assert int(page.locator("#slider").get_attribute("max")) == game.turn
    page.go_back()
    page.locator("#again").click()
    expect_turn(page, 0)
    assert game.setup.seed == 3


def test_another_game_is_begun_with_the_keyboard_alone(page, game):
    for _ in range(30):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.tagName") == "SUMMARY":
            break
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    page.keyboard.type("wrapped")
    page.keyboard.press("Tab")
    page.keyboard.type("empty")
    for side in ("9", "5"):
        page.keyboard.press("Tab")
        page.keyboard.press("Control+a")
        page.keyboard.type(side)
    page.keyboard.press("Tab")
    page.keyboard.type("42")
    page.keyboard.press("Enter")
    page.wait_for_function("() => document.getElementById('about').textContent.includes('seed 42')")
    setup = game.setup
    assert (setup.settings.ruleset, setup.settings.map, setup.width, setup.height) == (
        "wrapped",
        "empty",
        9,
        5,
    )
    assert page.evaluate("document.activeElement.id") == "field"
    page.keyboard.press("ArrowUp")
    expect_turn(page, 1)


def test_a_game_that_cannot_be_is_told_and_the_old_one_goes_on(chromium, site, game):
    with page_of(chromium, expected="Failed to load resource") as page:
        open_page(page, site)
        page.keyboard.press("ArrowUp")
        expect_turn(page, 1)
        page.locator("#other summary").click()
        page.locator("#map").select_option("hz_castle_wall")
        page.locator("#width").fill("7")
        page.locator("#choices button").click()
        page.locator("#notice", has_text="hz_castle_wall").wait_for()
        page.locator("#field").focus()
        page.keyboard.press("ArrowUp")
        expect_turn(page, 2)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_on_a_phone_swipes_and_buttons_move(chromium, site, game, scheme):
    with page_of(chromium, color_scheme=scheme, **PHONE) as page:
        open_page(page, site)
        assert page.evaluate("document.documentElement.scrollWidth") == 390
        box = page.locator("#field").bounding_box()
        x = box["x"] + box["width"] / 2
        y = box["y"] + box["height"] / 2
        touch = page.context.new_cdp_session(page)

        def swipe(dx, dy):
            def send(kind, *points):
                touch.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": list(points)})

            send("touchStart", {"x": x, "y": y})
            for step in (0.3, 0.6, 1.0):
                send("touchMove", {"x": x + step * dx, "y": y + step * dy})
            send("touchEnd")

        for turn, direction in enumerate(((90, 8), (-6, -80), (0, -80), (-90, 0), (5, 70)), 1):
            swipe(*direction)
            expect_turn(page, turn)
        assert played(game) == [RIGHT, UP, UP, LEFT, DOWN]
        assert page.evaluate("window.scrollY") == 0
        swipe(10, 10)
        page.locator("#left").tap()
        expect_turn(page, 6)
        assert played(game)[-1] == LEFT
        page.locator("#undo").tap()
        expect_turn(page, 5)


def test_it_says_when_the_server_is_gone_and_when_another_page_was_faster(chromium, site, game):
    with page_of(chromium, expected="Failed to load resource") as page:
        open_page(page, site)
        game.move(RIGHT, turn=0)
        page.keyboard.press("ArrowRight")
        page.locator("#notice", has_text="the game is on turn 1, not on turn 0").wait_for()
        expect_turn(page, 1)
        page.route("**/api/**", lambda route: route.abort())
        page.keyboard.press("ArrowRight")
        page.locator(
            "#notice", has_text="The server doesn't answer. Is it still running?"
        ).wait_for()
        page.unroute("**/api/**")
        page.keyboard.press("ArrowRight")
        expect_turn(page, 2)


def test_the_command_serves_the_page_and_ctrl_c_ends_it(chromium, tmp_path):
    """The newcomer's way: one command, the address it prints, keys, Ctrl-C."""
    record = tmp_path / "mine.jsonl"
    command = [
        sys.executable,
        *shlex.split("-m procsnake play --width 7 --height 7 --record"),
        str(record),
    ]
    show = subprocess.Popen(
        command, env=os.environ | {"BROWSER": "true"}, stdout=subprocess.PIPE, text=True
    )
    try:
        address = re.search(r"http://\S+", show.stdout.readline())[0]
        with page_of(chromium) as page:
            open_page(page, address)
            names = page.locator("#snakes .name").all_inner_texts()
            page.keyboard.press("ArrowUp")
            expect_turn(page, 1)
        show.send_signal(signal.SIGINT)
        told = show.communicate(timeout=120)[0]
    finally:
        show.kill()
        show.wait()
    assert (show.returncode, names) == (0, ["you", "champion-standard", "flood"])
    assert "The game was left on turn 1." in told
    recording = Recording.read(f"{record}.part")
    assert recording.decisions(0)[recording.requests[0]["you"]["id"]]["move"] == "up"
