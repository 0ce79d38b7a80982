"""A game's analysis in headless Chromium: files that are dropped, graph, every snake's opinions,
faults, lines, keys.
"""

from __future__ import annotations

import re
import threading
import time
from functools import cache

import pytest

from agents.measure.analysis.as_json import as_json
from agents.measure.analysis.game import analyse
from agents.measure.analysis.snake_game import game_of
from agents.measure.analysis.win_probability import WinProbability
from envs.battlesnake.recording import Recording
from envs.battlesnake.state import MOVE_NAMES
from envs.common.errors import ConfigError
from serve.archive.store import GameStore
from serve.browser.review.reviews import Reviews
from serve.browser.review.routes import review_app
from serve.server import running
from tests.browser import page_of
from tests.serve.browser.chromium.pages import (
    HOSTILE,
    arena_of,
    expect_turn,
    open_first_game,
    play_out,
    referee,
    shown_turn,
)
from tests.serve.browser.chromium.test_layout import overflow
from tests.serve.browser.review.games import lost_game, text_of

pytestmark = pytest.mark.long
FAULTS = ("inaccuracy", "mistake", "blunder")
STEPS = {"up": (0, -1), "down": (0, 1), "left": (-1, 0), "right": (1, 0)}


@cache
def analysis_of(snake):
    """What the search thinks of the game from this snake's side."""
    return as_json(
        analyse(game_of(lost_game()[0], snake), nodes=500, curves=WinProbability.shipped())
    )


def told(recording, snake, tell):
    return analysis_of(snake)


def victim():
    recording, proof = lost_game()
    return next(
        snake["id"] for snake in recording.boards()[0]["snakes"] if snake["name"] == proof.victim
    )


def sides():
    """The victim and the winner, by id."""
    return sorted(
        (snake["id"] for snake in lost_game()[0].boards()[0]["snakes"]),
        key=lambda snake: snake != victim(),
    )


@pytest.fixture
def reviews():
    return Reviews(told)


@pytest.fixture
def site(reviews):
    with reviews.working(), running(review_app(reviews, curves=WinProbability.shipped())) as url:
        yield url


@pytest.fixture
def shown(page, site, reviews):
    """The page of the game, with both analyses; the victim's is looked at."""
    open_game(page, site, reviews)
    return page


def open_game(page, site, reviews, recording=None):
    game = reviews.open(recording or lost_game()[0], "lost.jsonl", first=victim())
    page.goto(f"{site}{game.path}?you={victim()}#turn=0")
    page.locator("#verdicts > *").first.wait_for()
    page.locator("#waiting").wait_for(state="hidden")


def drop(page, name, text):
    held = (
        "([name, text]) => { const held = new DataTransfer(); held.items.add(new File([text],"
        " name)); return held; }"
    )
    page.dispatch_event("body", "drop", {"dataTransfer": page.evaluate_handle(held, [name, text])})


def faulty_turns(*snakes):
    found = set()
    for snake in snakes:
        one = analysis_of(snake)
        found |= {
            turn["turn"]
            for turn in one["turns"]
            if turn["class"] in FAULTS or turn["turn"] == one["lost_turn"]
        }
    return sorted(found)


@pytest.mark.parametrize("by", ["drop", "choice"])
def test_a_file_is_opened_and_the_page_says_where_the_game_was_lost(page, site, by):
    page.goto(site)
    text = text_of(lost_game()[0])
    if by == "drop":
        drop(page, "lost.jsonl", text)
    else:
        page.locator("#file").set_input_files(
            {"name": "lost.jsonl", "mimeType": "", "buffer": text.encode()}
        )
    page.locator("#side option").first.wait_for(state="attached")
    page.locator("#side").select_option(value=victim())
    one = analysis_of(victim())
    page.locator(".verdicts button").click()
    assert shown_turn(page) == one["lost_turn"]
    verdict = page.locator("#verdicts .note").inner_text().lower()
    for sentence in (*one["lost_sentence"].split("\n"), one["cause_sentence"]):
        assert sentence.lower() in verdict
    page.locator(".home").click()
    page.locator("#games a").click()
    page.locator("#turn").wait_for()


def test_on_every_turn_the_moves_have_the_chances_of_the_analysis(shown):
    for snake in sides():
        shown.locator("#side").select_option(value=snake)
        shown.keyboard.press("Escape")
        for turn in analysis_of(snake)["turns"]:
            shown.locator("#slider").fill(str(turn["turn"]))
            rows = shown.locator("#opinions tbody tr")
            for row, name in zip(rows.all_inner_texts(), MOVE_NAMES, strict=True):
                move = turn["moves"][name]
                chance = re.search(r"([\d.]+) %", row)
                assert ("†" in row) == ("certain death" in row) == move["certain_death"]
                assert (
                    chance is None
                    if move["certain_death"]
                    else float(chance[1]) == pytest.approx(100 * move["probability"], abs=0.51)
                )
                assert ("played" in row) == (name == turn["played"])
                assert ("best" in row) == (name == turn["best"])


