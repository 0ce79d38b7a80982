"""Recordings: the official program's own file, ours written and read back, the arena's frames, and
tests made from them.
"""

from __future__ import annotations

import json
import resource
import shlex
import subprocess
import sys
from types import SimpleNamespace

import pytest

from envs.battlesnake.plain import dead_snakes, ruleset_step, setup_board
from envs.battlesnake.recording import (
    EXTRAS,
    UNKNOWN_CAUSE,
    Recorder,
    Recording,
    RecordingError,
    to_test,
)
from envs.battlesnake.settings import Settings
from envs.common.errors import ConfigError
from procsnake import main
from tests.envs.battlesnake.traces import DATA, games, transitions

OFFICIAL = DATA / "cli-output-example.jsonl"


@pytest.fixture(scope="module")
def official():
    return Recording.read(OFFICIAL)


@pytest.fixture(scope="module")
def trace():
    """(game object, [(request, dead snakes, decisions)], boards) of a recorded official game with
    deaths before the end.
    """
    for game in games():
        if (
            game["kind"] == "map"
            and game["ruleset"] == "standard"
            and game["n_snakes"] == 4
            and len(game["turns"]) < 150
        ):
            steps = list(transitions(game))[:-1]
            boards = [steps[0].before, *(step.after for step in steps)]
            if sum(bool(s["eliminatedCause"]) for s in boards[len(boards) // 2]["snakes"]) > 0:
                return (
                    {"id": "g", "ruleset": {"name": "standard"}, "map": "standard"},
                    boards,
                    steps,
                )
    raise AssertionError("no such game in the file")


def _request(game, board):
    living = [{**s, "name": s["id"].upper()} for s in board["snakes"] if not s["eliminatedCause"]]
    living = [{k: v for k, v in s.items() if not k.startswith("eliminated")} for s in living]
    shown = {k: board[k] for k in ("width", "height", "food", "hazards")} | {"snakes": living}
    return {"game": game, "turn": board["turn"], "board": shown, "you": living[0] if living else {}}


def _record(path, trace):
    game, boards, steps = trace
    with Recorder(path, game) as recorder:
        for index, board in enumerate(boards):
            moves = steps[index].moves if index < len(steps) else [None] * 4
            decisions = {s["id"]: {"move": m} for s, m in zip(board["snakes"], moves) if m}
            recorder.turn(
                _request(game, board),
                decisions=decisions,
                dead=[s for s in board["snakes"] if s["eliminatedCause"]],
            )
        return recorder.finish(winner_id="s1", winner_name="S1")


def test_reads_the_official_programs_file(official):
    lines = [json.loads(line) for line in OFFICIAL.read_text().splitlines()]
    assert official.turns == list(range(144))
    assert official.game == lines[0]
    assert official.result == lines[-1]
    first = official.boards()[0]
    assert (first["width"], first["height"]) == (11, 11)
    assert first["snakes"][0]["body"] == lines[1]["board"]["snakes"][0]["body"]
    assert first["snakes"][1]["name"] == "a"


def test_positions_have_y_up(official):
    state = official.state(1)
    assert state.body(0, 0) == [(0, 9), (1, 9), (1, 9)]
    assert state.body(0, 1) == [(10, 1), (9, 1), (9, 1)]
    assert state.settings.hazard_damage == 14
    assert state.points(state.arrays.food[0]) == [(0, 8), (5, 5), (8, 0), (10, 6)]


def test_moves_read_off_the_heads_replay_the_official_game(official):
    """The moves found between two boards, played by the rules, lead from each board to the next."""
    for turn in official.turns[:-2]:
        board = official.board(turn)
        after = official.board(turn + 1)
        moves = [official.decisions(turn)[snake["id"]]["move"] for snake in board["snakes"]]
        over, stepped = ruleset_step(board, moves)
        assert not over
        assert [s["body"] for s in stepped["snakes"]] == [s["body"] for s in after["snakes"]]


def test_a_snake_that_vanished_is_kept_as_dead_of_unknown_cause(official):
    last = official.boards()[-1]["snakes"]
    assert [s["eliminatedCause"] for s in last] == ["", UNKNOWN_CAUSE]
    assert last[1]["body"] == official.boards()[-2]["snakes"][1]["body"]
    assert official.state(143).num_snakes == 1


def test_writing_the_official_file_again_changes_nothing(official, tmp_path):
    again = official.write(tmp_path / "copy.jsonl")
    assert [json.loads(a) for a in again.read_text().splitlines()] == [
        json.loads(a) for a in OFFICIAL.read_text().splitlines()
    ]


def test_a_game_that_was_cut_off_is_still_so_when_it_is_written_again(official, tmp_path):
    cut_off = Recording(official.game, official.requests[:5])
    again = Recording.read(cut_off.write(tmp_path / "copy.jsonl"))
    assert (again.game, again.requests, again.result) == (cut_off.game, cut_off.requests, None)


def test_a_result_is_written_again_as_it_was(official, tmp_path):
    told = Recording(
        official.game, official.requests[:5], {"isDraw": True, "by": "another program"}
    )
    assert Recording.read(told.write(tmp_path / "copy.jsonl")).result == told.result


def test_what_was_recorded_is_read_back_with_the_dead(trace, tmp_path):
    _, boards, steps = trace
    recording = Recording.read(_record(tmp_path / "game.jsonl", trace))
    keys = ("id", "body", "health", "eliminatedCause", "eliminatedBy", "eliminatedOnTurn")
    for expected, board in zip(boards, recording.boards(), strict=True):
        assert [{k: s[k] for k in keys} for s in board["snakes"]] == [
            {k: s[k] for k in keys} for s in expected["snakes"]
        ]
        assert [s["name"] for s in board["snakes"]] == ["S0", "S1", "S2", "S3"]
    assert recording.decisions(3) == {
        f"s{i}": {"move": m} for i, m in enumerate(steps[3].moves) if m
    }
    assert recording.result == {"winnerId": "s1", "winnerName": "S1", "isDraw": False}


def test_others_can_read_ours_without_the_extras(trace, tmp_path):
    lines = [
        json.loads(line)
        for line in _record(tmp_path / "game.jsonl", trace).read_text().splitlines()
    ]
    for line in lines[1:-1]:
        assert set(line) - {EXTRAS} == {"game", "turn", "board", "you"}
        assert all("eliminatedCause" not in snake for snake in line["board"]["snakes"])


def test_a_game_that_broke_off_leaves_no_finished_file_but_can_be_read(trace, tmp_path):
    game, boards, _ = trace
    target = tmp_path / "game.jsonl"
    with Recorder(target, game) as recorder:
        for board in boards[:5]:
            recorder.turn(_request(game, board))
    part = tmp_path / "game.jsonl.part"
    assert not target.exists()
    part.write_text(part.read_text()[:-30])
    recording = Recording.read(part)
    assert (recording.turns, recording.result) == ([0, 1, 2, 3], None)


def test_a_file_that_ends_within_a_character_loses_only_that_line(official, tmp_path):
    """The official program writes UTF-8, where ours writes ASCII."""
    path = tmp_path / "cut.jsonl"
    lines = OFFICIAL.read_text().replace('"shout":""', '"shout":"é"').encode().split(b"\n")
    path.write_bytes(
        b"\n".join([*lines[:5], lines[5].partition("é".encode())[0] + "é".encode()[:1]])
    )
    recording = Recording.read(path)
    assert (recording.turns, recording.result) == (official.turns[:4], None)
    path.write_bytes(path.read_bytes() + b"\n" + lines[6])
    with pytest.raises(RecordingError, match="'utf-8' codec can't decode"):
        Recording.read(path)


def test_a_place_where_nothing_can_be_written_is_refused_in_words(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match=r"recording .*game\.jsonl can't be written: File exists"):
        Recorder(tmp_path / "file" / "game.jsonl", {"id": "g"})
    with pytest.raises(ConfigError, match="it is a folder"):
        Recorder(tmp_path, {"id": "g"})
    assert not tmp_path.with_name(f"{tmp_path.name}.part").exists()


def test_a_file_that_may_not_grow_ends_a_recording_in_words(tmp_path):
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4, before[1]))
    try:
        with pytest.raises(ConfigError, match="can't be written: File too large"):
            Recorder(tmp_path / "game.jsonl", {"id": "g"})
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_recording_is_not_written_through_a_link(tmp_path):
    thesis = tmp_path / "thesis.txt"
    thesis.write_text("years of work")
    (tmp_path / "game.jsonl.part").symlink_to(thesis)
    with pytest.raises(ConfigError, match="it is a link"):
        Recorder(tmp_path / "game.jsonl", {})
    assert thesis.read_text() == "years of work"


