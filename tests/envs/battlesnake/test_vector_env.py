"""The batch: what it must not depend on, how rows end, what is paid and counted."""

from __future__ import annotations

import copy
import json
import os
import pickle
import subprocess
import sys

import numpy as np
import pytest

from envs.battlesnake import (
    BattlesnakeVectorEnv,
    EgocentricPlanes,
    Rewards,
    StarterPackObservation,
    setup_board,
)
from envs.battlesnake.games import play_turn, start_games
from envs.battlesnake.observations import OwnObservation, observation_from_contract
from envs.battlesnake.rewards import EVENTS
from envs.battlesnake.state import ALIVE, State
from envs.common.errors import ConfigError, InvalidActionError, UnknownNameError
from envs.registry import make


def play(env, turns, *, seed=0, action_seed=1):
    """Random masked actions; yields after every turn. The actions of a row depend on (row, turn)
    only.
    """
    env.restart(seed)
    for turn in range(turns):
        noise = np.stack(
            [
                np.random.default_rng((action_seed, turn, row)).random(env.action_mask.shape[1])
                for row in range(env.num_envs)
            ]
        )
        env.advance((noise * env.action_mask).argmax(axis=1))
        yield turn


def small(**options):
    return BattlesnakeVectorEnv(
        **{"num_games": 4, "width": 7, "height": 7, "num_snakes": 3, **options}
    )


def test_a_game_depends_on_its_seed_and_index_only():
    alone = small(num_games=2)
    batch = small(num_games=6)
    threaded = small(num_games=6, num_threads=2)
    rows = slice(0, alone.num_envs)
    for _ in zip(play(alone, 60), play(batch, 60), play(threaded, 60), strict=True):
        for name in ("observations", "valid", "rewards", "terminated", "action_mask"):
            np.testing.assert_array_equal(
                getattr(alone, name), getattr(batch, name)[rows], err_msg=name
            )
            np.testing.assert_array_equal(
                getattr(threaded, name), getattr(batch, name), err_msg=name
            )
    batch.restart(1)
    assert not np.array_equal(alone.state.arrays.key, batch.state.arrays.key[:2])


def test_plays_the_same_games_as_the_engine_step_by_step():
    env = small(num_games=3, observation=EgocentricPlanes(view="board"))
    state = State(3, width=7, height=7, num_snakes=3)
    state.seed(5)
    start_games(state)
    env.restart(5)
    rng = np.random.default_rng(0)
    for _ in range(80):
        moves = (rng.random((9, 4)) * env.action_mask).argmax(axis=1)
        env.advance(moves)
        running = np.ones(3, bool)
        play_turn(state, moves.reshape(3, 3).astype(np.int8), running)
        start_games(state, np.flatnonzero(~running))
        for name in ("health", "length", "cause", "food", "turn", "game"):
            np.testing.assert_array_equal(
                getattr(env.state.arrays, name), getattr(state.arrays, name), err_msg=name
            )


@pytest.mark.parametrize(
    "observation",
    [EgocentricPlanes(radius=4, rotate=True), EgocentricPlanes(view="board")],
    ids=str,
)
def test_rows_end_once_and_the_next_game_begins_at_once(observation):
    env = small(observation=observation, max_turns=40)
    was_valid = np.ones(env.num_envs, bool)
    ends = 0
    for _ in play(env, 150):
        ended = env.terminated | env.truncated
        assert not (ended & ~was_valid).any()
        assert not (env.rewards[~was_valid]).any()
        new_game = env.state.arrays.turn == 0
        valid = env.valid.reshape(4, 3)
        assert valid[new_game].all()
        assert (valid == (env.state.arrays.cause == ALIVE)).all()
        running_and_ended = ended & ~np.repeat(new_game, 3)
        assert not env.valid[running_and_ended].any()
        assert not env.observations[~env.valid].any()
        boards, slots = np.divmod(np.flatnonzero(env.valid), 3)
        np.testing.assert_array_equal(
            env.observations[env.valid], observation.observe(env.state, boards, slots)
        )
        np.testing.assert_array_equal(
            env.action_mask[env.valid], observation.action_mask(env.state, boards, slots)
        )
        ends += ended.sum()
        was_valid = env.valid.copy()
    assert ends > 20


