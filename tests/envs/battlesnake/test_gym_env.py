"""The single-player environment: what Gymnasium's checker asks, and the same game as the vector
environment plays.
"""

from __future__ import annotations

import re
import subprocess
import sys
from importlib.util import find_spec

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from gymnasium.utils.passive_env_checker import env_render_passive_checker

from envs import gym_registration
from envs.battlesnake import BattlesnakeVectorEnv, EgocentricPlanes
from envs.battlesnake.gym_env import BattlesnakeEnv
from envs.battlesnake.observing.starter_pack import KINDS
from envs.battlesnake.settings import RULESETS
from envs.common.errors import (
    ConfigError,
    InvalidActionError,
    MissingDependencyError,
    UnknownNameError,
    pip_install,
)

HAS_PYGAME = find_spec("pygame") is not None
OBSERVATIONS = {
    "rotated window": EgocentricPlanes(rotate=True),
    "window": EgocentricPlanes(radius=5),
    "board": EgocentricPlanes(view="board"),
    **{kind: kind for kind in KINDS},
}


@pytest.fixture(autouse=True)
def _registered():
    gym_registration.register_gymnasium()


def straight_up(state, boards, slots):
    return np.zeros(len(boards), np.int8)


@pytest.mark.parametrize("ruleset", RULESETS)
@pytest.mark.parametrize("observation", OBSERVATIONS)
def test_gymnasium_checker_finds_nothing(ruleset, observation, monkeypatch):
    options = {
        "ruleset": ruleset,
        "observation": OBSERVATIONS[observation],
        "width": 7,
        "height": 7,
        "num_snakes": 2,
    }
    env = gymnasium.make(gym_registration.BATTLESNAKE, **options)
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    check_env(env.unwrapped, skip_render_check=not HAS_PYGAME)
    for render_mode in ("ansi", "rgb_array"):
        shown = env.spec.make(render_mode=render_mode)
        shown.reset()
        env_render_passive_checker(shown)


@pytest.mark.parametrize("observation", OBSERVATIONS)
def test_every_observation_and_mask_lies_in_its_space(observation):
    env = BattlesnakeEnv(width=7, height=5, num_snakes=3, observation=OBSERVATIONS[observation])
    _, info = env.reset(seed=1)
    for _ in range(200):
        observation, _, terminated, truncated, info = env.step(
            int(env.action_space.sample(info["action_mask"]))
        )
        assert env.observation_space.contains(observation)
        if terminated or truncated:
            _, info = env.reset()


def _episode(env, seed):
    """(observations, rewards, final info) of an episode under a fixed policy."""
    observation, info = env.reset(seed=seed)
    seen = [observation]
    paid = []
    rng = np.random.default_rng(seed)
    while True:
        action = int(rng.choice(np.flatnonzero(info["action_mask"])))
        observation, reward, terminated, truncated, info = env.step(action)
        seen.append(observation)
        paid.append(reward)
        if terminated or truncated:
            return np.array(seen), paid, info


def test_the_same_seed_gives_the_same_episode_and_another_seed_another():
    first, again, other = (_episode(BattlesnakeEnv(), seed) for seed in (4, 4, 5))
    assert np.array_equal(first[0], again[0])
    assert first[1] == again[1]
    assert str(first[2]) == str(again[2])
    assert first[0].shape != other[0].shape or not np.array_equal(first[0], other[0])


@pytest.mark.parametrize("max_turns", [6, 1000])
def test_plays_the_same_game_as_the_vector_environment(max_turns):
    """One engine, two faces: board moves fed to both give the same observations, rewards and
    endings to slot 0.
    """
    kind = EgocentricPlanes(view="board")
    options = {
        "width": 7,
        "height": 7,
        "num_snakes": 2,
        "rewards": "survival",
        "max_turns": max_turns,
    }
    env = BattlesnakeEnv(opponents=straight_up, observation=kind, **options)
    batch = BattlesnakeVectorEnv(num_games=1, observation=kind, **options)
    compared = 0
    for seed in range(8):
        observation, info = env.reset(seed=seed)
        batch.restart(seed)
        over = False
        while not over:
            assert np.array_equal(observation, batch.observations[0])
            assert np.array_equal(info["action_mask"], batch.action_mask[0])
            action = int(np.flatnonzero(info["action_mask"])[-1])
            observation, reward, terminated, truncated, info = env.step(action)
            batch.advance(np.array([action, 0]))
            over = terminated or truncated
            assert (reward, terminated, truncated) == (
                batch.rewards[0],
                batch.terminated[0],
                batch.truncated[0],
            )
            compared += 1
        assert np.array_equal(observation, batch.final_observations[0])
        episodes = batch.drain_episodes()
        entry = list(episodes["row"]).index(0)
        assert all(
            info[name] == episodes[name][entry]
            for name in ("won", "cause", "killer", "snake_length", "length")
        )
        assert not truncated or episodes["length"][entry] == max_turns
    assert compared > 20