def test_imports_arena_frames(trace, tmp_path):
    """The frames' own form, as the arena's source has it: capitals, the dead in the list, no board
    size.
    """
    _, boards, _ = trace

    def frame(board):
        death = {
            s["id"]: {
                "Cause": s["eliminatedCause"],
                "Turn": s["eliminatedOnTurn"],
                "EliminatedBy": s["eliminatedBy"],
            }
            for s in dead_snakes(board)
        }
        points = lambda cells: [{"X": p["x"], "Y": p["y"]} for p in cells]  # noqa: E731
        snakes = [
            {
                "ID": s["id"],
                "Name": s["id"],
                "Health": s["health"],
                "Body": points(s["body"]),
                "Color": "#ff0000",
            }
            | {"HeadType": "default", "Death": death.get(s["id"])}
            for s in board["snakes"]
        ]
        return {
            "Turn": board["turn"],
            "Snakes": snakes,
            "Food": points(board["food"]),
            "Hazards": [],
        }

    page = {"Count": len(boards), "Frames": [frame(board) for board in boards]}
    path = tmp_path / "frames.json"
    path.write_text(json.dumps(page))
    recording = Recording.read(path, width=boards[0]["width"], height=boards[0]["height"])
    keys = ("id", "body", "health", "eliminatedCause", "eliminatedBy", "eliminatedOnTurn")
    for expected, board in zip(boards, recording.boards(), strict=True):
        assert [{k: s[k] for k in keys} for s in board["snakes"]] == [
            {k: s[k] for k in keys} for s in expected["snakes"]
        ]
        assert board["food"] == expected["food"]
    with pytest.raises(RecordingError, match="pass --width and --height"):
        Recording.read(path)
    size = ["--width", str(boards[0]["width"]), "--height", str(boards[0]["height"])]
    assert main(["replay", "show", str(path), "--turn", "0", *size]) == 0
    about = {"Game": {"Width": boards[0]["width"], "Height": boards[0]["height"]}}
    path.write_text(json.dumps({**page, **about}))
    assert Recording.read(path).boards()[0]["width"] == boards[0]["width"]
    assert main(["replay", "show", str(path), "--width", "25"]) == 2


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "line 1 is not JSON"),
        ("hello\nworld\n", "line 1 is not JSON"),
        ("[1]\n", "not an object or a list of objects"),
        ('{"id":"g"}\n[1]\n{"turn":0}\n', "line 2 is not a JSON object"),
        ('{"id":"g"}\n', "no turns"),
        ('{"id":"g"}\n{"turn":0}\n{"isDraw":true}\n', "entry 0 is not a move request"),
        (
            '{"id":"g"}\n{"turn":0,"board":{"snakes":[7]}}\n{"isDraw":true}\n',
            "entry 0 is not a move request",
        ),
        ('{"Frames":[{"Turn":0}]}\n', "malformed arena frames"),
    ],
)
def test_bad_files_are_refused_in_words(text, message, tmp_path):
    path = tmp_path / "bad.jsonl"
    path.write_text(text)
    with pytest.raises(RecordingError, match=message):
        Recording.read(path, width=11, height=11)


