"""Where an ONNX file may hide that its data lie elsewhere; `onnx` itself writes the files."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

from agents.onnx_file import has_external_data


def elsewhere():
    tensor = numpy_helper.from_array(np.zeros(3, np.float32), "w")
    tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value="w.bin")
    return tensor


def here():
    return numpy_helper.from_array(np.zeros(3, np.float32), "location")


def sparse(tensor):
    return helper.make_sparse_tensor(tensor, numpy_helper.from_array(np.arange(3)), [9])


def graph(nodes=(), initializers=(), sparse_initializers=()):
    return helper.make_graph(
        list(nodes), "g", [], [], list(initializers), sparse_initializer=list(sparse_initializers)
    )


def in_an_initializer(tensor):
    return helper.make_model(graph(initializers=[tensor]))


def in_a_sparse_initializer(tensor):
    return helper.make_model(graph(sparse_initializers=[sparse(tensor)]))


def in_a_constant(tensor):
    return helper.make_model(graph([helper.make_node("Constant", [], ["c"], value=tensor)]))


def in_a_branch_of_a_branch(tensor):
    inner = graph(
        [
            helper.make_node(
                "If", ["x"], ["y"], then_branch=graph(initializers=[tensor]), else_branch=graph()
            )
        ]
    )
    return helper.make_model(
        graph([helper.make_node("If", ["x"], ["y"], then_branch=inner, else_branch=graph())])
    )


def in_a_function(tensor):
    node = helper.make_node("Constant", [], ["c"], value=tensor)
    function = helper.make_function("own", "f", [], ["c"], [node], [helper.make_opsetid("", 17)])
    return helper.make_model(graph(), functions=[function])


def in_training_information(tensor):
    model = helper.make_model(graph())
    model.training_info.add().initialization.CopyFrom(graph(initializers=[tensor]))
    return model


@pytest.mark.parametrize(
    "model",
    [
        in_an_initializer,
        in_a_sparse_initializer,
        in_a_constant,
        in_a_branch_of_a_branch,
        in_a_function,
        in_training_information,
    ],
)
def test_external_data_are_found_wherever_a_tensor_may_be(model):
    assert has_external_data(model(elsewhere()).SerializeToString())
    assert not has_external_data(model(here()).SerializeToString())


def test_what_is_no_model_or_too_deep_is_refused():
    with pytest.raises(ValueError, match="is not an ONNX model"):
        has_external_data(b"\xff" * 9)
    inner = graph()
    for _ in range(15):
        inner = graph(
            [helper.make_node("If", ["x"], ["y"], then_branch=inner, else_branch=graph())]
        )
    with pytest.raises(ValueError, match="nested"):
        has_external_data(helper.make_model(inner).SerializeToString())


FIELD = b"\x78\x01"
"""A field that no message of ONNX has."""


def inside(number, content):
    """A message in a field of this number, of any length."""
    length = len(content)
    size = b""
    while length > 0x7F:
        size = size + bytes([length & 0x7F | 0x80])
        length = length >> 7
    return bytes([number << 3 | 2]) + size + bytes([length]) + content


@pytest.mark.parametrize(
    "model",
    [FIELD * ((1 << 18) + 1), inside(7, b"".join(inside(1, FIELD * 1000) for _ in range(263)))],
    ids=["model", "nodes"],
)
def test_a_model_of_very_many_fields_is_refused_before_they_are_listed(model):
    """A list of two-byte fields takes forty times their size: 256 MiB, which a zip of 256 KiB may
    hold, would take 10 GiB.
    """
    with pytest.raises(ValueError, match="more than 262144 fields"):
        has_external_data(model)


def test_fields_of_every_kind_are_counted():
    kinds = b"\x08\x96\x01" + b"\x11" + bytes(8) + inside(3, b"abc" * 100) + b"\x25" + bytes(4)
    assert not has_external_data(kinds * ((1 << 16) - 1))
    with pytest.raises(ValueError, match="more than 262144 fields"):
        has_external_data(kinds * ((1 << 16) + 1))