def test_final_observation_is_the_board_after_the_last_move():
    env = small(num_games=1, observation=EgocentricPlanes(view="board"), max_turns=3)
    env.restart(0)
    for _ in range(2):
        env.advance(env.action_mask.argmax(axis=1))
    twin = env.state.copy()
    moves = env.action_mask.argmax(axis=1)
    env.advance(moves)
    assert env.truncated.all()
    play_turn(twin, moves.reshape(1, 3).astype(np.int8), np.ones(1, bool))
    expected = env.observation.observe(twin, np.zeros(3, int), np.arange(3))
    np.testing.assert_array_equal(env.final_observations, expected)
    assert not np.array_equal(env.final_observations, env.observations)


def test_wins_and_deaths_are_paid_when_they_happen():
    env = small(num_games=16, rewards=Rewards(won=1.0, died=-1.0, ate_food=0.25))
    for _ in play(env, 120):
        pass
    episodes = env.drain_episodes()
    assert len(episodes["row"]) > 50
    expected = (
        1.0 * episodes["won"] - 1.0 * (episodes["cause"] != ALIVE) + 0.25 * episodes["food_eaten"]
    )
    np.testing.assert_allclose(episodes["return"], expected, atol=1e-6)
    assert (episodes["killer"][episodes["cause"] == 4] == -1).all()
    games = episodes["game_over"] & (episodes["cause"] == ALIVE)
    assert (episodes["won"] == games).all()
    assert len(env.drain_episodes()["row"]) == 0


def test_events_are_what_happened():
    """Every event's count, summed over many games, against what the episodes' causes say."""
    totals = np.zeros(len(EVENTS), int)

    def count(events):
        totals[:] += events.sum(axis=0, dtype=int)
        return events[:, EVENTS.index("ate_food")].astype(np.float32)

    env = small(
        num_games=32, num_snakes=4, rewards=count, ruleset="royale", shrink_every_n_turns=15
    )
    env.restart(0)
    rng = np.random.default_rng(0)
    for _ in range(200):
        env.advance(rng.integers(0, 3, env.num_envs))
    episodes = env.drain_episodes()
    seen = dict(zip(EVENTS, totals, strict=True))
    causes = np.bincount(episodes["cause"], minlength=7)
    assert seen["died"] == causes[1:].sum()
    names = ("hit_other_snake", "hit_self", "was_eaten", "hit_wall", "starved", "died_in_hazard")
    assert [seen[n] for n in names] == causes[1:7].tolist()
    assert seen["other_snake_hit_body"] == causes[1]
    assert seen["won"] == episodes["won"].sum() > 0
    assert 0 < seen["ate_another_snake"] < seen["was_eaten"]
    np.testing.assert_allclose(episodes["return"], episodes["food_eaten"])


def test_one_snake_plays_solo():
    env = small(num_snakes=1, rewards="starter-pack")
    env.restart(0)
    assert env.valid.all()
    for _ in range(300):
        env.advance(env.action_mask.argmax(axis=1))
    episodes = env.drain_episodes()
    assert len(episodes["row"]) > 0
    assert not episodes["won"].any()
    np.testing.assert_allclose(
        episodes["return"], episodes["length"] - (episodes["cause"] != ALIVE)
    )


def test_an_action_out_of_range_goes_straight_on():
    env = small(num_games=1, num_snakes=1, observation=EgocentricPlanes(view="board"))
    env.restart(0)
    env.advance(np.array([3]))
    x, y = env.state.body(0, 0)[0]
    env.advance(np.array([9]))
    assert env.state.body(0, 0)[0] == (x + 1, y)


def test_gymnasium_step_gives_copies_and_final_observations():
    env = small(max_turns=2)
    first, info = env.reset(seed=0)
    kept = first.copy()
    env.step(info["action_mask"].argmax(axis=1))
    np.testing.assert_array_equal(first, kept)
    _, _, terminated, truncated, info = env.step(env.action_mask.argmax(axis=1))
    ended = terminated | truncated
    assert truncated.any()
    np.testing.assert_array_equal(info["_final_obs"], ended)
    np.testing.assert_array_equal(np.stack(info["final_obs"][ended]), env.final_observations[ended])


def test_gymnasium_final_info_tells_how_each_episode_went():
    env = small(num_games=8)
    twin = small(num_games=8)
    straight_on = np.ones(8 * 3, np.int64)
    env.reset(seed=0)
    twin.restart(0)
    told = {name: [] for name in ("row", "game", "length", "cause", "return")}
    for _ in range(40):
        *_, info = env.step(straight_on)
        twin.advance(straight_on)
        rows = np.flatnonzero(info.get("_final_info", False))
        told["row"].extend(rows)
        for name in told.keys() - {"row"}:
            assert "final_info" not in info or np.array_equal(
                info["final_info"]["_" + name], info["_final_info"]
            )
            told[name].extend(info["final_info"][name][rows] if len(rows) else [])
    drained = twin.drain_episodes()
    assert len(told["row"]) > 8
    for name, values in told.items():
        np.testing.assert_allclose(values, drained[name], rtol=1e-6)


