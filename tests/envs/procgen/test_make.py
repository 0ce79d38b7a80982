"""Each wrapper against its definition, on a world whose every picture and reward is known."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from gymnasium.spaces import Box, Discrete, MultiBinary

import envs
from envs.api import BatchEnv
from envs.battlesnake import BattlesnakeVectorEnv
from envs.common.errors import ConfigError
from envs.wrappers import ActionRepeat, FrameStack, ShapedRewards, shaped


class Counting(BatchEnv):
    """Row r shows 100 r + t at its t-th step and is paid its action; its episodes end after r + 3
    steps.
    """

    def __init__(self, rows: int = 2, space: Box | MultiBinary | None = None) -> None:
        chosen = space or Box(0, 255, (2, 2, 1), np.uint8)
        super().__init__(
            num_games=rows, rows_per_game=1, observation_space=chosen, action_space=Discrete(15)
        )
        self.ends = np.arange(rows) + 3
        self.time = np.zeros(rows, int)
        self.taken: list[list[int]] = []
        self.told = np.zeros(rows, int)

    def restart(self, seed: int | None = None) -> None:
        self.time[:] = 0
        self.terminated[:] = False
        self._show(self.observations)

    def advance(self, actions: np.ndarray) -> None:
        self.taken.append(actions.tolist())
        self.time += 1
        self.rewards[:] = actions
        self.terminated[:] = self.time == self.ends
        self._show(self.final_observations)
        self.told = self.time.copy()
        self.time[self.terminated] = 0
        self._show(self.observations)

    def _show(self, out: np.ndarray) -> None:
        out[:] = (100 * np.arange(self.num_envs) + self.time)[:, None, None, None]

    def drain_episodes(self) -> dict[str, np.ndarray]:
        return {}

    def final_info(self, ended: np.ndarray) -> dict[str, np.ndarray]:
        return {"length": np.where(ended, self.told, 0), "_length": ended}


def _seen(world: BatchEnv) -> list[list[int]]:
    return world.observations[:, 0, 0].tolist()


def test_a_plain_stack_has_the_last_frames_oldest_first() -> None:
    world = FrameStack(Counting(), 3)
    assert world.single_observation_space.shape == (2, 2, 3)
    world.restart()
    assert _seen(world) == [[0, 0, 0], [100, 100, 100]]
    world.advance(np.zeros(2, int))
    assert _seen(world) == [[0, 0, 1], [100, 100, 101]]
    world.advance(np.zeros(2, int))
    assert _seen(world) == [[0, 1, 2], [100, 101, 102]]


def test_a_stack_forgets_at_the_end_of_an_episode_and_shows_its_last_frames() -> None:
    world = FrameStack(Counting(), 3)
    world.restart()
    for _ in range(3):
        world.advance(np.zeros(2, int))
    assert world.terminated.tolist() == [True, False]
    assert world.final_observations[0, 0, 0].tolist() == [1, 2, 3]
    assert _seen(world) == [[0, 0, 0], [101, 102, 103]]
    world.advance(np.zeros(2, int))
    assert _seen(world)[0] == [0, 0, 1]


def test_a_stack_forgets_when_the_game_after_an_early_death_begins() -> None:
    snakes = BattlesnakeVectorEnv(num_games=4, width=7, height=7, num_snakes=3)
    world = FrameStack(snakes, 3)
    begun = 0
    world.restart(0)
    for actions in np.random.default_rng(0).integers(3, size=(60, world.num_envs)):
        waiting = ~world.valid
        world.advance(actions)
        for row in np.flatnonzero(waiting & world.valid):
            np.testing.assert_array_equal(
                world.observations[row], np.tile(snakes.observations[row], 3)
            )
            begun += 1
    assert begun > 10


def test_a_gap_stack_has_the_first_and_the_last_of_every_four_frames() -> None:
    world = FrameStack(Counting(rows=12), 4, gap=True)
    world.restart()
    for step in range(1, 8):
        world.advance(np.zeros(12, int))
        assert world.observations[11, 1, 1].tolist() == [
            (1100 + max(0, step - 3)) % 256,
            (1100 + step) % 256,
        ]


class Noise(Counting):
    """Shows pictures at random, and each row's episodes end after another number of steps."""

    def _show(self, out: np.ndarray) -> None:
        out[:] = np.random.default_rng(int(self.time.sum())).integers(256, size=out.shape)


