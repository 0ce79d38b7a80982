"""What a world needs to continue after a resume: pools of opponents, stages, what is known of
novelty.

The games themselves begin anew. `BatchEnv` declares `remember`, `progress` and `carry_on`; each
layer of a world answers for itself, and here all layers are asked."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from envs.api import BatchEnv
from envs.wrappers import layers

if TYPE_CHECKING:
    import torch

PROGRESS = "world.pt"
"""The file that holds a world's progress in checkpoints of algorithms without Ray. RLlib's have it
among their own.
"""


def remember(world: BatchEnv, network: torch.nn.Module) -> None:
    """Show the current policy to every layer of `world`."""
    for layer in layers(world):
        layer.remember(network)


def progress_of(world: BatchEnv) -> dict[str, Any]:
    """Return the progress of each layer of `world`, by the name of its class. Layers without any
    are left out.
    """
    by_class = {type(layer).__name__: layer.progress() for layer in layers(world)}
    return {name: progress for name, progress in by_class.items() if progress is not None}


def carry_on(world: BatchEnv, progress: dict[str, Any], network: torch.nn.Module) -> None:
    """Have the layers of `world` continue from what `progress_of` returned. Parts that no layer
    knows are ignored.
    """
    for layer in layers(world):
        name = type(layer).__name__
        if name in progress:
            layer.carry_on(progress[name], network)


def save_progress(world: BatchEnv, checkpoint: Path) -> None:
    """Write the progress of `world` into the folder of a checkpoint, if there is any."""
    import torch

    if progress := progress_of(world):
        torch.save(progress, checkpoint / PROGRESS)


def restore_progress(world: BatchEnv, checkpoint: Path, network: torch.nn.Module) -> None:
    """Have `world` continue from what `save_progress` wrote, if anything. The next call is
    `restart`.
    """
    import torch

    if (path := checkpoint / PROGRESS).is_file():
        # A pickle, because worlds keep what they like: a run of strangers was refused before
        # (`train.runs.continuing.resuming`).
        carry_on(world, torch.load(path, map_location="cpu", weights_only=False), network)
