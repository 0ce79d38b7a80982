"""The batch against the raw library, and each known fault of the old gym wrapper."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

import envs
from envs.common.errors import ConfigError, InvalidActionError, InvalidStateError, UnknownNameError
from envs.procgen.games import GAMES, load_library, missing_system_library
from envs.procgen.gym_env import ProcgenEnv
from envs.procgen.levels import NUM_SEEDS, Levels, require_disjoint
from envs.procgen.vector_env import ProcgenVectorEnv

OPTION_SETS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "easy-200": (
        {"distribution_mode": "easy", "levels": "train:200"},
        {"distribution_mode": "easy", "num_levels": 200, "start_level": 0},
    ),
    "hard-all": ({}, {}),
    "plain-500-up": (
        {
            "levels": "500:50",
            "distribution_mode": "easy",
            "use_backgrounds": False,
            "restrict_themes": True,
            "use_monochrome_assets": True,
            "center_agent": False,
            "paint_vel_info": True,
            "use_sequential_levels": True,
        },
        {
            "start_level": 500,
            "num_levels": 50,
            "distribution_mode": "easy",
            "use_backgrounds": False,
            "restrict_themes": True,
            "use_monochrome_assets": True,
            "center_agent": False,
            "paint_vel_info": True,
            "use_sequential_levels": True,
        },
    ),
}


def _actions(steps: int, rows: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(15, size=(steps, rows))


@pytest.mark.parametrize("options", OPTION_SETS)
@pytest.mark.parametrize("game", GAMES)
def test_equals_the_raw_library_step_for_step(game: str, options: str) -> None:
    ours, theirs = OPTION_SETS[options]
    raw = load_library().ProcgenGym3Env(4, game, rand_seed=7, num_threads=0, **theirs)
    world = ProcgenVectorEnv(game, num_games=4, **ours)
    world.restart(7)
    pictures = raw.observe()[1]["rgb"]
    for actions in _actions(200, 4, seed=len(game)):
        np.testing.assert_array_equal(world.observations, pictures)
        np.testing.assert_array_equal(
            world.level_seeds, [info["level_seed"] for info in raw.get_info()]
        )
        world.advance(actions)
        raw.act(actions)
        before, (rewards, ob, first) = pictures, raw.observe()
        pictures = ob["rgb"]
        np.testing.assert_array_equal(world.rewards, rewards)
        np.testing.assert_array_equal(world.terminated, first)
        np.testing.assert_array_equal(world.final_observations[first], before[first])
    assert not world.truncated.any()
    world.close()


def test_threads_do_not_change_the_games() -> None:
    worlds = [
        ProcgenVectorEnv("starpilot", num_games=6, num_threads=threads, seed=3)
        for threads in (0, 2)
    ]
    for world in worlds:
        world.restart()
    for actions in _actions(80, 6):
        for world in worlds:
            world.advance(actions)
        np.testing.assert_array_equal(worlds[0].observations, worlds[1].observations)
        np.testing.assert_array_equal(worlds[0].rewards, worlds[1].rewards)
    for world in worlds:
        world.close()


def _in_a_fork(batch: ProcgenVectorEnv, answers: Any) -> None:
    for attempt in (lambda: batch.advance(_actions(1, 4)[0]), batch.restart):
        try:
            attempt()
        except InvalidActionError as error:
            answers.put(str(error))
    batch.restart(3)
    batch.advance(_actions(1, 4)[0])
    answers.put(batch.observations.copy())


def test_threads_are_refused_to_a_fork_which_may_begin_anew() -> None:
    batch = ProcgenVectorEnv("coinrun", num_games=4, num_threads=4)
    batch.restart(3)
    context = multiprocessing.get_context("fork")
    answers = context.Queue()
    child = context.Process(target=_in_a_fork, args=(batch, answers))
    child.start()
    try:
        refusals = [answers.get(timeout=60), answers.get(timeout=60)]
        assert all("num_threads=0" in refusal for refusal in refusals)
        batch.advance(_actions(1, 4)[0])
        assert np.array_equal(answers.get(timeout=60), batch.observations)
    finally:
        child.kill()
        child.join()
        batch.close()


def test_a_seed_costs_no_memory_for_good() -> None:
    def resident() -> int:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
        return pages * 4096

    batch = ProcgenVectorEnv("coinrun", num_games=1)
    for seed in range(100):
        batch.restart(seed)
    before = resident()
    for seed in range(400):
        batch.restart(seed)
    assert resident() - before < 400 * 4096


def test_a_step_returns_the_last_picture_of_the_ended_episode_and_the_first_of_the_next() -> None:
    world = ProcgenVectorEnv("bossfight", num_games=4, distribution_mode="easy")
    world.reset(seed=1)
    for actions in _actions(500, 4):
        before = world.observations.copy()
        observations, _, terminated, _, info = world.step(actions)
        if terminated.any():
            break
    row = int(np.flatnonzero(terminated)[0])
    np.testing.assert_array_equal(info["final_obs"][row], before[row])
    assert (observations[row] != before[row]).any()
    assert info["final_info"]["length"][row] > 0
    world.close()


def test_the_seed_of_reset_repeats_the_games_and_another_does_not() -> None:
    world = ProcgenVectorEnv("maze", num_games=8)
    first = world.reset(seed=5)[0]
    for actions in _actions(20, 8):
        world.advance(actions)
    np.testing.assert_array_equal(world.reset(seed=5)[0], first)
    assert (world.reset(seed=6)[0] != first).any()
    world.close()


def test_reset_in_mid_episode_begins_the_next_level() -> None:
    world = ProcgenVectorEnv("maze", num_games=8)
    world.reset(seed=5)
    level = world.level_seeds
    for actions in _actions(3, 8):
        world.advance(actions)
    world.reset()
    assert (world.level_seeds != level).all()
    assert len(world.drain_episodes()["row"]) == 0
    world.close()


def test_going_on_from_a_state_repeats_everything() -> None:
    world = ProcgenVectorEnv("bossfight", num_games=4, distribution_mode="easy")
    world.restart(2)
    for actions in _actions(50, 4):
        world.advance(actions)
    world.drain_episodes()
    states = world.get_state()

    def go_on() -> tuple[np.ndarray, dict[str, np.ndarray]]:
        for actions in _actions(150, 4, seed=1):
            world.advance(actions)
        return world.observations.copy(), world.drain_episodes()

    pictures, episodes = go_on()
    world.set_state(states)
    again, episodes_again = go_on()
    np.testing.assert_array_equal(pictures, again)
    assert len(episodes["row"]) > 0
    for name, column in episodes.items():
        np.testing.assert_array_equal(column, episodes_again[name])
    world.close()


def test_a_state_of_another_game_is_refused() -> None:
    coinrun = ProcgenVectorEnv("coinrun", num_games=1)
    maze = ProcgenVectorEnv("maze", num_games=1)
    coinrun.restart(0)
    with pytest.raises(InvalidStateError, match="another game"):
        maze.set_state(coinrun.get_state())
    with pytest.raises(InvalidStateError, match="2 of them for 1"):
        coinrun.set_state(coinrun.get_state() * 2)
    coinrun.close()
    maze.close()


@pytest.mark.parametrize(
    "options",
    [
        {"distribution_mode": "hard"},
        {"levels": "train:5"},
        {"use_backgrounds": False},
        {"debug_mode": True},
    ],
    ids=str,
)
def test_a_state_of_other_options_is_refused(options: dict[str, Any]) -> None:
    """The library would go on by the state's options."""
    easy = {"num_games": 1, "distribution_mode": "easy"}
    world = ProcgenVectorEnv("coinrun", **easy)
    other = ProcgenVectorEnv("coinrun", **{**easy, **options})
    other.restart(0)
    with pytest.raises(InvalidStateError, match="has other options than this batch"):
        world.set_state(other.get_state())
    other.close()


