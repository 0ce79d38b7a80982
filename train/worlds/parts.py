"""Helpers for worlds that are made of other worlds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

import envs
from envs.api import BatchEnv


def world_of(name: str, options: Mapping[str, Any], num_games: int | None) -> BatchEnv:
    """Make one of the worlds, with `num_games` games if that isn't None."""
    if num_games is None:
        return envs.make(name, **options)
    return envs.make(name, **{**options, "num_games": num_games})


def seed_of_part(seed: int | None, part: int) -> int | None:
    """Return a seed of its own for part number `part` of a world; None if there is none."""
    if seed is None:
        return None
    return int(np.random.SeedSequence([seed, part]).generate_state(1)[0])


def joined_columns(parts: Sequence[Mapping[str, np.ndarray]]) -> dict[str, np.ndarray]:
    """Join the columns (`BatchEnv.drain_episodes`) that all parts have."""
    common = [name for name in parts[0] if all(name in part for part in parts)]
    return {name: np.concatenate([part[name] for part in parts]) for name in common}