def test_a_move_that_costs_nothing_is_not_said_to_be_best_beside_another(shown):
    judged = "async (entry) => (await import('/viewer/opinions.js')).judged(entry)"

    def said(**entry):
        return shown.evaluate(judged, {"best": "down", "points_lost": 0.2, **entry})

    assert said(played="right", **{"class": "best"}) == "right was as good as down."
    assert said(played="right", **{"class": "forced"}) == "right was as good as down."
    assert said(played="down", **{"class": "best"}) == "down was best."
    assert (
        said(played="right", points_lost=9, **{"class": "inaccuracy"})
        == "right was an inaccuracy, which cost 9 points. Best was down."
    )


def test_all_snakes_are_shown_at_once(shown):
    shown.locator("#side").select_option(label="all snakes")
    names = {analysis_of(snake)["snake"]["name"] for snake in sides()}
    assert set(shown.locator("#opinions tbody .name").all_inner_texts()) == names
    first = [analysis_of(snake)["turns"][0] for snake in sides()]
    for row, turn in zip(shown.locator("#opinions tbody tr").all_inner_texts(), first, strict=True):
        assert len(re.findall(r"†|[\d.]+ %", row)) == 4
        assert turn["class"] in row
    assert shown.locator("#faults button").count() == sum(
        len(faulty_turns(snake)) for snake in sides()
    )
    assert shown.locator("#chances .chance.chosen").count() == 2


def test_keys_and_buttons_jump_from_mistake_to_mistake(shown):
    turns = faulty_turns(victim())
    assert len(turns) == 3
    for turn in turns:
        shown.keyboard.press("n")
        expect_turn(shown, turn)
        assert shown.locator("#faults [aria-current]").inner_text().startswith(f"Turn {turn}")
    assert shown.locator("#fault-after").is_disabled()
    shown.keyboard.press("n")
    for turn in reversed(turns[:-1]):
        shown.keyboard.press("p")
        expect_turn(shown, turn)
    shown.locator("#faults button").last.click()
    expect_turn(shown, turns[-1])
    assert shown.evaluate("document.activeElement.getAttribute('aria-current')") == "true"
    assert "n" in shown.locator("#analysis-keys kbd").all_inner_texts()
    judged = next(turn for turn in analysis_of(victim())["turns"] if turn["turn"] == turns[-1])
    assert f"{judged['played']} was a {judged['class']}" in shown.locator("#status").inner_text()


def test_the_graph_has_every_chance_and_a_click_goes_to_its_turn(shown):
    turns = analysis_of(victim())["turns"]
    path = shown.locator("#chances .chance.chosen").get_attribute("d")
    points = [tuple(map(float, point.split())) for point in re.findall(r"[ML]([^ML]+)", path)]
    assert points == [
        (turn["turn"] + 0.5, pytest.approx(100 * (1 - turn["chance"]), abs=0.06)) for turn in turns
    ]
    box = shown.locator("#chances").bounding_box()
    count = len(lost_game()[0].requests)
    shown.mouse.move(box["x"] + box["width"] * 6.5 / count, box["y"] + 20)
    # What the mouse points at is drawn a moment later.
    shown.wait_for_selector("#readout:has-text('Turn 6')")
    assert shown_turn(shown) == 0
    shown.mouse.click(box["x"] + box["width"] * 4.5 / count, box["y"] + 20)
    expect_turn(shown, 4)
    assert "Chances of winning" in shown.locator("#chances").get_attribute("aria-label")


def test_the_best_line_leads_through_the_cells_of_its_moves(shown):
    one = analysis_of(victim())
    shown.locator(".verdicts button").click()
    board = next(board for board in lost_game()[0].boards() if board["turn"] == one["lost_turn"])
    head = next(snake["body"][0] for snake in board["snakes"] if snake["id"] == victim())
    x = head["x"] + 0.5
    y = board["height"] - head["y"] - 0.5
    for step in one["best_line"]:
        dx, dy = STEPS[step[victim()]]
        x = x + dx
        y = y + dy
    # The click's turn is drawn a moment later, and what was drawn before has no place any more.
    until = time.monotonic() + 30
    tip = [-1.0, -1.0]
    while time.monotonic() < until and max(abs(tip[0] - x), abs(tip[1] - y)) >= 0.6:
        own = shown.locator("#board .line.own .tip:not(.edge)")
        tip = own.evaluate("tip => { const b = tip.getBBox(); return [b.x, b.y]; }")
    assert tip == pytest.approx([x, y], abs=0.6)
    assert shown.locator("#board .line").count() == len(one["best_line"][0])
    shown.locator("#turn").click()
    shown.keyboard.press("b")
    assert shown.locator("#board .line").count() == 0
    assert not shown.locator("#lines").is_checked()


