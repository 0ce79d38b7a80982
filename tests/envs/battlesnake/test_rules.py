"""The rules against every turn that the official engine was recorded to play."""

from __future__ import annotations

from collections import Counter

import pytest

from envs.battlesnake import ruleset_step
from envs.battlesnake.settings import RULESETS
from tests.envs.battlesnake.maps.test_catalogue import check_royale, points
from tests.envs.battlesnake.traces import games, start_boards, transitions

RECORDED = {
    "standard": 5714,
    "solo": 11830,
    "royale": 5712,
    "wrapped": 7627,
    "constrictor": 3215,
    "wrapped_constrictor": 3781,
}


def _multiset(points):
    return Counter((p["x"], p["y"]) for p in points)


def _difference(expected, board, ruleset):
    """Names of what differs. Royale's walls are drawn at random, so `check_royale` judges its
    hazards.
    """
    wrong = [
        key for key in ("food", "hazards") if _multiset(expected[key]) != _multiset(board[key])
    ]
    if ruleset == "royale" and "hazards" in wrong:
        wrong.remove("hazards")
    return wrong + [
        f"snake {i}"
        for i, pair in enumerate(zip(expected["snakes"], board["snakes"]))
        if pair[0] != pair[1]
    ]


def _game_rules(game):
    return {"ruleset": game["ruleset"], "settings": game["settings"], "solo": game["solo"]}


@pytest.mark.parametrize("ruleset", RULESETS)
def test_agrees_with_every_recorded_transition(ruleset):
    compared = 0
    differences = []
    for game in games():
        if game["ruleset"] != ruleset:
            continue
        for t in transitions(game):
            over, board = ruleset_step(t.before, t.moves, **_game_rules(game))
            wrong = _difference(t.stepped, board, ruleset) + ["over"] * (over != t.over)
            if wrong:
                differences.append((game["id"], t.turn, wrong))
            if ruleset == "royale" and not t.over:
                moves = (t.turn + 1) // game["settings"]["shrinkEveryNTurns"]
                for stepped in (t.stepped, board):
                    check_royale(board["width"], board["height"], moves, points(stepped["hazards"]))
            compared += 1
    assert differences == []
    assert compared == RECORDED[ruleset]


def test_agrees_with_every_recorded_initialisation():
    compared = 0
    for game in games():
        if game["kind"] == "map":
            laid_out, first = start_boards(game)
            over, board = ruleset_step(laid_out, [], **_game_rules(game))
            assert over == game.get("start_over", False)
            assert _difference(first, board, game["ruleset"]) == []
            compared += 1
    assert compared == 450
