"""Writes a bundle's weights in forms that the legacy stack reads: an .npz, and a checkpoint of Ray
0.8.6, without Ray.

Pickles use protocol 3 and name nothing of NumPy but `ndarray` and the text of a `dtype`, because
NumPy 2 would name modules that 1.18 lacks."""

from __future__ import annotations

import io
import pickle
from collections.abc import Mapping
from typing import Any

import numpy as np

from agents.bundle import Bundle
from envs.common.errors import MissingDependencyError, pip_install

PROTOCOL = 3
_POLICY = "default_policy"
_MODELS = {
    "ppo": ("default_model",),
    "dqn": ("q_func", "target_q_func"),
    "apex": ("q_func", "target_q_func"),
}
"""The names that Ray gives to an algorithm's models. If there are two, the second is the target
network.
"""

Arrays = dict[str, np.ndarray]


def read_weights(bundle: Bundle) -> Arrays:
    """Return the arrays of a bundle by the names of its network. Raises `MissingDependencyError`
    without safetensors.
    """
    try:
        from safetensors.numpy import load
    except ImportError as error:
        raise MissingDependencyError(
            "safetensors", feature="--with-weights", install=pip_install("safetensors")
        ) from error
    return {
        name: np.ascontiguousarray(array, np.float32)
        for name, array in load(bundle.weights).items()
    }


def npz(weights: Arrays) -> bytes:
    """Return the arrays as a NumPy archive."""
    file = io.BytesIO()
    arrays: dict[str, Any] = dict(weights)
    np.savez(file, **arrays)
    return file.getvalue()


def policy_weights(weights: Arrays, *, algorithm: str, framework: str) -> Arrays:
    """Return the arrays by the names under which Ray 0.8.6 saves them."""
    if framework == "torch":
        return weights
    return {
        f"{_POLICY}/{model}.{_layer_in_tf(name)}": tf_order(array)
        for model in _MODELS[algorithm]
        for name, array in weights.items()
    }


def _layer_in_tf(name: str) -> str:
    """The name that TensorFlow gives to torch's weights `layer.weight` or `layer.bias`."""
    layer, _, kind = name.rpartition(".")
    kind_in_tf = {"weight": "kernel", "bias": "bias"}[kind]
    return f"{layer}/{kind_in_tf}"


def tf_order(array: np.ndarray) -> np.ndarray:
    """Bring torch's axes (outputs, inputs, …) into TensorFlow's order, with inputs and outputs
    last.
    """
    return np.ascontiguousarray(array.transpose(2, 3, 1, 0) if array.ndim == 4 else array.T)


def checkpoint(weights: Arrays, params: Mapping[str, Any]) -> dict[str, bytes]:
    """Return the files of a trial that has taken no step yet. A run that continues from it begins
    with its counters.
    """
    worker = dumps({"filters": {_POLICY: None}, "state": {_POLICY: weights}})
    counters = {"num_steps_sampled": 0, "num_steps_trained": 0}
    state = {
        "worker": worker,
        "trainer_state": {},
        "train_exec_impl": {"counters": counters, "info": {}, "timers": None},
    }
    metadata = {
        "experiment_id": "0" * 32,
        "iteration": 1,
        "timesteps_total": 0,
        "time_total": 0.0,
        "episodes_total": 0,
        "saved_as_dict": False,
        "ray_version": "0.8.6",
    }
    return {
        "params.pkl": dumps(dict(params)),
        "checkpoint_1/checkpoint-1": dumps(state),
        "checkpoint_1/checkpoint-1.tune_metadata": dumps(metadata),
        "checkpoint_1/.is_checkpoint": b"",
    }


def dumps(value: Any) -> bytes:
    """Return a pickle that NumPy 1.18 on Python 3.7 can read."""
    file = io.BytesIO()
    _LegacyPickler(file, protocol=PROTOCOL).dump(value)
    return file.getvalue()


class _LegacyPickler(pickle.Pickler):
    def reducer_override(self, value: Any) -> Any:
        if isinstance(value, np.ndarray):
            return np.ndarray, (value.shape, value.dtype.str, bytearray(value.tobytes()))
        return NotImplemented
