"""Each augmentation against its definition."""

from __future__ import annotations

import math

import pytest
import torch

from agents.augment import (
    AUGMENTATIONS,
    augment,
    color_jitter,
    crop_resize,
    cutout,
    flip,
    pad_crop,
    rotate,
    translate,
)


def _generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def _noise(batch: int = 64, size: int = 16, channels: int = 3) -> torch.Tensor:
    return torch.randint(
        1, 256, (batch, size, size, channels), generator=_generator(1), dtype=torch.uint8
    )


@pytest.mark.parametrize("name", AUGMENTATIONS)
def test_shape_dtype_and_randomness(name: str) -> None:
    pictures = _noise(size=64, channels=6)
    once, again, other = (augment(pictures, [name], _generator(seed)) for seed in (3, 3, 4))
    assert once.shape == pictures.shape
    assert once.dtype == torch.uint8
    assert torch.equal(once, again)
    assert not torch.equal(once, other)
    assert not torch.equal(once, pictures)


@pytest.mark.parametrize("name", sorted(set(AUGMENTATIONS) - {"color-jitter"}))
def test_stacked_frames_change_alike(name: str) -> None:
    frame = _noise(size=64)
    out = augment(torch.cat([frame, frame], -1), [name], _generator())
    assert torch.equal(out[..., :3], out[..., 3:])


def test_translations_are_shifts_with_black_borders_and_all_occur() -> None:
    picture = _noise(1)[0]
    out = translate(picture.expand(400, -1, -1, -1), _generator(), most=1)
    found = set()
    for moved in out:
        for down in (-1, 0, 1):
            for right in (-1, 0, 1):
                expected = torch.zeros_like(picture)
                expected[max(0, down) : 16 + min(0, down), max(0, right) : 16 + min(0, right)] = (
                    picture[
                        max(0, -down) : 16 + min(0, -down), max(0, -right) : 16 + min(0, -right)
                    ]
                )
                if torch.equal(moved, expected):
                    found.add((down, right))
                    break
            else:
                continue
            break
        else:
            raise AssertionError("no shift by at most one pixel")
    assert len(found) == 9


def test_pad_crop_is_a_window_of_the_edge_padded_picture() -> None:
    picture = _noise(1)
    planes = picture.permute(0, 3, 1, 2).float()
    padded = (
        torch.nn.functional.pad(planes, (2, 2, 2, 2), mode="replicate")[0]
        .permute(1, 2, 0)
        .to(torch.uint8)
    )
    windows = [padded[a : a + 16, b : b + 16] for a in range(5) for b in range(5)]
    out = pad_crop(picture.expand(300, -1, -1, -1), _generator(), padding=2)
    matches = [[k for k, window in enumerate(windows) if torch.equal(one, window)] for one in out]
    assert all(matches)
    assert len({k for match in matches for k in match}) == 25


def test_rotation_moves_a_point_along_its_circle_and_keeps_the_middle() -> None:
    pictures = torch.zeros(200, 65, 65, 1, dtype=torch.uint8)
    pictures[:, 30:35, 50:55] = 255
    pictures[:, 32, 32] = 255
    out = rotate(pictures, _generator(), degrees=20)[..., 0].double()
    assert (out[:, 32, 32] > 200).all()
    out[:, 31:34, 31:34] = 0
    at = torch.arange(65.0, dtype=torch.double) - 32
    mass = out.sum((1, 2))
    y = (out.sum(2) * at).sum(1) / mass
    x = (out.sum(1) * at).sum(1) / mass
    assert torch.allclose((x**2 + y**2).sqrt(), torch.full_like(x, 20.0), atol=0.2)
    angles = torch.rad2deg(torch.atan2(y, x))
    assert angles.abs().max() <= 20.5
    assert angles.max() > 15
    assert angles.min() < -15


def test_a_rotation_by_a_right_angle_is_the_turned_picture(monkeypatch: pytest.MonkeyPatch) -> None:
    picture = _noise(1)
    monkeypatch.setattr(
        "agents.augment._draw", lambda pictures, generator: torch.ones(len(pictures))
    )
    turned = rotate(picture, None, degrees=90)
    assert torch.equal(turned, picture.rot90(1, (1, 2))) or torch.equal(
        turned, picture.rot90(-1, (1, 2))
    )


def test_a_crop_of_a_slope_is_a_gentler_slope_from_within() -> None:
    ramp = torch.arange(64.0) * 4
    pictures = ramp.to(torch.uint8)[None, None, :, None].expand(300, 64, 64, 1)
    out = crop_resize(pictures, _generator(), least=48).float()
    slopes = (out[:, 0, 60, 0] - out[:, 0, 3, 0]) / 57 / 4
    assert slopes.min() >= 48 / 64 - 0.01
    assert slopes.max() <= 1.01
    assert slopes.min() < 0.8
    assert (out - out[:, :1]).abs().max() <= 1
    assert torch.equal(crop_resize(pictures, _generator(), least=64), pictures)


def test_a_flip_mirrors_about_half_of_the_pictures() -> None:
    pictures = _noise(400)
    out = flip(pictures, _generator())
    mirrored = (out == pictures.flip(2)).flatten(1).all(1)
    untouched = (out == pictures).flatten(1).all(1)
    assert (mirrored | untouched).all()
    assert abs(int(mirrored.sum()) - 200) < 4 * math.sqrt(400 / 4)
    assert torch.equal(flip(pictures, None, probability=1.0), pictures.flip(2))


def test_a_cutout_is_one_black_rectangle_of_the_right_size() -> None:
    pictures = _noise(300)
    out = cutout(pictures, _generator(), least=3, most=6)
    black = (out == 0).all(-1)
    rows = black.any(2)
    columns = black.any(1)
    heights = rows.sum(1)
    widths = columns.sum(1)
    assert torch.equal(black.sum((1, 2)), heights * widths)
    assert {*heights.tolist()} == {*widths.tolist()} == {3, 4, 5, 6}
    assert torch.equal(out[~black], pictures[~black])
    assert rows[:, 0].any()
    assert rows[:, -1].any()
    span = torch.arange(16).expand(300, -1)
    last = torch.where(rows, span, -1).max(1).values
    first = torch.where(rows, span, 99).min(1).values
    assert torch.equal(last - first + 1, heights)


def test_jitter_keeps_grey_grey_and_scales_it_by_brightness() -> None:
    grey = torch.full((300, 4, 4, 3), 100, dtype=torch.uint8)
    out = color_jitter(grey, _generator(), strength=0.3)
    assert torch.equal(out, out[:, :1, :1, :1].expand_as(out))
    assert out.min() >= 70
    assert out.max() <= 130
    assert out.float().std() > 10


def test_jitter_of_no_strength_changes_nothing() -> None:
    pictures = _noise()
    assert torch.equal(color_jitter(pictures, _generator(), strength=0.0), pictures)
