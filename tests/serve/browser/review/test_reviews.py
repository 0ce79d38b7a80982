"""The games that are open, and the order in which they are analysed."""

from __future__ import annotations

import threading

from serve.browser.review.opened_game import SNAKE
from serve.browser.review.reviews import MAX_OPEN, Reviews
from tests.serve.browser.review.games import (
    PATIENCE_S,
    changed,
    in_no_time,
    lost_game,
    refuses,
    wait_for,
)


def test_every_snake_is_analysed_the_chosen_one_first():
    reviews, (recording, proof) = Reviews(in_no_time), lost_game()
    victim = next(
        snake["id"] for snake in recording.boards()[0]["snakes"] if snake["name"] == proof.victim
    )
    game = reviews.open(recording, "lost.jsonl", first=victim)
    assert [side.state for side in reviews.sides(game.id)] == ["waiting"] * 2
    with reviews.working():
        wait_for(reviews, game.id, "done", "done")
    first, second = reviews.sides(game.id)
    assert (first.snake, first.analysis["snake"]["name"]) == (victim, proof.victim)
    assert second.snake != victim
    assert first.progress() == {
        "id": victim,
        "name": proof.victim,
        "state": "done",
        "done": 0.5,
        "reason": "",
    }


def test_a_game_that_is_open_stays_as_it_is():
    reviews = Reviews(in_no_time)
    game = reviews.open(lost_game()[0], "lost.jsonl")
    assert reviews.open(lost_game()[0], "again.jsonl") is game
    assert len(reviews.games()) == 1 == len(reviews.listed())


def test_refusals_and_failures_are_told_and_the_next_snake_is_analysed_all_the_same(caplog):
    def fails_once(recording, snake, tell):
        if not failures:
            failures.append(snake)
            raise ValueError("a bug")
        refuses(recording, snake, tell)

    failures: list[str] = []
    reviews = Reviews(fails_once)
    game = reviews.open(lost_game()[0], "lost.jsonl")
    with reviews.working():
        wait_for(reviews, game.id, "refused", "refused")
    first, second = reviews.sides(game.id)
    assert first.reason == "the analysis failed: ValueError"
    assert second.reason == f"{second.snake} is not to be judged"
    assert "a bug" in caplog.text


def test_no_more_than_a_few_games_are_open_and_a_closed_one_costs_nothing_more():
    told = threading.Event()
    is_open = threading.Event()

    def goes_on(recording, snake, tell):
        while True:
            tell(0, 1)
            told.set()
            is_open.wait(0.01)

    reviews = Reviews(goes_on)
    first = reviews.open(changed(timeout=100), "first")
    with reviews.working():
        assert told.wait(PATIENCE_S)
        others = [reviews.open(changed(timeout=101 + n), "other") for n in range(MAX_OPEN)]
        assert reviews.sides(first.id) is None
        assert reviews.game(first.id, SNAKE) is None
        # The work on the first ends, so that the game that was opened last is next.
        wait_for(reviews, others[-1].id, "running", "waiting")
    assert [entry["id"] for entry in reviews.games()] == [game.id for game in reversed(others)]


def test_it_answers_what_the_viewer_asks_for():
    reviews = Reviews(in_no_time)
    game = reviews.open(lost_game()[0], "lost.jsonl")
    snakes = [snake for snake, _ in game.snakes]
    assert sorted(body["you"] for body in reviews.bodies(game.id)) == sorted(snakes)
    assert [turn["you"] for turn in reviews.turns(game.id, SNAKE, you=snakes[1])] == [
        snakes[1]
    ] * len(game.recording.requests)
    assert reviews.recording(game.id, SNAKE) is game.recording
    assert (reviews.games(live=True), reviews.bodies("other"), reviews.turns(game.id, "other")) == (
        [],
        [],
        [],
    )
    assert reviews.statistics()["games"] == 1
