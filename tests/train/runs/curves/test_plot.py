from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import t

import procsnake
from envs.common.errors import UnknownNameError
from tests.agents.measure.pages.reading import Page
from tests.train.runs.report.test_page import a_run
from train.config import Experiment
from train.metrics.words import title_of
from train.runs.curves.plot import groups_of, rows_of, usual, write_curves
from train.runs.curves.statistics import mean_line
from train.runs.folder import RunError, RunFolder


@pytest.fixture
def runs(tmp_path):
    """Three seeds of one experiment whose lengths are 10, 20 and 60, and a run of the same name
    with another setting.
    """
    made = []
    for seed, length, gamma in ((0, 10.0, 0.9), (1, 20.0, 0.9), (2, 60.0, 0.9), (0, 5.0, 0.5)):
        folder = tmp_path / f"{seed}-{gamma}"
        folder.mkdir()
        made.append(
            a_run(
                folder,
                name="snakes",
                seed=seed,
                ppo={"gamma": gamma},
                columns={"episode_len_mean": length},
            )
        )
    return made


def test_seeds_are_one_line_with_students_interval_and_other_settings_another(runs, tmp_path):
    groups = write_curves(runs, tmp_path / "made" / "beside", ["episode_len_mean"])
    heads, rows = rows_of(groups, ["episode_len_mean"])
    margin = t.ppf(0.975, 2) * np.std([10, 20, 60], ddof=1) / np.sqrt(3)
    assert heads == ["experiment", "seeds", "minutes", "decisions", "episode_len_mean"]
    assert rows == [
        ["snakes", "3", "0.5", "3,000", f"30 ({30 - margin:.3g} to {30 + margin:.3g})"],
        ["snakes #2", "1", "0.5", "3,000", "5"],
    ]
    page = Page((tmp_path / "made" / "beside.html").read_text())
    page.assert_needs_nothing_else()
    assert all(cell in page.text for row in rows for cell in row)
    chart = page.charts["episode length (episode_len_mean), by minutes of training"]
    banded, alone = chart["lines"]
    # All along, the seeds' lengths are 10, 20 and 60; of three, the bootstrap's interval is from
    # the lowest to the highest.
    assert set(banded["y"]) == {30.0}
    assert (set(banded["low"]), set(banded["high"])) == ({10.0}, {60.0})
    assert "low" not in alone
    assert (tmp_path / "made" / "beside.png").read_bytes().startswith(b"\x89PNG")


def test_what_is_told_of_seeds_is_of_the_time_that_all_of_them_had(tmp_path):
    made = []
    for seed, minutes in ((0, 1), (1, 10)):
        made.append(a_run(tmp_path, rows=60 * minutes, seed=seed).rename(tmp_path / str(seed)))
    # Of the columns of `a_run`, the episode return is the share of the run that is over, and a
    # minute has 6,000 decisions.
    heads, (row,) = rows_of(groups_of(made), ["episode_return_mean", "win_rate"])
    told = dict(zip(heads, row, strict=True))
    assert (told["minutes"], told["decisions"]) == ("1.0", "6,000")
    assert told["episode_return_mean"].startswith(f"{(54.5 / 60 + 54.5 / 600) / 2:.3g} ")
    # Every tenth iteration has a win rate, the same share: the fiftieth and the sixtieth count.
    assert told["win_rate"].startswith(f"{(55 / 60 + 55 / 600) / 2:.3g} ")


def test_a_metric_that_was_measured_once_is_one_point():
    columns = {
        "minutes": np.array([1.0, 2.0, 3.0]),
        "agent_steps": np.array([10.0, 20.0, 30.0]),
        "win_rate": np.array([math.nan, 0.25, math.nan]),
    }
    line = mean_line("once", [columns], "win_rate")
    assert (line.x.tolist(), line.y.tolist()) == ([2.0], [0.25])


def test_shares_are_said_to_be_shares_and_each_axis_has_a_name(runs, tmp_path):
    write_curves(runs, tmp_path / "beside", ["win_rate", "episode_len_mean"])
    rates, lengths = Page((tmp_path / "beside.html").read_text()).charts.values()
    assert (rates["shares"], rates["y_label"], rates["x_label"]) == (
        True,
        "share of games",
        "minutes of training",
    )
    assert (lengths["shares"], lengths["y_label"]) == (False, "steps per episode")


@pytest.mark.parametrize(
    ("x", "label", "end"),
    [("minutes", "minutes of training", 0.5), ("agent_steps", "decisions", 3000.0)],
)
def test_curves_are_drawn_along_what_is_asked_for(runs, tmp_path, monkeypatch, x, label, end):
    monkeypatch.chdir(tmp_path)
    assert (
        procsnake.main(["plot", *map(str, runs[:3]), "--metrics", "episode_len_mean", "--x", x])
        == 0
    )
    (chart,) = Page((tmp_path / "outputs" / "curves.html").read_text()).charts.values()
    assert chart["x_label"] == label
    (line,) = chart["lines"]
    assert line["x"][-1] == pytest.approx(end)


def test_the_usual_metrics_are_those_that_the_runs_have(runs, tmp_path):
    write_curves(runs, tmp_path / "beside")
    captions = Page((tmp_path / "beside.html").read_text()).text
    assert {"episode_return_mean", "episode_len_mean", "win_rate"} <= set(captions.split())
    # In self-play the return is noise, so games won come first.
    assert usual(groups_of(runs))[0] == "win_rate"


