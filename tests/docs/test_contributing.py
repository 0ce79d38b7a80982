"""The recipes of docs/contributing.md, followed: their files are taken from the page, their
commands run.
"""

from __future__ import annotations

import base64
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

REPOSITORY = Path(__file__).parents[2]
PAGE = (REPOSITORY / "docs" / "contributing.md").read_text(encoding="utf-8")
TITLED = re.compile(r'^( *)```\w+ title="([^"]+)"\n(.*?)^\1```$', re.MULTILINE | re.DOTALL)
FILES = {title: textwrap.dedent(text) for _, title, text in TITLED.findall(PAGE)}


def write(folder: Path, *names: str) -> None:
    for name in names:
        (folder / name).write_text(FILES[name], encoding="utf-8")


def procsnake(folder: Path, *arguments: str, paths: tuple[Path, ...] = ()) -> str:
    """What the command prints; it must end well."""
    command = [sys.executable, "-m", *arguments]
    ended = subprocess.run(
        command,
        cwd=folder,
        env=environment(*paths, folder),
        capture_output=True,
        text=True,
        timeout=250,
    )
    assert ended.returncode == 0, f"{arguments}\n{ended.stdout[-2000:]}\n{ended.stderr[-2000:]}"
    return ended.stdout


def environment(*paths: Path) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, (*paths, REPOSITORY)))}


def last_row(folder: Path) -> dict[str, str]:
    header, *_, last = next(folder.glob("runs/*/progress.csv")).read_text().splitlines()
    return dict(zip(header.split(","), last.split(","), strict=True))


def test_each_recipe_has_nine_steps():
    recipes = re.split(r"^## Add ", PAGE, flags=re.MULTILINE)[1:]
    assert [re.findall(r"^(\d)\. ", recipe, re.MULTILINE) for recipe in recipes] == [
        list("123456789")
    ] * 3


@pytest.mark.long
def test_the_world_passes_its_test_and_is_solved(tmp_path):
    write(tmp_path, "my_world.py", "test_my_world.py", "corridor.yaml")
    procsnake(tmp_path, "pytest", "-q", "-p", "no:cacheprovider", "test_my_world.py")
    procsnake(tmp_path, "procsnake", "train", "--config", "corridor.yaml")
    row = last_row(tmp_path)
    assert float(row["episode_return_mean"]) > 0.99
    assert (
        float(row["episode_len_mean"]) < 9
    )  # the best is 7; whoever walks at random needs 20 and more
    it_is_measured_reported_watched_and_filmed(tmp_path, next(tmp_path.glob("runs/*")))


def it_is_measured_reported_watched_and_filmed(folder: Path, run: Path) -> None:
    name = f"runs/{run.name}"
    policy, random = json.loads(
        procsnake(folder, "procsnake", "episodes", name, "--episodes", "64", "--json")
    )
    assert (policy["world"], policy["mean_return"], policy["mean_length"]) == ("corridor", 1.0, 7.0)
    assert random["interval"][1] < 0.9
    procsnake(folder, "procsnake", "report", name)
    page = (run / "report.html").read_text(encoding="utf-8")
    assert "return 1 after 7 steps" in page
    assert "1 to 1" in page
    (film,) = re.findall(r"data:video/mp4;base64,([A-Za-z0-9+/=]+)", page)
    assert b"ftyp" in base64.b64decode(film)[:16]
    told = procsnake(folder, "procsnake", "watch", name, "--delay", "0", "--record", "film.gif")
    assert told.splitlines()[-1] == "return 1 after 7 steps"
    with Image.open(folder / "film.gif") as film:
        assert film.n_frames == 7  # before each step
        brightest = []
        for frame in range(7):
            film.seek(frame)
            brightest.append(np.asarray(film.convert("L")).max(0).argmax())
    assert brightest == sorted(set(brightest))  # a cell further each time


@pytest.mark.long
def test_a_strangers_run_names_no_code_that_is_executed(tmp_path):
    """Its world is in a module that its configuration names; only who names it himself has it
    imported.
    """
    write(tmp_path, "my_world.py", "corridor.yaml")
    procsnake(
        tmp_path,
        *shlex.split("procsnake train --config corridor.yaml --set budget.total_agent_steps=1000"),
    )
    run = next(tmp_path.glob("runs/*"))
    (run / "config.yaml.hmac").unlink()
    (tmp_path / "my_world.py").write_text(f"open('executed', 'w')\n{FILES['my_world.py']}")
    name = f"runs/{run.name}"
    procsnake(tmp_path, "procsnake", "report", name)
    assert "no film: config.yaml names my_world" in (run / "report.html").read_text(
        encoding="utf-8"
    )
    for command in ("episodes", "watch"):
        refused = subprocess.run(
            [sys.executable, "-m", "procsnake", command, name],
            cwd=tmp_path,
            env=environment(tmp_path),
            capture_output=True,
            text=True,
        )
        assert refused.returncode == 2
        assert "--imports MODULE" in refused.stderr
    assert not (tmp_path / "executed").exists()
    procsnake(tmp_path, "procsnake", "episodes", name, "--imports", "my_world", "--episodes", "2")


@pytest.mark.long
def test_the_trainer_learns_once_it_is_registered(tmp_path):
    tree = tmp_path / "tree"
    for floor in ("envs", "agents", "train", "serve", "procsnake"):
        shutil.copytree(
            REPOSITORY / floor, tree / floor, ignore=shutil.ignore_patterns("__pycache__", "*.nb?")
        )
    shutil.copy(REPOSITORY / "procsnake_packages.py", tree)
    for name in ("train/a2c.py", "train/settings/a2c.py"):
        (tree / name).write_text(FILES[name])
    ppo = "from train.settings.ppo import PPOSettings\n"
    a2c = "from train.settings.a2c import A2CSettings as A2CSettings\n"
    edit(tree / "train/settings/__init__.py", ppo, f"{ppo}{a2c}")
    write(tmp_path, "my_world.py", "corridor.yaml")
    settings = [
        "algorithm=a2c",
        "a2c.learning_rate=1e-2",
        "a2c.num_steps=5",
        "a2c.num_threads=1",
        "budget.total_agent_steps=100000",
    ]
    flags = [part for setting in settings for part in ("--set", setting)]
    procsnake(tmp_path, "procsnake", "train", "--config", "corridor.yaml", *flags, paths=(tree,))
    row = last_row(tmp_path)
    assert float(row["episode_return_mean"]) > 0.99
    assert (
        float(row["episode_len_mean"]) < 9
    )  # the best is 7; whoever walks at random needs 20 and more


def edit(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert text.count(old) == 1, f"{path.name}: {old!r}"
    path.write_text(text.replace(old, new))


@pytest.mark.long
def test_the_heuristic_plays_is_looked_at_and_measured(tmp_path):
    write(tmp_path, "hug.py")
    recipe = PAGE.split("## Add a heuristic")[1]
    commands = re.findall(r"^ *(procsnake .*)$", re.sub(r"\\\n +", "", recipe), re.MULTILINE)
    assert len(commands) == 5
    for command in commands:
        told = procsnake(tmp_path, *command.split())
    assert "50" in told
    procsnake(tmp_path, "pytest", "-q", "-p", "no:cacheprovider", "test_turn_0.py")
