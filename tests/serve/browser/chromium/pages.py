"""Games to look at in a browser, and what is read off their pages."""

from __future__ import annotations

import agents
from agents.measure.evaluation.referee import Referee
from envs.battlesnake.settings import Settings
from serve.archive.store import GameStore
from serve.arena import create_app
from serve.timing.deadline import MAX_TIMEOUT_MS
from tests.serve.archive.played import tell_all
from tests.serve.browser.viewer.thinker import Thinker

HOSTILE = [
    "<img src=x onerror=\"document.title='pwned'\">",
    "</script><script>document.title='pwned'</script>",
    "\u202eevil\u0007name",
    "javascript:alert(1)",
]


def arena_of(store):
    """An arena whose only snake is the thinker. It has all the time that `referee` gives it: see
    there.
    """
    return create_app({"thinker": Thinker()}, store=store, max_think_ms=MAX_TIMEOUT_MS)


def referee(url, *, seed=1, names=("me", "other"), size=7, rivals=("greedy",), **settings):
    """A game between the thinker and others.

    The timeout is the longest there is, so that the game is the same on a busy machine: with the
    usual 500 ms, a single late answer leaves turn 0 unknown, or ends the game on turn 3."""
    seats = [f"{url}/snakes/thinker", *map(agents.make, rivals)]
    options = {
        "names": names,
        "seed": seed,
        "width": size,
        "height": size,
        "timeout_ms": MAX_TIMEOUT_MS,
    }
    return Referee(seats, settings=Settings(**settings), **options)


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
    page.wait_for_function(
        "turn => document.getElementById('turn').textContent === `Turn ${turn}`", arg=turn
    )


def store_of(tmp_path, played, slots):
    """A store of a game as some of its snakes, all ours and called thinker, were told it."""
    store = GameStore(f"sqlite:///{tmp_path}/games.db")
    for slot in slots:
        tell_all(store, "thinker", played, slot)
    assert store.flush()
    return store