def test_the_default_experiment_measures_what_rises():
    evaluation = Experiment.load("battlesnake-ppo").evaluation
    assert evaluation is not None
    assert evaluation.every_minutes == 0.5
    seats = Experiment.load("battlesnake-ppo").env.options["num_snakes"]
    assert all(1 + len(group) == seats for group in evaluation.opponents)


@pytest.mark.parametrize(
    ("experiment", "column", "shown"),
    [
        ("battlesnake-evaluation", "best_generation", "best_generation"),
        ("battlesnake-ppo", "held_out_accuracy", "held_out_accuracy"),
        ("battlesnake-ppo", "policy_loss", "agent_steps_per_second"),
    ],
)
def test_runs_in_which_no_episode_has_ended_show_what_they_have(
    tmp_path, capsys, experiment, column, shown
):
    """Cloning and learned evaluations never play episodes, and other runs have none at their
    beginning.
    """
    run = RunFolder.set_up(tmp_path / "run", Experiment.load(experiment), {})
    for iteration in (1, 2):
        counters = dict.fromkeys(("iteration", "minutes", "env_steps", "agent_steps"), iteration)
        run.append({**counters, "agent_steps_per_second": 7.0, "episodes": 0.0, column: 0.5})
    assert procsnake.main(["plot", str(run.path), "--out", str(tmp_path / "curves")]) == 0
    assert [*Page((tmp_path / "curves.html").read_text()).charts] == [
        f"{title_of(shown)}, by minutes of training"
    ]
    assert (tmp_path / "curves.png").is_file()
    assert rows_of(groups_of([run.path]), usual(groups_of([run.path])))[1][0][-1] in ("0.5", "7")


def test_a_metric_that_the_runs_do_not_have_yet_is_no_unknown_metric(tmp_path):
    run = a_run(tmp_path, columns={"agent_steps_per_second": 9.0})
    lines = (run / "progress.csv").read_text().splitlines()
    place = lines[0].split(",").index("episode_return_mean")
    without = [
        ",".join(cell for k, cell in enumerate(line.split(",")) if k != place) for line in lines
    ]
    (run / "progress.csv").write_text("\n".join(without) + "\n")
    with pytest.raises(RunError, match="none of the runs has a value of episode_return_mean yet"):
        write_curves([run], tmp_path / "out", ["episode_return_mean"])
    with pytest.raises(UnknownNameError):
        write_curves([run], tmp_path / "out", ["return"])


def test_what_cant_be_drawn_is_refused(runs, tmp_path, capsys):
    with pytest.raises(UnknownNameError, match="episode_len_mean"):
        write_curves(runs, tmp_path / "beside", ["episode_length_mean"])
    (runs[0] / "progress.csv").unlink()
    with pytest.raises(RunError, match="no finished iteration"):
        write_curves(runs, tmp_path / "beside")
    assert procsnake.main(["plot", str(tmp_path), str(runs[1])]) == 2
    assert "is not a run" in capsys.readouterr().err
    assert not list(tmp_path.glob("beside*"))


def test_the_command_line_draws_them(runs, tmp_path, capsys):
    assert (
        procsnake.main(
            [
                "plot",
                *map(str, runs),
                "--metrics",
                "win_rate,mean_won",
                "--out",
                str(tmp_path / "v0.2"),
            ]
        )
        == 0
    )
    assert "v0.2.png" in capsys.readouterr().out
    assert (tmp_path / "v0.2.png").is_file()


def test_a_report_is_of_one_run(runs, capsys):
    assert procsnake.main(["report", *map(str, runs[:2])]) == 2
    assert f"procsnake plot {runs[0]} {runs[1]}" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("interval", "band"),
    # Lengths of 10, 20 and 60: Student's t for two degrees of freedom, from a table, and the
    # standard deviation of the three.
    [
        ("bootstrap", (10, 60)),
        ("student", (30 - 4.302653 * 700**0.5 / 3**0.5, 30 + 4.302653 * 700**0.5 / 3**0.5)),
        ("none", None),
    ],
)
def test_the_band_is_the_interval_that_is_asked_for(runs, tmp_path, interval, band):
    out = tmp_path / "curves"
    arguments = ["--metrics", "episode_len_mean", "--interval", interval, "--out", str(out)]
    assert procsnake.main(["plot", *map(str, runs[:3]), *arguments]) == 0
    page = Page(out.with_suffix(".html").read_text())
    ((line,),) = [chart["lines"] for chart in page.charts.values()]
    assert ("low" in line) == ("Bands:" in page.text) == (band is not None)
    if band:
        assert (line["low"][-1], line["high"][-1]) == pytest.approx(band, rel=1e-5)


def test_what_lies_beside_runs_is_no_run(runs, tmp_path, capsys):
    """As with `procsnake plot runs/*`."""
    (tmp_path / "notes.txt").touch()
    assert procsnake.main(["plot", str(tmp_path / "notes.txt"), str(runs[0])]) == 2
    assert "notes.txt is not a run" in capsys.readouterr().err


def test_a_file_in_the_place_of_the_folder_is_told(runs, tmp_path, capsys):
    (tmp_path / "file").touch()
    assert procsnake.main(["plot", str(runs[0]), "--out", str(tmp_path / "file" / "curves")]) == 2
    assert (
        f"{tmp_path}/file is a file where a folder is needed; name another place\n"
        in capsys.readouterr().err
    )


@pytest.mark.parametrize("name", ["config.yaml", "progress.csv"])
def test_a_file_that_cannot_be_read_is_named(runs, name):
    path = runs[0] / name
    path.unlink()
    path.symlink_to(path)
    with pytest.raises(RunError, match=rf"{name} can't be read: .*Check the rights"):
        groups_of(runs)
