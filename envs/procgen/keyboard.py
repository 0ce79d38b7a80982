"""Lets a person play Procgen in a window."""

from __future__ import annotations

from typing import Any

from envs.common.errors import MissingDependencyError
from envs.procgen.vector_env import ProcgenVectorEnv

KEYS = (
    "arrow keys move; D, A, W, S, Q, E: what the game has beside (most shoot with D); O: figures;"
    " Escape or closing it ends"
)
_SIZE = 768
_STEPS_PER_SECOND = 15


def play(game: str, *, seed: int | None = None, **options: Any) -> None:
    """Open a window, let a person play `game` until the window is closed, and print the results.

    `options` are those of `ProcgenVectorEnv`. The library decides which key is which action. Raises
    `MissingDependencyError` where there is no screen to open a window on, and whatever
    `ProcgenVectorEnv` raises."""
    world = ProcgenVectorEnv(game, num_games=1, render_mode="rgb_array", **options)
    try:
        world.restart(seed)
        window = _open_window(world)
        window.run()
        print(
            f"played: {window.steps} steps, {len(window.returns)} whole episodes, returns"
            f" {window.returns}"
        )
    finally:
        world.close()


def _open_window(world: ProcgenVectorEnv) -> Any:
    from gym3 import Interactive

    class Window(Interactive):
        """Counts what was played."""

        def __init__(self) -> None:
            self.steps = 0
            self.returns: list[float] = []
            super().__init__(
                world.native, info_key="rgb", width=_SIZE, height=_SIZE, tps=_STEPS_PER_SECOND
            )

        def _act(self, action: Any) -> Any:
            ended = super()._act(action)
            self.steps += 1
            if ended:
                self.returns.append(float(self._episode_return))
            return ended

    try:
        return Window()
    except Exception as error:  # of three libraries, without a common class
        raise MissingDependencyError(
            f"a screen ({error})",
            feature="Playing by hand",
            next_commands={"try": ("watch", f"procgen/{world.game}", "--record", "film.mp4")},
        ) from error