def test_a_state_of_another_batch_goes_on_there_whatever_it_costs_and_shows() -> None:
    world = ProcgenVectorEnv("coinrun", num_games=2)
    other = ProcgenVectorEnv("coinrun", num_games=1, num_threads=1, render_mode="rgb_array", seed=5)
    world.restart(0)
    other.set_state(world.get_state([1]))
    np.testing.assert_array_equal(other.level_seeds, world.level_seeds[1:])
    np.testing.assert_array_equal(other.observations, world.observations[1:])
    world.close()
    other.close()


def _with_another_byte(native: bytes) -> bytes:
    return native[:5000] + bytes([native[5000] ^ 1]) + native[5001:]


@pytest.mark.parametrize(
    "damage",
    [
        lambda native: native[:1000],
        lambda native: native + b"x",
        _with_another_byte,
        lambda native: b"",
    ],
)
def test_a_damaged_state_is_refused(damage: Callable[[bytes], bytes]) -> None:
    world = ProcgenVectorEnv("coinrun", num_games=2)
    world.restart(0)
    whole, other = world.get_state()
    for states in ([whole, other._replace(native=damage(other.native))], [whole, other.native]):
        with pytest.raises(InvalidStateError, match=r"states\[1\] is .* or is damaged"):
            world.set_state(states)
    world.set_state([whole, other])
    world.close()


