"""The pages in a real browser: headless Chromium, driven by Playwright, against a server that is really played on."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
from contextlib import contextmanager

import pytest

import agents
from agents.referee import Referee
from envs.battlesnake.plain import board_from_state
from envs.battlesnake.settings import Settings
from envs.battlesnake.state import MOVE_NAMES
from serve.arena import create_app
from serve.games import GameStore
from serve.server import running
from tests.serve.played import play, tell
from tests.serve.viewer.thinker import AGAINST_TURN, FAILING_TURN, Thinker

pytestmark = pytest.mark.long

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
FLAGS = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
]  # fmt: skip
HOSTILE = [
    "<img src=x onerror=\"document.title='pwned'\">",
    "</script><script>document.title='pwned'</script>",
    "\u202eevil\u0007name",
    "javascript:alert(1)",
]
PATIENCE_MS = 20_000


@pytest.fixture(scope="module")
def chromium():
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is missing: pip install playwright")
    path = next(filter(None, map(shutil.which, BROWSERS)), None)
    if path is None:
        pytest.fail(f"none of {', '.join(BROWSERS)} is installed; as root: apt-get install -y chromium")
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=path, args=FLAGS)
        yield browser
        browser.close()


@contextmanager
def page_of(chromium, *, expected="", **options):
    """A page that fails the test if a script of it fails or wants what its policy forbids; but for what is `expected`."""
    context, trouble = chromium.new_context(**options), []
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


@pytest.fixture
def site(tmp_path):
    """URL of an arena without games."""
    store = GameStore(f"sqlite:///{tmp_path}/games.db")
    with running(create_app({"thinker": Thinker()}, store=store)) as url:
        yield url
    store.close()


@pytest.fixture
def page(chromium, site):  # after the site, so that it's closed before: a page that asks a server that ends is in trouble
    with page_of(chromium, reduced_motion="reduce") as page:
        yield page


def referee(url, *, seed=1, names=("me", "other"), size=7, rivals=("greedy",), **settings):
    seats = [f"{url}/snakes/thinker", *map(agents.make, rivals)]
    return Referee(seats, names=names, seed=seed, width=size, height=size, settings=Settings(**settings))


def play_out(game):
    """Play to the end; the number of the last turn."""
    for _ in game.play():
        pass
    return game.result.turns


def open_first_game(page, url):
    page.goto(url)
    page.locator("#past a").first.click()
    page.locator("#turn").wait_for()


def shown_turn(page):
    return int(page.locator("#turn").inner_text().removeprefix("Turn "))


def expect_turn(page, turn):
    page.wait_for_function("turn => document.getElementById('turn').textContent === `Turn ${turn}`", arg=turn)


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


def test_match_shows_its_game_in_the_browser(page):
    """The newcomer's way: one command, the address it prints, Ctrl-C."""
    command = [sys.executable, "-m", "procsnake", "match", "greedy", "random", "--browser", "--width", "7", "--height", "7"]
    show = subprocess.Popen(command, env=os.environ | {"BROWSER": "true"}, stdout=subprocess.PIPE, text=True)
    try:
        page.goto(re.search(r"http://\S+", show.stdout.readline())[0])
        page.locator("#live a, #past a").first.click()
        page.locator("#about .won, #about .lost, #about .draw").wait_for()
        assert page.locator("#snakes li").count() == 2
        page.goto("about:blank")
        show.send_signal(signal.SIGINT)
        told = show.communicate(timeout=30)[0]
    finally:
        show.kill()
        show.wait()
    assert show.returncode == 0
    assert re.search(r"(wins|a draw) after \d+ turns", told)


