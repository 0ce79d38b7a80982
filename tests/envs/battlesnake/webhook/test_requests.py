"""The webhook's JSON against requests that the official engine sent, and against what other engines
may send.
"""

from __future__ import annotations

import copy
import json
import logging

import numpy as np
import pytest

from envs.battlesnake.safety import safe_moves
from envs.battlesnake.settings import Settings
from envs.battlesnake.webhook import (
    UnheldBoardError,
    WebhookError,
    fields,
    game_object,
    move_request,
    read_move_request,
)
from tests.envs.battlesnake.positions import board, living, random_games
from tests.envs.battlesnake.traces import DATA


def recorded():
    game, *requests, result = (
        json.loads(line) for line in (DATA / "cli-output-example.jsonl").read_text().splitlines()
    )
    assert "isDraw" in result
    return game, requests


def written_back(request):
    """The request, read into a state and written from it."""
    turn = read_move_request(request)
    by_id = {snake["id"]: snake for snake in [*request["board"]["snakes"], request["you"]]}
    slots = [by_id[snake_id] for snake_id in turn.ids]
    return move_request(
        turn.state,
        0,
        game=request["game"],
        ids=turn.ids,
        names=turn.names,
        you=turn.you,
        latencies=[snake["latency"] for snake in slots],
        customizations=[snake["customizations"] for snake in slots],
    )


def sorted_points(request):
    request = copy.deepcopy(request)
    for key in ("food", "hazards"):
        request["board"][key].sort(key=lambda p: (p["x"], p["y"]))
    return request


def test_every_recorded_request_round_trips():
    _, requests = recorded()
    compared = 0
    for request in requests:
        if any(snake["id"] == request["you"]["id"] for snake in request["board"]["snakes"]):
            assert written_back(request) == sorted_points(request)
            compared += 1
    assert compared > 50


def test_the_recorded_game_object_is_the_one_we_write():
    game, _ = recorded()
    settings = read_move_request(recorded()[1][0]).state.settings
    assert game_object(settings, game["id"], timeout_ms=game["timeout"]) == game


def test_y_grows_upwards():
    """A head one below the upper edge may go up once; read upside down it would be at the lower
    edge.
    """
    request = plain_request(board(7, 7, [(3, 5), (3, 4), (3, 3)], [(0, 0), (1, 0), (2, 0)]))
    turn = read_move_request(request)
    assert turn.state.body(0, 0)[0] == (3, 5)
    request["you"]["body"] = request["board"]["snakes"][0]["body"] = [
        {"x": 3, "y": 6},
        {"x": 3, "y": 5},
        {"x": 3, "y": 4},
    ]
    up, down, left, right = safe_moves(
        read_move_request(request).state, np.array([0]), np.array([0])
    )[0]
    assert (up, down, left, right) == (False, False, True, True)


def plain_request(state, you=0, **game):
    ids = [f"s{i}" for i in range(state.num_snakes)]
    return move_request(
        state, 0, game=game_object(state.settings, "g") | game, ids=ids, names=ids, you=you
    )


@pytest.mark.parametrize(
    "game", [{}, {"ruleset": "royale", "shrink_every_n_turns": 2}, {"map": "snail_mode"}], ids=str
)
def test_played_states_round_trip(game):
    for state in random_games(num_boards=2, turns=30, **game):
        boards, slots = living(state)
        for b, slot in list(zip(boards, slots, strict=True))[:2]:
            ids = [f"s{i}" for i in range(4)]
            request = move_request(
                state, b, game=game_object(state.settings, "g"), ids=ids, names=ids, you=slot
            )
            turn = read_move_request(request)
            again = move_request(
                turn.state, 0, game=request["game"], ids=turn.ids, names=turn.names, you=turn.you
            )
            assert again == request


