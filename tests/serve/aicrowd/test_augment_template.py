"""The exported augmentations are plain NumPy: they are run here, and held against torch and
ours.
"""

from __future__ import annotations

import runpy

import numpy as np
import pytest
import torch
from torch.nn.functional import affine_grid, grid_sample

from agents import augment as ours
from serve.aicrowd.export import TEMPLATE

theirs = runpy.run_path(str(TEMPLATE / "utils" / "augment.py"))
PICTURE = np.random.default_rng(0).integers(0, 256, (64, 64, 6), dtype=np.uint8)


def test_both_have_the_same_names():
    assert set(theirs["AUGMENTATIONS"]) == set(ours.AUGMENTATIONS)


@pytest.mark.parametrize("name", sorted(ours.AUGMENTATIONS))
def test_shape_type_and_the_picture_itself_stay(name):
    before = PICTURE.copy()
    changed = theirs["augment"](PICTURE, [name], np.random.RandomState(0))
    assert (changed.shape, changed.dtype) == (PICTURE.shape, PICTURE.dtype)
    np.testing.assert_array_equal(PICTURE, before)


@pytest.mark.parametrize(("black", "mode"), [(True, "zeros"), (False, "border")])
@pytest.mark.parametrize(
    "transform", [[[0.9, -0.3, 0.0], [0.3, 0.9, 0.0]], [[0.8, 0.0, 0.15], [0.0, 0.8, -0.2]]]
)
def test_warping_is_torchs(transform, black, mode):
    planes = torch.from_numpy(PICTURE).permute(2, 0, 1)[None].double()
    grid = affine_grid(
        torch.tensor([transform], dtype=torch.float64), list(planes.shape), align_corners=False
    )
    expected = (
        grid_sample(planes, grid, mode="bilinear", padding_mode=mode, align_corners=False)[0]
        .permute(1, 2, 0)
        .numpy()
    )
    warped = theirs["warp"](PICTURE, transform, black).astype(float)
    assert np.abs(warped - expected).max() <= 0.5 + 1e-9


@pytest.mark.parametrize(
    ("name", "option"), [("translate", "most"), ("pad-crop", "padding"), ("flip", "probability")]
)
def test_the_same_pictures_can_come_out(name, option):
    amount = 0.5 if name == "flip" else 2
    picture = PICTURE[:12, :12, :3]
    random = np.random.RandomState(0)
    batch = torch.from_numpy(picture).expand(1000, -1, -1, -1)
    by_ours = {
        changed.tobytes() for changed in ours.AUGMENTATIONS[name](batch, **{option: amount}).numpy()
    }
    apply = theirs["AUGMENTATIONS"][name]
    by_theirs = {
        np.ascontiguousarray(apply(picture, random, **{option: amount})).tobytes()
        for _ in range(1000)
    }
    assert by_theirs == by_ours
    assert len(by_ours) == (2 if name == "flip" else 25)


@pytest.mark.parametrize("name", sorted(ours.AUGMENTATIONS))
def test_pictures_are_changed_as_much_on_average(name):
    random = np.random.RandomState(0)
    generator = torch.Generator().manual_seed(0)
    smooth = np.add.outer(np.arange(64) * 2, np.arange(64))[:, :, None] + np.array([0, 20, 40])
    picture = smooth.astype(np.uint8)
    changed = np.stack([theirs["AUGMENTATIONS"][name](picture, random) for _ in range(300)]).astype(
        float
    )
    batch = torch.from_numpy(picture).expand(300, -1, -1, -1)
    expected = ours.AUGMENTATIONS[name](batch, generator).numpy().astype(float)
    # Means and deviations of each pixel over 300 draws, averaged over the picture.
    assert changed.mean() == pytest.approx(expected.mean(), rel=0.02)
    assert changed.std(0).mean() == pytest.approx(expected.std(0).mean(), rel=0.1)
