from __future__ import annotations

import base64
import gzip
import json
import math
import re
import shutil
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import yaml

from agents import champions
from agents.measure.evaluation import MatchupScore, wilson_interval
from agents.measure.evaluation.record import (
    STANDARD_BOARD,
    EvaluationRecord,
    policy_of,
    read_record,
    read_world_record,
)
from tests.agents.measure.pages.reading import Page
from tests.train.experiments import toy
from train.runs.curves.history import read_columns
from train.runs.folder import RunError, RunFolder
from train.runs.report.page import write_report

HOSTILE = '<img src=x onerror="alert(1)">&<svg onload=alert(2)> "quoted" \'too\''


def a_run(tmp_path, rows=30, name="x", note=None, columns=None, **config) -> Path:
    data = {**toy("identity").to_dict(), "name": name, **config}
    folder = tmp_path / "run"
    folder.mkdir()
    note = note or {
        "versions": {"torch": "2.13.0"},
        "git_commit": "abc123",
        "started": "2026-01-02",
    }
    (folder / "config.yaml").write_text(yaml.safe_dump({**data, "run": note}))
    curve = RunFolder(folder)
    for k in range(1, rows + 1):
        row = {
            "iteration": k,
            "env_steps": 64 * k,
            "agent_steps": 100 * k,
            "minutes": k / 60,
            "agent_steps_per_second": 50.0,
        }
        row |= {
            "episode_return_mean": k / rows,
            "episode_len_mean": 3.0,
            "episodes": 5,
            "policy_loss": 0.1 / k,
        }
        row |= {"seconds_env": 0.5, "seconds_learner": 1.5, "mean_won": 0.5}
        row |= {"mean_cause_1": 0.25, "mean_cause_0": 0.75} if k % 2 else {"mean_cause_0": 1.0}
        row |= {"mean_cause_6": 0.0}
        if k % 10 == 0:
            row |= {"win_rate_vs_3xrandom": k / rows, "win_rate": k / rows}
        curve.append(row | (columns or {}))
    return folder


def page_of(run: Path) -> Page:
    return Page(write_report(run).read_text(encoding="utf-8"))


def test_a_report_has_all_curves_needs_nothing_else_and_can_be_made_before_the_end(tmp_path):
    page = page_of(a_run(tmp_path, evaluation={"games": 50, "every_iterations": 10}))
    page.assert_needs_nothing_else()
    titles = " ".join(page.charts)
    for title in (
        "episode length",
        "games won",
        "how snakes ended",
        "policy_loss",
        "games won in training (mean_won),",
        "time by phase",
    ):
        assert title in titles
    assert {line["name"] for line in page.charts["how snakes ended, by decisions"]["lines"]} == {
        "survived",
        "snake-collision",
    }
    for text in ("2.13.0", "abc123", "num_minibatches: 4", "running or interrupted"):
        assert text in page.text


def test_what_was_trained_what_it_wins_and_two_curves_come_first_and_the_rest_is_folded(tmp_path):
    run = a_run(tmp_path, evaluation={"games": 50, "every_iterations": 10})
    html = write_report(run).read_text()
    first = html.partition("<details>")[0]
    folded = Page(html)
    assert "PPO on identity" in first
    assert "3,000 decisions in 0.5 minutes" in first
    low, high = wilson_interval(50, 50)
    assert f"{low:.1%} to {high:.1%}" in first
    assert len(Page(first).charts) == 2
    assert len(folded.charts) > 6
    assert "num_minibatches" not in first


@pytest.mark.parametrize(
    ("started", "shown"),
    [
        ("2026-11-27T22:18:21+0000", "started 2026-11-27 23:18 ·"),
        ("last week", "started last week ·"),
        ("0001-01-01T00:00:00+2300", "started 0001-01-01T00:00:00+2300 ·"),
    ],
)
def test_a_report_says_by_this_machines_clock_when_its_run_started(
    tmp_path, monkeypatch, started, shown
):
    monkeypatch.setenv("TZ", "CET-1")
    time.tzset()
    assert shown in page_of(a_run(tmp_path, note={"started": started})).text
    monkeypatch.undo()
    time.tzset()


