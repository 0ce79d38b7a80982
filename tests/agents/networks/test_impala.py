"""The IMPALA network against its published sizes, plain torch, and its exported form."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnxruntime
import pytest
import torch
from torch import nn

from agents import bundle, networks
from envs.common.errors import ConfigError

SHAPE = (64, 64, 3)


def _pictures(batch: int = 4, channels: int = 3) -> torch.Tensor:
    generator = torch.Generator().manual_seed(0)
    return torch.randint(256, (batch, 64, 64, channels), generator=generator, dtype=torch.uint8)


def test_the_number_of_parameters_is_the_papers() -> None:
    network = networks.build("impala", SHAPE, 15)
    # By hand: an entry and four block convolutions a stage, the dense layer on 8·8·32 values, and
    # two heads.
    stages = sum((9 * a + 1) * b + 4 * (9 * b + 1) * b for a, b in ((3, 16), (16, 32), (32, 32)))
    dense = (2048 + 1) * 256
    heads = (256 + 1) * 16
    assert sum(p.numel() for p in network.parameters()) == stages + dense + heads


@pytest.mark.parametrize(
    ("pooling", "features"), [("flatten", 2048 * 2), ("average", 64), ("max", 64)]
)
def test_width_and_pooling_set_what_the_dense_layer_reads(pooling: str, features: int) -> None:
    network = networks.build("impala", SHAPE, 15, width=2, pooling=pooling, hidden=100)
    assert network.dense.weight.shape == (100, features)
    assert [stage.entry.out_channels for stage in network.stages] == [32, 64, 64]
    logits, values = network(_pictures())
    assert logits.shape == (4, 15)
    assert values.shape == (4,)
    assert logits.dtype == values.dtype == torch.float32


def _as_drawn(
    network: nn.Module, pictures: torch.Tensor, stem_stride: int = 1
) -> tuple[torch.Tensor, torch.Tensor]:
    """(Logits, values) of the paper's network with these weights, in plain torch: float32, channels
    first, nothing in place.
    """
    x = (pictures.permute(0, 3, 1, 2).float().contiguous() - network.offset) / 255
    for stage, stride in zip(network.stages, (stem_stride, 1, 1), strict=True):
        x = nn.functional.conv2d(x, stage.entry.weight, stage.entry.bias, stride, padding=1)
        x = nn.functional.max_pool2d(x, 3, 2, 1)
        for block in stage.blocks:
            inner = nn.functional.conv2d(
                torch.relu(x), block.first.weight, block.first.bias, padding=1
            )
            x = x + nn.functional.conv2d(
                torch.relu(inner), block.second.weight, block.second.bias, padding=1
            )
    x = torch.relu(x)
    flat = x.permute(0, 2, 3, 1).reshape(len(x), -1)
    pooled = {"flatten": flat, "average": x.mean((2, 3)), "max": x.amax((2, 3))}[network.pooling]
    features = torch.relu(network.dense(pooled))
    return network.heads.actor(features), network.heads.critic(features).squeeze(1)


@pytest.mark.parametrize("stem_stride", [1, 2, 3])
@pytest.mark.parametrize("pooling", ["flatten", "average", "max"])
def test_it_computes_what_the_paper_draws(pooling: str, stem_stride: int) -> None:
    network = networks.build(
        "impala", SHAPE, 15, pooling=pooling, offset=128, stem_stride=stem_stride
    )
    expected = _as_drawn(network, _pictures(), stem_stride)
    torch.testing.assert_close(network(_pictures()), expected, atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("stem_stride", [1, 2])
def test_so_are_its_gradients(stem_stride: int) -> None:
    network = networks.build("impala", SHAPE, 15, stem_stride=stem_stride)
    gradients = []
    for logits, values in (network(_pictures()), _as_drawn(network, _pictures(), stem_stride)):
        network.zero_grad()
        (logits.square().sum() + values.square().sum()).backward()
        gradients.append([parameter.grad.clone() for parameter in network.parameters()])
    torch.testing.assert_close(*gradients, atol=1e-4, rtol=1e-3)


def test_a_stem_that_halves_leaves_the_dense_layer_a_quarter() -> None:
    network = networks.build("impala", (63, 64, 3), 15, stem_stride=2)
    # By hand: 63 × 64 → stem 32 × 32 → three poolings 16, 8, 4.
    assert network.dense.weight.shape == (256, 4 * 4 * 32)
    assert network.stages[0].entry.weight.shape == (16, 3, 3, 3)
    assert [stage.entry.stride for stage in network.stages] == [(2, 2), (1, 1), (1, 1)]


@pytest.mark.parametrize("stem_stride", [1, 2])
def test_bfloat16_is_close_and_the_heads_stay_float32(stem_stride: int) -> None:
    network = networks.build("impala", SHAPE, 15, stem_stride=stem_stride)
    with torch.no_grad():
        exact = network(_pictures())[1]
        with torch.autocast("cpu", torch.bfloat16):
            rough = network(_pictures())[1]
    assert rough.dtype == torch.float32
    torch.testing.assert_close(rough, exact, atol=0.1, rtol=0.1)


def test_blocks_begin_small_and_the_first_policy_nearly_uniform() -> None:
    torch.manual_seed(0)
    network = networks.build("impala", SHAPE, 15)
    gains = [
        torch.linalg.svdvals(block.second.weight.flatten(1))[0].item()
        for s in network.stages
        for block in s.blocks
    ]
    assert gains == pytest.approx([2**0.5 / 6] * 6, rel=1e-4)
    probabilities = network(_pictures())[0].softmax(-1)
    assert (probabilities - 1 / 15).abs().max() < 0.01


@pytest.mark.parametrize(
    "options",
    [
        {"pooling": "mean"},
        {"depths": []},
        {"width": 0},
        {"stem_stride": 0},
        {"hiden": 3},
        {"scales": [1.0]},
    ],
)
def test_bad_options_are_refused(options: dict) -> None:
    with pytest.raises(ConfigError, match="impala"):
        networks.build("impala", SHAPE, 15, **options)


@pytest.mark.parametrize("stem_stride", [1, 2])
def test_the_exported_network_answers_alike(stem_stride: int, tmp_path: Path) -> None:
    torch.manual_seed(0)
    options = {"width": 2, "pooling": "average", "offset": 128, "stem_stride": stem_stride}
    network = networks.build("impala", (64, 64, 6), 15, **options)
    with torch.no_grad():
        network.heads.actor.weight.mul_(100)
    card = {
        "environment": {"name": "procgen/coinrun", "options": {}},
        "observation": {"type": "procgen/coinrun", "version": 1},
        "observation_shape": [64, 64, 6],
        "action": {"type": "procgen/coinrun", "version": 1, "num_actions": 15},
        "network": {"name": "impala", "options": options},
    }
    exported = bundle.load(bundle.export(tmp_path / "bundle", network=network, card=card))
    session = onnxruntime.InferenceSession(exported.onnx, providers=["CPUExecutionProvider"])
    pictures = _pictures(16, 6)
    logits, values = session.run(["logits", "values"], {"observations": pictures.numpy()})
    with torch.no_grad():
        expected = network(pictures)
    assert expected[0].std() > 0.01
    np.testing.assert_allclose(logits, expected[0].numpy(), atol=1e-4)
    np.testing.assert_allclose(values, expected[1].numpy(), atol=1e-4)