def test_food_moved_by_hand_is_seen_where_it_lies_now():
    env = small(num_games=3, food_spawn_chance=100)
    env.restart(0)
    food = env.state.arrays.food
    for board in range(3):
        cell = np.flatnonzero(food[board])[0]
        free = np.flatnonzero(
            (food[board] == 0) & (env.state.arrays.opposite == np.arange(food.shape[1]))
        )[-1]
        food[board, [free, cell]] = food[board, [cell, free]]
    env.show()
    boards, slots = np.divmod(np.arange(env.num_envs), env.rows_per_game)
    np.testing.assert_array_equal(
        env.observations, env.observation.observe(env.state, boards, slots)
    )


def test_bad_input_is_named():
    for options in ({"width": 2}, {"width": "7"}, {"height": 7.0}):
        with pytest.raises(
            ConfigError, match=f"{next(iter(options))} is .*; it must be an integer from 3 to 25"
        ):
            small(**options)
    with pytest.raises(ConfigError, match="num_snakes is '4'; it must be an integer from 1 to 16"):
        small(num_snakes="4")
    with pytest.raises(ConfigError, match="num_games is 0"):
        small(num_games=0)
    with pytest.raises(UnknownNameError, match="Did you mean 'num_snakes'"):
        small(num_snake=2)
    with pytest.raises(UnknownNameError, match="Did you mean 'wrapped'"):
        small(ruleset="wraped")
    with pytest.raises(UnknownNameError, match="Did you mean 'ate_food'"):
        small(rewards={"ate_fod": 1.0})
    for options in (
        {"max_turns": 10.5},
        {"max_turns": 0},
        {"num_threads": 1.5},
        {"num_threads": True},
        {"num_threads": 10**5},
    ):
        with pytest.raises(
            ConfigError, match=f"{next(iter(options))} is .*; it must be an integer from 1 to"
        ):
            small(**options)
    with pytest.raises(ConfigError, match="observation is 3; it must be a type's name"):
        small(observation=3)
    env = small()
    with pytest.raises(InvalidActionError, match="have not begun"):
        env.advance(np.zeros(12, int))
    env.restart(0)
    with pytest.raises(InvalidActionError, match=r"shape \(3,\)"):
        env.advance(np.zeros(3, int))
    with pytest.raises(InvalidActionError, match="float"):
        env.advance(np.zeros(12))


@pytest.mark.parametrize("kind", [np.int32, np.int64, np.uint64])
def test_a_seed_of_numpy_is_that_of_python(kind):
    worlds = small(seed=5), small(seed=kind(5)), small()
    for world in worlds:
        world.restart(kind(5) if world is worlds[2] else None)
        np.testing.assert_array_equal(world.observations, worlds[0].observations)
    assert setup_board(seed=kind(5)) == setup_board(seed=5)


@pytest.mark.parametrize("kind", [np.int8, np.uint8, np.int64])
def test_sizes_of_numpy_make_the_world_that_those_of_python_make(kind):
    sizes = {
        "num_games": 100,
        "num_snakes": 2,
        "width": 19,
        "height": 19,
        "max_turns": 50,
        "food_spawn_chance": 30,
    }
    ours = BattlesnakeVectorEnv(**sizes)
    theirs = BattlesnakeVectorEnv(**{name: kind(size) for name, size in sizes.items()})
    assert theirs.observations.shape == ours.observations.shape
    assert [a.shape for a in theirs.state.arrays] == [a.shape for a in ours.state.arrays]
    for world in (ours, theirs):
        world.restart(0)
        world.advance(np.ones(200, int))
    np.testing.assert_array_equal(theirs.observations, ours.observations)
    board = setup_board(width=kind(11), height=kind(11))
    assert json.loads(json.dumps(board)) == board


@pytest.mark.parametrize(
    "observation",
    [EgocentricPlanes(radius=np.int64(3)), StarterPackObservation(num_snakes=np.int64(3))],
)
def test_a_contract_is_for_json_whatever_type_its_numbers_had(observation):
    assert observation_from_contract(json.loads(json.dumps(observation.contract()))) == observation


