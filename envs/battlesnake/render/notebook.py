"""A game below a cell of a notebook, as a picture that changes. It needs IPython, which every
notebook has.

It shows pictures because Colab, Kaggle and SageMaker Studio can't reach a server on the machine
that runs the notebook."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from IPython.display import DisplayHandle, Image, display

from envs.battlesnake.plain import Board
from envs.battlesnake.recording import Recording
from envs.battlesnake.render.animation import DEFAULT_CELL, save_animation
from envs.battlesnake.render.rgb import png


class LivePicture:
    """One place below the current cell. The first `show` makes it, and each later call replaces
    what it shows.
    """

    def __init__(self) -> None:
        self._place: DisplayHandle | None = None

    def show(self, board: Board) -> None:
        """Show a board in webhook form, with names, lengths and healths beside it."""
        self._put(Image(data=png(board, cell=DEFAULT_CELL, panel=True), format="png"))

    def replay(self, recording: Recording | str | os.PathLike[str]) -> None:
        """Show a recorded game, or the one at a path, as a moving picture. Raises `RecordingError`
        for a bad recording.
        """
        with tempfile.TemporaryDirectory(prefix="procsnake-") as folder:
            film = save_animation(recording, Path(folder) / "game.gif").read_bytes()
        self._put(Image(data=film, format="gif"))

    def _put(self, picture: Image) -> None:
        if self._place is None:
            self._place = display(picture, display_id=True)
        else:
            self._place.update(picture)