def test_a_game_is_scrubbed_with_slider_buttons_and_keys(page, site):
    play_out(referee(site))
    open_first_game(page, site)
    last = int(page.locator("#slider").get_attribute("max"))
    assert last > 8
    expect_turn(page, 0)
    for key, turn in (("ArrowRight", 1), ("ArrowRight", 2), ("ArrowLeft", 1), ("End", last), ("Home", 0)):
        page.keyboard.press(key)
        expect_turn(page, turn)
    page.locator("#onward").click()
    expect_turn(page, 1)
    page.locator("#slider").fill("6")
    expect_turn(page, 6)
    assert page.url.endswith("#turn=6")
    assert page.locator("#slider").get_attribute("aria-valuetext").startswith("turn 6 of ")
    page.reload()
    expect_turn(page, 6)
    box = page.locator("#timeline").bounding_box()
    page.mouse.click(box["x"] + box["width"] * 2.5 / (last + 1), box["y"] + box["height"] / 2)
    expect_turn(page, 2)


def test_it_plays_by_itself_and_pauses(page, site):
    play_out(referee(site))
    open_first_game(page, site)
    last = int(page.locator("#slider").get_attribute("max"))
    page.locator("#speed").select_option("15")
    page.locator("#play").click()
    expect_turn(page, 3)
    page.locator("#board").click()
    page.keyboard.press("Space")
    assert page.locator("#play").inner_text() == "Play"
    stopped = shown_turn(page)
    page.wait_for_timeout(500)
    assert shown_turn(page) == stopped
    page.locator("#speed").select_option("60")
    page.locator("#play").click()
    page.wait_for_function("last => document.getElementById('slider').value == last", arg=last)
    page.wait_for_function("() => document.getElementById('play').textContent === 'Play'")


def test_the_board_is_where_the_engine_says_it_is(page, site):
    game = referee(site, size=7)
    frames = game.play()
    state = next(frames).state
    heads = set()
    while heads == {(x, 6 - y) for x, y in heads}:  # a board upside down would look the same
        next(frames)
        heads = living_heads(state)
    turn = int(state.arrays.turn[0])
    next(frames)
    page.goto(site)
    page.locator("#live a").click()
    expect_turn(page, turn)
    drawn = page.locator("#board .snake:not(.dead) > .head").evaluate_all(
        "all => all.map(c => [c.cx, c.cy].map(l => l.baseVal.value))"
    )
    assert {(x - 0.5, 7 - y - 0.5) for x, y in drawn} == heads
    frames.close()


def living_heads(state):
    heads = [snake["body"][0] for snake in board_from_state(state, 0, ["0", "1"])["snakes"] if not snake["eliminatedCause"]]
    return {(head["x"], head["y"]) for head in heads}


def test_it_tells_why_a_move_was_made(page, site):
    play_out(referee(site))
    open_first_game(page, site)
    table = page.locator("#why table")
    played = table.locator("tr.played")
    assert "70 %" in played.inner_text()
    assert table.locator("td", has_text=re.compile(r"^10 %$")).count() == 3
    assert "+20" in table.inner_text()
    facts = page.locator("#why dl").inner_text()
    assert re.search(r"expects\s+\+0\.25", facts)
    assert re.search(r"depth\s+4", facts)
    assert re.search(r"latency\s+[\d.]+ ms of 500 ms", facts)
    assert page.locator("#board .arrow").count() == 4
    page.keyboard.press("t")
    assert page.locator("#board .arrow").count() == 0
    page.keyboard.press("t")
    for turn in range(AGAINST_TURN):
        page.locator("#slider").fill(str(turn))
        assert page.locator("#why .warn").count() == 0
    page.locator("#slider").fill(str(AGAINST_TURN))
    told = re.fullmatch(r"Played (\w+), though the policy preferred (\w+)\.", page.locator("#why .warn").inner_text())
    assert MOVE_NAMES.index(told[2]) == (MOVE_NAMES.index(told[1]) + 1) % 4
    page.locator("#slider").fill(str(FAILING_TURN))
    assert "The watchdog answered, not the agent: RuntimeError" in page.locator("#why .bad").inner_text()
    assert page.locator("#why table .track").count() == 0


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
    assert page.evaluate("[...document.images].map(image => image.getAttribute('src'))") == ["/viewer/favicon.svg"]
    assert "pwned" not in page.title()


