"""Writes pictures as an MP4 film."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator

import numpy as np

from envs.common.errors import MissingDependencyError, pip_install


def write_mp4(
    path: str | os.PathLike[str],
    pictures: Iterator[np.ndarray],
    *,
    fps: float,
    hold_last: float = 2.0,
) -> None:
    """Write pictures, uint8 (H, W, 3), all of one size with even sides, as a film with `fps`
    pictures per second.

    The last picture stays for `hold_last` seconds. Raises `MissingDependencyError` without
    imageio-ffmpeg."""
    # The version that gym3 asks for imports pkg_resources, which warns that it is old.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            import imageio_ffmpeg
        except ImportError as error:
            install = pip_install("imageio-ffmpeg", "setuptools<81")
            raise MissingDependencyError(
                "imageio-ffmpeg", feature="an MP4 film", install=install
            ) from error
    last = next(pictures)
    writer = imageio_ffmpeg.write_frames(
        str(path), last.shape[1::-1], fps=fps, macro_block_size=2, quality=8
    )
    writer.send(None)
    writer.send(np.ascontiguousarray(last))
    for last in pictures:
        writer.send(np.ascontiguousarray(last))
    for _ in range(round(fps * hold_last) - 1):
        writer.send(np.ascontiguousarray(last))
    # Its end leaves a pipe of ffmpeg's to the garbage collector.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        writer.close()
        del writer
