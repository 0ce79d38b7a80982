"""`evaluation.json`: what `procsnake evaluate RUN` and quickstart leave in a run's folder."""

from __future__ import annotations

import json
import shlex
import shutil

import pytest

import procsnake
from agents import champions
from agents.measure.evaluation import MatchupScore, record
from agents.measure.evaluation.record import (
    STANDARD_BOARD,
    EvaluationRecord,
    board_of,
    policy_of,
    read_record,
)
from envs.battlesnake.settings import Settings

SCORE = MatchupScore(
    "x", ["flood"] * 3, 40, 30, 1, 0, 100.0, 9.0, {"survived": 30, "snake-collision": 10}, 30.5
)


@pytest.fixture
def run(tmp_path):
    """A folder with a real policy."""
    shutil.copytree(champions.path("champion-duel"), tmp_path / "run" / "bundle")
    return tmp_path / "run"


def test_a_record_is_read_as_it_was_written(run):
    record = EvaluationRecord(
        policy=policy_of(run), games=40, scores=[SCORE], board={**STANDARD_BOARD, "width": 7}
    )
    assert record.write(run) == run / "evaluation.json"
    assert read_record(run) == record


@pytest.mark.parametrize(
    "content",
    [
        "",
        "[]",
        "{",
        '{"key": {}, "scores": []}',
        '{"key": {"policy": "x", "games": 1}, "scores": [{}]}',
    ],
)
def test_what_cannot_be_read_is_no_record(run, content):
    assert read_record(run) is None
    (run / "evaluation.json").write_text(content)
    assert read_record(run) is None


def test_files_that_are_too_large_or_too_deep_are_no_record(run, monkeypatch):
    written = EvaluationRecord(
        policy=policy_of(run), games=40, scores=[SCORE], board=STANDARD_BOARD
    ).write(run)
    assert read_record(run) is not None
    monkeypatch.setattr(record, "MAX_BYTES", written.stat().st_size - 1)
    assert read_record(run) is None
    monkeypatch.undo()
    written.write_text("[" * 100_000)
    assert read_record(run) is None
    (run / "bundle" / "card.json").write_text("[" * 100_000)
    assert policy_of(run) is None


def test_a_record_of_another_policy_is_none(run):
    EvaluationRecord(policy="f" * 64, games=40, scores=[SCORE], board=STANDARD_BOARD).write(run)
    assert read_record(run) is None


def test_evaluating_a_run_leaves_a_record_and_one_opponent_alone_none(run, capsys):
    assert (
        procsnake.main(
            ["evaluate", str(run), "--games", "2", "--against", "random", "--num-snakes", "2"]
        )
        == 0
    )
    assert not (run / "evaluation.json").exists()
    assert (
        procsnake.main(
            [
                "evaluate",
                str(run),
                *shlex.split("--games 2 --width 7 --height 7 --minimum-food 3"),
            ]
        )
        == 0
    )
    assert f"report {run}" in capsys.readouterr().err
    found = read_record(run)
    assert (found.games, len(found.scores)) == (2, 6)
    assert found.board == {**STANDARD_BOARD, "width": 7, "height": 7, "minimum_food": 3}


def test_other_settings_are_not_the_standard_ones_and_are_told(run):
    settings = Settings(minimum_food=100, hazard_damage=99)
    EvaluationRecord(
        policy=policy_of(run), games=40, scores=[SCORE], board=board_of(11, 11, settings)
    ).write(run)
    found = read_record(run)
    assert found.board != STANDARD_BOARD
    assert found.unusual == ", minimum_food 100, hazard_damage 99"
    # What commit ce5d4e9 wrote says nothing of these settings.
    data = json.loads((run / "evaluation.json").read_text())
    data["board"] = {"width": 11, "height": 11, "ruleset": "standard", "map": "standard"}
    (run / "evaluation.json").write_text(json.dumps(data))
    assert (read_record(run).board, read_record(run).unusual) == (STANDARD_BOARD, "")
