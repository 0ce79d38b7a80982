"""Runs a bundle's network in TensorFlow: it knows the ONNX operators that policies consist of."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np

from agents.card import BundleError

_ENDLESS = 1 << 31


def load_graph(content: bytes) -> Any:
    """Read an ONNX file as an `onnx.ModelProto`, and work out its constants. Raises `BundleError`
    if it can't be read.
    """
    import onnx
    import onnxruntime

    with tempfile.TemporaryDirectory() as folder:
        simplified = Path(folder, "simplified.onnx")
        options = onnxruntime.SessionOptions()
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC
        options.optimized_model_filepath = str(simplified)
        # Only fatal errors: its log prints a stranger's names as they are, and its exceptions say
        # the same.
        options.log_severity_level = 4
        try:
            onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
        except Exception as error:
            raise BundleError(f"onnxruntime can't run policy.onnx: {error}") from error
        return onnx.load(simplified)


def make_module(model: Any) -> Any:
    """Make a `tf.Module` with `run(observations) -> {output: tensor}`.

    Raises `BundleError` for operators that it doesn't know.
    """
    import tensorflow as tf

    graph = model.graph

    class Network(tf.Module):
        """The graph; its large constants are variables."""

        def __init__(self) -> None:
            super().__init__()
            self.constants = _constants(graph)

        def run(self, observations: tf.Tensor) -> dict[str, tf.Tensor]:
            values = {"": None, graph.input[0].name: observations, **self.constants}
            _run(graph.node, values)
            return {
                output.name: tf.identity(values[output.name], name=output.name)
                for output in graph.output
            }

    return Network()


def _constants(graph: Any) -> dict[str, Any]:
    import onnx

    return {
        item.name: _constant_value(onnx.numpy_helper.to_array(item)) for item in graph.initializer
    }


def _run(nodes: Iterable[Any], values: dict[str, Any]) -> None:
    """Add the nodes' outputs to `values`, which are arrays if they depend only on fixed shapes, and
    tensors otherwise.
    """
    import onnx

    for node in nodes:
        attributes = {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute}
        if node.op_type == "If":
            condition = bool(np.asarray(values[node.input[0]]))
            branch = attributes["then_branch" if condition else "else_branch"]
            values.update(_constants(branch))
            _run(branch.node, values)
            values[node.output[0]] = values[branch.output[0].name]
        elif node.op_type in _OPERATORS:
            inputs = [values[name] for name in node.input]
            values[node.output[0]] = _OPERATORS[node.op_type](attributes, *inputs)
        else:
            raise BundleError(
                f"the network has the ONNX operator {node.op_type}, which can't be exported to"
                " TensorFlow yet"
            )


def _constant_value(array: np.ndarray) -> Any:
    """Return a constant as the network holds it: weights as variables, small numbers as arrays."""
    import tensorflow as tf

    if array.dtype == np.float32 and array.ndim:
        return tf.Variable(array, trainable=False)
    return array


def _numbers(values: Any) -> list[int]:
    return [int(value) for value in np.asarray(values).reshape(-1)]


def _conv(attributes: dict[str, Any], planes: Any, weights: Any, bias: Any = None) -> Any:
    import tensorflow as tf

    rows = tf.transpose(planes, (0, 2, 3, 1))
    filters = tf.transpose(weights, (2, 3, 1, 0))
    strides = attributes.get("strides", [1, 1])
    dilations = attributes.get("dilations")
    out = tf.nn.conv2d(
        tf.pad(rows, _padding(attributes)), filters, strides, "VALID", dilations=dilations
    )
    if bias is not None:
        out = out + bias
    return tf.transpose(out, (0, 3, 1, 2))


def _max_pool(attributes: dict[str, Any], planes: Any) -> Any:
    import tensorflow as tf

    rows = tf.transpose(planes, (0, 2, 3, 1))
    rows = tf.pad(rows, _padding(attributes), constant_values=planes.dtype.min)
    out = tf.nn.max_pool2d(rows, attributes["kernel_shape"], attributes["strides"], "VALID")
    return tf.transpose(out, (0, 3, 1, 2))


def _padding(attributes: dict[str, Any]) -> list[list[int]]:
    above, before, below, behind = attributes.get("pads", [0] * 4)
    return [[0, 0], [above, below], [before, behind], [0, 0]]


def _gemm(attributes: dict[str, Any], a: Any, b: Any, bias: Any = None) -> Any:
    import tensorflow as tf

    transposed = {
        "transpose_a": bool(attributes.get("transA")),
        "transpose_b": bool(attributes.get("transB")),
    }
    product = attributes.get("alpha", 1.0) * tf.linalg.matmul(a, b, **transposed)
    if bias is None:
        return product
    return product + attributes.get("beta", 1.0) * bias


def _reduce(name: str) -> Callable[..., Any]:
    """Return an operator that sums up axes by a function of TensorFlow."""

    def reduce(attributes: dict[str, Any], values: Any, axes: Any = None) -> Any:
        import tensorflow as tf

        # Opset 13 made the axes an input of some operators; of the others they are an attribute.
        over = attributes["axes"] if axes is None else _numbers(axes)
        return getattr(tf, name)(values, over, keepdims=bool(attributes.get("keepdims", 1)))

    return reduce


def _flatten(attributes: dict[str, Any], values: Any) -> Any:
    import tensorflow as tf

    if attributes.get("axis", 1) != 1:
        raise BundleError(
            "the network flattens more than one axis into the batch, which can't be exported to"
            " TensorFlow yet"
        )
    return tf.reshape(values, (-1, int(np.prod(values.shape[1:]))))


def _reshape(attributes: dict[str, Any], values: Any, shape: Any) -> Any:
    import tensorflow as tf

    sizes: list[Any] = _numbers(shape)
    for axis, size in enumerate(sizes):
        # 0 stands for the size that the axis has.
        if size == 0:
            sizes[axis] = tf.shape(values)[axis]
    return tf.reshape(values, sizes)


def _squeeze(attributes: dict[str, Any], values: Any, axes: Any = None) -> Any:
    import tensorflow as tf

    if axes is None:
        return tf.squeeze(values)
    return tf.squeeze(values, _numbers(axes))


def _unsqueeze(attributes: dict[str, Any], values: Any, axes: Any) -> Any:
    import tensorflow as tf

    for axis in sorted(_numbers(axes)):
        values = tf.expand_dims(values, axis)
    return values


def _slice(
    attributes: dict[str, Any],
    values: Any,
    starts: Any,
    ends: Any,
    axes: Any = None,
    steps: Any = None,
) -> Any:
    begins = _numbers(starts)
    axis_numbers = list(range(len(begins)))
    if axes is not None:
        axis_numbers = _numbers(axes)
    step_sizes = [1] * len(begins)
    if steps is not None:
        step_sizes = _numbers(steps)
    index = [slice(None)] * len(values.shape)
    for axis, begin, end, step in zip(
        axis_numbers, begins, _numbers(ends), step_sizes, strict=True
    ):
        # A huge number stands for the end of the axis.
        stop = end if abs(end) < _ENDLESS else None
        index[axis] = slice(begin, stop, step)
    return values[tuple(index)]


def _cast(attributes: dict[str, Any], values: Any) -> Any:
    import onnx
    import tensorflow as tf

    return tf.cast(values, onnx.helper.tensor_dtype_to_np_dtype(attributes["to"]))


def _constant(attributes: dict[str, Any]) -> np.ndarray:
    import onnx

    return onnx.numpy_helper.to_array(attributes["value"])


def _shape(attributes: dict[str, Any], values: Any) -> np.ndarray:
    """Return the shape, with -1 where it isn't fixed."""
    sizes = [-1 if size is None else size for size in values.shape]
    return np.array(sizes)


