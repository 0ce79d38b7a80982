"""Chains of PettingZoo's converters and SuperSuit's wrappers, over our world and two of
PettingZoo's own. `make outside-clients`.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import numpy as np
import pytest

if find_spec("supersuit") is None:
    pytest.skip("the clients' environment is not installed", allow_module_level=True)

with warnings.catch_warnings():  # PettingZoo warns of the worlds that it is to load in another way
    warnings.simplefilter("ignore")
    from pettingzoo.butterfly import knights_archers_zombies_v11, pistonball_v6
import supersuit
from pettingzoo.utils import aec_to_parallel, parallel_to_aec
from pettingzoo.utils.conversions import aec_to_parallel_wrapper

from envs.battlesnake.parallel_env import parallel_env

pytestmark = [pytest.mark.long, pytest.mark.filterwarnings("ignore")]
World = Callable[[], Any]

WORLDS: dict[str, World] = {
    "pistonball": lambda: pistonball_v6.parallel_env(n_pistons=3, max_cycles=15, continuous=False),
    "zombies": lambda: knights_archers_zombies_v11.parallel_env(max_cycles=15),
    "2 snakes": lambda: parallel_env(num_snakes=2),
    "4 snakes": lambda: parallel_env(num_snakes=4),
    "8 snakes": lambda: parallel_env(num_snakes=8),
    "4 snakes, cut off": lambda: parallel_env(num_snakes=4, max_turns=3),
    "8 snakes, the pack's view": lambda: parallel_env(
        num_snakes=8, max_turns=5, observation="flat-51s"
    ),
}


def flat(env: Any) -> Any:
    return supersuit.flatten_v0(supersuit.dtype_v0(env, "float32"))


WRAPPERS: dict[str, Callable[[Any], Any]] = {
    "plain": lambda env: env,
    "there and back": lambda env: aec_to_parallel(parallel_to_aec(env)),
    "there and back by force": lambda env: aec_to_parallel_wrapper(parallel_to_aec(env)),
    "black_death": supersuit.black_death_v3,
    "frame_stack": lambda env: supersuit.frame_stack_v1(flat(env), 3),
    "agent_indicator": lambda env: supersuit.agent_indicator_v0(flat(env)),
    "pad": lambda env: supersuit.pad_action_space_v0(supersuit.pad_observations_v0(flat(env))),
    "sticky_actions": lambda env: supersuit.sticky_actions_v0(env, 0.3),
    "frame_skip": lambda env: supersuit.frame_skip_v0(env, (1, 3)),
    "max_observation": lambda env: supersuit.max_observation_v0(flat(env), 2),
    "delay_observations": lambda env: supersuit.delay_observations_v0(flat(env), 2),
    "clip_reward": supersuit.clip_reward_v0,
    "observation_lambda": lambda env: supersuit.observation_lambda_v0(
        flat(env), lambda seen, space: seen * 2
    ),
}
TURNS: dict[str, Callable[[Any], Any]] = {
    "aec": parallel_to_aec,
    "aec black_death": lambda env: supersuit.black_death_v3(parallel_to_aec(env)),
    "black_death aec": lambda env: parallel_to_aec(supersuit.black_death_v3(env)),
    "aec frame_stack": lambda env: supersuit.frame_stack_v1(flat(parallel_to_aec(env)), 3),
}


MOST_STEPS = 5000
"""More than two episodes take, however lucky those are who play at random."""


@pytest.mark.parametrize("wrapper", WRAPPERS)
@pytest.mark.parametrize("world", WORLDS)
def test_episodes_end_and_begin_through_a_wrapper(world: str, wrapper: str) -> None:
    env = WRAPPERS[wrapper](WORLDS[world]())
    env.reset(seed=0)
    ended = 0
    for _ in range(MOST_STEPS):
        if not env.agents:
            ended += 1
            if ended == 2:
                return
            env.reset()
        observations, *others = env.step(
            {agent: env.action_space(agent).sample() for agent in env.agents}
        )
        for agent, seen in observations.items():
            assert env.observation_space(agent).contains(seen)
        assert all(set(part) == set(observations) for part in others[:3])
    pytest.fail(f"{ended} episodes ended")


@pytest.mark.parametrize("wrapper", TURNS)
@pytest.mark.parametrize("world", WORLDS)
def test_episodes_end_and_begin_where_agents_take_turns(world: str, wrapper: str) -> None:
    env = TURNS[wrapper](WORLDS[world]())
    env.reset(seed=0)
    ended = 0
    for _ in range(MOST_STEPS):
        if not env.agents:
            ended += 1
            if ended == 2:
                return
            env.reset()
        *_, terminated, truncated, _ = env.last()
        env.step(
            None if terminated or truncated else env.action_space(env.agent_selection).sample()
        )
    pytest.fail(f"{ended} episodes ended")


@pytest.mark.parametrize("base", ["gymnasium", "stable_baselines3"])
@pytest.mark.parametrize("world", WORLDS)
def test_a_vectoriser_goes_through_many_games(world: str, base: str) -> None:
    env = flat(supersuit.black_death_v3(WORLDS[world]()))
    batch = supersuit.concat_vec_envs_v1(
        supersuit.pettingzoo_env_to_vec_env_v1(env), 2, num_cpus=1, base_class=base
    )
    seen = batch.reset()
    seen = seen[0] if base == "gymnasium" else seen
    ended = 0
    for _ in range(50):
        actions = np.array([batch.action_space.sample() for _ in range(batch.num_envs)])
        seen, _, done, *_ = batch.step(actions)
        assert seen.shape == (batch.num_envs, *batch.observation_space.shape)
        ended += int(np.sum(done))
    # The cut off show it in the other flag of Gymnasium's five, which black_death sets as well.
    assert ended >= batch.num_envs
    batch.close()


@pytest.mark.parametrize("world", ["pistonball", "4 snakes", "8 snakes, the pack's view"])
def test_stable_baselines_learns_through_the_chain(world: str) -> None:
    from stable_baselines3 import PPO

    env = flat(supersuit.black_death_v3(WORLDS[world]()))
    batch = supersuit.pettingzoo_env_to_vec_env_v1(env)
    batch = supersuit.concat_vec_envs_v1(batch, 2, num_cpus=1, base_class="stable_baselines3")
    model = PPO("MlpPolicy", batch, n_steps=32, batch_size=64, n_epochs=1, device="cpu")
    assert model.learn(600).num_timesteps >= 600
    batch.close()
