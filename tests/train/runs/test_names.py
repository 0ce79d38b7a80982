from __future__ import annotations

import os

import pytest

import procsnake
from train.runs.folder import RunError
from train.runs.names import with_runs

FIRST = "battlesnake-ppo-20261126-200000"
SECOND = "battlesnake-ppo-20261127-090000"
OTHER = "battlesnake-dqn-20261127-100000"


@pytest.fixture
def runs(tmp_path, monkeypatch):
    for age, name in enumerate((OTHER, SECOND, FIRST)):
        config = tmp_path / "runs" / name / "config.yaml"
        config.parent.mkdir(parents=True)
        config.touch()
        os.utime(config, (2_000_000 - age, 2_000_000 - age))
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(
    ("word", "meant"),
    [
        ("latest", f"runs/{OTHER}"),
        ("runs/battlesnake-ppo-…", f"runs/{SECOND}"),
        ("runs/battlesnake-ppo-...", f"runs/{SECOND}"),
        ("runs/battlesnake-ppo-20261126", f"runs/{FIRST}"),
        ("battlesnake-ppo", f"runs/{SECOND}"),
        ("runs/battlesnake-ppo-…/bundle", f"runs/{SECOND}/bundle"),
        ("runs/…/config.yaml", f"runs/{OTHER}/config.yaml"),
        (
            "new=runs/battlesnake-ppo-…+mcts?simulations=200",
            f"new=runs/{SECOND}+mcts?simulations=200",
        ),
        ("my_rule.py+latest", f"my_rule.py+runs/{OTHER}"),
    ],
)
def test_the_newest_run_that_fits_is_meant(runs, word, meant):
    assert with_runs(word) == meant


@pytest.mark.parametrize(
    "word",
    [
        f"runs/{FIRST}",
        "flood",
        "battlesnake",
        "runs/procgen",
        "https://a.example/latest",
        "alphabeta?nodes=5",
        "a.py+flood",
    ],
)
def test_other_players_stay(runs, word):
    assert with_runs(word, taken=frozenset({"flood", "battlesnake", "alphabeta"})) == word


@pytest.mark.parametrize("word", ["latest", "runs/procgen-…"])
def test_no_such_run(tmp_path, monkeypatch, word):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(RunError, match=f"{word} is not a run, because runs holds none"):
        with_runs(word)


def test_commands_take_what_the_documentation_prints(runs, capsys):
    assert procsnake.main(["train", "--resume", "runs/battlesnake-ppo-…", "--finish"]) == 2
    said = capsys.readouterr().err
    assert f"runs/battlesnake-ppo-… is runs/{SECOND}" in said
    assert f"runs/{SECOND}/config.yaml" in said.splitlines()[-1]


def test_an_image_may_serve_the_latest_run(runs, capsys):
    assert procsnake.main(["image", "serving", "--bundle", "latest"]) == 2
    assert f"runs/{OTHER} is neither a bundle nor a run that has one" in capsys.readouterr().err


def test_whoever_is_asked_may_be_the_latest_run(runs, capsys):
    assert procsnake.main(["replay", "ask", "none.json", "--agent", "latest"]) == 2
    assert f"latest is runs/{OTHER}" in capsys.readouterr().err