def test_what_is_injected_all_the_same_stays_dead(chromium, site):
    """The policy itself, should a page ever be wrong: with it nothing runs that would run without it."""
    image = "<img src='data:image/png,broken' onerror='window.pwned = true'>"
    for bypass in (False, True):
        with page_of(chromium, expected="Content Security Policy", bypass_csp=bypass) as page:
            page.goto(site)
            page.evaluate("image => document.body.insertAdjacentHTML('beforeend', image)", image)
            page.wait_for_function("() => document.querySelector('body > img').complete")
            assert page.evaluate("window.pwned === true") == bypass


def test_past_games_are_paged(page, tmp_path):
    store = GameStore(f"sqlite:///{tmp_path}/games.db")
    for seed in range(30):
        played = play(seed=seed, num_snakes=1, agent="random", ruleset="solo")
        for event in [*list(played.events(0))[:2], ("end", played.ends[0], None)]:
            tell(store, "thinker", event)
    assert store.flush(30)
    with running(create_app({"thinker": Thinker()}, store=store)) as url:
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


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 1280])
def test_it_fits_phones_and_desks_in_light_and_dark(chromium, site, scheme, width):
    play_out(referee(site, rivals=("greedy", "random"), names=["me" * 100, "b" * 200, HOSTILE[0] * 3], size=11))
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
    return page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")


def test_every_control_has_a_name_and_can_be_reached_by_tab(page, site):
    play_out(referee(site))
    open_first_game(page, site)
    page.keyboard.press("ArrowRight")
    nameless = page.evaluate(
        """() => [...document.querySelectorAll("button, input, select, a, svg[role=img]")].filter(node => {
            const label = node.getAttribute("aria-label") ?? node.labels?.[0]?.textContent ?? node.textContent;
            return !node.closest("[hidden]") && !label.trim();
        }).map(node => node.outerHTML)"""
    )
    assert nameless == []
    reached = set()
    for _ in range(20):
        page.keyboard.press("Tab")
        reached.add(page.evaluate("document.activeElement.id"))
    assert {"first", "back", "play", "onward", "last", "speed", "slider", "thoughts"} <= reached
    assert "Turn" not in page.locator("#status").inner_text()
    assert "turn 1" in page.locator("#status").inner_text()


def test_it_says_when_the_server_is_gone_and_goes_on_when_it_is_back(chromium, site):
    with page_of(chromium, expected="ERR_FAILED") as page:
        page.goto(site)
        page.locator("#no-live").wait_for()
        page.route("**/api/**", lambda route: route.abort())
        page.locator("#trouble", has_text="doesn't answer").wait_for()
        page.unroute("**/api/**")
        page.locator("#trouble").wait_for(state="hidden")


def test_a_late_answer_is_told_from_the_board(page, tmp_path):
    store, played = GameStore(f"sqlite:///{tmp_path}/games.db"), play(seed=3)
    events = list(played.events(0))
    kind, body, move = events[3]
    for event in [*events[:3], (kind, body, (move + 1) % 4), *events[4:]]:
        tell(store, "thinker", event)
    assert store.flush()
    with running(create_app({"thinker": Thinker()}, store=store)) as url:
        open_first_game(page, url)
        page.locator("#slider").fill("2")
        assert "came too late or got lost" in page.locator("#why .bad").inner_text()
        page.locator("#slider").fill("1")
        assert page.locator("#why .bad").count() == 0
        page.goto("about:blank")
    store.close()


def test_the_recording_can_be_downloaded(page, site):
    play_out(referee(site))
    open_first_game(page, site)
    with page.expect_download() as download:
        page.locator("#links a", has_text="Download").click()
    assert download.value.suggested_filename.endswith(".jsonl")
    assert page.locator("#links", has_text="Official board").count() == 0


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