def test_what_has_not_begun_has_no_levels_states_or_pictures() -> None:
    world = ProcgenVectorEnv("coinrun", num_games=1, render_mode="rgb_array")
    for ask in (lambda: world.level_seeds, world.get_state, world.render, world.picture):
        with pytest.raises(InvalidActionError, match="have not begun"):
            ask()
    world.restart(0)
    for row in (1, -1, "0"):
        with pytest.raises(ConfigError, match=r"row is .*; it must be an integer from 0 to 0"):
            world.get_state([row])
    world.close()


def test_episodes_sum_what_was_paid() -> None:
    world = ProcgenVectorEnv("bigfish", num_games=4, distribution_mode="easy", levels="train:3")
    world.restart(0)
    paid = np.zeros(4)
    length = np.zeros(4, int)
    for actions in _actions(400, 4):
        world.advance(actions)
        paid = paid + world.rewards
        length = length + 1
        columns = world.drain_episodes()
        np.testing.assert_array_equal(columns["row"], np.flatnonzero(world.terminated))
        np.testing.assert_allclose(columns["return"], paid[columns["row"]], rtol=1e-6)
        np.testing.assert_array_equal(columns["length"], length[columns["row"]])
        assert set(columns["level"]) <= {0, 1, 2}
        paid[columns["row"]] = length[columns["row"]] = 0
    world.close()


@pytest.mark.parametrize("game", ["coinrun", "starpilot"])
def test_gymnasium_finds_no_fault(game: str) -> None:
    env = gymnasium.make(
        f"procsnake/procgen-{game}-v0", distribution_mode="easy", render_mode="rgb_array"
    )
    check_env(env.unwrapped)
    env.close()


def test_a_single_game_ends_on_its_own_last_picture_and_waits_for_reset() -> None:
    env = ProcgenEnv("bossfight", distribution_mode="easy", render_mode="rgb_array")
    observation, _ = env.reset(seed=0)
    terminated = False
    for action in _actions(1000, 1)[:, 0]:
        before = observation
        observation, _, terminated, _, info = env.step(action)
        if terminated:
            break
    np.testing.assert_array_equal(observation, before)
    assert info["level_complete"] in (True, False)
    with pytest.raises(InvalidActionError, match="reset"):
        env.step(0)
    following = env.reset()[1]["level"]
    assert following != info["level"]
    picture = env.render()
    assert picture is not None
    assert picture.shape == (512, 512, 3)
    assert picture.dtype == np.uint8
    env.close()


def test_make_and_make_vec_know_the_games() -> None:
    assert {f"procgen/{game}" for game in GAMES} <= set(envs.names())
    batch = gymnasium.make_vec(
        "procsnake/procgen-maze-v0", num_envs=3, vectorization_mode="vector_entry_point"
    )
    assert batch.reset(seed=0)[0].shape == (3, 64, 64, 3)
    batch.close()


