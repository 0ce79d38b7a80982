"""The recipes of docs/recipes.md, followed: their files are taken from the page."""

from __future__ import annotations

import json
import re
import shlex
import sys
from pathlib import Path
from urllib.request import Request, urlopen

import numpy as np
import pytest

import agents
import procsnake
from agents import bundle, champions
from envs.battlesnake import BattlesnakeVectorEnv, EgocentricPlanes
from serve.server import running
from tests.agents.bundles import make_bundle
from tests.docs.commands import Command
from tests.docs.test_contributing import TITLED
from train.config import Experiment
from train.run import check

REPOSITORY = Path(__file__).parents[2]
PAGE = (REPOSITORY / "docs" / "recipes.md").read_text(encoding="utf-8")
FILES = {title: text for _, title, text in TITLED.findall(PAGE)}


@pytest.fixture
def with_wall(tmp_path, monkeypatch):
    (tmp_path / "my_planes.py").write_text(FILES["my_planes.py"], encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "my_planes", raising=False)
    from my_planes import WithWall

    return WithWall


def test_the_plane_counts_the_turns_to_the_next_wall(with_wall):
    world = BattlesnakeVectorEnv(
        num_games=2, ruleset="royale", shrink_every_n_turns=3, observation=with_wall(), num_snakes=2
    )
    world.restart(1)
    twelve = EgocentricPlanes(radius=5)
    seen = []
    for _ in range(4):
        assert world.observations.shape[1:] == (11, 11, 13)
        state = world.state
        boards = np.array([0])
        slots = np.array([0])
        np.testing.assert_array_equal(
            world.observations[:1, ..., :12], twelve.observe(state, boards, slots)
        )
        seen.append(np.unique(world.observations[0, ..., 12]).tolist())
        world.advance(np.argmax(world.action_mask, axis=1))
    assert seen == [[3], [2], [1], [3]]


def test_an_experiment_takes_the_plane(with_wall):
    (text,) = re.findall(
        r"^procsnake train (?:.*\\\n)*.*$", PAGE.replace("\\\n    ", ""), re.MULTILINE
    )
    options = procsnake.cli.main.build_parser().parse_args(Command("recipes.md", text).words)
    assert "env.options.observation=my_planes:WithWall" in options.set
    check(Experiment.load(options.experiment, options.set))


def test_a_champion_is_known_by_its_folder(tmp_path, monkeypatch):
    make_bundle(tmp_path / "runs" / "my-run" / "bundle", EgocentricPlanes(rotate=True))
    monkeypatch.chdir(tmp_path)
    exec(FILES["make_champion.py"], {})
    folder = tmp_path / "agents" / "champions"
    monkeypatch.setattr(champions, "_FOLDER", folder)
    assert champions.names() == ["champion-mine"]
    assert agents.make("champion-mine").name == "champion-mine"
    card = bundle.load(folder / "champion-mine").card
    assert (
        procsnake.cli.main.build_parser().parse_args(shlex.split(card.command)[1:]).experiment
        == "battlesnake-league"
    )
    assert "57.0 % of 400 games" in champions.table()


def test_the_tests_that_are_named_exist():
    lines = re.findall(r"^\.venv/bin/python -m pytest (.*)$", PAGE, re.MULTILINE)
    assert len(lines) == 4
    for line in lines:
        words = shlex.split(line, comments=True)
        (place,) = [word for word in words if word.startswith("tests/")]
        file, _, name = place.partition("::")
        text = (REPOSITORY / file).read_text(encoding="utf-8")
        wanted = words[words.index("-k") + 1] if "-k" in words else name.removeprefix("test_")
        assert re.search(rf"def test_\w*{wanted}", text), line


def test_the_endpoint_answers_beside_the_snake():
    made: dict = {}
    exec(FILES["my_server.py"], made)
    with running(made["app"]) as url:
        assert json.load(urlopen(f"{url}/motto")) == {"motto": "slow and steady"}
        assert (
            json.load(urlopen(Request(f"{url}/", headers={"Accept": "application/json"})))[
                "apiversion"
            ]
            == "1"
        )
