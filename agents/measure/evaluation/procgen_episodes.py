"""Plays episodes of Procgen, and records how to replay each of them."""

from __future__ import annotations

import io
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

import envs
from agents.measure.evaluation.episodes import Decide
from envs.api import BatchEnv
from envs.common.films import write_mp4
from envs.procgen.make import innermost
from envs.procgen.vector_env import GameState, ProcgenVectorEnv


@dataclass(frozen=True, kw_only=True)
class Episode:
    """The result of an episode, and all that is needed to play it again."""

    episode_return: float
    length: int
    """The number of the game's steps."""
    level: int
    start: GameState
    actions: np.ndarray
    """The decisions, int8 (T,), one for each step of the world with its wrappers."""


def play(
    world: BatchEnv,
    decide: Decide,
    episodes: int,
    seed: int,
    on_step: Callable[[int, int], None] | None = None,
) -> list[Episode]:
    """Play at least `episodes` episodes, equally many on each row, and return them in the order in
    which they ended.

    Rows play equally many, because the first episodes to end would mostly be short ones. Before
    each step `on_step` is called with the number of episodes that have ended and of all
    episodes."""
    per_row = -(-episodes // world.num_envs)
    results: list[Episode] = []
    ended = np.zeros(world.num_envs, np.int64)
    begun = np.zeros(world.num_envs, np.int64)
    history: list[np.ndarray] = []
    world.restart(seed)
    games = innermost(world)
    starts = games.get_state()
    begins = np.ones(world.num_envs, np.bool_)
    while (ended < per_row).any():
        if on_step:
            on_step(len(results), per_row * world.num_envs)
        history.append(np.asarray(decide(world, begins), np.int8))
        world.advance(history[-1])
        begins = world.terminated | world.truncated
        columns = world.drain_episodes()
        for k, row in enumerate(columns["row"]):
            ended[row] += 1
            if ended[row] <= per_row:
                actions = np.array([step[row] for step in history[begun[row] :]], np.int8)
                results.append(_episode(columns, k, starts[row], actions))
            begun[row] = len(history)
        going_on = columns["row"][ended[columns["row"]] < per_row]
        if len(going_on):
            for row, state in zip(going_on, games.get_state(going_on), strict=True):
                starts[row] = state
    return results


def _episode(
    columns: Mapping[str, np.ndarray], k: int, start: GameState, actions: np.ndarray
) -> Episode:
    return Episode(
        episode_return=float(columns["return"][k]),
        length=int(columns["length"][k]),
        level=int(columns["level"][k]),
        start=start,
        actions=actions,
    )


def pictures(name: str, options: Mapping[str, Any], episode: Episode) -> Iterator[np.ndarray]:
    """Play the episode again and yield a picture per step, uint8 (512, 512, 3).

    `name` and `options` are those of the world in which it was played.
    """
    world = envs.make(name, **{**options, "num_games": 1, "render_mode": "rgb_array"})
    try:
        world.restart(0)
        innermost(world).set_state([episode.start])
        yield world.render()[0]  # type: ignore[index]
        for action in episode.actions:
            world.advance(np.array([action]))
            if world.terminated[0]:
                return
            yield world.render()[0]  # type: ignore[index]
    finally:
        world.close()


def film(name: str, options: Mapping[str, Any], episode: Episode) -> bytes:
    """Return the episode as an MP4 film of 256 × 256 pixels. Raises `MissingDependencyError`
    without imageio-ffmpeg.
    """
    small_pictures = (np.asarray(picture) for picture in _quarters(name, options, episode))
    with tempfile.TemporaryDirectory(prefix="procsnake-") as folder:
        path = Path(folder) / "episode.mp4"
        write_mp4(path, small_pictures, fps=ProcgenVectorEnv.metadata["render_fps"])
        return path.read_bytes()


def animation(name: str, options: Mapping[str, Any], episode: Episode) -> bytes:
    """Return the episode as an animated GIF of 128 × 128 pixels, with every second step.

    Untrusted notebooks show GIFs but no films, and the IPython 7.34 that Colab pins shows no WebP.
    """
    every_step = [
        Image.fromarray(picture).reduce(4).quantize(64, dither=Image.Dither.NONE)
        for picture in pictures(name, options, episode)
    ]
    # The last picture shows how the episode ended.
    first, *others = [*every_step[:-1:2], every_step[-1]]
    file = io.BytesIO()
    milliseconds = round(2 * 1000 / ProcgenVectorEnv.metadata["render_fps"])
    first.save(file, "GIF", save_all=True, append_images=others, duration=milliseconds, loop=0)
    return file.getvalue()


def _quarters(name: str, options: Mapping[str, Any], episode: Episode) -> Iterator[Image.Image]:
    """The pictures of the episode at a quarter of their area."""
    return (Image.fromarray(picture).reduce(2) for picture in pictures(name, options, episode))