def test_a_missing_file_and_a_missing_turn_are_refused_in_words(official, tmp_path):
    with pytest.raises(RecordingError, match="cannot read"):
        Recording.read(tmp_path / "none.jsonl")
    with pytest.raises(RecordingError, match="runs from 0 to 143"):
        official.board(144)


def test_to_test_gives_a_test_that_passes_for_a_good_move_and_fails_for_a_bad_one(
    official, tmp_path
):
    pytest.importorskip("agents.heuristics.flood_fill")
    good = to_test(official, 5, snake="b", allowed=["up", "down", "left", "right"])
    (tmp_path / "test_good.py").write_text(good)
    (tmp_path / "test_bad.py").write_text(
        good.replace("ALLOWED = ['down', 'left', 'right', 'up']", "ALLOWED = []")
    )
    command = [
        sys.executable,
        *shlex.split("-m pytest -q -p no:cacheprovider --rootdir"),
        str(tmp_path),
        str(tmp_path),
    ]
    shown = subprocess.run(command, capture_output=True, text=True, timeout=300).stdout
    assert "1 failed, 1 passed" in shown
    assert "test_bad.py::test_turn_5" in shown


def test_to_test_asks_for_the_recorded_move_of_a_snake_that_lived(official):
    played = official.decisions(5)[official.board(5)["snakes"][0]["id"]]["move"]
    assert f"ALLOWED = {[played]!r}" in to_test(official, 5, snake="b")


