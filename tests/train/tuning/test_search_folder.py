"""Searches that were interrupted."""

from __future__ import annotations

import shlex
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tests.train.experiments import toy
from train.runs.folder import RunError, RunFolder
from train.settings.sections import Budget
from train.tuning.search_folder import SEARCH, read_search, write_search


@pytest.fixture(autouse=True)
def own_key(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


def test_what_is_searched_is_read_again(tmp_path):
    experiment = toy("identity").search(["ppo.gamma=0.5..0.9"])
    write_search(tmp_path, experiment, Budget(max_minutes=5))
    assert read_search(tmp_path) == (experiment, Budget(max_minutes=5))


def test_a_search_that_has_ended_or_came_from_elsewhere_does_not_go_on(tmp_path):
    here = tmp_path / "here"
    copied = tmp_path / "copied"
    here.mkdir()
    with pytest.raises(RunError, match="holds no search"):
        read_search(here)
    write_search(here, toy("identity"), Budget(max_minutes=5))
    here.rename(copied)
    with pytest.raises(RunError, match="has been moved"):
        read_search(copied)
    write_search(copied, toy("identity"), Budget(max_minutes=5))
    (copied / SEARCH).write_text((copied / SEARCH).read_text().replace("seed: 0", "seed: 1"))
    with pytest.raises(RunError, match="was not made on this machine"):
        read_search(copied)
    write_search(copied, toy("identity"), Budget(max_minutes=5), has_ended=True)
    with pytest.raises(RunError, match="has ended"):
        read_search(copied)


@pytest.mark.long
def test_an_interrupted_search_goes_on_with_the_trials_that_had_not_ended(tmp_path):
    experiment = tmp_path / "toy.yaml"
    experiment.write_text(yaml.safe_dump(toy("identity", steps=40 * 1024).to_dict()))
    words = [
        *shlex.split("--search ppo.learning_rate=1e-3..1e-2:log --trials 3 --runs"),
        str(tmp_path / "runs"),
    ]
    command = [sys.executable, "-m", "procsnake", "tune"]
    began = subprocess.Popen(
        [*command, str(experiment), *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert began.stdout
    assert any("trial 1 of 3" in line for line in began.stdout)
    began.send_signal(signal.SIGINT)
    _, said = began.communicate(timeout=300)
    (folder,) = (tmp_path / "runs").iterdir()
    assert began.returncode == 130
    assert f"tune --resume {folder}" in said
    first = {run: (run / "progress.csv").read_bytes() for run in ended_runs(folder)}
    assert len(first) == 1
    on = subprocess.run(
        [*command, "--resume", str(folder)],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert on.returncode == 0, on.stderr
    assert len(ended_runs(folder)) == 3
    assert all((run / "progress.csv").read_bytes() == curve for run, curve in first.items())
    for run in ended_runs(folder):
        iterations = [int(row["iteration"]) for row in RunFolder(run).curve()]
        assert iterations == list(range(1, 41))
    assert len((folder / "trials.csv").read_text().splitlines()) == 4


def ended_runs(folder: Path) -> list[Path]:
    """The trials' runs that have exported their policy."""
    return sorted(card.parent.parent for card in folder.glob("*/bundle/card.json"))
