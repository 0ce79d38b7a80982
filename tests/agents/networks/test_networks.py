from __future__ import annotations

import io

import numpy as np
import onnxruntime
import pytest
import torch

from agents import networks
from envs.common.errors import ConfigError, UnknownNameError

BODIES = ("impala", "mlp", "snake-cnn")
"""The networks that others build upon; `recurrent` and `starter-pack` have other faces, and tests
of their own.
"""
SHAPES = [(11, 11, 12), (21, 21, 12)]


# torch.onnx announces its other exporter and traces sizes as constants.
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::torch.jit.TracerWarning")
@pytest.mark.parametrize("name", [*BODIES, "q-network"])
@pytest.mark.parametrize("shape", SHAPES)
def test_shapes_types_and_the_onnx_form(name, shape):
    network = networks.build(name, shape, 3).eval()
    seen = np.random.default_rng(0).integers(0, 256, (7, *shape), dtype=np.uint8)
    with torch.inference_mode():
        logits, values = network(torch.from_numpy(seen))
    assert logits.shape == (7, 3)
    assert values.shape == (7,)
    assert logits.dtype == values.dtype == torch.float32
    buffer = io.BytesIO()
    torch.onnx.export(
        network, (torch.from_numpy(seen[:2]),), buffer, input_names=["o"], output_names=["l", "v"],
        dynamic_axes={k: {0: "batch"} for k in "olv"}, opset_version=17, dynamo=False,
    )  # fmt: skip
    again = onnxruntime.InferenceSession(buffer.getvalue()).run(None, {"o": seen})
    np.testing.assert_allclose(again[0], logits.numpy(), atol=1e-5)
    np.testing.assert_allclose(again[1], values.numpy(), atol=1e-4)


@pytest.mark.parametrize("name", BODIES)
def test_scales_multiply_the_planes(name):
    """A network with scales s on x equals one with scales 1 on s * x."""
    scales = [0.5, 2.0, 4.0]
    torch.manual_seed(0)
    scaled = networks.build(name, (5, 5, 3), 4, scales=scales)
    plain = networks.build(name, (5, 5, 3), 4, scales=[1.0] * 3)
    plain.load_state_dict(scaled.state_dict())
    x = torch.rand(6, 5, 5, 3)
    for a, b in zip(scaled(x), plain(x * torch.tensor(scales)), strict=True):
        torch.testing.assert_close(a, b, atol=1e-5, rtol=1e-5)


def test_initial_layers_are_orthogonal_and_the_policy_nearly_uniform():
    torch.manual_seed(0)
    network = networks.build("mlp", (4, 4, 2), 3, hidden_sizes=[16])
    weight = network.hidden[0].weight
    torch.testing.assert_close(weight @ weight.T, 2 * torch.eye(16), atol=1e-4, rtol=1e-4)
    logits, _ = network(torch.randint(0, 256, (50, 4, 4, 2), dtype=torch.uint8))
    assert logits.softmax(-1).sub(1 / 3).abs().max() < 0.02


def test_unknown_names_and_bad_options():
    with pytest.raises(UnknownNameError, match="Did you mean 'snake-cnn'"):
        networks.build("snake_cnn", (11, 11, 12), 3)
    with pytest.raises(ConfigError, match="hiden"):
        networks.build("mlp", (11, 11, 12), 3, hiden=3)
    with pytest.raises(ConfigError, match="strides"):
        networks.build("snake-cnn", (11, 11, 12), 3, channels=[8], strides=[1, 2])
    with pytest.raises(ConfigError, match="scales"):
        networks.build("mlp", (11, 11, 12), 3, scales=[1.0])


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("mlp", {"hidden_sizes": [-1]}),
        ("mlp", {"hidden_sizes": [8, 0]}),
        ("snake-cnn", {"channels": [-1]}),
        ("snake-cnn", {"strides": [0]}),
        ("snake-cnn", {"hidden": 0}),
    ],
    ids=str,
)
def test_sizes_below_one_are_refused(name, options):
    with pytest.raises(ConfigError, match=f"{next(iter(options))} .*must be at least 1 each"):
        networks.build(name, (11, 11, 12), 3, **options)
