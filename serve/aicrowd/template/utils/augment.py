"""Random changes to pictures in training, as procsnake draws them; stacked frames are changed
alike.

Each takes a picture uint8 (H, W, C) and numpy.random, and returns one of the same shape.
"""

from __future__ import annotations

import math

import numpy as np


def translate(picture, random, most=8):
    """Shift by -most..most pixels down and right, black where nothing was."""
    return window(picture, most, random, "constant")


def pad_crop(picture, random, padding=10):
    """Pad by repeating the edge, then cut the old size out anywhere."""
    return window(picture, padding, random, "edge")


def window(picture, padding, random, mode):
    height, width, _ = picture.shape
    padded = np.pad(picture, ((padding, padding), (padding, padding), (0, 0)), mode=mode)
    top, left = random.randint(0, 2 * padding + 1, size=2)
    return padded[top : top + height, left : left + width]


def rotate(picture, random, degrees=20.0):
    """Turn about the middle by -degrees..degrees, bilinear, black outside."""
    angle = math.radians(degrees) * random.uniform(-1, 1)
    cos, sin = math.cos(angle), math.sin(angle)
    ratio = picture.shape[0] / picture.shape[1]
    return warp(picture, [[cos, -sin * ratio, 0.0], [sin / ratio, cos, 0.0]], black=True)


def crop_resize(picture, random, least=48):
    """Cut a square of least..H pixels out anywhere and bring it to full size, bilinear."""
    size = picture.shape[0]
    part = random.randint(least, size + 1) / size
    right, down = (1 - part) * random.uniform(-1, 1, size=2)
    return warp(picture, [[part, 0.0, right], [0.0, part, down]], black=False)


def warp(picture, transform, black):
    """Look up each pixel where `transform` (2, 3) sends it, in coordinates -1..1 (x, y) between the
    picture's edges."""
    height, width, _ = picture.shape
    x, y = np.meshgrid(
        (2 * np.arange(width) + 1) / width - 1, (2 * np.arange(height) + 1) / height - 1
    )
    (a, b, right), (c, d, down) = transform
    columns = ((a * x + b * y + right + 1) * width - 1) / 2
    rows = ((c * x + d * y + down + 1) * height - 1) / 2
    if not black:
        rows, columns = rows.clip(0, height - 1), columns.clip(0, width - 1)
    top, left = np.floor(rows).astype(int), np.floor(columns).astype(int)
    total = np.zeros(picture.shape)
    for i in (0, 1):
        for k in (0, 1):
            weight = (1 - abs(rows - top - i)) * (1 - abs(columns - left - k))
            inside = (top + i >= 0) & (top + i < height) & (left + k >= 0) & (left + k < width)
            pixels = picture[(top + i).clip(0, height - 1), (left + k).clip(0, width - 1)]
            total += pixels * (weight * inside)[:, :, None]
    return total.round().clip(0, 255).astype(picture.dtype)


def flip(picture, random, probability=0.5):
    """Mirror left and right."""
    return picture[:, ::-1] if random.uniform() < probability else picture


def cutout(picture, random, least=7, most=22):
    """Black out a rectangle of least..most pixels a side that lies anywhere inside."""
    tall, wide = random.randint(least, most + 1, size=2)
    top, left = (
        random.randint(0, picture.shape[0] - tall + 1),
        random.randint(0, picture.shape[1] - wide + 1),
    )
    picture = picture.copy()
    picture[top : top + tall, left : left + wide] = 0
    return picture


def color_jitter(picture, random, strength=0.3):
    """Change brightness, contrast about the mean grey, and saturation about each pixel's grey, each
    × 1 ± strength."""
    factors = 1 + strength * random.uniform(-1, 1, size=3)
    weights = np.array([0.299, 0.587, 0.114])
    groups = picture.reshape((*picture.shape[:2], -1, 3)) * factors[0]
    mean = (groups * weights).sum(-1).mean()
    groups = mean + (groups - mean) * factors[1]
    grey = (groups * weights).sum(-1, keepdims=True)
    groups = grey + (groups - grey) * factors[2]
    return groups.reshape(picture.shape).round().clip(0, 255).astype(picture.dtype)


AUGMENTATIONS = {
    "color-jitter": color_jitter,
    "crop-resize": crop_resize,
    "cutout": cutout,
    "flip": flip,
    "pad-crop": pad_crop,
    "rotate": rotate,
    "translate": translate,
}


def augment(picture, names, random=np.random):
    """Apply the augmentations `names` one after the other."""
    for name in names:
        picture = AUGMENTATIONS[name](picture, random)
    return picture
