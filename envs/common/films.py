"""Pictures as a film: MP4, GIF or WebP, by the name of the file."""

from __future__ import annotations

import os
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from PIL import Image

from envs.common.errors import ConfigError, MissingDependencyError, UnknownNameError, pip_install

FORMATS = (".gif", ".mp4", ".webp")


def write_film(path: str | os.PathLike[str], pictures: Iterator[np.ndarray], *, fps: float) -> Path:
    """Write uint8 (H, W, 3) pictures of one even size, `fps` per second, and return the path.

    The file appears whole or not at all. Raises `UnknownNameError` for another suffix,
    `ConfigError` if it can't be written and, for MP4 without imageio-ffmpeg,
    `MissingDependencyError`."""
    target = Path(path)
    check_format(target)
    with writing_whole(target) as part:
        if target.suffix.lower() == ".mp4":
            write_mp4(part, pictures, fps=fps)
        else:
            first, *others = map(Image.fromarray, pictures)
            first.save(
                part, save_all=True, append_images=others, duration=round(1000 / fps), loop=0
            )
    return target


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
    writer = imageio_ffmpeg.write_frames(str(path), last.shape[1::-1], fps=fps, macro_block_size=2)
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


@contextmanager
def writing_whole(target: Path) -> Iterator[Path]:
    """Yield a path at which to write `target`, with the same suffix. The file is moved to `target`
    when all is written.

    Raises `ConfigError` if it can't be written.
    """
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=target.parent, prefix=".film-") as folder:
            part = Path(folder) / target.name
            yield part
            os.replace(part, target)
    except OSError as error:
        raise ConfigError(
            f"{target} can't be written: {error.strerror or error}. Choose another place"
        ) from error


def check_format(path: str | os.PathLike[str]) -> None:
    """Raise `UnknownNameError` unless `write_film` can write a file of that name."""
    suffix = Path(path).suffix
    if suffix.lower() not in FORMATS:
        raise UnknownNameError("film format", suffix, FORMATS)
