"""The command `procsnake export savedmodel`.

It writes a policy for TensorFlow Serving, and compares its answers with the bundle's.
"""

from __future__ import annotations

import json
import os
import shutil
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from agents import bundle as bundles
from agents.bundle import Bundle, BundleError
from agents.export.onnx_to_tensorflow import load_graph, make_module
from agents.policy import Forward, onnx_forward
from envs.common.errors import (
    MissingDependencyError,
    UnknownNameError,
    make_environment,
    pip_install,
)
from envs.common.whole_files import make_folder_of, write_whole

VERSION = "1"
PARITY = "parity.json"
CLEAR_GAP = 2e-4
MOST_DIFFERENCE = 1e-3
_LARGEST_NOISE = 1000
"""Noise of a type with room for more than a byte is smaller than this."""


@dataclass(frozen=True)
class Parity:
    """How far the answers of onnxruntime and TensorFlow agree."""

    states: int
    """The number of observations that were compared."""
    clear: int
    """How many have a best action that leads by more than `CLEAR_GAP`."""
    same_action: int
    """How many of the clear ones get the same action from both."""
    largest_difference: float
    """The largest difference of any logit or value; relative where they are above 1."""

    @property
    def holds(self) -> bool:
        """Return whether all clear actions are the same, and no outputs differ by more than
        `MOST_DIFFERENCE`.
        """
        return self.same_action == self.clear and self.largest_difference <= MOST_DIFFERENCE


def export_savedmodel(
    bundle: Bundle, out: str | os.PathLike[str], *, states: int = 1000, seed: int = 0
) -> Parity:
    """Write the bundle's network as a SavedModel below `out`, and compare the two on `states`
    observations of its own world.

    Raises `MissingDependencyError` without TensorFlow, `ConfigError` if `out` can't be written, and
    `BundleError` if TensorFlow lacks one of the network's operators, if the folder holds something
    else, or if the answers differ. In the last case only `parity.json` and `card.json` are left.
    """
    tf = _tensorflow()
    graph = load_graph(bundle.onnx)
    target = Path(out)
    make_folder_of(target / PARITY)
    module = make_module(graph)
    card = bundle.card
    part = target / f".{VERSION}.part"
    if not (target / PARITY).is_file() and any(path != part for path in target.iterdir()):
        raise BundleError(
            f"{target} holds something other than an export, so it is not replaced. Choose"
            " another folder"
        )
    shape = (None, *card.observation_shape)
    inputs = tf.TensorSpec(shape, card.observation_dtype, name="observations")
    served = tf.function(module.run, input_signature=[inputs], autograph=False)
    try:
        if part.is_symlink():
            part.unlink()
        shutil.rmtree(part, ignore_errors=True)
        tf.saved_model.save(module, str(part), signatures={"serving_default": served})
        parity = compare(bundle, savedmodel_forward(part), observations_of(bundle, states, seed))
        # An export that is interrupted before this leaves the model of before.
        shutil.rmtree(target / VERSION, ignore_errors=True)
        write_whole(
            target / PARITY, json.dumps({**asdict(parity), "holds": parity.holds}, indent=2) + "\n"
        )
        write_whole(target / bundles.CARD, card.to_json())
        if parity.holds:
            os.replace(part, target / VERSION)
    except OSError as error:
        raise BundleError(
            f"{target} can't be written: {error.strerror or error}. Choose another place"
        ) from error
    finally:
        shutil.rmtree(part, ignore_errors=True)
    if not parity.holds:
        raise BundleError(
            f"TensorFlow answers differently than the bundle ({parity}), so the model was"
            f" removed. See {target / PARITY}"
        )
    return parity


def savedmodel_forward(path: str | os.PathLike[str]) -> Forward:
    """Load the network of a SavedModel folder, in the form that `agents.policy` uses."""
    tf = _tensorflow()
    loaded = tf.saved_model.load(str(path))
    signature = loaded.signatures["serving_default"]

    def forward(observations: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        answer = signature(observations=tf.constant(observations))
        return answer["logits"].numpy(), answer["values"].numpy()

    # The signature holds its variables weakly.
    forward.loaded = loaded  # type: ignore[attr-defined]
    return forward


def compare(bundle: Bundle, forward: Forward, observations: np.ndarray) -> Parity:
    """Compare `forward` with the bundle's own network on onnxruntime."""
    expected = onnx_forward(bundle, 1)(observations)
    actual = forward(observations)
    differences = [
        float((abs(a - b) / np.maximum(1.0, abs(a))).max())
        for a, b in zip(expected, actual, strict=True)
    ]
    logits = expected[0]
    ranked = np.sort(logits, axis=1)
    is_clear = np.ones(len(ranked), np.bool_)
    if ranked.shape[1] > 1:
        is_clear = ranked[:, -1] - ranked[:, -2] > CLEAR_GAP
    is_same = logits.argmax(axis=1) == actual[0].argmax(axis=1)
    return Parity(
        states=len(observations),
        clear=int(is_clear.sum()),
        same_action=int((is_same & is_clear).sum()),
        largest_difference=max(differences),
    )


def observations_of(bundle: Bundle, count: int, seed: int = 0) -> np.ndarray:
    """Return observations (count, …) of random play in the policy's own world, or of noise if the
    world isn't known here.
    """
    import envs

    card = bundle.card
    rng = np.random.default_rng(seed)
    options = {**card.environment.get("options", {}), "num_games": 16}
    try:
        world: Any = envs.make(card.environment["name"], **options)
    except (UnknownNameError, MissingDependencyError, TypeError):
        dtype = np.dtype(card.observation_dtype)
        small = {np.dtype(bool): 2, np.dtype(np.int8): 127, np.dtype(np.uint8): 255}
        above = small.get(dtype, _LARGEST_NOISE)
        return rng.integers(0, above, (count, *card.observation_shape)).astype(dtype)
    world.restart(seed)
    batches: list[np.ndarray] = []
    while sum(map(len, batches)) < count:
        batches.append(world.observations[world.valid])
        lots = rng.random((world.num_envs, card.action["num_actions"]))
        if world.action_mask is not None:
            lots = np.where(world.action_mask, lots, -1.0)
        world.advance(lots.argmax(axis=1))
    world.close()
    return np.concatenate(batches)[:count]


def _tensorflow() -> Any:
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    try:
        import tensorflow
    except ImportError as error:
        raise MissingDependencyError(
            "tensorflow",
            feature="the SavedModel export",
            install=make_environment("tensorflow") or pip_install("procsnake[tensorflow]"),
        ) from error
    return tensorflow
