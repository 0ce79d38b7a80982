"""The page of one game in headless Chromium: its turns, what the snake thought, and its
recording.
"""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
import sys

import pytest

from envs.battlesnake.plain import board_from_state
from envs.battlesnake.recording import Recording
from envs.battlesnake.state import MOVE_NAMES
from tests.serve.browser.chromium.pages import (
    expect_turn,
    open_first_game,
    play_out,
    referee,
    shown_turn,
)
from tests.serve.browser.viewer.thinker import AGAINST_TURN, FAILING_TURN

pytestmark = pytest.mark.long


def test_match_shows_the_whole_game_in_the_browser(page):
    """The newcomer's way: one command, the address it prints, Ctrl-C. The first player dies long
    before the end.
    """
    players = shlex.split("random greedy flood --width 7 --height 7 --seed 5 --delay 0.01")
    command = [sys.executable, "-m", "procsnake", "match", *players, "--browser"]
    show = subprocess.Popen(
        command, env=os.environ | {"BROWSER": "true"}, stdout=subprocess.PIPE, text=True
    )
    try:
        page.goto(re.search(r"http://\S+", show.stdout.readline())[0])
        page.locator("#about .lost").wait_for()
        last = int(page.locator("#slider").get_attribute("max"))
        page.locator("#slider").fill(str(last))
        expect_turn(page, last)
        fates = page.locator("#snakes .fate").all_inner_texts()
        assert len(fates) == 2
        assert not [fate for fate in fates if "out" in fate or "between" in fate]
        died = int(re.search(r"turn (\d+)", fates[0])[1])
        assert 0 < died < last - 5
        assert page.locator("#why .warn").count() == 0
        page.locator("#slider").fill(str(died + 1))
        expect_turn(page, died + 1)
        assert "This snake is dead and decides no more." in page.locator("#why").inner_text()
        page.locator("#snakes a", has_text="flood").click()
        page.locator("#about .won").wait_for()
        expect_turn(page, died + 1)
        assert page.locator("#why tr.played").count() == 1
        with page.expect_download() as download:
            page.locator("#links a", has_text="Download").click()
        assert len(Recording.read(download.value.path()).turns) == last + 1
        page.goto("about:blank")
        show.send_signal(signal.SIGINT)
        told = show.communicate(timeout=120)[0]
    finally:
        show.kill()
        show.wait()
    assert show.returncode == 0
    assert f"flood wins after {last} turns" in told


def test_a_game_that_our_snake_wins_is_known_to_its_end(page, site):
    game = referee(site, rivals=("random",))
    last = play_out(game)
    assert game.result.winner == "me"
    open_first_game(page, site)
    page.keyboard.press("End")
    expect_turn(page, last + 1)
    assert page.locator("#why .warn").count() == 0
    assert page.locator("#hole").is_hidden()


def test_a_game_is_scrubbed_with_slider_buttons_and_keys(page, site):
    last = play_out(referee(site))
    open_first_game(page, site)
    assert int(page.locator("#slider").get_attribute("max")) == last > 8
    expect_turn(page, 0)
    for key, turn in (
        ("ArrowRight", 1),
        ("ArrowRight", 2),
        ("ArrowLeft", 1),
        # The end is told one turn on, as the official program does.
        ("End", last + 1),
        ("Home", 0),
    ):
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
    heads = [
        snake["body"][0]
        for snake in board_from_state(state, 0, ["0", "1"])["snakes"]
        if not snake["eliminatedCause"]
    ]
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
    assert re.search(r"latency\s+[\d.]+ ms of 10000 ms", facts)
    assert page.locator("#board .arrow").count() == 4
    page.keyboard.press("t")
    assert page.locator("#board .arrow").count() == 0
    page.keyboard.press("t")
    for turn in range(AGAINST_TURN):
        page.locator("#slider").fill(str(turn))
        assert page.locator("#why .warn").count() == 0
    page.locator("#slider").fill(str(AGAINST_TURN))
    told = re.fullmatch(
        r"Played (\w+), though the policy preferred (\w+)\.",
        page.locator("#why .warn").inner_text(),
    )
    assert MOVE_NAMES.index(told[2]) == (MOVE_NAMES.index(told[1]) + 1) % 4
    page.locator("#slider").fill(str(FAILING_TURN))
    assert (
        "The watchdog answered, not the agent: RuntimeError"
        in page.locator("#why .bad").inner_text()
    )
    assert page.locator("#why table .track").count() == 0


def test_the_recording_can_be_downloaded(page, site):
    play_out(referee(site))
    open_first_game(page, site)
    with page.expect_download() as download:
        page.locator("#links a", has_text="Download").click()
    assert download.value.suggested_filename.endswith(".jsonl")
    assert page.locator("#links", has_text="Official board").count() == 1
