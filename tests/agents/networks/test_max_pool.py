"""The pooling kernel against torch's own."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from agents.networks.max_pool import MaxPool

SHAPES = [
    (3, 7, 10, 5),
    (2, 64, 64, 16),
    (40, 9, 5, 32),
    (70, 1, 1, 3),
    (1, 2, 2, 1),
    (2, 1, 6, 48),
]


def pictures(batch: int, height: int, width: int, channels: int) -> torch.Tensor:
    """Bfloat16 (B, C, H, W), channels-last, with many ties: there are only nine numbers, and none
    is -0.
    """
    generator = torch.Generator().manual_seed(batch)
    values = torch.randint(-4, 5, (batch, channels, height, width), generator=generator)
    return values.to(torch.bfloat16).to(memory_format=torch.channels_last).requires_grad_()


@pytest.mark.parametrize("shape", SHAPES)
def test_values_and_gradients_are_torchs(threads, shape) -> None:
    own = pictures(*shape)
    exact = pictures(*shape).detach().float().requires_grad_()
    pooled = MaxPool()(own)
    expected = nn.MaxPool2d(3, stride=2, padding=1)(exact)
    assert pooled.dtype == torch.bfloat16
    assert pooled.is_contiguous(memory_format=torch.channels_last)
    torch.testing.assert_close(pooled.float(), expected, rtol=0, atol=0)
    # Thirds aren't exact in bfloat16, so that sums of them are rounded, half of them upwards.
    gradient = (
        torch.randint(-9, 10, expected.shape, generator=torch.Generator().manual_seed(1)) / 3
    ).to(torch.bfloat16)
    pooled.backward(gradient)
    expected.backward(gradient.float())
    torch.testing.assert_close(own.grad, exact.grad.to(torch.bfloat16), rtol=0, atol=0)


def test_random_numbers_too() -> None:
    own = torch.randn(4, 16, 33, 32).to(torch.bfloat16).to(memory_format=torch.channels_last)
    torch.testing.assert_close(
        MaxPool()(own), nn.MaxPool2d(3, stride=2, padding=1)(own), rtol=0, atol=0
    )


def test_infinities_and_what_is_no_number_come_out_as_torch_has_them() -> None:
    own = pictures(4, 8, 8, 16).detach()
    own[0, 0, 3, 3], own[1, 1, 0, 0] = float("nan"), -float("nan")
    own[2], own[3, :, :4], own[3, 0, 7, 7] = float("-inf"), float("-inf"), float("inf")
    expected = nn.MaxPool2d(3, stride=2, padding=1)(own)
    torch.testing.assert_close(MaxPool()(own), expected, rtol=0, atol=0, equal_nan=True)
    assert expected.isnan().any()


@pytest.mark.parametrize(
    ("dtype", "layout"),
    [
        (torch.float32, torch.channels_last),
        (torch.float32, torch.contiguous_format),
        (torch.bfloat16, torch.contiguous_format),
    ],
)
def test_other_types_and_layouts_are_pooled_by_torch(dtype, layout) -> None:
    own = pictures(2, 9, 8, 4).detach().to(dtype).contiguous(memory_format=layout)
    torch.testing.assert_close(
        MaxPool()(own), nn.MaxPool2d(3, stride=2, padding=1)(own), rtol=0, atol=0
    )
