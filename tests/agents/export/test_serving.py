"""The client of docs/bundle.md, over gRPC with TensorFlow Serving's own messages. A stand-in of its
server answers with the exported model. Needs TensorFlow: `make outside-tensorflow`.
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

if find_spec("tensorflow_serving") is None:
    pytest.skip("the extra [tensorflow] is not installed", allow_module_level=True)

import grpc
import tensorflow as tf
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
PAGE = Path(__file__).parents[3] / "docs" / "bundle.md"


class Service(PredictionServiceServicer):
    """Answers as TensorFlow Serving: by the signature `serving_default`."""

    def __init__(self, model: Path) -> None:
        self.model = tf.saved_model.load(str(model))

    def Predict(self, request: PredictRequest, context: grpc.ServicerContext) -> PredictResponse:
        inputs = {name: tf.make_ndarray(tensor) for name, tensor in request.inputs.items()}
        outputs = self.model.signatures["serving_default"](**inputs)
        response = PredictResponse()
        for name, tensor in outputs.items():
            response.outputs[name].CopyFrom(tf.make_tensor_proto(tensor))
        return response


@pytest.fixture(scope="module")
def address(tmp_path_factory) -> Iterator[str]:
    out = tmp_path_factory.mktemp("served")
    export_savedmodel(bundles.load(champions.path(NAME)), out, states=64)
    server = grpc.server(ThreadPoolExecutor(1))
    add_PredictionServiceServicer_to_server(Service(out / "1"), server)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    yield f"127.0.0.1:{port}"
    server.stop(None)


def predict(address: str, observations: np.ndarray) -> dict[str, np.ndarray]:
    request = PredictRequest()
    request.inputs["observations"].CopyFrom(tf.make_tensor_proto(observations))
    with grpc.insecure_channel(address) as channel:
        outputs = PredictionServiceStub(channel).Predict(request).outputs
    return {name: tf.make_ndarray(tensor) for name, tensor in outputs.items()}


@pytest.mark.parametrize("rows", [0, 1, 20])
def test_it_answers_as_the_bundle_for_any_batch_and_none(address, rows):
    champion = bundles.load(champions.path(NAME))
    observations = observations_of(champion, 20)[:rows]
    logits, values = onnx_forward(champion, 1)(observations)
    served = predict(address, observations)
    np.testing.assert_allclose(served["logits"], logits, atol=1e-3, rtol=1e-3)
    np.testing.assert_allclose(served["values"], values, atol=1e-3, rtol=1e-3)
    assert served["logits"].shape == (rows, 15)


def test_the_client_of_the_page_runs(address):
    text = PAGE.read_text(encoding="utf-8")
    (client,) = re.findall(r'```python title="client.py"\n(.*?)```', text, re.DOTALL)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(client.replace("127.0.0.1:8500", address), {})
    champion = bundles.load(champions.path(NAME))
    logits, _ = onnx_forward(champion, 1)(np.zeros((2, 64, 64, 3), np.uint8))
    assert printed.getvalue() == f"{logits.argmax(axis=1)}\n"
