"""The sparse layer against torch's dense one in double precision."""

from __future__ import annotations

import copy
import io
from typing import Any

import numpy as np
import onnx
import pytest
import torch
from torch import nn

from agents import networks
from agents.networks.sparse_linear import inputs_first, sparse_linear

# (pictures, inputs, units): one picture, fewer inputs than a word, rows that don't begin at words,
# several parts of all kinds.
SHAPES = [(1, 1452, 32), (5, 7, 3), (3, 8, 1), (300, 203, 5), (700, 1452, 17), (0, 40, 4)]


def pictures(count: int, inputs: int, zeros: float = 0.95) -> torch.Tensor:
    """Uint8 [count, inputs], up to 255, of which about `zeros` are 0; the first is empty, and the
    last ends with 255.
    """
    random = np.random.default_rng(count)
    values = np.where(
        random.random((count, inputs)) < zeros, 0, random.integers(1, 256, (count, inputs))
    ).astype(np.uint8)
    values[:1] = 0
    values[-1:, -1] = 255
    return torch.from_numpy(values)


def layer_and_scales(inputs: int, units: int) -> tuple[nn.Linear, torch.Tensor]:
    random = torch.Generator().manual_seed(units)
    layer = inputs_first(nn.Linear(inputs, units))
    nn.init.normal_(layer.bias, generator=random)
    return layer, torch.rand(inputs, generator=random) / 100


@pytest.mark.parametrize("shape", SHAPES)
def test_values_and_gradients_are_those_of_the_dense_layer(threads, shape) -> None:
    count, inputs, units = shape
    seen, (layer, scales) = pictures(count, inputs), layer_and_scales(inputs, units)
    exact = copy.deepcopy(layer).double()
    found = sparse_linear(seen, layer, scales)
    expected = exact(seen.double() * scales.double())
    assert found is not None
    assert found.dtype == torch.float32
    torch.testing.assert_close(found.double(), expected, rtol=1e-5, atol=1e-5)
    gradient = torch.randn(expected.shape, generator=torch.Generator().manual_seed(0))
    found.backward(gradient)
    expected.backward(gradient.double())
    for own, true in zip(layer.parameters(), exact.parameters(), strict=True):
        torch.testing.assert_close(own.grad.double(), true.grad, rtol=1e-5, atol=1e-5)


def test_sums_do_not_hang_on_the_number_of_threads() -> None:
    seen, (layer, scales) = pictures(2000, 1452), layer_and_scales(1452, 64)
    before = torch.get_num_threads()
    found = []
    for number in (1, 2):
        torch.set_num_threads(number)
        layer.zero_grad()
        sums = sparse_linear(seen, layer, scales)
        sums.square().sum().backward()
        found.append((sums, layer.weight.grad))
    torch.set_num_threads(before)
    for one, two in zip(*found, strict=True):
        assert torch.equal(one, two)


def test_pictures_that_are_not_mostly_zero_are_left_to_the_dense_layer() -> None:
    layer, scales = layer_and_scales(800, 4)
    assert sparse_linear(pictures(600, 800, zeros=0.5), layer, scales) is None
    # One full picture among others is no reason.
    seen = pictures(600, 800)
    seen[300] = 7
    torch.testing.assert_close(
        sparse_linear(seen, layer, scales), layer(seen * scales), rtol=1e-4, atol=1e-4
    )
    # Neither are numbers of other types, nor weights of others.
    assert sparse_linear(seen.float(), layer, scales) is None
    assert sparse_linear(seen, copy.deepcopy(layer).double(), scales) is None


def test_a_full_picture_at_the_end_of_a_part_keeps_its_entries() -> None:
    """As many bytes as there is room for aren't zero, and after them come a full picture and
    another part.
    """
    layer, scales = layer_and_scales(80, 4)
    seen = torch.zeros(400, 80, dtype=torch.uint8)
    seen[:, :10] = 3
    seen[255] = 9
    torch.testing.assert_close(
        sparse_linear(seen, layer, scales), layer(seen * scales), rtol=1e-4, atol=1e-4
    )


def test_pictures_may_be_cut_out_of_others() -> None:
    whole, (layer, scales) = pictures(50, 100), layer_and_scales(30, 4)
    seen = whole[::2, 40:70]
    torch.testing.assert_close(
        sparse_linear(seen, layer, scales), layer(seen * scales), rtol=1e-4, atol=1e-4
    )


def test_weights_that_lie_by_units_do_as_well() -> None:
    seen, (layer, scales) = pictures(20, 100), layer_and_scales(100, 8)
    other = nn.Linear(100, 8)
    other.load_state_dict(layer.state_dict())
    assert other.weight.stride() != layer.weight.stride()
    torch.testing.assert_close(
        sparse_linear(seen, other, scales), sparse_linear(seen, layer, scales), rtol=0, atol=0
    )


# torch.onnx announces its other exporter and traces sizes as constants.
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::torch.jit.TracerWarning")
def test_it_is_the_mlps_first_layer_and_exported_as_a_dense_one() -> None:
    network = networks.build("mlp", (11, 11, 12), 3, hidden_sizes=[16, 8])
    seen = pictures(40, 1452).reshape(40, 11, 11, 12)
    assert "_SparseLinearBackward" in names_of_steps(network(seen)[1].grad_fn)
    assert "_SparseLinearBackward" not in names_of_steps(network(seen.float())[1].grad_fn)
    buffer = io.BytesIO()
    torch.onnx.export(
        network, (seen[:2],), buffer, input_names=["o"], opset_version=17, dynamo=False
    )
    operators = [node.op_type for node in onnx.load_from_string(buffer.getvalue()).graph.node]
    assert operators.count("Gemm") == 4


def names_of_steps(step: Any) -> set[str]:
    """Names of what a gradient goes through."""
    others = [following for following, _ in step.next_functions if following is not None]
    return {step.name(), *(name for other in others for name in names_of_steps(other))}
