from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
import yaml

from agents.charts import Line, area_chart, line_chart
from agents.evaluation import wilson_interval
from tests.train.experiments import toy
from train.report import read_columns, write_report
from train.run_folder import RunError, RunFolder

HOSTILE = '<img src=x onerror="alert(1)">&<svg onload=alert(2)> "quoted" \'too\''


class Page(HTMLParser):
    """Tags with their attributes, and the text."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))

    def handle_data(self, data):
        self.text += data + "\n"


def a_run(tmp_path, rows=30, name="x", note=None, columns=None, **config) -> Path:
    data = {**toy("identity").to_dict(), "name": name, **config}
    folder = tmp_path / "run"
    folder.mkdir()
    note = note or {"versions": {"torch": "2.13.0"}, "git_commit": "abc123", "started": "2026-01-02"}
    (folder / "config.yaml").write_text(yaml.safe_dump({**data, "run": note}))
    curve = RunFolder(folder)
    for k in range(1, rows + 1):
        row = {"iteration": k, "env_steps": 64 * k, "agent_steps": 100 * k, "minutes": k / 60, "agent_steps_per_second": 50.0}
        row |= {"episode_return_mean": k / rows, "episode_len_mean": 3.0, "episodes": 5, "policy_loss": 0.1 / k}
        row |= {"seconds_env": 0.5, "seconds_learner": 1.5, "mean_won": 0.5}
        row |= {"mean_cause_1": 0.25, "mean_cause_0": 0.75} if k % 2 else {"mean_cause_0": 1.0}
        if k % 10 == 0:
            row |= {"win_rate_vs_3xrandom": k / rows, "win_rate": k / rows}
        curve.append(row | (columns or {}))
    return folder


def test_a_report_has_all_curves_needs_nothing_else_and_can_be_made_before_the_end(tmp_path):
    run = a_run(tmp_path, evaluation={"games": 50, "every_iterations": 10})
    page = Page(write_report(run))
    for caption in (
        "return",
        "games won",
        "causes",
        "policy_loss",
        "won",
        "microseconds a decision, by phase",
        "2.13.0",
        "abc123",
    ):
        assert caption in page.text
    for cause in ("survived", "snake-collision"):
        assert cause in page.text
    assert "num_minibatches: 4" in page.text
    assert "under way or interrupted" in page.text
    assert not {"script", "link", "img", "iframe"} & {tag for tag, _ in page.tags}
    assert not any({"src", "href", "onload", "onerror"} & set(attributes) for _, attributes in page.tags)
    assert "http" not in (run / "report.html").read_text()


def test_hostile_names_are_only_text(tmp_path):
    columns = {f"win_rate_vs_{HOSTILE}": 0.5, f"mean_{HOSTILE}": 1.0, HOSTILE: 2.0}
    run = a_run(tmp_path, name=HOSTILE, note={"versions": {HOSTILE: HOSTILE}, "git_commit": HOSTILE}, columns=columns)
    page = Page(write_report(run))
    assert page.text.count(HOSTILE) >= 5
    assert "img" not in {tag for tag, _ in page.tags}
    assert not any(name.startswith("on") for _, attributes in page.tags for name in attributes)


def test_a_run_without_iterations_and_one_that_is_cut_off_in_mid_row_have_a_report(tmp_path):
    run = a_run(tmp_path, rows=0)
    assert "no iteration has ended yet" in Page(write_report(run)).text
    with open(run / "progress.csv", "w") as file:
        file.write("iteration,env_steps,agent_steps,minutes,episode_return_mean\n1,64,100,0.1,0.5\n2,64,2")
    assert np.isnan(read_columns(run)["minutes"]).tolist() == [False, True]
    assert "return" in Page(write_report(run)).text


def test_what_is_no_run_is_refused(tmp_path):
    with pytest.raises(RunError, match="is no run"):
        write_report(tmp_path / "nothing")
    (tmp_path / "config.yaml").write_text("a: [")
    with pytest.raises(RunError, match="YAML"):
        write_report(tmp_path)


def points(svg, shape):
    return [
        np.array([pair.split(",") for pair in text.split()], float) for text in re.findall(f'<{shape} points="([^"]*)"', svg)
    ]


def test_lines_go_through_their_points_in_proportion():
    svg = line_chart([Line(name="a", x=np.array([0, 1, 2, 4.0]), y=np.array([0, 1, np.nan, 2.0]))])
    ((start, middle, end),) = points(svg, "polyline")
    np.testing.assert_allclose((middle - start) / (end - start), [0.25, 0.5], atol=0.01)
    assert start[1] > middle[1] > end[1]


def test_bands_are_wilson_intervals(tmp_path):
    run = a_run(tmp_path, evaluation={"games": 50, "every_iterations": 10})
    chart = write_report(run).read_text().split("games won")[1]
    band, line = points(chart, "polygon")[0], points(chart, "polyline")[0]
    high, low = band[:3, 1], band[3:, 1][::-1]
    # The line's own heights give the scale: rates 1/3 and 1.
    scale = (line[2, 1] - line[0, 1]) / (1 - 1 / 3)
    for k, wins in enumerate((17, 33, 50)):
        expected = wilson_interval(wins, 50)
        for height, bound in zip((low[k], high[k]), expected, strict=True):
            assert 1 + (height - line[2, 1]) / scale == pytest.approx(bound, abs=0.005)


def test_areas_are_stacked_and_gaps_count_as_nothing():
    x = np.array([0.0, 1.0])
    first, second = points(
        area_chart([Line(name="a", x=x, y=np.array([1.0, 2.0])), Line(name="b", x=x, y=np.array([1.0, np.nan]))]), "polygon"
    )
    np.testing.assert_allclose(first[:2], second[2:][::-1])
    np.testing.assert_allclose(second[1], second[2])


def test_long_curves_are_thinned_to_their_means():
    rng = np.random.default_rng(0)
    x = np.arange(10_000.0)
    (shown,) = points(line_chart([Line(name="a", x=x, y=rng.normal(5.0, 1.0, 10_000))]), "polyline")
    assert len(shown) <= 300
    assert line_chart([Line(name="nothing", x=x, y=np.full(10_000, np.nan))]) == ""