def test_other_engines_are_understood():
    state = board(7, 7, [(3, 3), (3, 2), (3, 1)], [(0, 0), (1, 0), (2, 0)])
    request = plain_request(state, map="", timeout=0)
    request["board"]["snakes"].insert(
        0, {"id": "dead", "health": 0, "body": [{"x": -1, "y": 3}, {"x": 0, "y": 3}]}
    )
    request["board"]["hazards"] = [{"x": 2, "y": 9}, {"x": 6, "y": 6}, {"x": 6, "y": 6}]
    request["game"]["ruleset"] = {"name": "squad", "unknown": 1}
    request["board"]["unknown"] = request["unknown"] = {"deep": [1]}
    turn = read_move_request(request)
    assert turn.ids == ["s0", "s1"]
    assert turn.timeout_ms == 500
    assert (turn.state.settings.ruleset, turn.state.settings.map) == ("standard", "standard")
    assert turn.state.arrays.hazards[0, turn.state.cell(6, 6)] == 2


def test_you_are_taken_from_you_alone():
    request = plain_request(board(7, 7, [(3, 3), (3, 2), (3, 1)], [(0, 0), (1, 0), (2, 0)]))
    request["board"]["snakes"] = request["board"]["snakes"][1:]
    turn = read_move_request(request)
    assert turn.ids == ["s1", "s0"]
    assert turn.you == 1
    assert turn.state.body(0, 1)[0] == (3, 3)


HEAD = {"x": 3, "y": 3}
CELL = {"x": 0, "y": 0}


@pytest.mark.parametrize(
    ("change", "named"),
    [
        (lambda r: r.pop("you"), "you is NoneType"),
        (lambda r: r["board"].update(width=0), "board.width is 0"),
        (lambda r: r["board"].update(height=True), "board.height is True"),
        (lambda r: r["board"].update(snakes={}), "board.snakes is dict"),
        (lambda r: r["you"].update(health="100"), "you.health is '100'"),
        (lambda r: r["you"].update(body=[{"x": 1.5, "y": 1}]), r"you.body\[0\].x is 1.5"),
        (
            lambda r: r["you"].update(body=[{"x": 0, "y": 0}, {"x": 0, "y": 1}] * 100),
            "you.body is not a list of at most 52",
        ),
        (
            lambda r: r["you"].update(body=[HEAD, *[CELL] * 60, {"x": "<b>", "y": 0}, CELL]),
            r"you.body\[61\].x is '<b>'",
        ),
        (
            lambda r: r["you"].update(body=[HEAD, *[CELL] * 60, {"x": 0, "y": False}]),
            r"you.body\[61\].y is False",
        ),
        (
            lambda r: r["you"].update(body=[HEAD, *[CELL] * 60, HEAD, CELL]),
            "you.body is not a list of at most 52",
        ),
        (lambda r: r["you"].update(body=[]), "you is dead"),
        (lambda r: r["board"].update(food=[{"x": 1}]), r"board.food\[0\].y is None"),
        (lambda r: r["board"].update(snakes=r["board"]["snakes"] * 40), "at most 16"),
        (lambda r: r["board"].update(hazards={"x": 1}), "board.hazards is dict"),
        (lambda r: r["game"].update(id=7), "game.id is 7"),
    ],
    ids=lambda value: value if isinstance(value, str) else "change",
)
def test_what_no_engine_sends_is_refused_by_field(change, named):
    request = plain_request(board(7, 7, [(3, 3), (3, 2), (3, 1)], [(0, 0), (1, 0), (2, 0)]))
    change(request)
    with pytest.raises(WebhookError, match=named):
        read_move_request(request)


