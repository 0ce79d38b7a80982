"""The rules: first single turns that a reader can follow, then every turn that the official engine
was recorded to play.
"""

from __future__ import annotations

from collections import Counter

import pytest

from envs.battlesnake import ruleset_step
from envs.battlesnake.plain import is_dead
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


def snake(name, *body, health=90):
    points = [{"x": x, "y": y} for x, y in body]
    return {"id": name, "health": health, "body": points}


def after_turn(moves, *snakes, food=(), hazards=(), **rules):
    """Play one turn on a board of 5 x 5, and return the snakes by name."""
    board = {
        "turn": 1,
        "width": 5,
        "height": 5,
        "food": [{"x": x, "y": y} for x, y in food],
        "hazards": [{"x": x, "y": y} for x, y in hazards],
        "snakes": snakes,
    }
    _, after = ruleset_step(board, moves, **{"solo": len(snakes) == 1, **rules})
    return {one["id"]: one for one in after["snakes"]}


def test_the_longer_snake_wins_head_to_head():
    short = snake("short", (1, 2), (0, 2), (0, 1))
    long = snake("long", (3, 2), (4, 2), (4, 1), (4, 0))
    after = after_turn(["right", "left"], short, long)
    assert after["short"]["eliminatedCause"] == "head-collision"
    assert after["short"]["eliminatedBy"] == "long"
    assert not is_dead(after["long"])


def test_two_equal_snakes_both_die_head_to_head():
    west = snake("west", (1, 2), (0, 2), (0, 1))
    east = snake("east", (3, 2), (4, 2), (4, 1))
    after = after_turn(["right", "left"], west, east)
    assert [one["eliminatedCause"] for one in after.values()] == ["head-collision"] * 2


def test_a_snake_dies_in_the_body_of_another():
    runner = snake("runner", (1, 1), (0, 1), (0, 0))
    wall = snake("wall", (2, 2), (2, 1), (2, 0), (3, 0))
    after = after_turn(["right", "up"], runner, wall)
    assert after["runner"]["eliminatedCause"] == "snake-collision"


def test_a_tail_that_moves_on_blocks_nobody():
    chaser = snake("chaser", (1, 0), (0, 0), (0, 1))
    mover = snake("mover", (2, 2), (2, 1), (2, 0))
    after = after_turn(["right", "up"], chaser, mover)
    assert not is_dead(after["chaser"])


def test_a_snake_dies_off_the_board():
    after = after_turn(["left"], snake("a", (0, 2), (1, 2), (2, 2)))
    assert after["a"]["eliminatedCause"] == "wall-collision"


def test_on_a_wrapped_board_a_snake_comes_in_on_the_other_side():
    after = after_turn(["left"], snake("a", (0, 2), (1, 2), (2, 2)), ruleset="wrapped")
    assert after["a"]["body"][0] == {"x": 4, "y": 2}


def test_a_snake_loses_one_health_a_turn_and_starves_at_none():
    body = [(2, 2), (2, 1), (2, 0)]
    assert after_turn(["up"], snake("a", *body, health=90))["a"]["health"] == 89
    starved = after_turn(["up"], snake("a", *body, health=1))["a"]
    assert starved["eliminatedCause"] == "out-of-health"


def test_food_gives_full_health_and_one_more_entry_at_the_tail():
    after = after_turn(["up"], snake("a", (2, 2), (2, 1), (2, 0), health=1), food=[(2, 3)])["a"]
    assert after["health"] == 100
    assert [(point["x"], point["y"]) for point in after["body"]] == [(2, 3), (2, 2), (2, 1), (2, 1)]


def test_each_layer_of_hazard_takes_its_damage():
    a = snake("a", (2, 2), (2, 1), (2, 0), health=90)
    damage = {"hazardDamagePerTurn": 14}
    once = after_turn(["up"], a, hazards=[(2, 3)], settings=damage)["a"]
    twice = after_turn(["up"], a, hazards=[(2, 3)] * 2, settings=damage)["a"]
    assert [once["health"], twice["health"]] == [90 - 1 - 14, 90 - 1 - 2 * 14]


def test_a_hazard_can_kill_but_not_on_food():
    a = snake("a", (2, 2), (2, 1), (2, 0), health=10)
    damage = {"hazardDamagePerTurn": 14}
    dead = after_turn(["up"], a, hazards=[(2, 3)], settings=damage)["a"]
    fed = after_turn(["up"], a, hazards=[(2, 3)], food=[(2, 3)], settings=damage)["a"]
    assert dead["eliminatedCause"] == "hazard"
    assert fed["health"] == 100


def test_in_constrictor_every_snake_grows_and_keeps_full_health():
    after = after_turn(["up"], snake("a", (2, 2), (2, 1), (2, 0)), ruleset="constrictor")["a"]
    assert after["health"] == 100
    assert len(after["body"]) == 4


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
