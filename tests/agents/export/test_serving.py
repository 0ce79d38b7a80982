"""The client of docs/bundle.md, over gRPC with TensorFlow Serving's own messages. A stand-in of its
server answers with the exported model, and refuses what it refuses. Needs TensorFlow: `make
outside-tensorflow`.
"""

from __future__ import annotations

import contextlib
import io
import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

if find_spec("tensorflow") is None:
    pytest.skip("the extra [tensorflow] is not installed", allow_module_level=True)

import grpc
import tensorflow as tf
from grpc import StatusCode
from tensorflow_serving.apis.predict_pb2 import PredictRequest, PredictResponse
from tensorflow_serving.apis.prediction_service_pb2_grpc import (
    PredictionServiceServicer,
    PredictionServiceStub,
    add_PredictionServiceServicer_to_server,
)

from agents import bundle as bundles
from agents import champions
from agents.export.savedmodel import export_savedmodel, observations_of
from agents.policy import onnx_forward

pytestmark = [pytest.mark.long, pytest.mark.filterwarnings("ignore")]
NAME = "champion-coinrun"
PAGE = (Path(__file__).parents[3] / "docs" / "bundle.md").read_text(encoding="utf-8")
(MODEL,) = re.findall(r"tensorflow_model_server .*--model_name=(\w+)", PAGE)
FRAMES = np.zeros((2, 64, 64, 3), np.uint8)


class Service(PredictionServiceServicer):
    """Answers for the newest version below a base path, by one name, as TensorFlow Serving. It also
    refuses with the same status.
    """

    def __init__(self, name: str, base_path: Path) -> None:
        self.name = name
        self.version = max(int(path.name) for path in base_path.iterdir() if path.name.isdigit())
        self.model = tf.saved_model.load(str(base_path / str(self.version)))

    def Predict(self, request: PredictRequest, context: grpc.ServicerContext) -> PredictResponse:
        spec = request.model_spec
        version = spec.version.value if spec.HasField("version") else self.version
        signature = self.model.signatures.get(spec.signature_name or "serving_default")
        inputs = {name: tf.make_ndarray(tensor) for name, tensor in request.inputs.items()}
        if not spec.name:
            context.abort(StatusCode.INVALID_ARGUMENT, "ModelSpec has no name specified.")
        if (spec.name, version) != (self.name, self.version):
            context.abort(StatusCode.NOT_FOUND, f"there is no {spec.name} {version}")
        if signature is None:
            context.abort(
                StatusCode.FAILED_PRECONDITION, f"there is no signature {spec.signature_name}"
            )
        if fault := fault_of(inputs, signature.structured_input_signature[1]):
            context.abort(StatusCode.INVALID_ARGUMENT, fault)
        response = PredictResponse()
        for name, tensor in signature(**inputs).items():
            response.outputs[name].CopyFrom(tf.make_tensor_proto(tensor))
        return response


def fault_of(inputs: dict[str, np.ndarray], expected: dict[str, tf.TensorSpec]) -> str:
    """Return what is wrong with the inputs of a request, "" for nothing."""
    if inputs.keys() != expected.keys():
        return f"the inputs are {sorted(inputs)}, not {sorted(expected)}"
    for name, spec in expected.items():
        array = inputs[name]
        if spec.dtype != array.dtype:
            return f"{name} is {array.dtype}, not {spec.dtype.name}"
        if not spec.shape.is_compatible_with(array.shape):
            return f"{name} has the shape {array.shape}, not {spec.shape}"
    return ""


@pytest.fixture(scope="module")
def address(tmp_path_factory) -> Iterator[str]:
    out = tmp_path_factory.mktemp("served")
    export_savedmodel(bundles.load(champions.path(NAME)), out, states=64)
    (out / "0").mkdir()  # an older version, which is not served
    server = grpc.server(ThreadPoolExecutor(1))
    add_PredictionServiceServicer_to_server(Service(MODEL, out), server)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    yield f"127.0.0.1:{port}"
    server.stop(None)


def predict(
    address: str,
    *,
    model: str = MODEL,
    version: int | None = None,
    signature: str = "",
    **inputs: np.ndarray,
) -> dict[str, np.ndarray]:
    request = PredictRequest()
    request.model_spec.name = model
    request.model_spec.signature_name = signature
    if version is not None:
        request.model_spec.version.value = version
    for name, array in inputs.items():
        request.inputs[name].CopyFrom(tf.make_tensor_proto(array))
    with grpc.insecure_channel(address) as channel:
        outputs = PredictionServiceStub(channel).Predict(request).outputs
    return {name: tf.make_ndarray(tensor) for name, tensor in outputs.items()}


@pytest.mark.parametrize("rows", [0, 1, 20])
def test_it_answers_as_the_bundle_for_any_batch_and_none(address, rows):
    champion = bundles.load(champions.path(NAME))
    observations = observations_of(champion, 20)[:rows]
    logits, values = onnx_forward(champion, 1)(observations)
    served = predict(address, observations=observations)
    np.testing.assert_allclose(served["logits"], logits, atol=1e-3, rtol=1e-3)
    np.testing.assert_allclose(served["values"], values, atol=1e-3, rtol=1e-3)
    assert served["logits"].shape == (rows, 15)


def test_the_version_that_is_served_can_be_asked_for_by_its_number(address):
    assert predict(address, version=1, observations=FRAMES)["logits"].shape == (2, 15)


@pytest.mark.parametrize(
    ("asked", "status"),
    [
        ({"model": "", "observations": FRAMES}, StatusCode.INVALID_ARGUMENT),
        ({"model": "maze", "observations": FRAMES}, StatusCode.NOT_FOUND),
        ({"version": 0, "observations": FRAMES}, StatusCode.NOT_FOUND),
        ({"version": 2, "observations": FRAMES}, StatusCode.NOT_FOUND),
        ({"signature": "train", "observations": FRAMES}, StatusCode.FAILED_PRECONDITION),
        ({"observations": FRAMES.astype(np.int64)}, StatusCode.INVALID_ARGUMENT),
        ({"observations": FRAMES[:, :32]}, StatusCode.INVALID_ARGUMENT),
        ({"observations": FRAMES[0]}, StatusCode.INVALID_ARGUMENT),
        ({}, StatusCode.INVALID_ARGUMENT),
        ({"pixels": FRAMES}, StatusCode.INVALID_ARGUMENT),
        ({"observations": FRAMES, "state": FRAMES}, StatusCode.INVALID_ARGUMENT),
    ],
)
def test_what_tensorflow_serving_refuses_is_refused_here(address, asked, status):
    with pytest.raises(grpc.RpcError) as refusal:
        predict(address, **asked)
    assert refusal.value.code() == status


def test_the_client_of_the_page_runs(address):
    (client,) = re.findall(r'```python title="client.py"\n(.*?)```', PAGE, re.DOTALL)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(client.replace("127.0.0.1:8500", address), {})
    champion = bundles.load(champions.path(NAME))
    logits, _ = onnx_forward(champion, 1)(FRAMES)
    assert printed.getvalue() == f"{logits.argmax(axis=1)}\n"
