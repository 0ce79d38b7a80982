"""Shows worlds to people: arrays as pictures, and pictures as text for a terminal."""

from __future__ import annotations

import numpy as np
from gymnasium.spaces import Box

_SIDE = 128
"""Pixels that the longer side of a small picture is enlarged to, or a little less."""
_MOST_COLUMNS = 64
_MOST_LINES = 24
_SHADES = " ░▒▓█"


def picture_of(observation: np.ndarray, space: Box) -> np.ndarray:
    """Return one observation of `space` as uint8 (H, W, 3), with even H and W. Black is the space's
    lowest value, white its highest.

    (H, W, 3) is shown in colour. With other numbers of channels each pixel shows the brightest
    channel; (H, W) and (W,) have one channel. Small pictures are enlarged. If the space has no
    bounds, those of the observation are used."""
    low = float(space.low.min())
    high = float(space.high.max())
    if not np.isfinite([low, high]).all():
        low = float(observation.min())
        high = float(observation.max())
    values = (observation.astype(np.float64) - low) / max(high - low, 1e-9)
    if values.ndim < 3:
        values = np.atleast_2d(values)[..., None]
    values = values.reshape(-1, *values.shape[-2:])
    if values.shape[2] != 3:
        values = values.max(2, keepdims=True).repeat(3, axis=2)
    times = 2 * max(1, _SIDE // (2 * max(values.shape[:2])))
    return np.round(255 * values).astype(np.uint8).repeat(times, axis=0).repeat(times, axis=1)


def as_text(picture: np.ndarray, *, color: bool, columns: int | None = None) -> str:
    """Return a picture, uint8 (H, W, 3), as lines for a terminal of `columns` columns, at most 64
    by 24 characters.

    A character is two pixels, one above the other; without `color` it is a shade of grey.
    """
    from PIL import Image

    height, width = picture.shape[:2]
    shrink = min(min(columns or _MOST_COLUMNS, _MOST_COLUMNS) / width, 2 * _MOST_LINES / height)
    size = max(1, round(width * shrink)), 2 * max(1, round(height * shrink / 2))
    pixels = np.asarray(Image.fromarray(picture).resize(size, Image.Resampling.BOX)).astype(int)
    pairs = zip(pixels[::2], pixels[1::2], strict=True)
    if not color:
        return "\n".join(_greys(upper, lower) for upper, lower in pairs)
    return "\n".join("".join(map(_half_blocks, upper, lower)) + "\x1b[0m" for upper, lower in pairs)


def _greys(upper: np.ndarray, lower: np.ndarray) -> str:
    """Return two rows of pixels as one line of shades."""
    shades = (upper + lower).mean(1) * (len(_SHADES) - 1) / 510
    return "".join(_SHADES[round(shade)] for shade in shades)


def _half_blocks(upper: np.ndarray, lower: np.ndarray) -> str:
    front, back = (";".join(map(str, pixel)) for pixel in (upper, lower))
    return f"\x1b[38;2;{front}m\x1b[48;2;{back}m▀"
