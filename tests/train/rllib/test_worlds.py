"""Which worlds RLlib's `environment` takes, and what becomes of one that fails."""

from __future__ import annotations

from typing import ClassVar

import gymnasium
import numpy as np
import pytest
from ray import tune

from envs.common.errors import ConfigError
from tests.train import small_worlds
from tests.train.rllib.fields_shown import shows
from tests.train.rllib.small_runs import seen, small


@shows("observation_space", "action_space")
@pytest.mark.parametrize("field", ["observation_space", "action_space"])
def test_a_world_is_held_to_the_spaces_that_are_declared(field):
    world = small().make_world()
    config = small().environment(**{field: getattr(world, f"single_{field}")})
    config.make_world()
    with pytest.raises(ConfigError, match=field):
        small().environment(**{field: gymnasium.spaces.Discrete(9)}).make_world()


class FailingWorld(small_worlds.IdentityWorld):
    """Fails at the steps whose numbers are in `failing`."""

    failing: ClassVar[set[int]] = set()
    steps: ClassVar[int] = 0

    def advance(self, actions: np.ndarray) -> None:
        type(self).steps += 1
        if self.steps in self.failing:
            raise RuntimeError("it broke")
        super().advance(actions)


@shows("restart_failed_sub_environments")
def test_a_world_that_fails_is_made_anew_where_that_is_asked_for(monkeypatch):
    monkeypatch.setattr(FailingWorld, "failing", {2, 5})
    for restarts in (True, False):
        monkeypatch.setattr(FailingWorld, "steps", 0)
        config = small().environment(FailingWorld, env_config={})
        config.fault_tolerance(restart_failed_sub_environments=restarts).validate()
        runner = config.env_runner_cls(config=config, worker_index=0, num_workers=0)
        world = runner.env
        if restarts:
            (fragment,) = runner.sample()
            assert fragment.env_steps() == 8 * 4
            assert runner.env is not world
            assert runner.get_metrics()["num_env_step_failures"].peek() == 2
        else:
            with pytest.raises(RuntimeError, match="it broke"):
                runner.sample()


def test_worlds_come_by_class_and_by_rays_own_registration_and_others_are_refused(one_ray):
    tune.register_env("registered-by-a-user", lambda options: small_worlds.IdentityWorld(**options))
    for world in ("registered-by-a-user", small_worlds.IdentityWorld):
        config = small().environment(world, env_config={"num_actions": 3})
        assert (
            seen(config, lambda algorithm: int(algorithm.env_runner.env.single_action_space.n)) == 3
        )
    tune.register_env("pole", lambda options: gymnasium.make("CartPole-v1"))
    with pytest.raises(ConfigError, match="BatchEnv"):
        small().environment("pole", env_config={}).build_algo()