def test_an_evaluation_after_training_is_in_the_report(tmp_path):
    run = a_finished_run(tmp_path)
    assert "Not measured yet: " in page_of(run).text
    score = MatchupScore(
        "x", ["flood"], 400, 123, 1, 0, 77.0, 9.0, {"survived": 123, "snake-collision": 277}, 123.5
    )
    record = EvaluationRecord(
        policy=policy_of(run), games=400, scores=[score], board=STANDARD_BOARD
    )
    record.write(run)
    low, high = wilson_interval(123, 400)
    text = page_of(run).text
    assert all(
        cell in text.splitlines()
        for cell in ("flood (duel)", "400", "30.8%", f"{low:.1%} to {high:.1%}", "77")
    )
    replace(record, board={**STANDARD_BOARD, "minimum_food": 100}).write(run)
    assert "on 11×11, ruleset standard, map standard, minimum_food 100." in page_of(run).text
    # Games of a policy that the run has no longer are not its own.
    replace(record, policy="0" * 64).write(run)
    assert "30.8%" not in (text := page_of(run).text)
    assert "of another policy" in text


def test_a_run_is_to_be_measured_only_if_it_has_a_policy_and_no_page_of_one(tmp_path):
    assert "Not measured yet" not in page_of(a_run(tmp_path)).text
    run = a_finished_run(tmp_path)
    (run / "evaluation.html").touch()
    assert "Not measured yet" not in page_of(run).text


def test_a_finished_snake_plays_a_game_for_its_report(tmp_path):
    run = a_finished_run(tmp_path)
    page = page_of(run)
    (film,) = (attributes for tag, attributes in page.tags if tag == "img")
    svg = gzip.decompress(base64.b64decode(film["data-svg"])).decode()
    turns = int(re.search(r"(\d+) turns", film["alt"]).group(1))
    assert svg.count('class="turn"') == turns + 1
    assert "against flood" in film["alt"]
    page.assert_needs_nothing_else()


def test_a_policy_that_cannot_play_here_does_not_prevent_the_report(tmp_path):
    run = a_finished_run(
        tmp_path, evaluation={"games": 5, "every_minutes": 1, "opponents": [["gone.zip"]]}
    )
    assert "no film" in page_of(run).text


def a_finished_run(tmp_path: Path, **config) -> Path:
    """A champion's policy in a run of its own."""
    run = tmp_path / "finished"
    shutil.copytree(champions.path("champion-duel"), run / "bundle")
    card = json.loads((run / "bundle" / "card.json").read_text())
    (run / "config.yaml").write_text(
        yaml.safe_dump({**card["config"], "evaluation": None, **config})
    )
    return run


def test_hostile_names_are_only_text(tmp_path):
    columns = {f"win_rate_vs_{HOSTILE}": 0.5, f"mean_{HOSTILE}": 1.0, HOSTILE: 2.0}
    run = a_run(
        tmp_path,
        name=HOSTILE,
        note={"versions": {HOSTILE: HOSTILE}, "git_commit": HOSTILE},
        columns=columns,
    )
    page = page_of(run)
    assert page.text.count(HOSTILE) >= 5
    assert "img" not in {tag for tag, _ in page.tags}
    assert not any(name.startswith("on") for _, attributes in page.tags for name in attributes)


@pytest.mark.parametrize(
    "odd",
    [
        {"env": "?"},
        {"env": {"options": 3}},
        {"network": None},
        {"evaluation": {"games": "x"}},
        {"evaluation": {"games": 10**400}},
        {"algorithm": []},
    ],
)
def test_a_configuration_that_was_edited_by_hand_has_a_report(tmp_path, odd):
    assert "Configuration" in page_of(a_run(tmp_path, **odd)).text


