"""Evaluations do what RLlib documents."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.train.rllib.fields_shown import shows
from tests.train.rllib.small_runs import WORLD, seen, small


def _evaluated(result: dict[str, Any]) -> dict[str, Any]:
    return result.get("evaluation", {}).get("env_runners", {})


EVALUATED: dict[str, tuple[dict[str, Any], Callable[[Any], Any]]] = {
    "evaluation_interval": ({"evaluation_interval": 1}, lambda r: "evaluation" in r),
    "evaluation_duration": (
        {"evaluation_interval": 1, "evaluation_duration": 30},
        lambda r: _evaluated(r)["num_episodes"],
    ),
    "evaluation_duration_unit": (
        {
            "evaluation_interval": 1,
            "evaluation_duration": 80,
            "evaluation_duration_unit": "timesteps",
        },
        lambda r: _evaluated(r)["num_env_steps_sampled"],
    ),
    "evaluation_config": (
        {"evaluation_interval": 1, "evaluation_config": {"num_envs_per_env_runner": 3}},
        lambda r: _evaluated(r)["num_env_steps_sampled"],
    ),
    "custom_evaluation_function": (
        {
            "evaluation_interval": 1,
            "custom_evaluation_function": lambda algorithm, group: ({"x": 1}, 1, 1),
        },
        lambda r: _evaluated(r),
    ),
}


@shows(*EVALUATED)
@pytest.mark.long
@pytest.mark.parametrize("field", EVALUATED)
def test_evaluation_does_what_rllib_documents(one_ray, field):
    arguments, probe = EVALUATED[field]
    without = {name: value for name, value in arguments.items() if name != field}
    if field == "evaluation_duration_unit":
        without = {**arguments, "evaluation_duration_unit": "episodes"}
    config = small()
    plain = small()
    if field == "evaluation_duration_unit":
        config.environment("corridor", env_config=WORLD)
        plain.environment("corridor", env_config=WORLD)
    changed = seen(config.evaluation(**arguments), lambda algorithm: probe(algorithm.train()))
    before = seen(plain.evaluation(**without), lambda algorithm: probe(algorithm.train()))
    assert changed != before


def test_an_evaluation_plays_as_many_episodes_as_were_asked_for(one_ray):
    config = small().evaluation(evaluation_interval=1, evaluation_duration=20)
    result = seen(config, lambda algorithm: algorithm.train()["evaluation"]["env_runners"])
    # As with RLlib's own: at most one per game more.
    assert 20 <= result["num_episodes"] < 20 + 8
    assert (
        0
        <= result["episode_return_min"]
        <= result["episode_return_mean"]
        <= result["episode_return_max"]
        <= 1
    )