def _gather(attributes: dict[str, Any], values: Any, places: Any) -> Any:
    import tensorflow as tf

    axis = attributes.get("axis", 0)
    if isinstance(values, np.ndarray):
        return values.take(places, axis)
    return tf.gather(values, places, axis=axis)


def _equal(attributes: dict[str, Any], a: Any, b: Any) -> np.ndarray:
    return np.equal(a, b)


def _plainly(name: str) -> Callable[..., Any]:
    """Return an operator that is a function of TensorFlow, without attributes."""

    def call(attributes: dict[str, Any], *values: Any) -> Any:
        import tensorflow as tf

        return getattr(tf, name)(*values)

    return call


def _soft_max(attributes: dict[str, Any], values: Any) -> Any:
    import tensorflow as tf

    return tf.nn.softmax(values, attributes.get("axis", -1))


def _transpose(attributes: dict[str, Any], values: Any) -> Any:
    import tensorflow as tf

    return tf.transpose(values, attributes["perm"])


def _concat(attributes: dict[str, Any], *values: Any) -> Any:
    import tensorflow as tf

    return tf.concat(values, attributes["axis"])


def _relu(attributes: dict[str, Any], values: Any) -> Any:
    import tensorflow as tf

    return tf.nn.relu(values)


_OPERATORS: dict[str, Callable[..., Any]] = {
    "Add": _plainly("add"),
    "Cast": _cast,
    "Concat": _concat,
    "Constant": _constant,
    "Conv": _conv,
    "Equal": _equal,
    "Flatten": _flatten,
    "Gather": _gather,
    "Gemm": _gemm,
    "Identity": _plainly("identity"),
    "MatMul": _plainly("matmul"),
    "MaxPool": _max_pool,
    "Mul": _plainly("multiply"),
    "ReduceMax": _reduce("reduce_max"),
    "ReduceMean": _reduce("reduce_mean"),
    "ReduceSum": _reduce("reduce_sum"),
    "Relu": _relu,
    "Reshape": _reshape,
    "Shape": _shape,
    "Slice": _slice,
    "Softmax": _soft_max,
    "Squeeze": _squeeze,
    "Sub": _plainly("subtract"),
    "Transpose": _transpose,
    "Unsqueeze": _unsqueeze,
}
"""By operator, the function from ONNX's attributes and inputs to the output, as opset 17 defines
it.
"""