SCORE = {
    "agent": "x",
    "opponents": ["flood"],
    "games": 10,
    "wins": 3,
    "draws": 1,
    "capped": 1,
    "mean_turns": 10.0,
    "mean_length": 4.0,
    "causes": {"survived": 3, "wall-collision": 7},
    "points": 4.0,
}
EPISODES = {
    "player": "x",
    "world": "coinrun",
    "episodes": 10,
    "mean_return": 1.0,
    "interval": [0.5, 1.5],
    "mean_length": 5.0,
}
ODD = [None, 10**400, math.inf, math.nan, "x", [], {}]


@pytest.mark.parametrize("kind", ["scores", "episodes"])
def test_a_record_of_an_evaluation_that_was_made_to_harm_is_left_out(tmp_path, kind):
    run = a_run(tmp_path, rows=0)
    (run / "bundle").mkdir()
    (run / "bundle" / "card.json").write_text(json.dumps({"files": {"policy.onnx": "abc"}}))
    score, read = (SCORE, read_record) if kind == "scores" else (EPISODES, read_world_record)

    def write(**changes):
        record = {
            "key": {"policy": "abc", "games": 10},
            "board": STANDARD_BOARD,
            kind: [score | changes],
        }
        (run / "evaluation.json").write_text(json.dumps(record))

    write()
    assert read(run) is not None
    for field in (name for name, value in score.items() if isinstance(value, int | float)):
        for odd in ODD:
            write(**{field: odd})
            assert read(run) is None or (field, odd) == ("points", None)
            write_report(run)
    write(games=0) if kind == "scores" else write(episodes=0)
    assert read(run) is None


@pytest.mark.parametrize("odd", ["inf", "1e308", "-1e308", "nan", "x"])
def test_a_curve_of_numbers_that_overflow_has_a_report(tmp_path, odd):
    run = a_run(tmp_path, rows=10, evaluation={"games": 50, "every_iterations": 10})
    head, *rows = (run / "progress.csv").read_text().splitlines()
    rows[-1] = ",".join([odd] * len(head.split(",")))
    (run / "progress.csv").write_text("\n".join([head, *rows]) + "\n")
    write_report(run)


def test_a_curve_without_a_column_that_every_run_has_is_one_line(tmp_path):
    run = a_run(tmp_path, rows=2)
    curve = (run / "progress.csv").read_text()
    (run / "progress.csv").write_text(curve.replace("agent_steps,", "other,", 1))
    with pytest.raises(RunError, match="has no column 'agent_steps'"):
        write_report(run)


def test_a_run_without_iterations_and_one_that_is_cut_off_in_mid_row_have_a_report(tmp_path):
    run = a_run(tmp_path, rows=0)
    assert "no iteration has ended yet" in page_of(run).text
    with open(run / "progress.csv", "w") as file:
        file.write(
            "iteration,env_steps,agent_steps,minutes,episode_return_mean\n1,64,100,0.1,0.5\n2,64,2"
        )
    assert np.isnan(read_columns(run)["minutes"]).tolist() == [False, True]
    assert "episode return" in page_of(run).text


def test_what_is_no_run_is_refused(tmp_path):
    with pytest.raises(RunError, match="is not a run"):
        write_report(tmp_path / "nothing")
    (tmp_path / "config.yaml").write_text("a: [")
    with pytest.raises(RunError, match="YAML"):
        write_report(tmp_path)


def test_bands_are_wilson_intervals(tmp_path):
    page = page_of(a_run(tmp_path, evaluation={"games": 50, "every_iterations": 10}))
    (won,) = page.charts["games won in evaluations, 95 % Wilson intervals, by decisions"]["lines"]
    assert won["name"] == "vs 3 × random"
    for rate, low, high, wins in zip(won["y"], won["low"], won["high"], (17, 33, 50), strict=True):
        assert rate == pytest.approx(wins / 50, abs=0.01)
        assert (low, high) == pytest.approx(wilson_interval(wins, 50), abs=1e-4)
