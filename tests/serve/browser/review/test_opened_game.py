"""A recording in the viewer's form."""

from __future__ import annotations

import json
from functools import partial

import pytest

from agents.measure.analysis.snake_game import game_of
from envs.battlesnake.recording import Recording, RecordingError
from envs.common.errors import ConfigError
from serve.browser.review.opened_game import MAX_TURNS, OpenedGame
from serve.browser.viewer import engine
from tests.envs.battlesnake.traces import DATA
from tests.serve.browser.review.games import changed, lost_game, text_of

OFFICIAL = Recording.read(DATA / "cli-output-example.jsonl")


@pytest.fixture
def game():
    return OpenedGame(lost_game()[0], "lost.jsonl")


def test_it_shows_every_board_with_the_living_snakes_and_tells_deaths_once(game):
    recording = game.recording
    turns = game.turns(game.default, 0)
    assert [turn["turn"] for turn in turns] == recording.turns
    for turn, board in zip(turns, recording.boards(), strict=True):
        alive = {
            snake["id"]: snake["body"] for snake in board["snakes"] if not snake["eliminatedCause"]
        }
        assert {snake["id"]: snake["body"] for snake in turn["board"]["snakes"]} == alive
        assert turn["board"]["food"] == board["food"]
    dead = [fate["id"] for turn in turns for fate in turn["eliminated"]]
    assert dead == [
        snake["id"] for snake in recording.boards()[-1]["snakes"] if snake["eliminatedCause"]
    ]
    assert [turn["turn"] for turn in game.turns(game.default, 5)] == recording.turns[5:]
    assert [turn["turn"] for turn in game.turns(game.default, 5, limit=2)] == recording.turns[5:7]


def test_moves_are_those_that_were_played(game):
    for snake, _ in game.snakes:
        played = {
            position.turn: position.move for position in game_of(game.recording, snake).positions
        }
        shown = {turn["turn"]: turn["move"] for turn in game.turns(snake, 0) if turn["move"]}
        assert shown == {
            turn: ("up", "down", "left", "right")[move]
            for turn, move in played.items()
            if move is not None
        }


def test_its_entry_says_how_the_game_ended_for_each_snake(game):
    proof = lost_game()[1]
    results = {name: game.entry(snake)["result"] for snake, name in game.snakes}
    assert results.pop(proof.victim) == "lost"
    assert set(results.values()) == {"won"}
    assert game.entry("nobody") is None
    assert (game.entry()["turns"], game.entry()["analysis"]) == (
        game.recording.turns[-1],
        f"/api/analyses/{game.id}",
    )


def test_a_recording_of_the_official_command_line_is_shown():
    game = OpenedGame(OFFICIAL, "official")
    assert len(game.turns(game.default, 0)) == len(OFFICIAL.requests)
    assert game.entry()["is_end_known"]


def test_the_official_board_can_show_it(game):
    entry = partial(game.entry, game.default)
    turns = game.turns
    events = list(
        engine.events(entry, lambda since: turns(game.default, since), lambda seconds: None)
    )
    assert [event["Data"]["Turn"] for event in events[:-1]] == game.recording.turns
    assert events[-1]["Type"] == "game_end"


def test_the_same_content_is_the_same_game(game):
    again = OpenedGame(Recording.parse(text_of(game.recording), "again"), "again")
    assert again.id == game.id != OpenedGame(changed(timeout=7), "other").id


@pytest.mark.parametrize(
    "decision",
    [
        5,
        {"move": "sideways"},
        {"move": ["up"]},
        {"move": "up", "probabilities": "many", "value": 1e400, "latency_ms": "soon"},
        {"move": "up", "probabilities": [10**400, 0, 0, 0]},
        {
            "move": "up",
            "value": 10**400,
            "note": {"values": [float("nan")] * 4, "long": "x" * 100_000},
        },
        {"move": "up", "note": json.loads("[" * 900 + "]" * 900)},
        {"move": "up", "note": {"deep": json.loads("[" * 900 + "]" * 900)}},
    ],
    ids=range(8),
)
def test_decisions_that_no_recorder_writes_harm_nobody(decision):
    recording = lost_game()[0]
    snake = recording.boards()[0]["snakes"][0]["id"]
    request = {**recording.requests[0], "you": "me", "procsnake": {"decisions": {snake: decision}}}
    game = OpenedGame(
        Recording(recording.game, [request, *recording.requests[1:]], recording.result), "strange"
    )
    told = game.turns(snake, 0)[0]
    assert len(json.dumps(told, allow_nan=False)) < 10_000
    assert told["move"] in ("up", None)
    assert json.dumps(game.entry(snake), allow_nan=False)
    game_of(game.recording, snake)


def test_what_a_stranger_calls_a_snake_is_cut_to_what_pages_need():
    recording = lost_game()[0]
    snake = {
        **recording.requests[0]["board"]["snakes"][0],
        "name": "n" * 5000,
        "health": 250,
        "latency": {},
        "extra": 1,
    }
    snake["customizations"] = {"color": ["#fff"], "head": 5, "more": "x" * 5000}
    request = {
        **recording.requests[0],
        "board": {**recording.requests[0]["board"], "snakes": [snake]},
    }
    shown = OpenedGame(Recording(recording.game, [request]), "strange").turns(snake["id"], 0)[0][
        "board"
    ]["snakes"][0]
    assert (len(shown["name"]), shown["health"], "extra" in shown) == (256, 0, False)
    assert len(json.dumps(shown, allow_nan=False)) < 2000


def test_what_cannot_be_shown_is_refused():
    recording = lost_game()[0]
    request = recording.requests[0]
    many = [{**request, "turn": turn} for turn in range(MAX_TURNS + 2)]
    assert OpenedGame(Recording(recording.game, many[:-1]), "capped").entry()
    with pytest.raises(ConfigError, match="at most 5000 are shown"):
        OpenedGame(Recording(recording.game, many), "long")
    nobody = {**request, "board": {**request["board"], "snakes": []}}
    with pytest.raises(ConfigError, match="no snakes"):
        OpenedGame(Recording(recording.game, [nobody]), "empty")
    with pytest.raises(RecordingError):
        OpenedGame(
            changed(ruleset={"name": "standard", "settings": {"foodSpawnChance": "much"}}), "odd"
        )


def test_its_entry_names_the_first_turn_that_contradicts_the_rules(game):
    assert game.entry()["doubts"] == []
    requests = json.loads(json.dumps(OFFICIAL.requests))
    requests[30]["board"]["snakes"][0]["health"] -= 1
    (doubt,) = OpenedGame(Recording(OFFICIAL.game, requests), "edited").entry()["doubts"]
    assert doubt.startswith("turn 30 contradicts the rules")
