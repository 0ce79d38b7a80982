"""Playing by hand: what is pressed is what is done, and what is drawn is the game."""

from __future__ import annotations

from typing import Any

import gym3.interactive
import numpy as np
import pytest

import procsnake
from envs.errors import MissingDependencyError
from envs.procgen import keyboard
from envs.procgen.vector_env import ProcgenVectorEnv

FRAMES = 20


class Screen:
    """Stands for a window, which tests have no screen for: the same keys are held until it is closed."""

    width = height = 768
    held: set[str]
    pictures: list[np.ndarray]

    def __init__(self, width: int, height: int) -> None:
        self.frame, self.now = 0, 0.0

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


@pytest.mark.parametrize(("held", "action"), [({"RIGHT"}, 7), ({"RIGHT", "UP"}, 8), ({"LEFT"}, 1), (set(), 4), ({"D"}, 9)])
def test_keys_play_the_game_that_is_drawn(
    held: set[str], action: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(gym3.interactive, "Renderer", Screen)
    monkeypatch.setattr(Screen, "held", held, raising=False)
    monkeypatch.setattr(Screen, "pictures", [], raising=False)
    assert procsnake.main(["play", "procgen/starpilot", "--human", "--levels", "train:200", "--seed", "3"]) == 0
    assert "arrow keys" in capsys.readouterr().out
    world = ProcgenVectorEnv("starpilot", num_games=1, distribution_mode="easy", levels="train:200", render_mode="rgb_array")
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


def test_without_a_screen_it_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(MissingDependencyError, match="xvfb-run"):
        keyboard.play("maze", seed=0)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [(["flood", "--human"], "procgen/coinrun"), (["procgen/maze", "flood", "--human"], "one game"),
     (["procgen/mase", "--human"], "'maze'")],
)  # fmt: skip
def test_only_procgen_is_played_by_hand(arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert procsnake.main(["play", *arguments]) == 2
    assert said in capsys.readouterr().err
