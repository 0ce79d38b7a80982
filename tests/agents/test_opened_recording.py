"""Positions from files: a single request is asked about, tested and played on, and a game says what
contradicts its rules.
"""

from __future__ import annotations

import json

import numpy as np
import pytest

import procsnake
from agents.measure.evaluation.battlesnake import play_games
from agents.measure.evaluation.referee import Referee
from agents.opened_recording import open_position
from agents.registry import make
from envs.battlesnake.recording import Recording
from serve.arena import create_app
from serve.server import running
from tests.envs.battlesnake.traces import DATA

CLI_FILE = DATA / "cli-output-example.jsonl"


@pytest.fixture
def request_file(tmp_path):
    """The request of turn 40 of an official game, as somebody keeps it: indented, with `you` second
    in the list.
    """
    request = Recording.read(CLI_FILE).requests[40]
    request = {**request, "you": request["board"]["snakes"][1]}
    path = tmp_path / "request.json"
    path.write_text(json.dumps(request, indent=2))
    return path


def run(capsys, *words):
    assert procsnake.main([str(word) for word in words]) == 0
    return capsys.readouterr().out


def test_a_position_has_the_asked_snake_first(request_file):
    board = Recording.read(CLI_FILE).board(40)
    position = open_position(request_file)
    assert position.names == [board["snakes"][1]["name"], board["snakes"][0]["name"]]
    assert position.state.body(0, 0) == [(p["x"], p["y"]) for p in board["snakes"][1]["body"]]
    assert position.state.arrays.turn[0] == 40
    assert open_position(CLI_FILE, 40).state.settings == position.state.settings


def test_games_begin_at_the_position_and_differ_in_their_food(request_file):
    state = open_position(request_file).state
    flood = make("flood")
    referee = Referee([flood, flood], position=state, seed=1)
    first = next(iter(referee.play())).state
    assert first.arrays.turn[0] == 40
    assert [first.body(0, slot) for slot in range(2)] == [state.body(0, slot) for slot in range(2)]
    results = play_games([flood, flood], num_games=8, position=state, max_turns=200)
    assert results.turns.min() > 40
    assert len(np.unique(results.turns)) > 1


def test_a_match_and_an_evaluation_play_on_from_a_request(request_file, tmp_path, capsys):
    record = tmp_path / "game.jsonl"
    told = run(capsys, "match", "flood", "greedy", "--position", request_file, "--record", record)
    assert told.splitlines()[-1].endswith("turns")
    played = Recording.read(record)
    assert played.turns[0] == 40
    bodies = {
        tuple((p["x"], p["y"]) for p in snake["body"]) for snake in played.boards()[0]["snakes"]
    }
    assert bodies == {
        tuple((p["x"], p["y"]) for p in s["body"])
        for s in Recording.read(CLI_FILE).board(40)["snakes"]
    }
    turn_120 = run(capsys, "match", "flood", "greedy", "--position", CLI_FILE, "--turn", "120")
    assert int(turn_120.split()[-2]) > 120
    scores = json.loads(
        run(capsys, "evaluate", "flood", "--games", "3", "--position", request_file, "--json")
    )
    assert [score["opponents"] for score in scores] == [["random"], ["greedy"], ["flood"]]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (
            ["match", "flood", "--position", CLI_FILE, "--turn", 40],
            "the position has 2 snakes (a, b), and the players are 1; name one for each snake",
        ),
        (
            ["match", "flood", "greedy", "--position", CLI_FILE],
            "holds turns 0 to 143; choose one: --turn N",
        ),
        (["match", "flood", "greedy", "--turn", 3], "--turn is 3, but it is for --position"),
        (
            ["match", "flood", "greedy", "--width", 7, "--position", CLI_FILE],
            "--width is 7, but it is for new games",
        ),
    ],
    ids=lambda words: " ".join(map(str, words[:2])) if isinstance(words, list) else "",
)
def test_what_a_position_excludes_is_said_in_a_line(words, told, capsys):
    assert procsnake.main([str(word) for word in words]) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert told in error


def test_what_a_snake_would_play_is_told_with_what_a_search_thinks_of_each_move(
    request_file, capsys
):
    name = open_position(request_file).names[0]
    told = run(capsys, "replay", "ask", request_file, "--agent", "champion-duel")
    assert told.startswith("champion-duel plays ")
    assert f" for {name} on turn 40" in told
    answer = json.loads(
        run(
            capsys,
            "replay",
            "ask",
            CLI_FILE,
            "--turn",
            40,
            "--snake",
            name,
            "--agent",
            "flood",
            "--json",
        )
    )
    assert answer["move"] in answer["moves"]
    assert set(answer["moves"]) == {"up", "down", "left", "right"}
    with running(create_app(make("flood"))) as url:
        asked = json.loads(run(capsys, "replay", "ask", request_file, "--agent", url, "--json"))
    assert asked["move"] == answer["move"]


def test_a_single_request_becomes_a_test_that_its_agent_passes(request_file, tmp_path, capsys):
    test = tmp_path / "test_request.py"
    run(capsys, "replay", "to-test", request_file, "--out", test)
    assert pytest.main(["-q", "-p", "no:cacheprovider", str(test)]) == 0
    assert "ALLOWED = ['left']" in run(capsys, "replay", "to-test", request_file, "--allow", "left")


def test_a_single_request_is_analysed(request_file, capsys):
    told = run(capsys, "analyse", request_file, "--nodes", "500")
    assert "to move against" in told.splitlines()[0]
    assert " is best (" in told
    turns = json.loads(run(capsys, "analyse", request_file, "--nodes", "500", "--json"))["turns"]
    assert [(turn["turn"], turn["played"]) for turn in turns] == [(40, None)]


def test_every_command_that_reads_a_game_names_the_first_turn_that_contradicts_its_rules(
    tmp_path, capsys
):
    log = [json.loads(line) for line in CLI_FILE.read_text().splitlines()]
    log[31]["board"]["snakes"][0]["health"] -= 1
    path = tmp_path / "edited.jsonl"
    path.write_text("\n".join(map(json.dumps, log)))
    for words in (
        ["replay", "show", path, "--turn", "3"],
        ["analyse", path, "--nodes", "100", "--jobs", "1"],
    ):
        assert procsnake.main([str(word) for word in words]) == 0
        assert (
            "edited.jsonl: turn 30 contradicts the rules (ruleset standard, "
            in capsys.readouterr().err
        )
