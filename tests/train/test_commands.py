"""The commands of this floor as a user calls them: exit codes, one-line errors, what is printed."""

from __future__ import annotations

import dataclasses
import json
import math
import shlex
import shutil
import sys
from contextlib import nullcontext

import pytest
import yaml

from envs.common.errors import ConfigError
from procsnake.cli.train.train import _without_places
from tests.command_line import run
from tests.train.experiments import toy
from train.config import Experiment
from train.run import RunResult, train
from train.runs.curves.history import read_columns
from train.runs.curves.statistics import mean, reached_at
from train.tuning.tune import Trial, TuneResult


@pytest.fixture
def experiment(tmp_path):
    path = tmp_path / "experiment.yaml"
    path.write_text(yaml.safe_dump(toy("identity", steps=2048).to_dict()))
    return str(path)


def test_a_report_is_written_anew(one_ray, capsys, tmp_path):
    path = train(
        toy("identity", steps=10_240), runs_dir=tmp_path, on_iteration=lambda row: True
    ).path
    (path / "report.html").unlink()
    capsys.readouterr()
    assert run(capsys, "report", str(path))[:2] == (0, f"written: {path / 'report.html'}\n")
    assert (path / "report.html").is_file()
    code, out, _ = run(capsys, "report", str(path), "--json")
    assert (code, json.loads(out)) == (0, {"written": [str(path / "report.html")]})


def test_train_tune_and_compare_print_their_results_as_json_and_progress_beside_it(
    capsys, monkeypatch, experiment, tmp_path
):
    """The results are stand-ins of the real types: what is tried is where they and the progress
    go.
    """

    def telling(result):
        def work(*_, **__):
            print("iteration 1")
            return result

        return work

    trial = Trial(tmp_path, {"ppo.gamma": 0.9}, math.nan, 100, "")
    monkeypatch.setattr(
        "train.run.train", telling(RunResult(tmp_path, None, False, {"return": math.nan}))
    )
    code, out, err = run(capsys, "train", "--config", experiment, "--json")
    assert (code, err.splitlines()[0]) == (130, "iteration 1")
    assert json.loads(out) == {
        "path": str(tmp_path),
        "bundle": None,
        "finished": False,
        "metrics": {"return": None},
        "address": "",
    }

    fields = {
        "path": tmp_path,
        "finished": True,
        "trials": [trial],
        "best_config": tmp_path / "best.yaml",
    }
    tuned = TuneResult(
        **{field.name: fields.get(field.name) for field in dataclasses.fields(TuneResult)}
    )
    monkeypatch.setattr("train.tuning.tune.tune", telling(tuned))
    code, out, err = run(capsys, "tune", experiment, "--search", "ppo.gamma=0.9,0.99", "--json")
    assert (code, err, json.loads(out)["trials"][0]["score"]) == (0, "iteration 1\n", None)

    monkeypatch.setattr("train.comparison.battlesnake_benchmark.benchmark", telling(None))
    monkeypatch.setattr(
        "train.comparison.battlesnake_benchmark.rows_of",
        lambda found: (["trainer", "return"], [["ppo", "3.1"]]),
    )
    code, out, err = run(
        capsys, "benchmark", "battlesnake", "--out", str(tmp_path / "out"), "--json"
    )
    assert (code, err, json.loads(out)) == (
        0,
        "iteration 1\n",
        [{"trainer": "ppo", "return": "3.1"}],
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("report", "nowhere"), "nowhere is not a run"),
        (("tune", "battlesnake-ppo"), "--search"),
        (("tune", "battlesnake-ppo", "--search", "ppo.gama=0.9,0.99"), "Did you mean 'ppo.gamma'"),
        (
            ("tune", "battlesnake-ppo", "--search", "ppo.gamma=0.9,0.99", "--scheduler", "ahsa"),
            "Did you mean 'asha'",
        ),
        (("tune", "battlesnake-ppo", "--trials", "0"), "0 is less than 1"),
        (
            (
                "train",
                "battlesnake-ppo",
                "--set",
                "evaluation={every_minutes: 1, opponents: [[flod]]}",
            ),
            "Did you mean 'flood'",
        ),
        (("train", "battlesnake-ppo", "--set", "ppo.learning_rate=[[5, 1]]"), "ppo.learning_rate"),
    ],
)
def test_mistakes_are_one_line(capsys, arguments, message):
    code, _, error = run(capsys, *arguments)
    # The engine may have to be compiled first, which is a line of its own.
    assert code == 2
    assert message in error.splitlines()[-1]
    assert "Traceback" not in error


