"""Recorded games of heuristics on small boards, and experiments that clone them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import agents
from agents.measure.evaluation.referee import Referee
from train.config import Experiment

SCALES = [1.0, 1.0, 0.25, *[0.02] * 9]


def record_games(folder: Path, *, num_games: int, side: int = 7) -> Path:
    """Play duels of `greedy`, called a, with itself, called b. Returns the folder of their
    recordings.
    """
    agent = agents.make("greedy")
    for seed in range(num_games):
        path = folder / f"{side}-{seed}.jsonl"
        referee = Referee(
            [agent, agent], names=["a", "b"], width=side, height=side, seed=seed, recording=path
        )
        for _ in referee.play():
            pass
    return folder


def cloning(*games: Path, **settings: Any) -> Experiment:
    """Clone both snakes of duels on 7×7."""
    options = {
        "width": 7,
        "height": 7,
        "num_snakes": 2,
        "observation": {"view": "window", "radius": 3, "rotate": True},
    }
    chosen = {
        "snakes": ["a", "b"],
        "train_batch_size": 64,
        "num_updates": 100,
        "num_threads": 1,
        **settings,
    }
    return Experiment.from_dict(
        {
            "name": "clone",
            "env": {"name": "battlesnake", "options": options},
            "network": {"name": "mlp", "options": {"hidden_sizes": [64], "scales": SCALES}},
            "algorithm": "cloning",
            "cloning": {"games": [str(game) for game in games], **chosen},
            "budget": {"total_agent_steps": 25_600},
        }
    )
