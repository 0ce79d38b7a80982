"""Recordings by strangers: one line each, and no memory by their word."""

from __future__ import annotations

import copy
import json
import tracemalloc

import pytest

from agents.workbench.arrangement import read_position
from envs.battlesnake.recording import Recording, RecordingError
from envs.common.errors import ProcsnakeError
from procsnake import main

REQUEST = {
    "game": {"id": "g", "ruleset": {"name": "standard"}, "timeout": 500},
    "turn": 3,
    "board": {
        "width": 11,
        "height": 11,
        "food": [{"x": 1, "y": 1}],
        "hazards": [],
        "snakes": [
            {"id": "a", "name": "a", "health": 90, "body": [{"x": 5, "y": 5}, {"x": 5, "y": 4}]}
        ],
    },
    "you": {},
}


def changed(*path_and_value):
    *path, last, value = path_and_value
    request = copy.deepcopy(REQUEST)
    inside = request
    for key in path:
        inside = inside[key]
    inside[last] = value
    return request


BROKEN = [
    changed("board", "width", 25_000),
    changed("board", "height", float("inf")),
    changed("board", "width", "11"),
    changed("board", "width", True),
    changed("turn", float("nan")),
    changed("board", "food", [{"x": 10**30, "y": 0}]),
    changed("board", "food", [[1, 1]]),
    changed("board", "hazards", {"x": 1}),
    changed("board", "snakes", REQUEST["board"]["snakes"] * 65),
    changed("board", "snakes", 0, "body", []),
    changed("board", "snakes", 0, "id", ["a"]),
    changed("board", "snakes", 0, "health", None),
    changed("board", "snakes", 0, "health", 10**30),
    changed("board", "snakes", 0, "customizations", 7),
    changed("board", "snakes", 0, "eliminatedCause", 5),
    changed("board", "snakes", 0, "eliminatedBy", ["a"]),
    changed("board", "snakes", 0, "eliminatedOnTurn", "soon"),
    changed("board", "snakes", ["a"]),
    changed("procsnake", {"eliminated": [{"id": "b"}]}),
    changed("procsnake", {"eliminated": [{**REQUEST["board"]["snakes"][0], "id": "b"}]}),
    changed(
        "procsnake",
        {"eliminated": [{**REQUEST["board"]["snakes"][0], "id": "b", "eliminatedCause": None}]},
    ),
    changed(
        "procsnake",
        {"eliminated": [{**REQUEST["board"]["snakes"][0], "id": "b", "eliminatedCause": "absent"}]},
    ),
    changed("procsnake", 7),
    changed("board", None),
]


def written(path, *requests):
    path.write_text("\n".join(json.dumps(line) for line in (REQUEST["game"], *requests)) + "\n")
    return path


@pytest.mark.parametrize("request_", BROKEN)
def test_a_board_that_no_game_has_is_one_line(tmp_path, capsys, request_):
    path = written(tmp_path / "game.jsonl", REQUEST, request_)
    for arguments in (["show"], ["to-test", "--turn", "3"]):
        assert main(["replay", arguments[0], str(path), *arguments[1:]]) == 2
        assert capsys.readouterr().err.count("\n") == 1
    with pytest.raises(RecordingError, match="entry 1 is not a move request"):
        Recording.read(path)
    with pytest.raises(ProcsnakeError):
        read_position(json.dumps(request_))


def test_a_snake_without_health_is_one_line(tmp_path, capsys):
    request = copy.deepcopy(REQUEST)
    del request["board"]["snakes"][0]["health"]
    assert main(["replay", "show", str(written(tmp_path / "game.jsonl", request))]) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_a_board_with_null_for_food_has_none(tmp_path, capsys):
    path = written(tmp_path / "game.jsonl", changed("board", "food", None))
    assert main(["replay", "show", str(path)]) == 0
    assert Recording.read(path).board(3)["food"] == []


@pytest.mark.parametrize(
    "gone", [{}, {"eliminatedOnTurn": None, "eliminatedBy": None, "customizations": None}], ids=str
)
def test_what_is_not_told_of_a_dead_snake_does_not_stop_a_reader(tmp_path, gone):
    dead = {
        **REQUEST["board"]["snakes"][0],
        "id": "b",
        "name": "b",
        "eliminatedCause": "wall-collision",
        **gone,
    }
    recording = Recording.read(
        written(tmp_path / "game.jsonl", changed("procsnake", {"eliminated": [dead]}))
    )
    assert recording.state(3).num_snakes == 2
    assert recording.board(3)["snakes"][1]["eliminatedOnTurn"] == 0


def test_a_cause_of_death_is_printed_without_control_characters(tmp_path, capsys):
    dead = {
        **REQUEST["board"]["snakes"][0],
        "id": "b",
        "name": "b",
        "eliminatedCause": "\x1b]0;title\x07",
    }
    path = written(tmp_path / "game.jsonl", changed("procsnake", {"eliminated": [dead]}))
    assert main(["replay", "show", str(path)]) == 0
    shown = capsys.readouterr().out
    assert "]0;title" in shown
    assert "\x1b]0" not in shown
    assert "\x07" not in shown


@pytest.mark.parametrize(
    "decisions", [5, ["a"], {"a": 5}, {"a": {"move": ["up"]}}, {"a": {"move": "sideways"}}]
)
def test_decisions_of_another_form_are_no_moves(tmp_path, decisions):
    recording = Recording.read(
        written(tmp_path / "game.jsonl", changed("procsnake", {"decisions": decisions}))
    )
    assert recording.moves_played(0) == {}


def test_a_large_board_costs_no_memory(tmp_path):
    path = written(
        tmp_path / "game.jsonl",
        changed("board", {**REQUEST["board"], "width": 25_000, "height": 25_000}),
    )
    tracemalloc.start()
    try:
        with pytest.raises(
            RecordingError, match="width is 25000; expected an integer from 3 to 25"
        ):
            Recording.read(path)
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()


def test_new_snakes_on_every_turn_do_not_add_up(tmp_path):
    others = [changed("board", "snakes", 0, "id", str(number)) for number in range(65)]
    with pytest.raises(RecordingError, match="65 snakes so far"):
        Recording.read(written(tmp_path / "game.jsonl", *others))


@pytest.mark.parametrize("line", ["[" * 100_000, '{"turn": ' + "1" * 5000 + "}", "7", "null"])
def test_a_line_that_is_no_object_is_named(tmp_path, line):
    path = written(tmp_path / "game.jsonl", REQUEST)
    lines = path.read_text().splitlines()
    path.write_text("\n".join([lines[0], line, lines[1]]))
    with pytest.raises(RecordingError, match="line 2 is not"):
        Recording.read(path)


@pytest.mark.parametrize(
    "page",
    [
        {"Frames": [{"Turn": float("inf"), "Snakes": []}], "Game": {"Width": 11, "Height": 11}},
        {"Frames": [{"Turn": 0, "Snakes": []}], "Game": {"Width": 25_000, "Height": 25_000}},
        {"Frames": 7, "Game": {"Width": 11, "Height": 11}},
        {"Frames": [], "Game": 7},
    ],
)
def test_frames_that_no_arena_has_are_one_line(tmp_path, page):
    path = tmp_path / "frames.json"
    path.write_text(json.dumps(page))
    with pytest.raises(RecordingError):
        Recording.read(path)
