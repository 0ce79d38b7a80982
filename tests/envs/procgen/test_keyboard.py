"""Playing by hand: what is pressed is what is done, and what is drawn is the game."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import ImageGrab

import procsnake
from envs.common.errors import MissingDependencyError
from envs.procgen import keyboard
from envs.procgen.vector_env import ProcgenVectorEnv
from tests.waiting import until

gym3_interactive = pytest.importorskip(
    "gym3.interactive", reason="gym3 has no wheel for this Python, as Procgen has none"
)

FRAMES = 20
ROOT = Path(__file__).parents[3]
PROGRAMS = ("Xvfb", "xdotool")


class Screen:
    """Stands for a window, which tests have no screen for: the same keys are held until it is
    closed.
    """

    width = height = 768
    held: set[str]
    pictures: list[np.ndarray]

    def __init__(self, width: int, height: int) -> None:
        self.frame = 0
        self.now = 0.0

    @property
    def is_open(self) -> bool:
        return self.frame <= FRAMES

    def get_time(self) -> float:
        self.now += 1 / 15
        return self.now

    def start(self) -> tuple[set[str], set[str]]:
        self.frame += 1
        return set(), self.held

    def draw_bitmap(self, *place: int, image: np.ndarray) -> None:
        self.pictures.append(image.copy())

    def draw_text(self, *place: int, **style: Any) -> None:
        pass

    def finish(self) -> None:
        pass


@pytest.mark.parametrize(
    ("held", "action"),
    [({"RIGHT"}, 7), ({"RIGHT", "UP"}, 8), ({"LEFT"}, 1), (set(), 4), ({"D"}, 9)],
)
def test_keys_play_the_game_that_is_drawn(
    held: set[str], action: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(gym3_interactive, "Renderer", Screen)
    monkeypatch.setattr(Screen, "held", held, raising=False)
    monkeypatch.setattr(Screen, "pictures", [], raising=False)
    assert (
        procsnake.main(["keyboard", "procgen/starpilot", "--levels", "train:200", "--seed", "3"])
        == 0
    )
    said = capsys.readouterr().out
    assert "arrow keys" in said
    assert "played: " in said
    world = ProcgenVectorEnv(
        "starpilot",
        num_games=1,
        distribution_mode="easy",
        levels="train:200",
        render_mode="rgb_array",
    )
    world.restart(3)
    # The window keeps time: now and then it takes two steps between two pictures, or none.
    game = []
    for _ in range(3 * FRAMES):
        game.append(world.render()[0])  # type: ignore[index]
        world.advance(np.array([action]))
    world.close()
    at = -1
    for picture in Screen.pictures:
        at = next(k for k in range(max(at, 0), len(game)) if (game[k] == picture).all())
    assert at > FRAMES // 2


@pytest.fixture
def display() -> Iterator[str]:
    """A screen that nobody sees."""
    if missing := [program for program in PROGRAMS if not shutil.which(program)]:
        pytest.skip(f"needs {' and '.join(missing)}: apt-get install xvfb xdotool")
    reading, writing = os.pipe()
    arguments = [
        "Xvfb",
        "-displayfd",
        str(writing),
        "-screen",
        "0",
        "800x800x24",
        "-nolisten",
        "tcp",
    ]
    server = subprocess.Popen(arguments, pass_fds=[writing], stderr=subprocess.DEVNULL)
    try:
        yield f":{os.read(reading, 16).decode().strip()}"
    finally:
        server.terminate()
        server.wait()
        os.close(reading)
        os.close(writing)


@pytest.mark.long
def test_in_a_real_window_keys_move_who_is_seen_and_escape_ends_it(display: str) -> None:
    """In a maze, whose pictures change by nothing else: right and up as far as it goes, as the game
    without a window does.
    """
    world = ProcgenVectorEnv(
        "maze", num_games=1, distribution_mode="easy", levels="1:1", render_mode="rgb_array"
    )
    world.restart(3)
    expected = [world.render()[0]]  # type: ignore[index]
    for action in (7, 5):
        for _ in range(30):
            world.advance(np.array([action]))
        expected.append(world.render()[0])  # type: ignore[index]
    world.close()
    assert len({picture.tobytes() for picture in expected}) == 3, (
        "a maze where nothing moves shows nothing"
    )

    environment = {**os.environ, "DISPLAY": display}

    def do(*arguments: str) -> str:
        return subprocess.run(
            ["xdotool", *arguments], env=environment, capture_output=True, text=True
        ).stdout.strip()

    def shows(picture: np.ndarray, rows: int = 768) -> bool:
        window = np.asarray(ImageGrab.grab((0, 0, 768, rows), xdisplay=display).convert("RGB"))
        # Each two pixels of the game are three of the window.
        nearest = (np.arange(768) * 2 + 1) // 3
        return bool(np.abs(window.astype(int) - picture[nearest[:rows]][:, nearest]).mean() < 1)

    command = [
        sys.executable,
        *shlex.split("procsnake keyboard procgen/maze --levels 1:1 --seed 3"),
    ]
    player = subprocess.Popen(
        command,
        cwd=ROOT,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        window = until(
            lambda: player.poll() is not None or do("search", "--name", "Gym3 Viewer"), seconds=120
        )
        assert player.poll() is None, player.communicate()[0]
        # Until it draws it hears no keys. The figures are below.
        until(lambda: shows(expected[0], rows=500), seconds=120)
        do("windowfocus", window)
        do("key", "o")
        until(lambda: shows(expected[0]), seconds=120)
        for key, picture in zip(("Right", "Up"), expected[1:], strict=True):
            do("keydown", key)
            until(lambda picture=picture: shows(picture), seconds=120)
            do("keyup", key)
        do("key", "Escape")
        said, _ = player.communicate(timeout=120)
        assert player.returncode == 0, said
        assert "played: " in said.splitlines()[-1]
    finally:
        player.kill()


def test_without_a_screen_it_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(MissingDependencyError, match=r"--record film\.mp4"):
        keyboard.play("maze", seed=0)


def test_a_game_that_is_mistyped_is_told_the_nearest(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert procsnake.main(["keyboard", "procgen/mase"]) == 2
    assert "'maze'" in capsys.readouterr().err