@pytest.mark.parametrize(
    ("command", "options"),
    [
        ("train", []),
        ("tune", ["--search", "seed=1,2"]),
        ("launch sagemaker", ["--instances", "ml.c5.xlarge"]),
        ("launch slurm", ["--instances", "16cpu"]),
    ],
)
def test_minutes_win_over_the_same_key_in_set(capsys, monkeypatch, command, options):
    real = Experiment.load
    loaded = []

    def load(name, overrides):
        loaded.append(real(name, overrides))
        raise ConfigError("that is enough")

    monkeypatch.setattr(Experiment, "load", load)
    code, _, error = run(
        capsys,
        *command.split(),
        "battlesnake-ppo",
        *options,
        "--minutes",
        "9",
        "--set",
        "budget.max_minutes=5",
    )
    assert (code, error) == (2, f"procsnake {command}: that is enough\n")
    assert [experiment.budget.max_minutes for experiment in loaded] == [9.0]


def test_wandb_that_is_not_installed_is_one_line(capsys, monkeypatch, experiment, tmp_path):
    monkeypatch.setitem(sys.modules, "wandb", None)
    code, _, error = run(
        capsys, "train", "--config", experiment, "--wandb", "--runs", str(tmp_path / "runs")
    )
    assert (code, error.count("\n")) == (2, 1)
    assert "procsnake[wandb]" in error


@pytest.mark.long
def test_a_search_prints_its_table_and_how_to_go_on(one_ray, capsys, tmp_path, experiment):
    runs = str(tmp_path / "runs")
    code, out, _ = run(
        capsys,
        "tune",
        experiment,
        *shlex.split("--search ppo.learning_rate=1e-5,1e-2 --trials 2 --runs"),
        runs,
    )
    assert code == 0
    assert out.count("trial ") == 2
    assert "procsnake train --config" in out


@pytest.mark.parametrize(
    ("words", "noted"),
    [
        (
            ["train", "x", "--minutes", "2", "--runs", "/tmp/champs"],
            "procsnake train x --minutes 2",
        ),
        (["train", "x", "--runs=/tmp/champs", "--wandb", "--cluster", "auto"], "procsnake train x"),
        (
            ["train", "--config", "/home/me/x.yaml", "--set", "a={b: 1}"],
            "procsnake train --config x.yaml --set 'a={b: 1}'",
        ),
    ],
)
def test_a_card_notes_the_command_without_the_machines_paths(words, noted):
    assert _without_places(words) == noted


def test_several_seeds_are_trained_once_each_and_told_together(
    one_ray, capsys, monkeypatch, experiment, tmp_path
):
    words = [
        "train",
        "--config",
        experiment,
        "--runs",
        str(tmp_path / "runs"),
        "--seeds",
        "2",
        "--json",
    ]
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["procsnake", *words])

    def interrupted(chosen, **options):
        """Ctrl-C in the first iteration of the second seed."""
        return train(chosen, **options, on_iteration=lambda row: chosen.seed == 1)

    with monkeypatch.context() as patch:
        patch.setattr("train.run.train", interrupted)
        code, out, err = run(capsys, *words)
    assert (code, out) == (130, "")
    assert "1 of 2 seeds are finished; repeat the command to continue" in err
    first, second = sorted((tmp_path / "runs").iterdir())
    assert not (second / "bundle").exists()

    code, out, err = run(capsys, *words)
    told = json.loads(out)
    assert (code, told["runs"]) == (0, [str(first), str(second)])
    assert f"seed 0: using the run that is there: {first}" in err
    assert sorted((tmp_path / "runs").iterdir()) == [first, second]
    assert [
        yaml.safe_load((path / "config.yaml").read_text())["seed"] for path in (first, second)
    ] == [0, 1]
    commands = [
        json.loads((path / "bundle" / "card.json").read_text())["command"]
        for path in (first, second)
    ]
    assert commands == [
        f"procsnake train --config experiment.yaml --json --set seed={seed}" for seed in (0, 1)
    ]
    assert told["reached"]["seeds"] == "2"
    assert told["written"] == [f"outputs/{first.name}-seeds.{kind}" for kind in ("html", "png")]
    assert all((tmp_path / name).is_file() for name in told["written"])
    at = both_had(first, second)
    histories = map(read_columns, (first, second))
    ends = [reached_at(columns, "episode_return_mean", at) for columns in histories]
    assert told["reached"]["episode_return_mean"] == mean(ends).text()


