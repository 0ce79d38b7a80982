"""Makes a game of Procgen with wrappers around it, and finds the game inside its wrappers."""

from __future__ import annotations

from typing import Any

from envs.api import BatchEnv
from envs.common.errors import ConfigError, check_switch
from envs.procgen.vector_env import ProcgenVectorEnv
from envs.wrappers import ActionRepeat, FrameStack, ShapedRewards, layers

NO_KEYS = 4
"""Procgen's action that presses nothing."""


def make_procgen(
    game: str,
    *,
    action_repeat: int = 1,
    frame_stack: int | None = None,
    gap_stack: int | None = None,
    shape_rewards: bool = False,
    **options: Any,
) -> BatchEnv:
    """Make `ProcgenVectorEnv(game, **options)` and put the wrappers around it that are asked for.

    * `action_repeat`: How many times each action is played (see `ActionRepeat`).
    * `frame_stack`: The number of last frames that are shown (see `FrameStack`).
    * `gap_stack`: The same, but only the first and the last of these frames are shown.
    * `shape_rewards`: Compress large rewards, as `ShapedRewards` does.

    Raises `ConfigError` for both stacks at once, and whatever the world and
    the wrappers raise."""
    if frame_stack is not None and gap_stack is not None:
        raise ConfigError(
            f"frame_stack is {frame_stack} and gap_stack {gap_stack}; only one of them can be set"
        )
    check_switch("shape_rewards", shape_rewards)
    world: BatchEnv = ProcgenVectorEnv(game, **options)
    if action_repeat != 1:
        world = ActionRepeat(world, action_repeat, idle=NO_KEYS)
    if frame_stack is not None or gap_stack is not None:
        world = FrameStack(world, frame_stack or gap_stack or 0, gap=gap_stack is not None)
    if shape_rewards:
        world = ShapedRewards(world)
    return world


def innermost(world: BatchEnv) -> ProcgenVectorEnv:
    """Return the world inside all wrappers. Raises `ConfigError` if it isn't Procgen's."""
    *_, world = layers(world)
    if not isinstance(world, ProcgenVectorEnv):
        raise ConfigError(
            f"the world is a {type(world).__name__}; only games of Procgen have states and levels"
        )
    return world
