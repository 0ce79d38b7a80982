"""State: what is saved, copied and selected comes back whole, and what is no state is refused."""

from __future__ import annotations

import re

import numpy as np
import pytest

from envs.battlesnake import Settings, State
from envs.battlesnake.games import play_turn, start_games
from envs.common.errors import ConfigError, InvalidStateError
from tests.envs.battlesnake.positions import random_games

SETTINGS = Settings(
    ruleset="royale",
    map="hz_rings",
    food_spawn_chance=40,
    minimum_food=3,
    hazard_damage=-7,
    shrink_every_n_turns=4,
    solo=True,
)


def played(turns=20, num_boards=5, **options):
    """A state in the middle of its games."""
    *_, state = random_games(num_boards=num_boards, turns=turns, seed=3, width=9, height=7, num_snakes=3, **options)
    return state


def assert_same(first, second):
    assert (first.width, first.height, first.num_boards, first.num_snakes) == (
        second.width,
        second.height,
        second.num_boards,
        second.num_snakes,
    )
    assert first.settings == second.settings
    for name, array in first.arrays._asdict().items():
        np.testing.assert_array_equal(array, second.arrays._asdict()[name], err_msg=name)
        assert array.dtype == second.arrays._asdict()[name].dtype


def go_on(state, turns=15):
    """Play fixed moves, with draws of food and new games."""
    for turn in range(turns):
        running = np.ones(state.num_boards, bool)
        play_turn(state, np.full((state.num_boards, state.num_snakes), turn % 4, np.int8), running)
        start_games(state, np.flatnonzero(~running))
    return state


def test_a_saved_state_comes_back_whole(tmp_path):
    state = played(food_spawn_chance=50)
    state.save(tmp_path / "games.npz")
    loaded = State.load(tmp_path / "games.npz")
    assert_same(loaded, state)
    assert_same(go_on(loaded), go_on(state))
    assert [path.name for path in tmp_path.iterdir()] == ["games.npz"]


def test_all_settings_are_saved(tmp_path):
    assert all(value != getattr(Settings(), name) for name, value in vars(SETTINGS).items())
    State(1, width=11, height=11, settings=SETTINGS).save(tmp_path / "s.npz")
    assert State.load(tmp_path / "s.npz").settings == SETTINGS


def test_long_bodies_are_saved(tmp_path):
    state = State(1, width=3, height=3, num_snakes=1, max_length=40)
    state.place_snake(0, 0, [(0, 0)] * 40)
    state.save(tmp_path / "s.npz")
    assert State.load(tmp_path / "s.npz").body(0, 0) == [(0, 0)] * 40


def test_a_file_that_was_cut_off_is_refused(tmp_path):
    path = tmp_path / "games.npz"
    played().save(path)
    whole = path.read_bytes()
    for size in (0, 1, 100, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:size])
        with pytest.raises(InvalidStateError, match="is not a saved state"):
            State.load(path)


@pytest.mark.parametrize("place", range(5, 90, 12))
def test_a_file_with_damaged_contents_is_refused(tmp_path, place):
    path = tmp_path / "games.npz"
    played().save(path)
    whole = bytearray(path.read_bytes())
    start = len(whole) * place // 100
    whole[start : start + 60] = bytes(60)
    path.write_bytes(whole)
    with pytest.raises(InvalidStateError, match="is not a saved state"):
        State.load(path)


@pytest.mark.parametrize(
    "change",
    [
        {"head": np.zeros((5, 3), np.float32)},
        {"turn": np.zeros((), np.int32)},
        {"size": np.array([9, 26])},
        {"settings": np.array('{"ruleset": "checkers"}')},
        {"settings": np.array("[]")},
    ],
    ids=str,
)
def test_a_file_that_holds_what_no_state_can_is_refused(tmp_path, change):
    path = tmp_path / "games.npz"
    played().save(path)
    with np.load(path) as stored:
        contents = dict(stored)
    np.savez(path, **contents | change)
    with pytest.raises(InvalidStateError, match="is not a saved state"):
        State.load(path)


@pytest.mark.parametrize("make", ["missing", "text", "array", "other archive"])
def test_other_files_are_refused(tmp_path, make):
    path = tmp_path / "file.npz"
    if make == "text":
        path.write_text("not a state")
    elif make == "array":
        with path.open("wb") as file:
            np.save(file, np.zeros(3))
    elif make == "other archive":
        np.savez(path, weights=np.zeros(3))
    with pytest.raises(InvalidStateError, match=re.escape(str(path))):
        State.load(path)


def test_a_copy_is_equal_and_independent():
    state = played(food_spawn_chance=50)
    twin, other = state.copy(), state.copy()
    assert_same(twin, state)
    go_on(twin)
    assert_same(other, state)
    assert_same(go_on(state), twin)


def test_select_takes_boards_in_order_with_repeats():
    state = played()
    chosen = state.select(np.array([4, 0, 4]))
    assert chosen.num_boards == 3
    for new, old in enumerate([4, 0, 4]):
        assert_same(chosen.select(np.array([new])), state.select(np.array([old])))
    go_on(chosen)
    assert_same(chosen.select(np.array([0])), chosen.select(np.array([2])))
    assert_same(state.select(np.arange(5)), played())


def test_memory_of_a_board_is_what_the_docstring_says():
    measured = State(64, width=11, height=11, num_snakes=4).bytes_per_board
    assert measured <= 2048
    stated = re.search(r"11 x 11 with 4 snakes takes ([\d ]+) bytes", " ".join((State.__doc__ or "").split()))
    assert stated is not None
    assert int(stated[1].replace(" ", "")) == measured


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"num_boards": 0}, "num_boards is 0"),
        ({"width": 2}, "width is 2"),
        ({"height": 26}, "height is 26"),
        ({"num_snakes": 17}, "num_snakes is 17"),
        ({"width": 7.5}, "width is 7.5"),
    ],
)
def test_sizes_that_no_game_has_are_refused(options, message):
    with pytest.raises(ConfigError, match=message):
        State(**{"num_boards": 1, **options})


@pytest.mark.parametrize(
    ("body", "options", "message"),
    [
        ([], {}, r"snakes\[0\]\.body has 0 entries"),
        ([(0, 7)], {}, r"snakes\[0\]\.body holds \(0, 7\), which is off the 7x7 board"),
        ([(0, 0)] * 60, {}, r"snakes\[0\]\.body has 60 entries"),
        ([(0, 0)], {"health": 101}, r"snakes\[0\]\.health is 101"),
    ],
)
def test_snakes_that_cannot_be_are_refused(body, options, message):
    with pytest.raises(InvalidStateError, match=message):
        State(1, width=7, height=7).place_snake(0, 0, body, **options)


def test_a_slot_holds_one_snake():
    state = State(1, width=7, height=7)
    state.place_snake(0, 2, [(1, 1)])
    with pytest.raises(InvalidStateError, match=r"snakes\[2\] is taken"):
        state.place_snake(0, 2, [(3, 3)])