def both_had(*runs):
    return min(read_columns(path)["minutes"][-1] for path in runs)


def test_seeds_are_for_new_runs(capsys):
    code, _, error = run(capsys, "train", "--resume", "runs/x", "--seeds", "3")
    assert code == 2
    assert "repeat the command with --seeds to continue all seeds" in error
    assert run(capsys, "train", "battlesnake-ppo", "--seeds", "1")[0] == 2


def test_a_seed_that_can_not_be_is_told_before_the_first_is_trained(capsys, monkeypatch):
    monkeypatch.setattr(
        "procsnake.cli.train.train._run_of_seed", lambda *_: pytest.fail("it trains")
    )
    code, _, error = run(
        capsys, "train", "battlesnake-ppo", "--seeds", "2", "--set", "seed=4000000000"
    )
    assert code == 2
    assert "seed is 4000000001; it must be between 0 and 4e+09" in error


def test_only_a_run_that_was_begun_is_ended_early(capsys):
    code, _, error = run(capsys, "train", "battlesnake-ppo", "--finish")
    assert code == 2
    assert "--finish is for --resume" in error


def test_the_best_experiment_of_a_search_has_the_budget_that_it_had_before_its_trials(
    tmp_path, monkeypatch, capsys
):
    """Ray Tune isn't asked: only the trials' budget and the one that is written down are looked
    at.
    """
    budgets = []

    def searched(base, settings, spaces, folder, *given):
        budgets.append(base.budget.max_minutes)
        return [Trial(folder / "a", {"ppo.gamma": 0.9}, 1.0, 100, "")]

    monkeypatch.setattr("train.tuning.tune.running_ray", lambda *given: nullcontext())
    monkeypatch.setattr("train.tuning.tune._search", searched)
    tune = ("tune", "battlesnake-ppo", "--search", "ppo.gamma=0.8,0.9", "--runs", str(tmp_path))
    for short in (["--minutes", "0.1"], ["--set", "budget.max_minutes=0.1"]):
        _, said, _ = run(capsys, *tune, *short)
        (written,) = tmp_path.glob("*/best.yaml")
        assert Experiment.load(written).budget.max_minutes == 3
        assert "train it for 3 minutes: " in said
        shutil.rmtree(written.parent)
    assert budgets == [0.1, 0.1]


@pytest.mark.parametrize(("error", "code"), [("", 0), ("it fell", 1)])
def test_a_search_of_which_a_trial_failed_says_so_by_its_exit_code(
    tmp_path, monkeypatch, capsys, error, code
):
    good = Trial(tmp_path / "a", {"ppo.gamma": 0.9}, 1.0, 100, "")
    result = TuneResult(
        tmp_path,
        [good, Trial(tmp_path / "b", {"ppo.gamma": 0.8}, 0.5, 100, error)],
        tmp_path / "best.yaml",
    )
    result.best_config.write_text(yaml.safe_dump(toy("identity").to_dict()))
    monkeypatch.setattr("train.tuning.tune.tune", lambda *given, **options: result)
    found, _, said = run(capsys, "tune", "battlesnake-ppo", "--search", "ppo.gamma=0.8,0.9")
    assert (found, "1 of 2 trials failed" in said) == (code, bool(error))
