"""Openings: varied, repeatable, and nobody has lost by them; books that are what they say."""

from __future__ import annotations

import json
import re
from itertools import repeat

import numpy as np
import pytest

from agents.measure.sprt.openings import BookError, opening, openings, read_book, write_book
from agents.measure.sprt.settings import Opening
from agents.search.alphabeta.agent import AlphaBeta
from agents.search.evaluation.evaluate import SURE, Weights
from envs.battlesnake.games import play_turn, start_games
from envs.battlesnake.state import ALIVE, State
from envs.common.errors import ConfigError
from tests.agents.measure.sprt.made import small


def after(test, one):
    """The board behind an opening, and whether the game goes on."""
    state = State(
        1, width=test.width, height=test.height, num_snakes=test.seats, settings=test.settings
    )
    state.seed(one.seed)
    running = start_games(state)
    for turn in one.as_array(test.seats):
        play_turn(state, turn[None], running)
    return state, bool(running[0])


@pytest.mark.parametrize("seats", [2, 4])
def test_everybody_lives_and_nobody_is_lost(seats):
    test = small("flood", "greedy", seats=seats, opening_turns=6, seed=1)
    found = list(openings(test, 12))
    assert len({one.moves for one in found}) > 10
    assert found == list(openings(test, 12))
    for one in found:
        state, goes_on = after(test, one)
        assert goes_on
        assert (state.arrays.turn[0], (state.arrays.cause[0] == ALIVE).all()) == (6, True)
        scores = [
            AlphaBeta(nodes=500).act(state.copy(), slot).note["score"] for slot in range(seats)
        ]
        assert min(scores) > -SURE


def test_the_search_throws_out_what_is_lost(monkeypatch):
    test = small("flood", "greedy", opening_turns=14, seed=1)
    filtered = [opening(test, block) for block in range(20)]
    monkeypatch.setattr("agents.measure.sprt.openings._is_lost_for_someone", lambda state: False)
    assert filtered != [opening(test, block) for block in range(20)]


def test_the_search_has_the_same_weights_whatever_alphabetas_defaults_become(monkeypatch):
    made = []

    class Noted(AlphaBeta):
        def __init__(self, **options):
            super().__init__(**options)
            made.append(self)

    monkeypatch.setattr("agents.search.evaluation.evaluate.CROWD", Weights(length=600))
    monkeypatch.setattr("agents.measure.sprt.openings.AlphaBeta", Noted)
    opening(small("flood", "greedy", seats=4), 0)
    assert {(one.weights, one.crowd_weights, one.learned) for one in made} == {
        (Weights(), Weights(), None)
    }


def test_too_many_random_turns_are_said(monkeypatch):
    monkeypatch.setattr("agents.measure.sprt.openings._is_lost_for_someone", lambda state: True)
    with pytest.raises(ConfigError, match="Ask for fewer turns"):
        opening(small("flood", "greedy"), 0)


def test_a_book_is_read_as_it_was_written(tmp_path):
    test = small("flood", "greedy")
    found = list(openings(test, 5))
    write_book(tmp_path / "book.jsonl", test, found)
    assert read_book(tmp_path / "book.jsonl", test) == tuple(found)
    assert np.array_equal(Opening(3, ("ud", "lr")).as_array(2), [[0, 1], [2, 3]])


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("no json", "not a book"),
        ('{"seed": -1, "moves": []}', "seed is -1"),
        ('{"seed": 1, "moves": ["xx"]}', "xx"),
        ('{"seed": 1, "moves": ["u"]}', "opening 1"),
        ('{"seed": 1, "moves": 7}', "not a book"),
        ('{"seed": 1, "moves": [["u", "d"]]}', "texts"),
        ('{"seed": 1, "moves": ["uu", "uu", "uu", "uu", "uu", "uu", "uu", "uu"]}', "opening 1"),
        ("", "no openings"),
    ],
)
def test_a_book_that_leads_nowhere_is_refused(tmp_path, line, told):
    test = small("flood", "greedy")
    path = tmp_path / "book.jsonl"
    write_book(path, test, [])
    path.write_text(path.read_text() + line)
    with pytest.raises(BookError, match=told):
        read_book(path, test)


@pytest.mark.parametrize(
    ("one", "fit"),
    [(Opening(1, ()), 10_000), (Opening(1 << 62, ("udlr",) * 40), (1 << 20) // 450)],
    ids=["many", "long"],
)
def test_no_book_is_written_that_could_not_be_read(tmp_path, one, fit):
    test = small("flood", "greedy", seats=4)
    path = tmp_path / "book.jsonl"
    with pytest.raises(
        BookError, match=r"Ask for at most --games \d+, or for fewer --opening-turns"
    ) as refused:
        write_book(path, test, repeat(one))
    assert not path.exists()
    most = int(re.search(r"--games (\d+)", str(refused.value))[1])
    assert write_book(path, test, [one] * (most // 4)) == most // 4 >= fit
    assert path.stat().st_size <= 1 << 20


def test_a_book_of_too_many_openings_is_refused_and_not_cut(tmp_path):
    test = small("flood", "greedy")
    path = tmp_path / "book.jsonl"
    write_book(path, test, [])
    path.write_text(path.read_text() + '{"seed": 1, "moves": []}\n' * 10_001)
    with pytest.raises(BookError, match="10001 openings, more than 10000"):
        read_book(path, test)


def test_a_book_of_other_games_is_refused(tmp_path):
    write_book(tmp_path / "book.jsonl", small("flood", "greedy", width=9), [])
    with pytest.raises(BookError, match="other width"):
        read_book(tmp_path / "book.jsonl", small("flood", "greedy"))
    head = json.loads((tmp_path / "book.jsonl").read_text())
    (tmp_path / "book.jsonl").write_text(json.dumps({**head, "procsnake_book": 7}))
    with pytest.raises(BookError, match="version 7"):
        read_book(tmp_path / "book.jsonl", small("flood", "greedy"))
