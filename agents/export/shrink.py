"""Makes a bundle small enough to come with procsnake: its weights are in half precision on disk.
Arithmetic stays in single.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from agents import bundle as bundles
from envs.common.whole_files import make_folder_of, write_whole

_ROUNDED_FROM = 1024
"""Tensors with fewer numbers than this aren't rounded."""


def shrink(source: str | os.PathLike[str], target: str | os.PathLike[str], **card: Any) -> Path:
    """Write the bundle `source` to the folder `target`, with rounded weights. `card` replaces
    fields of its card.

    Both weight files hold the same rounded weights; a network that is loaded from them computes in
    float32. Measure the policy again afterwards, because it isn't exactly the one that was trained.
    Needs onnx and safetensors. Raises `BundleError` for a bad bundle, and `ConfigError` if a file
    can't be written."""
    from safetensors.numpy import load, save

    loaded = bundles.load(source)
    folder = Path(target)
    weights = {name: _rounded(value) for name, value in load(loaded.weights).items()}
    contents: Mapping[str, bytes] = {
        bundles.ONNX: _half_onnx(loaded.onnx),
        bundles.WEIGHTS: save(weights),
        bundles.README: replace(loaded.card, **card).readme().encode(),
    }
    files = {name: hashlib.sha256(content).hexdigest() for name, content in contents.items()}
    described = replace(loaded.card, **card, files=files).to_json().encode()
    make_folder_of(folder / bundles.CARD)
    for name, content in {**contents, bundles.CARD: described}.items():
        write_whole(folder / name, content)
    return folder


def _rounded(value: np.ndarray) -> np.ndarray:
    if value.dtype == np.float32 and value.size >= _ROUNDED_FROM:
        return value.astype(np.float16)
    return value


def _half_onnx(model_bytes: bytes) -> bytes:
    """The model with its large float32 initialisers stored as float16, each cast back before it is
    used.
    """
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    model = onnx.load_from_string(model_bytes)
    graph = model.graph
    casts = []
    for tensor in graph.initializer:
        value = numpy_helper.to_array(tensor)
        half = _rounded(value)
        if half is not value:
            name = tensor.name
            tensor.CopyFrom(numpy_helper.from_array(half, f"{name}.half"))
            casts.append(helper.make_node("Cast", [tensor.name], [name], to=TensorProto.FLOAT))
    nodes = [*casts, *graph.node]
    del graph.node[:]
    graph.node.extend(nodes)
    onnx.checker.check_model(model)
    return model.SerializeToString()
