"""Pictures as a film: MP4, GIF or WebP, by the name of the file."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from PIL import Image

from envs.common.errors import ConfigError, UnknownNameError
from envs.common.mp4 import write_mp4

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


@contextmanager
def writing_whole(target: Path) -> Iterator[Path]:
    """The place where to write `target`, whose name has its suffix; it is moved there when all is
    written.

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
