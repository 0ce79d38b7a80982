"""Procgen by hand, in a window."""

from __future__ import annotations

from typing import Any

from envs.errors import MissingDependencyError
from envs.procgen.vector_env import ProcgenVectorEnv

KEYS = "arrow keys move; D, A, W, S, Q, E: what the game has beside (most shoot with D); O: figures; close the window to end"
_SIZE, _STEPS_PER_SECOND = 768, 15


def play(game: str, *, seed: int | None = None, **options: Any) -> None:
    """Open a window and let a person play `game` until it is closed; options as `ProcgenVectorEnv` has them.

    Which keys are which action is the library's own choice. Raises `MissingDependencyError` where there is no screen to open
    a window on, and as `ProcgenVectorEnv` does.
    """
    world = ProcgenVectorEnv(game, num_games=1, render_mode="rgb_array", **options)
    try:
        world.restart(seed)
        _open_window(world).run()
    finally:
        world.close()


def _open_window(world: ProcgenVectorEnv) -> Any:
    from gym3 import Interactive

    try:
        return Interactive(world.native, info_key="rgb", width=_SIZE, height=_SIZE, tps=_STEPS_PER_SECOND)
    except Exception as error:  # of three libraries, without a common class
        install = "it on a machine with a desktop, or xvfb-run -a procsnake play …"
        raise MissingDependencyError(f"a screen ({error})", feature="Playing by hand", install=install) from error
