"""A command that takes a player registers the worlds that the player's run was trained with."""

from __future__ import annotations

import sys

import pytest
import yaml

from procsnake.cli.worlds import register_worlds
from train.config import Experiment
from train.runs.folder import CONFIG, RunFolder

MODULE = "worlds_of_a_run"


@pytest.fixture
def run(tmp_path, monkeypatch):
    """The folder of a run of this machine, whose experiment imports `MODULE`."""
    (tmp_path / f"{MODULE}.py").write_text("")
    monkeypatch.syspath_prepend(tmp_path)
    experiment = Experiment.load("battlesnake-ppo", [f"env.imports=[{MODULE}]"])
    folder = tmp_path / "run"
    folder.mkdir()
    (folder / CONFIG).write_text(yaml.safe_dump(experiment.to_dict()))
    RunFolder(folder).sign_config()
    yield folder
    sys.modules.pop(MODULE, None)


@pytest.mark.parametrize(
    "player",
    ["{}", "{}/bundle", "Mine={}?temperature=0", "{}+mcts", "rule.py+{}", "a.py+b.py+{}+mcts"],
)
def test_the_modules_of_a_players_run_are_imported(run, player):
    register_worlds(player.format(run), [])
    assert MODULE in sys.modules


def test_rules_alone_import_no_run_that_is_the_working_folder(run, monkeypatch):
    monkeypatch.chdir(run)
    register_worlds("rule.py", [])
    assert MODULE not in sys.modules
