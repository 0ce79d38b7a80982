"""`procsnake push`, and other commands with an address of the Hub where they take a bundle."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from agents.measure.tournament.settings import Tournament
from agents.measure.tournament.store import Store
from tests.agents.hub.stand_in import Hub
from tests.command_line import run
from train.runs.sessions.initial_weights import as_overrides

ROOT = Path(__file__).parents[3]
# huggingface_hub's own, where it uploads over LFS.
pytestmark = pytest.mark.filterwarnings("ignore:Use 'content=<...>':DeprecationWarning")
SLIM = """
import sys

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("torch", "ray", "safetensors"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Missing())
import procsnake
sys.exit(procsnake.main(sys.argv[1:]))
"""


@pytest.fixture
def commit(hub: Hub, bundle_path, tmp_path, monkeypatch) -> str:
    monkeypatch.chdir(tmp_path)
    return hub.add(
        "ada/snake", {path.name: path.read_bytes() for path in Path(bundle_path).iterdir()}
    )


def test_push_says_where_it_lies_and_how_to_play_it(hub, owner, capsys, bundle_path):
    code, out, _ = run(
        capsys, "push", str(bundle_path), "hf://ada/snake", "--message", "see hf://ada/other"
    )
    model = hub.models["ada/snake"]
    sha = model.branches["main"]
    assert code == 0
    assert f"{hub.url}/ada/snake/commit/{sha}" in out
    assert f"match hf://ada/snake@{sha} flood --watch" in out
    assert model.messages[-1] == "see hf://ada/other"


def test_push_tells_its_results_as_json(hub, owner, capsys, bundle_path):
    code, out, _ = run(
        capsys, "push", str(bundle_path), "hf://ada/snake", "--revision", "trial", "--json"
    )
    sha = hub.models["ada/snake"].branches["trial"]
    assert (code, json.loads(out)) == (
        0,
        {"url": f"{hub.url}/ada/snake/commit/{sha}", "address": f"hf://ada/snake@{sha}"},
    )


def test_what_lies_on_the_hub_can_be_pushed_on(hub, owner, commit, capsys):
    code, _, _ = run(capsys, "push", f"hf://ada/snake@{commit}", "hf://ada/copy")
    assert code == 0
    copied = hub.models["ada/copy"]
    onnx = copied.commits[copied.branches["main"]]["policy.onnx"]
    assert onnx == hub.models["ada/snake"].commits[commit]["policy.onnx"]


def test_a_mistake_takes_one_line(hub, capsys):
    code, _, err = run(capsys, "match", "hf://ada/snake", "flood")
    assert (code, err.count("\n")) == (2, 1)
    assert "procsnake match:" in err
    assert "has no model ada/snake" in err


@pytest.mark.parametrize(
    "words", [("match", "hf://ada/snake", "flood"), ("push", "champion-duel", "hf://ada/snake")]
)
def test_without_the_library_its_extra_is_named(hub, capsys, monkeypatch, words):
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    code, _, err = run(capsys, *words)
    assert code == 2
    assert "needs huggingface_hub, which is not installed. Try: " in err
    assert "procsnake[hub]" in err


def test_a_commit_that_was_had_before_needs_no_library(hub, commit, capsys, monkeypatch):
    words = ("match", f"hf://ada/snake@{commit}", "flood", "--json")
    before = run(capsys, *words)
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    assert run(capsys, *words)[:2] == before[:2]
    assert before[0] == 0


def test_a_match_is_that_of_the_same_bundle_here(hub, commit, capsys, bundle_path):
    words = ("flood", "--seed", "3", "--json")
    here = run(capsys, "match", f"snake={bundle_path}", *words)
    there = run(capsys, "match", "snake=hf://ada/snake", *words)
    assert json.loads(here[1]) == json.loads(there[1])
    assert f"hf://ada/snake is now hf://ada/snake@{commit}" in there[2]


def test_a_tournament_keeps_the_commit_that_played(hub, commit, capsys):
    code, _, err = run(
        capsys, "tournament", "mine=hf://ada/snake", "random", "--games", "2", "--store", "t.db"
    )
    assert code == 0, err
    with Store("t.db", Tournament) as store:
        assert store.load().players[0].spec == f"hf://ada/snake@{commit}"


def test_a_run_that_begins_with_it_keeps_its_address(hub, commit):
    address = f"hf://ada/snake@{commit}"
    assert f'init_from="{address}"' in as_overrides(address)


def test_it_plays_where_neither_torch_nor_ray_is_installed(hub, commit, tmp_path):
    environment = {
        **os.environ,
        "HF_ENDPOINT": hub.url,
        "HF_HOME": str(tmp_path / "none"),
        "PYTHONPATH": str(ROOT),
    }
    words = shlex.split("evaluate hf://ada/snake --against random --games 2 --num-snakes 2 --json")
    done = subprocess.run(
        [sys.executable, "-c", SLIM, *words],
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)[0]["agent"] == "snake"
    assert f"@{commit}" in done.stderr
