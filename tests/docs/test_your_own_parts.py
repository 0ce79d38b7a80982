"""The parts on docs/your-own-parts.md, used: their files are taken from the page, trained,
exported, measured and served.
"""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
import urllib.request
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.docs.test_contributing import TITLED, environment, procsnake
from tests.envs.battlesnake.positions import board
from tests.envs.battlesnake.webhook.test_requests import plain_request

PAGE = (Path(__file__).parents[2] / "docs" / "your-own-parts.md").read_text(encoding="utf-8")
FILES = {title: text for _, title, text in TITLED.findall(PAGE)}
SHORT = ["--set", "budget={total_agent_steps: 3000}", "--set", "env.options.num_games=16"]
MOVES = {"up", "down", "left", "right"}


def test_each_part_has_at_most_ten_lines():
    """Besides imports, blank lines and the class's or the module's head."""
    for name in ("my_net.py", "my_eyes.py", "my_rewards.py", "my_settings.py"):
        lines = [
            line
            for line in FILES[name].splitlines()
            if line.strip() and not re.match(r"import|from|@|class|\s+\"\"\"", line)
        ]
        assert len(lines) <= 10


def chosen(**parts: str) -> list[str]:
    keys = {"observation": "env.options.observation", "rewards": "env.options.rewards"}
    return [
        word for part, name in parts.items() for word in ("--set", f"{keys.get(part, part)}={name}")
    ]


def installed(site: Path) -> None:
    """Put the modules and their entry points where `pip install` of the page's pyproject.toml would
    put them.
    """
    (site / "my_parts-1.dist-info").mkdir(parents=True)
    points = re.findall(
        r'^"(procsnake\.\w+)" = \{(\S+) = "(\S+)"\}$', FILES["pyproject.toml"], re.MULTILINE
    )
    assert len(points) == 4
    text = "".join(f"[{group}]\n{name} = {place}\n" for group, name, place in points)
    (site / "my_parts-1.dist-info" / "entry_points.txt").write_text(text)
    (site / "my_parts-1.dist-info" / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: my-parts\nVersion: 1\n"
    )
    for name in filter(re.compile(r"\w+\.py").fullmatch, FILES):
        (site / name).write_text(FILES[name])


@contextmanager
def served(folder: Path, *arguments: str, paths: tuple[Path, ...] = ()):
    command = [sys.executable, "-m", "procsnake", "serve", *arguments, "--port", "0", "--no-games"]
    server = subprocess.Popen(
        command, cwd=folder, env=environment(*paths), stdout=subprocess.PIPE, text=True
    )
    try:
        said = iter(server.stdout.readline, "")
        yield next(found[0] for line in said if (found := re.search(r"http://[\w.:]+", line)))
    finally:
        server.terminate()
        server.communicate(timeout=60)


def move(url: str) -> str:
    body = json.dumps(
        plain_request(board(11, 11, [(5, 5), (5, 4), (5, 3)], [(1, 5), (1, 4), (1, 3)]))
    ).encode()
    with urllib.request.urlopen(
        urllib.request.Request(f"{url}/move", body, {"Content-Type": "application/json"}),
        timeout=60,
    ) as told:
        return json.load(told)["move"]


@pytest.mark.long
def test_named_parts_are_trained_exported_measured_and_served(tmp_path):
    for name in ("my_net.py", "my_eyes.py", "my_rewards.py"):
        (tmp_path / name).write_text(FILES[name])
    parts = chosen(
        network="{name: my_net:Net}", observation="my_eyes:Near", rewards="my_rewards:hunter"
    )
    procsnake(
        tmp_path,
        "procsnake",
        "train",
        "battlesnake-ppo",
        *parts,
        "--set",
        "network.options.units=16",
        *SHORT,
    )
    run = next(tmp_path.glob("runs/*"))
    card = json.loads((run / "bundle" / "card.json").read_text())
    assert card["observation"] == {"type": "my_eyes:Near", "version": 1, "radius": 2}
    assert card["observation_shape"] == [5, 5, 12]
    assert card["network"] == {"name": "my_net:Net", "options": {"units": 16}}
    scores = json.loads(
        procsnake(
            tmp_path,
            "procsnake",
            "evaluate",
            str(run),
            *shlex.split("--against random --games 2 --json"),
        )
    )
    assert scores[0]["games"] == 2
    with served(tmp_path, str(run), paths=(tmp_path,)) as url:
        assert move(url) in MOVES
    (run / "bundle").rename(tmp_path / "elsewhere")
    asked = [
        sys.executable,
        *shlex.split("-m procsnake evaluate elsewhere --against random --games 2"),
    ]
    refused = subprocess.run(
        asked, cwd=tmp_path, env=environment(tmp_path), capture_output=True, text=True, timeout=250
    )
    assert (
        refused.returncode,
        "--imports my_eyes" in refused.stderr,
        "Traceback" in refused.stderr,
    ) == (2, True, False)
    procsnake(tmp_path, *asked[2:], "--imports", "my_eyes")


@pytest.mark.long
def test_installed_parts_are_known_by_their_names(tmp_path):
    site = tmp_path / "site"
    installed(site)
    parts = chosen(
        network="{name: my-net}", observation="near", rewards="hunter", algorithm="one_step"
    )
    procsnake(tmp_path, "procsnake", "train", "battlesnake-ppo", *parts, *SHORT, paths=(site,))
    run = next(tmp_path.glob("runs/*"))
    card = json.loads((run / "bundle" / "card.json").read_text())
    assert (card["algorithm"], card["config"]["one_step"]["num_epochs"]) == ("one_step", 1)
    (run / "bundle").rename(tmp_path / "elsewhere")
    procsnake(
        tmp_path,
        *shlex.split("procsnake evaluate elsewhere --against random --games 2"),
        paths=(site,),
    )
    with served(tmp_path, "elsewhere", paths=(site,)) as url:
        assert move(url) in MOVES
