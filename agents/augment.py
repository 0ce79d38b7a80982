"""Random changes to pictures that keep their meaning, so that a policy trains on more varied
pictures.

They run in batches in torch.

Each augmentation is a function (pictures, generator) → pictures of the same shape and dtype, uint8
[B, H, W, C], with one draw per picture. Stacked frames lie in C and are changed alike, so motion
stays the same; colours come in groups of three. `augment` applies several by name. In most games a
flip changes which action is right, so it suits representation losses, not policies. Sources: Laskin
et al. 2020 (RAD, arXiv 2004.14990); the ranges are those of LARS in the Procgen competition of
2020."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch

Augmentation = Callable[["torch.Tensor", "torch.Generator | None"], "torch.Tensor"]


def translate(
    pictures: torch.Tensor, generator: torch.Generator | None = None, *, most: int = 8
) -> torch.Tensor:
    """Shift pictures by -most..most pixels down and right. What comes in at the edges is black."""
    return _window(pictures, most, _draw_int(pictures, 2 * most + 1, 2, generator))


def pad_crop(
    pictures: torch.Tensor, generator: torch.Generator | None = None, *, padding: int = 10
) -> torch.Tensor:
    """Pad pictures by repeating their edge, then cut the old size out at a random place."""
    return _window(pictures, padding, _draw_int(pictures, 2 * padding + 1, 2, generator), edge=True)


def rotate(
    pictures: torch.Tensor, generator: torch.Generator | None = None, *, degrees: float = 20.0
) -> torch.Tensor:
    """Turn pictures about the middle by -degrees..degrees, with bilinear interpolation and black
    outside.
    """
    import torch

    angle = (2 * _draw(pictures, generator) - 1) * math.radians(degrees)
    cos = angle.cos()
    sin = angle.sin()
    zero = torch.zeros_like(angle)
    rows_over_columns = pictures.shape[1] / pictures.shape[2]
    across = torch.stack([cos, -sin * rows_over_columns, zero], 1)
    down = torch.stack([sin / rows_over_columns, cos, zero], 1)
    return _warp(pictures, torch.stack([across, down], 1), outside="zeros")


def crop_resize(
    pictures: torch.Tensor, generator: torch.Generator | None = None, *, least: int = 48
) -> torch.Tensor:
    """Cut a square of least..H pixels out at a random place and enlarge it to full size,
    bilinearly.

    Pictures must be square.
    """
    import torch

    size = pictures.shape[1]
    part = (least + _draw_int(pictures, size - least + 1, 1, generator)[:, 0]) / size
    place = torch.stack([_draw(pictures, generator), _draw(pictures, generator)], 1)
    shift = (1 - part)[:, None] * (2 * place - 1)
    zero = torch.zeros_like(part)
    across = torch.stack([part, zero, shift[:, 0]], 1)
    down = torch.stack([zero, part, shift[:, 1]], 1)
    return _warp(pictures, torch.stack([across, down], 1), outside="border")


def flip(
    pictures: torch.Tensor, generator: torch.Generator | None = None, *, probability: float = 0.5
) -> torch.Tensor:
    """Exchange left and right with that probability."""
    import torch

    mirrored = _draw(pictures, generator) < probability
    return torch.where(mirrored[:, None, None, None], pictures.flip(2), pictures)


def cutout(
    pictures: torch.Tensor,
    generator: torch.Generator | None = None,
    *,
    least: int = 7,
    most: int = 22,
) -> torch.Tensor:
    """Black out a rectangle with sides of least..most pixels at a random place."""

    sides = least + _draw_int(pictures, most - least + 1, 2, generator)
    rows, columns = (
        _stretch(pictures, pictures.shape[1 + axis], sides[:, axis], generator) for axis in (0, 1)
    )
    inside = rows[:, :, None] & columns[:, None, :]
    return pictures.masked_fill(inside[..., None], 0)


def _stretch(
    pictures: torch.Tensor,
    length: int,
    sides: torch.Tensor,
    generator: torch.Generator | None,
) -> torch.Tensor:
    """Return which of `length` pixels lie in a stretch of `sides` [B] pixels at a random place,
    bool [B, length].
    """
    import torch

    start = (_draw(pictures, generator) * (length - sides + 1)).floor()[:, None]
    pixel = torch.arange(length, device=pictures.device)[None]
    return (pixel >= start) & (pixel < start + sides[:, None])


def color_jitter(
    pictures: torch.Tensor, generator: torch.Generator | None = None, *, strength: float = 0.3
) -> torch.Tensor:
    """Change brightness (× 1 ± strength), then contrast (about the mean grey), then saturation
    (about each pixel's grey).
    """
    import torch

    groups = pictures.float().unflatten(-1, (-1, 3))
    weights = torch.tensor([0.299, 0.587, 0.114], device=pictures.device)
    factors = [
        (1 + strength * (2 * _draw(pictures, generator) - 1))[:, None, None, None, None]
        for _ in range(3)
    ]
    groups = groups * factors[0]
    mean = (groups * weights).sum(-1).mean((1, 2, 3))[:, None, None, None, None]
    groups = mean + (groups - mean) * factors[1]
    grey = (groups * weights).sum(-1, keepdim=True)
    groups = grey + (groups - grey) * factors[2]
    return groups.flatten(-2).round().clamp(0, 255).to(pictures.dtype)


AUGMENTATIONS: dict[str, Augmentation] = {
    "color-jitter": color_jitter,
    "crop-resize": crop_resize,
    "cutout": cutout,
    "flip": flip,
    "pad-crop": pad_crop,
    "rotate": rotate,
    "translate": translate,
}


def augment(
    pictures: torch.Tensor, names: Iterable[str], generator: torch.Generator | None = None
) -> torch.Tensor:
    """Apply the augmentations `names`, of `AUGMENTATIONS`, one after the other."""
    for name in names:
        pictures = AUGMENTATIONS[name](pictures, generator)
    return pictures


def _draw(pictures: torch.Tensor, generator: torch.Generator | None) -> torch.Tensor:
    """Return one number in [0, 1) per picture, float32 [B]."""
    import torch

    device = _device_of(pictures, generator)
    return torch.rand(len(pictures), generator=generator, device=device).to(pictures.device)


def _device_of(pictures: torch.Tensor, generator: torch.Generator | None) -> torch.device:
    """Return where to draw: where the generator lives, so a seed gives the same on any device."""
    if generator is None:
        return pictures.device
    return generator.device


def _draw_int(
    pictures: torch.Tensor, below: int, columns: int, generator: torch.Generator | None
) -> torch.Tensor:
    """Return whole numbers in 0..below-1, int64 [B, columns]."""
    import torch

    shape = (len(pictures), columns)
    device = _device_of(pictures, generator)
    return torch.randint(below, shape, generator=generator, device=device).to(pictures.device)


def _window(
    pictures: torch.Tensor, padding: int, corners: torch.Tensor, *, edge: bool = False
) -> torch.Tensor:
    """Return windows of the old size at `corners`, int [B, 2], of the padded pictures. The padding
    is black, or with `edge` repeats the edge.
    """
    import torch

    batch, height, width, _ = pictures.shape
    rows = torch.arange(height, device=pictures.device) + corners[:, :1] - padding
    columns = torch.arange(width, device=pictures.device) + corners[:, 1:] - padding
    every = torch.arange(batch, device=pictures.device)[:, None, None]
    near_rows = rows.clamp(0, height - 1)[:, :, None]
    near_columns = columns.clamp(0, width - 1)[:, None, :]
    moved = pictures[every, near_rows, near_columns]
    if edge:
        return moved
    is_inside_row = ((rows >= 0) & (rows < height))[:, :, None]
    is_inside_column = ((columns >= 0) & (columns < width))[:, None, :]
    return moved * (is_inside_row & is_inside_column)[..., None]


def _warp(pictures: torch.Tensor, transforms: torch.Tensor, *, outside: str) -> torch.Tensor:
    """Look up each pixel where `transforms` [B, 2, 3] send it, in coordinates -1..1 (x, y);
    `outside` as grid_sample has it.
    """
    from torch.nn.functional import affine_grid, grid_sample

    planes = pictures.permute(0, 3, 1, 2).float()
    grid = affine_grid(transforms, list(planes.shape), align_corners=False)
    warped = grid_sample(planes, grid, mode="bilinear", padding_mode=outside, align_corners=False)
    return warped.round().clamp(0, 255).to(pictures.dtype).permute(0, 2, 3, 1)