@pytest.mark.parametrize("channels", [1, 3, 5])
@pytest.mark.parametrize(("num_frames", "gap"), [(2, True), (4, True), (3, False)])
def test_stacks_are_those_of_frames_kept_one_by_one(
    num_frames: int, gap: bool, channels: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("envs.wrappers._SLIDES", 5)
    inner = Noise(rows=6, space=Box(0, 255, (3, 4, channels), np.uint8))
    world = FrameStack(inner, num_frames, gap=gap)

    def stacked(frames: list[np.ndarray]) -> np.ndarray:
        return np.concatenate([frames[0], frames[-1]] if gap else frames, axis=-1)

    world.restart()
    kept = [[frame.copy()] * num_frames for frame in inner.observations]
    for _ in range(40):
        world.advance(np.zeros(6, int))
        for row, ended in enumerate(inner.terminated):
            if ended:
                last = [*kept[row][1:], inner.final_observations[row].copy()]
                np.testing.assert_array_equal(world.final_observations[row], stacked(last))
                kept[row] = [inner.observations[row].copy()] * num_frames
            else:
                kept[row] = [*kept[row][1:], inner.observations[row].copy()]
        np.testing.assert_array_equal(world.observations, [stacked(own) for own in kept])


def test_games_come_stacked_by_their_options() -> None:
    world = envs.make(
        "procgen/maze", num_games=2, distribution_mode="easy", gap_stack=4, shape_rewards=True
    )
    first = world.reset(seed=0)[0]
    assert first.shape == (2, 64, 64, 6)
    np.testing.assert_array_equal(first[..., :3], first[..., 3:])
    assert world.observation_space.contains(first)
    world.close()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"frame_stack": "4"}, "frames in a stack is '4'; it must be an integer from 2"),
        ({"gap_stack": 2.5}, "frames in a stack is 2.5"),
        ({"action_repeat": "2"}, "action_repeat is '2'; it must be an integer from 1"),
        ({"action_repeat": 2.5}, "action_repeat is 2.5"),
        ({"action_repeat": 0}, "action_repeat is 0"),
        ({"shape_rewards": "no"}, "shape_rewards is 'no'; it must be true or false"),
    ],
)
def test_options_of_another_type_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        envs.make("procgen/maze", num_games=1, **options)


@pytest.mark.parametrize(
    ("num_frames", "space"), [(1, None), (0, None), (4, Box(0, 1, (5,))), (4, MultiBinary(3))]
)
def test_what_cannot_be_stacked_is_refused(
    num_frames: int, space: Box | MultiBinary | None
) -> None:
    with pytest.raises(ConfigError, match="frames"):
        FrameStack(Counting(space=space), num_frames)


@pytest.mark.parametrize("reward", [0.0, 3.0, -3.0, 10.0, 0.25])
def test_shaped_rewards_follow_the_formula(reward: float) -> None:
    expected = math.copysign(math.sqrt(abs(reward) + 1) - 1, reward) + 0.001 * reward
    assert shaped(np.array([reward]))[0] == pytest.approx(expected, rel=1e-6)


def test_only_the_trainer_sees_shaped_rewards() -> None:
    inner = Counting()
    world = ShapedRewards(inner)
    world.restart()
    world.advance(np.array([3, 8]))
    np.testing.assert_allclose(world.rewards, [1.003, 2.008], rtol=1e-6)
    assert inner.rewards.tolist() == [3, 8]


def test_an_action_is_repeated_and_paid_in_sum_until_the_episode_ends() -> None:
    inner = Counting()
    world = ActionRepeat(inner, 2, idle=4)
    world.restart()
    world.advance(np.array([5, 6]))
    assert world.rewards.tolist() == [10, 12]
    assert _seen(world) == [[2], [102]]
    assert not world.terminated.any()
    world.advance(np.array([5, 6]))
    assert world.rewards.tolist() == [5, 12]
    assert world.terminated.tolist() == [True, True]
    assert world.final_observations[:, 0, 0].tolist() == [[3], [104]]
    assert inner.taken[-1] == [4, 6]
    world.advance(np.array([5, 6]))
    assert world.terminated.tolist() == [True, False]
    assert world.rewards.tolist() == [10, 12]
    assert ShapedRewards(world).env_steps_per_advance == 2 * 2


def test_a_dead_snake_earns_nothing_when_the_next_game_begins_within_the_repetitions() -> None:
    snakes = BattlesnakeVectorEnv(num_games=4, width=7, height=7, num_snakes=3, rewards="survival")
    world = ActionRepeat(snakes, 3, idle=1)
    begun = 0
    world.restart(0)
    for actions in np.random.default_rng(0).integers(3, size=(60, world.num_envs)):
        waiting = ~world.valid
        world.advance(actions)
        assert not world.rewards[waiting].any()
        assert not (world.terminated | world.truncated)[waiting].any()
        begun += (waiting & world.valid).sum()
    assert begun > 10


def test_each_row_is_told_of_its_own_episode_though_others_end_on_another_repetition() -> None:
    world = ActionRepeat(Counting(rows=3), 5, idle=4)
    world.reset()
    _, _, terminated, _, info = world.step(np.array([5, 6, 7]))
    assert terminated.tolist() == [True, True, True]
    assert info["final_info"]["length"].tolist() == [3, 4, 5]
    assert info["final_info"]["_length"].tolist() == [True, True, True]
    _, _, terminated, _, info = world.step(np.array([5, 6, 7]))
    assert terminated.tolist() == [True, True, True]
    assert info["final_info"]["length"].tolist() == [3, 4, 5]


def test_a_game_that_is_repeated_tells_how_long_each_episode_was() -> None:
    """Other rows end on other repetitions, so the library's own answer is of some of them only."""
    world = envs.make("procgen/bossfight", num_games=32, distribution_mode="easy", action_repeat=4)
    world.reset(seed=0)
    generator = np.random.default_rng(0)
    told = []
    rows = 0
    while rows < 64:
        world.advance(generator.integers(15, size=32))
        ended = world.terminated
        rows += ended.sum()
        told += world.final_info(ended)["length"][ended].tolist() if ended.any() else []
    lengths = world.drain_episodes()["length"].tolist()
    world.close()
    assert set(told) <= set(lengths)
    assert len(set(told)) > 10
