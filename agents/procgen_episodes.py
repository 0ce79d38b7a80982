"""Playing episodes of Procgen so that each can be looked at again."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

import envs
from envs.api import BatchEnv
from envs.mp4 import write_mp4
from envs.procgen.vector_env import GameState, ProcgenVectorEnv
from envs.procgen.wrappers import innermost

Decide = Callable[[np.ndarray, np.ndarray], np.ndarray]
"""From observations (R, …), and which of them begin an episode, bool (R,), to actions (R,). Called once a step."""


@dataclass(frozen=True, kw_only=True)
class Episode:
    """What came of an episode, and all that it takes to play it once more."""

    episode_return: float
    length: int
    """Steps of the game."""
    level: int
    level_complete: bool
    start: GameState
    actions: np.ndarray
    """int8 (T,): decisions, one for each step of the world with its wrappers."""


def play(world: BatchEnv, decide: Decide, episodes: int, seed: int) -> list[Episode]:
    """At least `episodes` episodes in the order in which they ended, as many of each row.

    As many of each row, because short episodes would be too many among the first that end.
    """
    per_row = -(-episodes // world.num_envs)
    played: list[Episode] = []
    ended, begun = np.zeros(world.num_envs, np.int64), np.zeros(world.num_envs, np.int64)
    history: list[np.ndarray] = []
    world.restart(seed)
    games = innermost(world)
    starts = games.get_state()
    begins = np.ones(world.num_envs, np.bool_)
    while (ended < per_row).any():
        history.append(np.asarray(decide(world.observations, begins), np.int8))
        world.advance(history[-1])
        begins = world.terminated | world.truncated
        columns = world.drain_episodes()
        for k, row in enumerate(columns["row"]):
            ended[row] += 1
            if ended[row] <= per_row:
                actions = np.array([step[row] for step in history[begun[row] :]], np.int8)
                played.append(_episode(columns, k, starts[row], actions))
            begun[row] = len(history)
        going_on = columns["row"][ended[columns["row"]] < per_row]
        if len(going_on):
            for row, state in zip(going_on, games.get_state(going_on), strict=True):
                starts[row] = state
    return played


def _episode(columns: Mapping[str, np.ndarray], k: int, start: GameState, actions: np.ndarray) -> Episode:
    return Episode(
        episode_return=float(columns["return"][k]),
        length=int(columns["length"][k]),
        level=int(columns["level"][k]),
        level_complete=bool(columns["level_complete"][k]),
        start=start,
        actions=actions,
    )


def pictures(name: str, options: Mapping[str, Any], episode: Episode) -> Iterator[np.ndarray]:
    """The episode once more, uint8 (512, 512, 3) a step, in the world `name` with the `options` that it was played with."""
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
    """The episode as an MP4 film of 256 × 256 pixels. Raises `MissingDependencyError` without imageio-ffmpeg."""
    shown = (np.asarray(Image.fromarray(picture).reduce(2)) for picture in pictures(name, options, episode))
    with tempfile.TemporaryDirectory(prefix="procsnake-") as folder:
        path = Path(folder) / "episode.mp4"
        write_mp4(path, shown, fps=ProcgenVectorEnv.metadata["render_fps"])
        return path.read_bytes()
