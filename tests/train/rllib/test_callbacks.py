"""Call-backs fire with what RLlib promises."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from tests.train.rllib.fields_shown import shows
from tests.train.rllib.small_runs import small
from train.rllib.modules import NetworkModule

CALLED = {
    "callbacks_on_algorithm_init": 1,
    "callbacks_on_environment_created": 2,
    "callbacks_on_episode_created": 32,
    "callbacks_on_episode_start": 32,
    "callbacks_on_episode_step": 32,
    "callbacks_on_episode_end": 32,
    "callbacks_on_sample_end": 2,
    "callbacks_on_train_result": 1,
    "callbacks_on_evaluate_start": 1,
    "callbacks_on_evaluate_end": 1,
    "callbacks_on_checkpoint_loaded": 1,
}
"""How often they are called, at least, in one iteration, one evaluation and one restore."""

CALLS: dict[str, list[dict[str, Any]]] = {}


def _note(field: str, **arguments: Any) -> None:
    CALLS.setdefault(field, []).append(arguments)


@shows(*CALLED)
def test_call_backs_fire_with_what_they_promise(one_ray, tmp_path):
    CALLS.clear()
    config = small().evaluation(evaluation_interval=1, evaluation_duration=3)
    config.callbacks(
        **{field.removeprefix("callbacks_"): functools.partial(_note, field) for field in CALLED}
    )
    algorithm = config.build_algo()
    try:
        algorithm.train()
        algorithm.save_to_path(tmp_path)
        algorithm.restore(str(tmp_path))
    finally:
        algorithm.stop()
    for field, least in CALLED.items():
        assert len(CALLS.get(field, ())) >= least, field
    ended = CALLS["callbacks_on_episode_end"][0]
    episode = ended["episode"]
    assert (len(episode), episode.is_terminated, ended["env"].num_envs) == (1, True, 8)
    assert episode.get_return() == float(
        np.argmax(episode.get_observations(0).ravel()) == episode.get_actions(0)
    )
    assert isinstance(ended["rl_module"], NetworkModule)
    assert CALLS["callbacks_on_sample_end"][0]["samples"][0].env_steps() == 8 * 4