def test_to_test_asks_for_another_move_where_the_recorded_one_killed(trace, tmp_path):
    recording = Recording.read(_record(tmp_path / "game.jsonl", trace))
    for turn in recording.turns[:-1]:
        after = recording.board(turn + 1)["snakes"]
        dead = [s["id"] for s in after if s["eliminatedOnTurn"] == turn + 1]
        if dead and recording.decisions(turn)[dead[0]]["move"]:
            try:
                text = to_test(recording, turn)
            except RecordingError:
                continue
            played = recording.decisions(turn)[dead[0]]["move"]
            assert repr(played) not in text.split("ALLOWED = ")[1].split("\n")[0]
            return
    pytest.fail("nobody died with a choice left")


def test_to_test_text_is_safe_whatever_the_names(official):
    request = json.loads(json.dumps(official.requests[0]))
    request["board"]["snakes"][0]["name"] = evil = "'''\"\"\"\nimport os\\"
    text = to_test(Recording({"id": evil}, [request]), 0, snake=evil, allowed=["up"])
    names = {}
    exec(
        compile(text.split("def test_")[0].replace("import agents\n", ""), "generated", "exec"),
        names,
    )
    assert "os" not in names
    assert names["REQUEST"]["you"]["name"] == evil


def test_to_test_refuses_what_it_cannot_ask(official):
    with pytest.raises(RecordingError, match="no living snake 'zed'"):
        to_test(official, 5, snake="zed")
    with pytest.raises(RecordingError, match="allowed moves"):
        to_test(official, 5, allowed=["sideways"])


def test_to_test_says_why_a_turn_asks_for_nothing(official, tmp_path):
    last = official.turns[-1]
    with pytest.raises(
        RecordingError,
        match=rf"no move of \w+ is recorded on turn {last}, .*; take an earlier turn",
    ):
        to_test(official, last)
    board = setup_board(snake_ids=["curled", "far"])
    body = [(0, 0), (0, 1), (1, 1), (1, 0), (2, 0)]
    board["snakes"][0]["body"] = [{"x": x, "y": y} for x, y in body]
    steps = [SimpleNamespace(moves=["left", "up"])]
    boards = [board, ruleset_step(board, steps[0].moves)[1]]
    curled = Recording.read(_record(tmp_path / "game.jsonl", ({"id": "g"}, boards, steps)))
    with pytest.raises(
        RecordingError,
        match="on turn 0 every other move of CURLED was certain death, too; take an earlier",
    ):
        to_test(curled, 0)


def test_settings_that_no_engine_writes_are_refused():
    recording = Recording.read(DATA / "cli-output-example.jsonl")
    assert recording.settings == Settings(hazard_damage=14, shrink_every_n_turns=25)
    recording.game["ruleset"]["settings"]["minimumFood"] = "x"
    with pytest.raises(RecordingError, match="minimumFood is 'x'"):
        _ = recording.settings
    with pytest.raises(RecordingError, match="minimumFood is 'x'"):
        to_test(recording, 0)
