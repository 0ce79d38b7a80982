"""The official engine's games follow our rules on every turn, and each thing that is changed in
them is noticed.
"""

from __future__ import annotations

import copy
import re

import pytest

from envs.battlesnake.recording import Recording, contradiction, deviations
from tests.envs.battlesnake.recording.official import boards_of, official_games, recorded
from tests.envs.battlesnake.traces import DATA

KINDS = [
    ("standard", "standard"),
    ("royale", "standard"),
    ("royale", "royale"),
    ("constrictor", "empty"),
    ("standard", "snail_mode"),
    ("solo", "standard"),
    ("wrapped", "standard"),
]


@pytest.mark.parametrize(("ruleset", "game_map"), KINDS)
def test_official_games_follow_the_rules_on_every_turn(ruleset, game_map):
    played = official_games(ruleset, game_map)
    assert played
    for game in played:
        assert [str(found) for found in deviations(recorded(game))] == []


def test_a_file_of_the_official_program_does():
    assert list(deviations(Recording.read(DATA / "cli-output-example.jsonl"))) == []


def long_game():
    game = next(game for game in official_games("standard", "standard") if len(game["turns"]) > 200)
    return game, copy.deepcopy(boards_of(game))


def living(board):
    return next(snake for snake in board["snakes"] if not snake["eliminatedCause"])


def starve(board):
    living(board)["health"] -= 1


def jump(board):
    living(board)["body"][0] = (
        {"x": 10, "y": 10} if living(board)["body"][0]["x"] < 5 else {"x": 0, "y": 0}
    )


def lengthen(board):
    living(board)["body"].append(living(board)["body"][-1])


def steal(board):
    board["food"].pop()


def drown(board):
    board["hazards"] = [{"x": 0, "y": 0}]


def feed_inside(board):
    board["food"] = [*board["food"], living(board)["body"][0]]


def kill(board):
    living(board).update(eliminatedCause="out-of-health", eliminatedOnTurn=board["turn"])


CHANGES = {
    starve: "the rules give",
    jump: "not one step",
    lengthen: "not what its move leaves",
    steal: "no snake ate it",
    drown: "hazards have changed",
    feed_inside: "under a snake",
    kill: "by the rules it lives",
}


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)
def test_each_change_is_noticed_on_its_turn(change):
    game, boards = long_game()
    change(boards[5])
    first = next(deviations(recorded(game, boards)))
    assert first.turn == 5
    assert CHANGES[change] in first.what


def test_a_missing_turn_is_noticed():
    game, boards = long_game()
    del boards[5]
    assert [(found.turn, found.what) for found in deviations(recorded(game, boards))] == [
        (6, "it follows turn 4; the turns between are missing")
    ]


def test_a_wall_that_comes_too_early_is_noticed():
    game = official_games("royale", "royale")[0]
    game = {**game, "settings": {**game["settings"], "shrinkEveryNTurns": 10**6}}
    assert "royale's walls moved in by" in next(deviations(recorded(game))).what


def cli_file():
    return Recording.read(DATA / "cli-output-example.jsonl")


def test_the_first_turn_that_contradicts_the_rules_is_named_with_them():
    """Wrong rules, a wrong reader or an edited file: a wrapped game as a standard one, and a snake
    that is taken out.
    """
    wrapped = next(recorded(game) for game in official_games("wrapped", "standard"))
    assert contradiction(wrapped) == ""
    wrapped.game["ruleset"]["name"] = "standard"
    assert re.match(
        r"turn \d+ contradicts the rules \(ruleset standard, map standard, hazard damage",
        contradiction(wrapped),
    )


def test_a_snake_that_is_taken_out_of_a_file_is_noticed():
    """The official file doesn't tell how snakes died, and each has a way to die on each turn; but
    then the game is over.
    """
    official = cli_file()
    assert contradiction(official) == ""
    requests = copy.deepcopy(official.requests)
    for request in requests[20:]:
        request["board"]["snakes"] = request["board"]["snakes"][:1]
    assert re.match(
        "turn 21 .*: the game went on, although it was over",
        contradiction(Recording(official.game, requests)),
    )