@pytest.mark.parametrize(
    ("sent", "read"),
    [
        ({"foodSpawnChance": 150}, {"food_spawn_chance": 101}),
        ({"foodSpawnChance": -5}, {"food_spawn_chance": 0}),
        ({"minimumFood": 1000}, {"minimum_food": 625}),
        ({"minimumFood": -1}, {"minimum_food": 0}),
        ({"hazardDamagePerTurn": 5000}, {"hazard_damage": 1000}),
        ({"hazardDamagePerTurn": -(10**9)}, {"hazard_damage": -1000}),
        ({"royale": {"shrinkEveryNTurns": -1}}, {"shrink_every_n_turns": 0}),
        ({"royale": {"shrinkEveryNTurns": 10**12}}, {"shrink_every_n_turns": 1 << 30}),
        ({"royale": 7, "minimumFood": "three", "foodSpawnChance": True}, {}),
    ],
    ids=str,
)
def test_settings_that_the_official_program_takes_are_read_as_the_nearest_and_said_once(
    sent, read, caplog, monkeypatch
):
    monkeypatch.setattr(fields, "_already_logged", set())
    request = plain_request(board(7, 7, [(3, 3), (3, 2), (3, 1)], [(0, 0), (1, 0), (2, 0)]))
    request["game"]["ruleset"]["settings"].update(sent)
    with caplog.at_level(logging.WARNING, "envs.battlesnake.webhook"):
        for _ in range(3):
            settings = read_move_request(request).state.settings
    assert settings == Settings(**read)
    assert len(caplog.records) == (2 if len(sent) > 1 else 1)


def test_a_period_of_zero_stays_zero_but_in_royale():
    request = plain_request(board(7, 7, [(3, 3), (3, 2), (3, 1)], [(0, 0), (1, 0), (2, 0)]))
    request["game"]["ruleset"]["settings"]["royale"] = {"shrinkEveryNTurns": 0}
    assert read_move_request(request).state.settings.shrink_every_n_turns == 0
    request["game"]["ruleset"]["name"] = "royale"
    assert read_move_request(request).state.settings.shrink_every_n_turns == 1


def test_a_maze_snake_longer_than_the_board_is_read():
    """At level 60 of solo_maze a snake has 63 entries, all but the head on one cell."""
    request = plain_request(board(7, 7, [(3, 3), (3, 2), (3, 1)], ruleset="solo"))
    body = [{"x": 1, "y": 1}] + [{"x": 1, "y": 0}] * 62
    request["you"]["body"] = request["board"]["snakes"][0]["body"] = body
    turn = read_move_request(request)
    assert turn.state.body(0, 0) == [(1, 1)] + [(1, 0)] * 51


def test_a_board_that_the_engine_cannot_hold_is_told_from_a_faulty_one(caplog, monkeypatch):
    monkeypatch.setattr(fields, "_already_logged", set())
    request = plain_request(
        board(7, 7, [(3, 3), (3, 2), (3, 1)], [(0, 0), (1, 0), (2, 0)], hazards=[(5, 5)] * 3)
    )
    request["board"] |= {"width": 30, "height": 2 * 30}
    with caplog.at_level(logging.WARNING, "envs.battlesnake.webhook"):
        for _ in range(2):
            with pytest.raises(
                UnheldBoardError, match="board is 30x60 with 2 living snakes; sides of 3 to 25"
            ) as raised:
                read_move_request(request)
    assert (raised.value.you, raised.value.hazards, raised.value.settings) == (
        0,
        {(5, 5): 3},
        Settings(),
    )
    assert len(caplog.records) == 1


def test_numbers_may_be_texts_and_whole_numbers_may_have_a_point():
    """Settings and the timeout came as texts once, and JSON knows but one kind of number."""
    request = plain_request(board(7, 7, [(3, 3), (3, 2), (3, 1)], [(0, 0), (1, 0), (2, 0)]))
    request["game"] |= {
        "timeout": "400",
        "ruleset": {"name": "royale", "damagePerTurn": "30", "minimumFood": "3"},
    }
    request["you"]["health"] = 90.0
    turn = read_move_request(request)
    assert turn.timeout_ms == 400
    assert (turn.state.settings.hazard_damage, turn.state.settings.minimum_food) == (30, 3)
    assert turn.state.arrays.health[0, turn.you] == 90