@pytest.mark.parametrize("seed", ["a", 1.5, True, [1]])
def test_other_seeds_are_refused(seed):
    for begin in (
        lambda: small(seed=seed),
        lambda: small().restart(seed),
        lambda: setup_board(seed=seed),
    ):
        with pytest.raises(ConfigError, match=r"seed is .*; it must be an integer"):
            begin()


def test_settings_of_another_type_are_refused():
    with pytest.raises(
        ConfigError, match=r"settings is \{'map': 'royale'\}; it must be a Settings object"
    ):
        small(settings={"map": "royale"})
    with pytest.raises(UnknownNameError, match=r"unknown map \['royale'\]"):
        small(map=["royale"])
    with pytest.raises(ConfigError, match="solo is 'no'; it must be true or false"):
        small(solo="no")
    with pytest.raises(UnknownNameError, match=r"unknown environment \['battlesnake'\]"):
        make(["battlesnake"])


_FORKED = """
import copy, os, signal, sys
import numpy as np
from envs.battlesnake import BattlesnakeVectorEnv

world = BattlesnakeVectorEnv(num_games=8, num_threads=2)
world.restart(0)
ahead = np.ones(world.num_envs, int)
world.advance(ahead)
twin = copy.deepcopy(world)
twin.advance(ahead)
if (child := os.fork()) == 0:
    signal.alarm(120)
    world.advance(ahead)
    os._exit(not (world.observations == twin.observations).all())
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_fork_plays_on_with_threads_of_its_own():
    assert subprocess.run([sys.executable, "-c", _FORKED]).returncode == 0


class Turning(OwnObservation):
    """A user's own type whose actions are those of the rotated planes: left, ahead, right."""

    planes = EgocentricPlanes(radius=3, rotate=True)
    num_actions = 3

    def contract(self):
        return {"type": "test:Turning", "version": 1}

    def space(self, width, height):
        return self.planes.space(width, height)

    def observe(self, state, boards, slots):
        return self.planes.observe(state, boards, slots)

    def action_mask(self, state, boards, slots):
        return self.planes.action_mask(state, boards, slots)

    def to_moves(self, state, boards, slots, actions):
        return self.planes.to_moves(state, boards, slots, actions)


@pytest.mark.parametrize("map_name", ["standard", "hz_scatter"])
def test_an_own_type_plays_the_moves_that_it_makes_of_its_actions(map_name):
    own, built_in = (small(observation=kind, map=map_name) for kind in (Turning(), Turning.planes))
    for _ in zip(play(own, 60), play(built_in, 60), strict=True):
        for name in ("observations", "valid", "rewards", "terminated", "action_mask"):
            np.testing.assert_array_equal(getattr(own, name), getattr(built_in, name), err_msg=name)
        np.testing.assert_array_equal(own.state.arrays.body, built_in.state.arrays.body)


def _count_food(events):
    return events[:, EVENTS.index("ate_food")].astype(np.float32)


@pytest.mark.parametrize(
    "again",
    [copy.deepcopy, lambda env: pickle.loads(pickle.dumps(env))],
    ids=["deepcopy", "pickle"],
)
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"observation": {"view": "board"}, "rewards": _count_food},
        {"observation": {"radius": 3, "cyclic": True, "reach": True}, "num_threads": 2},
        {"observation": "flat-num"},
        {"observation": Turning()},
        {"map": "hz_scatter"},
    ],
    ids=["window", "board", "threads", "starter-pack", "own-type", "map"],
)
def test_a_copy_plays_on_as_the_original_does_and_neither_moves_the_other(options, again):
    env = small(max_turns=20, **options)
    fresh = again(env)
    rng = np.random.default_rng(0)
    env.restart(0)
    fresh.restart(0)
    for turn in range(45):
        if turn == 15:
            fresh = again(env)
        actions = (rng.random(env.action_mask.shape) * env.action_mask).argmax(axis=1)
        env.advance(actions)
        assert (env.observations != fresh.observations).any()
        fresh.advance(actions)
        for name in (
            "observations",
            "final_observations",
            "valid",
            "action_mask",
            "rewards",
            "terminated",
            "truncated",
        ):
            np.testing.assert_array_equal(getattr(env, name), getattr(fresh, name), err_msg=name)
    ours = env.drain_episodes()
    theirs = fresh.drain_episodes()
    assert len(ours["row"]) > 10
    for name, column in ours.items():
        np.testing.assert_array_equal(column, theirs[name], err_msg=name)
    env.close()
    fresh.close()
