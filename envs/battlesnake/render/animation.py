"""Turns a recorded game into a moving picture: GIF, MP4 or SVG. The suffix of the file decides."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
from PIL import Image

from envs.battlesnake.plain import Board
from envs.battlesnake.recording import Recording
from envs.battlesnake.render.rgb import paint
from envs.battlesnake.render.svg import animated_svg
from envs.common.errors import ConfigError, UnknownNameError
from envs.common.films import write_mp4, writing_whole

DEFAULT_FPS = 8.0
MIN_FPS = 0.1
DEFAULT_CELL = 24
_LAST_FRAME_SECONDS = 2.0
_PALETTE_SIZE = 96
_PALETTE_SAMPLES = 8


def save_animation(
    recording: Recording | str | os.PathLike[str],
    target: str | os.PathLike[str],
    *,
    fps: float = DEFAULT_FPS,
    cell: int = DEFAULT_CELL,
    panel: bool = True,
) -> Path:
    """Write a recording, or the one at a path, as `.gif`, `.mp4` or `.svg`. Returns the target.

    `fps` is turns per second, 0.1 to 60, and `cell` the side of a cell in pixels, 4 to 256; `panel`
    adds names, lengths and healths. The file appears whole or not at all. Raises `UnknownNameError`
    for another suffix, `RecordingError` for a bad recording, `ConfigError` for other numbers and if
    the file can't be written, and `MissingDependencyError` for MP4 without imageio-ffmpeg."""
    target = Path(target)
    if target.suffix.lower() not in _WRITERS:
        raise UnknownNameError("animation format", target.suffix, _WRITERS)
    if not MIN_FPS <= fps <= 60 or not 4 <= cell <= 256:
        raise ConfigError(
            f"fps is {fps} and cell {cell}; fps lies between {MIN_FPS} and 60, cell between 4"
            " and 256"
        )
    if not isinstance(recording, Recording):
        recording = Recording.read(recording)
    boards = recording.boards()
    with writing_whole(target) as part:
        _WRITERS[target.suffix.lower()](boards, part, fps, cell, panel)
    return target


def frames(
    boards: Sequence[Board], *, cell: int = DEFAULT_CELL, panel: bool = True
) -> Iterator[Image.Image]:
    """Yield one RGB image per board, all of one size with even sides, which video codecs
    require.
    """
    sizes = [paint(board, cell=cell, panel=panel).size for board in (boards[0], boards[-1])]
    width, height = (max(side) + max(side) % 2 for side in zip(*sizes, strict=True))
    for board in boards:
        canvas = Image.new("RGB", (width, height), "white")
        canvas.paste(paint(board, cell=cell, panel=panel))
        yield canvas


def _write_gif(boards: Sequence[Board], path: Path, fps: float, cell: int, panel: bool) -> None:
    palette = _shared_palette(list(boards[:: max(1, len(boards) // _PALETTE_SAMPLES)]), cell, panel)
    images = [
        image.quantize(palette=palette, dither=Image.Dither.NONE)
        for image in frames(boards, cell=cell, panel=panel)
    ]
    milliseconds = [round(1000 / fps)] * (len(images) - 1) + [round(1000 * _LAST_FRAME_SECONDS)]
    images[0].save(
        path, save_all=True, append_images=images[1:], duration=milliseconds, loop=0, optimize=False
    )


def _shared_palette(samples: Sequence[Board], cell: int, panel: bool) -> Image.Image:
    """Return one palette for the whole game, so that what stands still keeps its colour and costs
    no bytes.
    """
    pictures = [np.asarray(image) for image in frames(samples, cell=cell, panel=panel)]
    return Image.fromarray(np.concatenate(pictures)).quantize(
        _PALETTE_SIZE, method=Image.Quantize.MEDIANCUT
    )


def _write_mp4(boards: Sequence[Board], path: Path, fps: float, cell: int, panel: bool) -> None:
    pictures = (np.asarray(image) for image in frames(boards, cell=cell, panel=panel))
    write_mp4(path, pictures, fps=fps, hold_last=_LAST_FRAME_SECONDS)


def _write_svg(boards: Sequence[Board], path: Path, fps: float, cell: int, panel: bool) -> None:
    path.write_text(animated_svg(boards, fps=fps, cell=cell, panel=panel), encoding="utf-8")


_WRITERS: dict[str, Callable[[Sequence[Board], Path, float, int, bool], None]] = {
    ".gif": _write_gif,
    ".mp4": _write_mp4,
    ".svg": _write_svg,
}
