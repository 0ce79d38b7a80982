"""State: what is copied and selected comes back whole, and what is no state is refused."""

from __future__ import annotations

import re

import numpy as np
import pytest

from envs.battlesnake import State
from envs.battlesnake.games import play_turn, start_games
from envs.battlesnake.plain import board_from_state
from envs.battlesnake.state import ALIVE
from envs.common.errors import ConfigError, InvalidStateError
from tests.envs.battlesnake.positions import random_games


def played(turns=20, num_boards=5, **options):
    """A state in the middle of its games."""
    *_, state = random_games(
        num_boards=num_boards, turns=turns, seed=3, width=9, height=7, num_snakes=3, **options
    )
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


def test_a_copy_is_equal_and_independent():
    state = played(food_spawn_chance=50)
    twin = state.copy()
    other = state.copy()
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


def test_the_living_snakes_alone_play_on_as_among_the_dead():
    state = played(turns=30, num_boards=40)
    boards = np.flatnonzero(state.arrays.num_alive == 2)
    assert len(boards) > 3
    for board in boards:
        all_slots = state.select(np.array([board]))
        living = np.flatnonzero(all_slots.arrays.cause[0] == ALIVE)
        alone = state.select_living(board)
        for turn in range(4):
            names = [str(slot) for slot in range(3)]
            told = board_from_state(all_slots, 0, names)
            told["snakes"] = [snake for snake in told["snakes"] if int(snake["id"]) in living]
            assert board_from_state(alone, 0, [names[slot] for slot in living]) == told
            moves = np.array([[0, 2, 1]], np.int8)[:, (np.arange(3) + turn) % 3]
            play_turn(all_slots, moves, np.ones(1, bool))
            play_turn(alone, moves[:, living], np.ones(1, bool))


def test_memory_of_a_board_is_what_the_docstring_says():
    arrays = State(64, width=11, height=11, num_snakes=4).arrays._asdict()
    measured = sum(array.nbytes for name, array in arrays.items() if name != "opposite") // 64
    assert measured <= 2048
    stated = re.search(
        r"11 x 11 with 4 snakes takes ([\d ]+) bytes", " ".join((State.__doc__ or "").split())
    )
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
