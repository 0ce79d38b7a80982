"""What Gymnasium offers for vector environments: `make_vec`, and the wrappers that
docs/other-libraries.md lists.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from gymnasium.wrappers import vector as wrappers
from packaging.version import Version

from envs import gym_registration
from envs.battlesnake.adapters.opponents_env import BattlesnakeOpponentsEnv
from envs.battlesnake.gym_env import BattlesnakeEnv
from envs.compliance import check_world

PAGE = Path("docs/other-libraries.md")
SMALL: dict[str, Any] = {"width": 7, "height": 7, "num_snakes": 3}
ARGUMENTS: dict[str, dict[str, Any]] = {
    "ClipReward": {"max_reward": 1.0},
    "DtypeObservation": {"dtype": np.float32},
    "ReshapeObservation": {"shape": (-1,)},
    "TransformAction": {"func": lambda actions: actions},
    "TransformObservation": {"func": lambda observations: observations},
    "TransformReward": {"func": lambda rewards: rewards},
}


def first_safe(state: Any, boards: np.ndarray, slots: np.ndarray) -> np.ndarray:
    from envs.battlesnake.safety import safe_moves

    return safe_moves(state, boards, slots).argmax(axis=1).astype(np.int8)


@pytest.mark.parametrize(
    "options", [{}, {"max_turns": 4}, {"observation": "flat-51s"}], ids=["rules", "cut off", "pack"]
)
def test_make_vec_plays_the_game_of_make(options: dict[str, Any]) -> None:
    gym_registration.register_gymnasium()
    options = {**SMALL, **options, "opponents": first_safe}
    batch = gymnasium.make_vec(gym_registration.BATTLESNAKE, num_envs=2, **options)
    rng = np.random.default_rng(0)
    ended = 0
    assert (batch.num_envs, batch.observation_space.shape[0]) == (2, 2)
    single = BattlesnakeEnv(**options)
    for seed in range(12):
        seen, info = batch.reset(seed=seed)
        expected, told = single.reset(seed=seed)
        done = False
        while not done:
            assert np.array_equal(seen[0], expected)
            assert np.array_equal(info["action_mask"][0], told["action_mask"].astype(bool))
            action = int(rng.choice(np.flatnonzero(told["action_mask"])))
            expected, reward, terminated, truncated, told = single.step(action)
            seen, rewards, terminations, truncations, info = batch.step(np.array([action, 1]))
            assert (rewards[0], terminations[0], truncations[0]) == (reward, terminated, truncated)
            done = terminated or truncated
        assert np.array_equal(info["final_obs"][0], expected)
        facts = {
            name: info["final_info"][name][0] for name in ("won", "cause", "length", "food_eaten")
        }
        assert facts == {name: told[name] for name in facts}
        ended += 1
    assert ended == 12


def test_the_batch_against_opponents_is_a_world_like_any_other() -> None:
    check_world(BattlesnakeOpponentsEnv, num_games=3, **SMALL)


def listed(heading: str) -> set[str]:
    """The names in the page's row that begins so."""
    (row,) = [line for line in PAGE.read_text().splitlines() if line.startswith(f"| {heading}")]
    return set(re.findall(r"`(\w+)`", row.split("|")[2]))


def works(name: str, make: Any) -> bool:
    """Whether the wrapper takes the environment and 40 steps of it."""
    try:
        wrapped = getattr(wrappers, name)(make(), **ARGUMENTS.get(name, {}))
        wrapped.reset(seed=0)
        for _ in range(40):
            wrapped.step(wrapped.action_space.sample())
    except (AssertionError, ValueError):  # ValueError since Gymnasium 1.4
        return False
    return True


def same_step() -> gymnasium.vector.VectorEnv:
    return BattlesnakeOpponentsEnv(num_games=3, max_turns=3, **SMALL)


def next_step() -> gymnasium.vector.VectorEnv:
    return gymnasium.make_vec(
        gym_registration.BATTLESNAKE, num_envs=3, vectorization_mode="sync", max_turns=3, **SMALL
    )


def test_the_page_says_which_wrappers_take_a_batch() -> None:
    gym_registration.register_gymnasium()
    for name in listed("work on a batch"):
        assert works(name, same_step), name
    refusing = listed("refuse a batch")
    for name in refusing:
        assert not works(name, same_step), name

        # They refuse Gymnasium's own, too.
        def pole():
            poles = [lambda: gymnasium.make("CartPole-v1")]
            return SyncVectorEnv(poles, autoreset_mode=AutoresetMode.SAME_STEP)

        assert not works(name, pole), name
    for name in refusing & {"NormalizeObservation", "DtypeObservation", "TransformObservation"}:
        assert works(name, next_step), name


def test_returns_are_in_the_final_info_and_before_1_4_wrong_in_gymnasiums_statistics() -> None:
    env = wrappers.RecordEpisodeStatistics(
        BattlesnakeOpponentsEnv(num_games=2, rewards={"another_turn": 1.0}, max_turns=3, **SMALL)
    )
    env.reset(seed=0)
    paid = np.zeros(2)
    right = []
    for _ in range(60):
        _, rewards, terminated, truncated, info = env.step(np.ones(2, np.int64))
        paid += rewards
        for row in np.flatnonzero(terminated | truncated):
            assert info["final_info"]["return"][row] == paid[row]
            right.append(info["episode"]["r"][row] == paid[row])
            paid[row] = 0.0
    assert len(right) > 15
    is_mended = Version(gymnasium.__version__) >= Version("1.4")
    assert all(right) == is_mended
