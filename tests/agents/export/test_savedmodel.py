"""Needs TensorFlow, which no other test needs: `make outside-tensorflow`."""

from __future__ import annotations

import json
from importlib.util import find_spec

import numpy as np
import pytest

if find_spec("tensorflow") is None:
    pytest.skip("the extra [tensorflow] is not installed", allow_module_level=True)

import procsnake
from agents import bundle, networks
from agents.card import BundleError
from agents.export.savedmodel import (
    Parity,
    compare,
    export_savedmodel,
    observations_of,
    savedmodel_forward,
)
from envs.battlesnake.observations import EgocentricPlanes
from envs.battlesnake.observing.starter_pack import StarterPackObservation

pytestmark = [pytest.mark.long, pytest.mark.filterwarnings("ignore")]

WINDOW = EgocentricPlanes(radius=5, rotate=True)
PACK = StarterPackObservation("bordered-num", own_first=True, num_snakes=4)
C51 = {"body": "snake-cnn", "num_atoms": 11, "v_max": 5.0}


def exported(path, observation, name, **options):
    import torch

    torch.manual_seed(0)
    space = observation.space(11, 11)
    actions = observation.num_actions
    network = networks.build(name, space.shape, actions, **options)
    with torch.no_grad():
        for weights in network.parameters():
            weights.add_(0.05 * torch.randn_like(weights))
    shown = {k: v for k, v in observation.contract().items() if k not in ("version", "num_snakes")}
    card = {
        "environment": {"name": "battlesnake", "options": {"observation": shown}},
        "observation": observation.contract(),
        "observation_shape": list(space.shape),
        "observation_dtype": str(space.dtype),
        "action": {"type": "battlesnake", "version": 1, "num_actions": actions},
        "network": {"name": name, "options": options},
    }
    return bundle.load(bundle.export(path, network=network, card=card))


@pytest.mark.parametrize(
    ("observation", "name", "options"),
    [
        (WINDOW, "mlp", {}),
        (WINDOW, "snake-cnn", {}),
        (WINDOW, "impala", {"depths": [4, 8]}),
        (WINDOW, "impala", {"depths": [4, 8], "pooling": "average", "offset": 128.0}),
        (WINDOW, "impala", {"depths": [4, 8], "pooling": "max"}),
        (WINDOW, "q-network", {"body": "mlp"}),
        (WINDOW, "q-network", C51),
        (PACK, "starter-pack", {"kind": "attention", "state_type": "one_versus_all"}),
        (PACK, "starter-pack", {"kind": "concat", "stride": 2}),
        (PACK, "starter-pack", {"kind": "vision"}),
    ],
)
def test_torch_onnx_and_tensorflow_choose_the_same_actions(tmp_path, observation, name, options):
    from agents.policy import Policy

    made = exported(tmp_path / "bundle", observation, name, **options)
    parity = export_savedmodel(made, tmp_path / "served", states=1000)
    assert parity.states == 1000
    assert parity.holds
    assert parity.clear > 500
    states = observations_of(made, 1000, seed=1)
    forward = savedmodel_forward(tmp_path / "served" / "1")
    logits, values = Policy(made, backend="torch").logits(states)
    np.testing.assert_allclose(forward(states)[0], logits, atol=1e-3, rtol=1e-3)
    np.testing.assert_allclose(forward(states)[1], values, atol=1e-3, rtol=1e-3)


def test_the_signature_is_what_tensorflow_serving_asks_for(tmp_path):
    import tensorflow as tf

    made = exported(tmp_path / "bundle", WINDOW, "mlp")
    export_savedmodel(made, tmp_path / "served", states=64)
    signature = tf.saved_model.load(str(tmp_path / "served" / "1")).signatures["serving_default"]
    (seen,) = signature.structured_input_signature[1].values()
    assert (seen.name, seen.shape.as_list(), seen.dtype) == (
        "observations",
        [None, 11, 11, 12],
        tf.uint8,
    )
    assert {name: out.shape.as_list() for name, out in signature.structured_outputs.items()} == {
        "logits": [None, 3],
        "values": [None],
    }
    assert json.loads((tmp_path / "served" / "parity.json").read_text())["holds"] is True


def test_the_command_writes_a_model_and_tells_its_parity_as_json(tmp_path, capsys):
    import tensorflow as tf

    exported(tmp_path / "bundle", WINDOW, "snake-cnn")
    out = tmp_path / "served"
    command = [
        "export",
        "savedmodel",
        str(tmp_path / "bundle"),
        "--out",
        str(out),
        "--states",
        "64",
        "--json",
    ]
    assert procsnake.main(command) == 0
    told = json.loads(capsys.readouterr().out)
    assert told == {
        "model": str(out / "1"),
        **json.loads((out / "parity.json").read_text()),
        "states": 64,
        "holds": True,
    }
    assert told["same_action"] == told["clear"] > 32
    assert 0 <= told["largest_difference"] < 1e-3
    assert list(tf.saved_model.load(told["model"]).signatures) == ["serving_default"]


def test_a_network_that_answers_otherwise_is_found_out(tmp_path):
    made = exported(tmp_path / "bundle", WINDOW, "mlp")
    states = observations_of(made, 200)

    def wrong(observations):
        logits, values = savedmodel_like(made)(observations)
        return logits[:, ::-1], values

    assert not compare(made, wrong, states).holds


def savedmodel_like(made):
    from agents.policy import onnx_forward

    return onnx_forward(made, 1)


def test_a_folder_with_something_else_is_left_alone(tmp_path):
    made = exported(tmp_path / "bundle", WINDOW, "mlp")
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "letter.txt").write_text("dear")
    with pytest.raises(BundleError, match="holds something other than an export"):
        export_savedmodel(made, tmp_path / "mine")


def test_an_export_that_is_interrupted_leaves_the_model_of_before_and_can_be_run_again(
    tmp_path, monkeypatch
):
    made = exported(tmp_path / "bundle", WINDOW, "mlp")
    out = tmp_path / "served"
    (out / ".1.part").mkdir(parents=True)  # what a killed export leaves
    export_savedmodel(made, out, states=8)
    model = out / "1" / "saved_model.pb"
    before = model.stat().st_ino

    def interrupted(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("agents.export.savedmodel.compare", interrupted)
        with pytest.raises(KeyboardInterrupt):
            export_savedmodel(made, out, states=8)
    assert model.stat().st_ino == before
    assert sorted(path.name for path in out.iterdir()) == ["1", "card.json", "parity.json"]
    export_savedmodel(made, out, states=8)
    assert model.stat().st_ino != before


def test_parity_needs_every_clear_state():
    assert Parity(1000, 990, 990, 1e-6).holds
    assert not Parity(1000, 990, 989, 1e-6).holds
    assert not Parity(1000, 990, 990, 1e-2).holds
