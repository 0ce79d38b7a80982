"""Small experiments for the tests."""

from __future__ import annotations

from typing import Any

from train.config import Experiment


def toy(
    world: str, *, steps: int = 20_000, num_env_runners: int = 0, options: dict[str, Any] | None = None, **ppo: Any
) -> Experiment:
    """An experiment on a world of `tests.train.worlds`."""
    return Experiment.from_dict(
        {
            "name": world,
            "env": {"name": world, "imports": ["tests.train.worlds"], "options": {"num_games": 64, **(options or {})}},
            "network": {"name": "mlp", "options": {"hidden_sizes": [32]}},
            "ppo": {"learning_rate": 1e-2, "num_steps": 16, "num_threads": 1, **ppo},
            "budget": {"total_agent_steps": steps},
            "num_env_runners": num_env_runners,
        }
    )