def test_the_fit_is_shown_for_the_curves_in_use(shown):
    shown.locator("#fit summary").click()
    used = {turn["curve"] for turn in analysis_of(victim())["turns"]}
    shipped = WinProbability.shipped()
    assert shown.locator(".fit").count() == len(used)
    for group in used:
        assert f"score / {shipped.curves[group].scale:g}" in shown.locator("#curves").inner_text()
        assert shown.locator("#curves tbody tr").count() >= len(shipped.training["bins"][group])


def test_progress_is_shown_and_a_refusal_says_why(page):
    may_end = threading.Event()

    def slow(recording, snake, tell):
        tell(1, 4)
        assert may_end.wait(20)
        raise ConfigError("this is a solo game")

    reviews = Reviews(slow)
    with reviews.working(), running(review_app(reviews, curves=WinProbability.shipped())) as url:
        page.goto(f"{url}{reviews.open(lost_game()[0], 'x').path}")
        page.locator("#waited", has_text="Judging the moves of").wait_for()
        assert page.locator("#progress").evaluate("bar => bar.value") == pytest.approx(1 / 8)
        may_end.set()
        page.locator("#verdicts .warn", has_text="this is a solo game").wait_for()
        page.locator("#waiting").wait_for(state="hidden")
        page.goto("about:blank")


def test_what_is_known_can_be_used_while_the_other_snake_is_analysed(page):
    may_end = threading.Event()

    def one_waits(recording, snake, tell):
        assert snake == victim() or may_end.wait(20)
        return analysis_of(snake)

    reviews = Reviews(one_waits)
    with reviews.working(), running(review_app(reviews, curves=WinProbability.shipped())) as url:
        page.goto(f"{url}{reviews.open(lost_game()[0], 'x', first=victim()).path}?you={victim()}")
        button = page.locator("#faults button").first
        button.focus()
        with page.expect_response("**/api/analyses/*"):
            pass
        with page.expect_response("**/api/analyses/*"):
            pass
        assert button.evaluate("button => button === document.activeElement")
        assert page.locator("#waiting").is_visible()
        page.locator("#side").select_option(index=1)
        assert page.locator("#faults").inner_text() == "Not judged yet."
        may_end.set()
        page.locator("#opinions table").wait_for()
        page.goto("about:blank")


def test_what_is_no_game_is_told_and_the_page_stays(chromium, site):
    with page_of(chromium, expected="400") as page:
        page.goto(site)
        drop(page, "picture.png", "nothing")
        page.locator("#trouble", has_text="picture.png is not a recording").wait_for()
        assert page.url.endswith("/analyse")


def test_names_of_strangers_are_text(page, site, reviews):
    recording = lost_game()[0]
    names = dict(zip(sides(), HOSTILE, strict=False))
    requests = [
        {
            **request,
            "board": {
                **request["board"],
                "snakes": [{**s, "name": names[s["id"]]} for s in request["board"]["snakes"]],
            },
        }
        for request in recording.requests
    ]
    open_game(page, site, reviews, Recording(recording.game, requests, recording.result))
    page.locator("#side").select_option(value="")
    page.keyboard.press("n")
    assert HOSTILE[0][:20] in page.locator("#opinions").inner_text()
    assert page.title() != "pwned"
    assert page.locator("main img").count() == 0


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 1280])
def test_it_fits_phones_and_desks_and_is_reached_by_keyboard(
    chromium, site, reviews, scheme, width
):
    with page_of(chromium, color_scheme=scheme, viewport={"width": width, "height": 800}) as page:
        page.goto(site)
        page.locator(".drop").wait_for()
        assert overflow(page) <= 0
        open_game(page, site, reviews)
        page.locator("#side").select_option(value="")
        page.locator("#fit summary").click()
        assert overflow(page) <= 0
        for control in ("#side", "#fault-before", "#fault-after", "#chances"):
            box = page.locator(control).bounding_box()
            assert box["x"] >= 0
            assert box["x"] + box["width"] <= width, control
        cut = (
            "all => all.filter(cell => cell.scrollWidth > cell.clientWidth + 1).map(cell =>"
            " cell.outerHTML)"
        )
        assert page.locator("#analysis td, #analysis button").evaluate_all(cut) == []
        reached = set()
        page.locator("#speed").focus()
        for _ in range(14):
            page.keyboard.press("Tab")
            reached.add(page.evaluate("document.activeElement.id"))
        assert {"side", "lines", "fault-after"} <= reached


def test_a_server_for_engines_analyses_nothing_and_says_how(page, tmp_path):
    store = GameStore(f"sqlite:///{tmp_path}/games.db")
    with running(arena_of(store)) as url:
        play_out(referee(url))
        open_first_game(page, url)
        assert page.locator("#analysis").is_hidden()
        assert "procsnake analyse FILE --browser" in page.locator("#how-to-analyse").inner_text()
        assert page.request.post(f"{url}/api/analyses", data=text_of(lost_game()[0])).status == 404
        page.goto("about:blank")
    store.close()
