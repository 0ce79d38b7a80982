"""What a world has come to that a resumed run goes on with: pools of opponents, stages, what is known of novelty.

The games themselves begin anew. A layer of a world that has such a thing says it by `progress()` and takes it by
`carry_on(progress, network)`, before its next `restart`; `network` is one of the policy's kind, to be copied.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from envs.api import BatchEnv
from envs.procgen.wrappers import layers

if TYPE_CHECKING:
    import torch


def progress_of(world: BatchEnv) -> dict[str, Any]:
    """By the class of each layer that has any; plain values, arrays and tensors, on the CPU."""
    return {type(layer).__name__: layer.progress() for layer in layers(world) if hasattr(layer, "progress")}


def carry_on(world: BatchEnv, progress: dict[str, Any], network: torch.nn.Module) -> None:
    """Have the layers of `world` go on from `progress_of`; what they don't know any more is left out."""
    for layer in layers(world):
        if hasattr(layer, "carry_on") and type(layer).__name__ in progress:
            layer.carry_on(progress[type(layer).__name__], network)
