"""A window that shows pictures. It needs pygame, which is optional."""

from __future__ import annotations

from typing import Any

import numpy as np

from envs.common.errors import MissingDependencyError, pip_install


class Window:
    """Shows pictures one after another, at most `fps` per second. Raises `MissingDependencyError`
    without pygame.
    """

    def __init__(self, title: str, *, fps: float = 8.0) -> None:
        try:
            import pygame
        except ImportError as error:
            install = f'{pip_install("pygame-ce")} (or render_mode="ansi")'
            raise MissingDependencyError(
                "pygame", feature='render_mode="human"', install=install
            ) from error
        self._pygame: Any = pygame
        self._fps = fps
        pygame.display.init()
        pygame.display.set_caption(title)
        self._clock = pygame.time.Clock()

    def show(self, picture: np.ndarray) -> None:
        """Show a picture, uint8 (H, W, 3), and wait until the next one is due."""
        size = (picture.shape[1], picture.shape[0])
        screen = self._pygame.display.get_surface()
        if screen is None or screen.get_size() != size:
            screen = self._pygame.display.set_mode(size)
        screen.blit(self._pygame.surfarray.make_surface(picture.swapaxes(0, 1)), (0, 0))
        self._pygame.event.pump()
        self._pygame.display.flip()
        self._clock.tick(self._fps)

    def close(self) -> None:
        """Close the window."""
        self._pygame.display.quit()