@pytest.mark.parametrize(
    ("name", "options", "error", "match"),
    [
        ("procgen/coinrum", {}, UnknownNameError, "coinrun"),
        ("procgen/coinrun", {"distribution_mode": "esay"}, UnknownNameError, "easy"),
        (
            "procgen/coinrun",
            {"distribution_mode": "memory"},
            ConfigError,
            "it has easy, hard, exploration",
        ),
        (
            "procgen/coinrun",
            {"distribution_mode": "exploration", "levels": "train:200"},
            ConfigError,
            "levels at 'all'",
        ),
        ("procgen/coinrun", {"num_levels": 200}, UnknownNameError, "levels='start:num'"),
        ("procgen/coinrun", {"center_agnt": True}, UnknownNameError, "center_agent"),
        ("procgen/coinrun", {"center_agent": "no"}, ConfigError, "true or false"),
        ("procgen/coinrun", {"num_games": 0}, ConfigError, "num_games is 0"),
        ("procgen/coinrun", {"num_games": True}, ConfigError, "num_games is True"),
        ("procgen/coinrun", {"num_games": "3"}, ConfigError, "num_games is '3'"),
        ("procgen/coinrun", {"num_threads": True}, ConfigError, "num_threads is True"),
        ("procgen/coinrun", {"num_threads": 1.5}, ConfigError, "num_threads is 1.5"),
        (
            "procgen/coinrun",
            {"num_threads": 10**5},
            ConfigError,
            "num_threads is 100000; it must be an integer from 0 to 256",
        ),
        ("procgen/coinrun", {"debug_mode": "x"}, ConfigError, "debug_mode is 'x'"),
        ("procgen/coinrun", {"debug_mode": 2**31}, ConfigError, "debug_mode is 2147483648"),
        ("procgen/coinrun", {"seed": 1.5}, ConfigError, "seed is 1.5"),
        ("procgen/coinrun", {"levels": "first:200"}, ConfigError, "train:200"),
        ("procgen/coinrun", {"levels": "train:0"}, ConfigError, "are 0 from"),
        ("procgen/coinrun", {"levels": "5:2147483647"}, ConfigError, "there are 0 to"),
        (
            "procgen/coinrun",
            {"frame_stack": 1},
            ConfigError,
            "stack is 1; it must be an integer from 2",
        ),
        ("procgen/coinrun", {"frame_stack": 2, "gap_stack": 4}, ConfigError, "only one"),
        (
            "procgen/coinrun",
            {"action_repeat": 0},
            ConfigError,
            "action_repeat is 0; it must be an integer from 1",
        ),
    ],
)
def test_bad_options_say_what_to_do(
    name: str, options: dict[str, Any], error: type[Exception], match: str
) -> None:
    with pytest.raises(error, match=match):
        envs.make(name, **options)


@pytest.mark.parametrize(
    ("actions", "match"),
    [
        (np.array([15, 0]), "0..14"),
        (np.array([-1, 0]), "0..14"),
        (np.zeros(3, int), "shape"),
        (np.zeros(2), "float64"),
    ],
)
def test_no_action_ends_the_process(actions: np.ndarray, match: str) -> None:
    world = ProcgenVectorEnv("coinrun", num_games=2)
    with pytest.raises(InvalidActionError, match="reset"):
        world.advance(np.zeros(2, int))
    world.restart(0)
    with pytest.raises(InvalidActionError, match=match):
        world.advance(actions)
    world.close()


@pytest.mark.parametrize(
    "options",
    [{"debug_mode": True}, {"num_games": np.int64(2), "num_threads": np.int64(1)}],
    ids=str,
)
def test_an_option_of_a_type_that_ends_the_process_is_translated(options: dict[str, Any]) -> None:
    world = ProcgenVectorEnv("coinrun", **{"num_games": 2, **options})
    world.restart(np.int64(0))
    world.advance(np.zeros(2, int))
    for seed in (True, 1.5, "a"):
        with pytest.raises(ConfigError, match=r"seed is .*; it must be an integer"):
            world.restart(seed)
    world.close()


def test_levels_are_read_as_the_library_counts_them() -> None:
    assert Levels.parse("all").native() == {"num_levels": 0, "start_level": 0}
    assert Levels.parse("train:200").native() == {"num_levels": 200, "start_level": 0}
    assert Levels.parse("test:200").native() == {"num_levels": NUM_SEEDS - 200, "start_level": 200}
    assert Levels.parse("500:10").native() == {"num_levels": 10, "start_level": 500}


@pytest.mark.parametrize(
    ("train", "test"),
    [("train:200", "199:5"), ("all", "all"), ("all", "5:1"), ("100:50", "train:101")],
)
def test_overlapping_levels_are_refused(train: str, test: str) -> None:
    with pytest.raises(ConfigError, match="overlap"):
        require_disjoint(train, test)


@pytest.mark.parametrize(
    ("train", "test"), [("train:200", "200:5"), ("train:200", "test:200"), ("train:200", "all")]
)
def test_levels_apart_are_accepted(train: str, test: str) -> None:
    require_disjoint(train, test)


def test_a_missing_system_library_is_named_with_what_to_install() -> None:
    said = (
        "cannot load library '/x/libenv.so': libGL.so.1: cannot open shared object file: No such"
        " file or directory"
    )
    message = str(missing_system_library(OSError(said)))
    assert "libGL.so.1" in message
    assert "apt-get install libgl1" in message