def test_max_turns_truncates():
    env = BattlesnakeEnv(num_snakes=1, ruleset="solo", max_turns=5)
    _, info = env.reset(seed=0)
    flags = []
    for _ in range(5):
        *_, terminated, truncated, info = env.step(int(np.flatnonzero(info["action_mask"])[0]))
        flags.append((terminated, truncated))
    assert flags == [(False, False)] * 4 + [(False, True)]


def test_opponents_play_from_their_own_seats():
    """The learner goes left, the first opponent up, the second down."""

    def straight_down(state, boards, slots):
        return np.ones(len(boards), np.int8)

    env = BattlesnakeEnv(
        opponents=[straight_up, straight_down], num_snakes=3, observation=OBSERVATIONS["board"]
    )
    env.reset(seed=3)
    before = [env._game.state.body(0, slot)[0] for slot in range(3)]
    env.step(2)
    after = [env._game.state.body(0, slot)[0] for slot in range(3)]
    assert [(b[0] - a[0], b[1] - a[1]) for a, b in zip(before, after)] == [(-1, 0), (0, 1), (0, -1)]


def test_the_last_board_can_still_be_rendered():
    env = BattlesnakeEnv(opponents=straight_up, num_snakes=2, render_mode="ansi")
    _, info = env.reset(seed=0)
    turns = 0
    while "cause" not in info:
        *_, info = env.step(1)
        turns += 1
    assert f"turn {turns} " in env.render()
    assert "†" in env.render()


def test_rgb_frames_for_record_video():
    env = gymnasium.make(gym_registration.BATTLESNAKE, render_mode="rgb_array")
    env.reset(seed=0)
    frame = env.render()
    assert (frame.dtype, frame.ndim, frame.shape[2]) == (np.uint8, 3, 3)
    assert frame.shape[0] % 2 == frame.shape[1] % 2 == 0
    env.step(0)
    assert not np.array_equal(frame, env.render())


def test_human_mode_without_pygame_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "pygame", None)
    with pytest.raises(MissingDependencyError, match=re.escape(pip_install("pygame"))):
        BattlesnakeEnv(render_mode="human").reset(seed=0)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"opponents": [straight_up]}, ConfigError, "1 opponents for 3 seats"),
        ({"opponents": 7}, ConfigError, "can't play"),
        ({"render_mode": "rgbarray"}, UnknownNameError, "Did you mean 'rgb_array'"),
        ({"rulset": "royale"}, UnknownNameError, "Did you mean 'ruleset'"),
        ({"observation": "flat51s"}, UnknownNameError, "Did you mean 'flat-51s'"),
    ],
)
def test_bad_options_are_refused(options, error, message):
    with pytest.raises(error, match=message):
        BattlesnakeEnv(**options)


@pytest.mark.parametrize("action", [-1, 3, 0.5, None])
def test_bad_actions_are_refused(action):
    env = BattlesnakeEnv()
    env.reset(seed=0)
    with pytest.raises(InvalidActionError, match=r"must be an integer in 0\.\.2"):
        env.step(action)


@pytest.mark.parametrize(
    ("options", "ending"), [({}, (True, False)), ({"max_turns": 2}, (False, True))]
)
def test_step_before_reset_and_after_the_end_is_refused(options, ending):
    """Straight on, the snake dies at a wall, unless the game is cut off first."""
    env = BattlesnakeEnv(**options)
    with pytest.raises(InvalidActionError, match="reset"):
        env.step(1)
    env.reset(seed=0)
    ended = (False, False)
    while not any(ended):
        ended = env.step(1)[2:4]
    assert ended == ending
    with pytest.raises(InvalidActionError, match="reset"):
        env.step(1)
    env.reset()
    env.step(1)


def test_registering_imports_no_kernels():
    code = (
        "import sys; from envs import gym_registration as g; g.register_all(); import"
        " gymnasium;assert g.BATTLESNAKE in gymnasium.registry; assert 'numba' not in sys.modules,"
        " 'numba was imported'"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_registered_with_old_gym():
    gym = pytest.importorskip("gym")
    gym_registration.register_old_gym()
    env = gym.make(gym_registration.BATTLESNAKE, disable_env_checker=True)
    observation, _ = env.reset(seed=2)
    assert isinstance(env.action_space, gym.spaces.Discrete)
    assert env.observation_space.contains(observation)
    assert np.array_equal(observation, BattlesnakeEnv().reset(seed=2)[0])
