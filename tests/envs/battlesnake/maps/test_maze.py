"""solo_maze against the recorded mazes: a parser of mazes must accept the official ones and ours
alike.
"""

from __future__ import annotations

import numpy as np
import pytest

from envs.battlesnake import map_update, maps, setup_board
from envs.battlesnake.settings import Settings
from envs.battlesnake.state import State
from tests.envs.battlesnake.maps.test_catalogue import points, recorded


def level_of(board):
    hazards = points(board["hazards"])
    return int("".join("1" if (x, 0) in hazards else "0" for x in range(board["width"])), 2)


def square(board, level):
    side = min(7 + level, board["width"], board["height"] - 2)
    return (board["width"] - side) // 2, (board["height"] - side) // 2, side


def is_division(walls, room, holes_x, holes_y, side):
    """Whether the walls inside a room can have come from recursive division as the facts sheet
    describes it.
    """
    x0, y0, x1, y1 = room
    across = [x for x in range(x0 + 1, x1 - 1) if x not in holes_x] or [None]
    along = [y for y in range(y0 + 1, y1 - 1) if y not in holes_y] or [None]
    if (x1 - x0 < 3 and y1 - y0 < 3) or across == along == [None]:
        inside = {
            (x, y)
            for x in range(x0, x1 + (x1 == side - 1))
            for y in range(y0, y1 + (y1 == side - 1))
        }
        return not walls & inside
    return any(
        _is_divided_at(walls, room, wx, wy, holes_x, holes_y, side) for wx in across for wy in along
    )


def _is_divided_at(walls, room, wall_x, wall_y, holes_x, holes_y, side):
    x0, y0, x1, y1 = room
    if wall_x is not None:
        gaps = [y for y in range(y0, y1 + 1) if (wall_x, y) not in walls]
        sides = [y < wall_y for y in gaps] if wall_y is not None else gaps
        if (
            len(gaps) != (1 if wall_y is None else 2)
            or y1 in gaps
            or (wall_y is not None and sides != [True, False])
        ):
            return False
        holes_y = holes_y | set(gaps)
    if wall_y is not None:
        gaps = [x for x in range(x0, x1 + 1) if (x, wall_y) not in walls]
        if len(gaps) != 1 or x1 in gaps or (wall_x is not None and gaps[0] > wall_x):
            return False
        holes_x = holes_x | set(gaps)
    spans_x = [(x0, x1)] if wall_x is None else [(x0, wall_x), (wall_x + 1, x1)]
    spans_y = [(y0, y1)] if wall_y is None else [(y0, wall_y), (wall_y + 1, y1)]
    return all(
        is_division(walls, (a, c, b, d), holes_x, holes_y, side)
        for a, b in spans_x
        for c, d in spans_y
    )


def check_level(board, level):
    """The board as a level begins."""
    hazards = points(board["hazards"])
    left, bottom, side = square(board, level)
    inside = {(x, y) for x in range(left, left + side) for y in range(bottom, bottom + side)}
    outside = {(x, y) for x in range(board["width"]) for y in range(1, board["height"])} - inside
    assert level_of(board) == level
    assert set(hazards.values()) <= {1}
    assert outside <= set(hazards)
    walls = {(x - left, y - bottom) for x, y in set(hazards) & inside}
    assert is_division(walls, (0, 0, side - 1, side - 1), set(), set(), side)
    (snake,) = board["snakes"]
    assert snake["health"] == 100
    assert [(p["x"], p["y"]) for p in snake["body"]] == [(left, bottom)] + [(left, bottom - 1)] * (
        level + 2
    )
    assert is_connected(inside - set(hazards))
    check_food(board, level)


def is_connected(cells):
    seen = set()
    stack = [min(cells)]
    while stack:
        x, y = stack.pop()
        if (x, y) in cells - seen:
            seen.add((x, y))
            stack += [(x + 1, y), (x - 1, y), (x, y + 1), (x, y - 1)]
    return seen == cells


def check_food(board, level):
    left, bottom, side = square(board, level)
    assert len(board["food"]) <= 1
    for x, y in points(board["food"]):
        assert left <= x < left + side
        assert bottom <= y < bottom + side
        assert (x, y) not in points(board["hazards"])
        assert (x, y) not in points(board["snakes"][0]["body"])
        assert distance_to_head(board, (x, y)) >= min(5, side // 2)


def distance_to_head(board, cell):
    head = board["snakes"][0]["body"][0]
    return abs(head["x"] - cell[0]) + abs(head["y"] - cell[1])


def check_update(before, after):
    level = level_of(before)
    if not before["food"]:
        check_level(after, level + 1)
        return True
    ((food, _),) = points(before["food"]).items()
    evil = level - 5 > min(before["width"], before["height"] - 2) - 7
    assert after["snakes"] == before["snakes"]
    assert points(after["hazards"]) == points(before["hazards"])
    if evil and distance_to_head(before, food) < 5:
        check_food(after, level)
    else:
        assert after["food"] == before["food"]
    return False


def test_recorded_mazes_and_ours_are_of_one_kind():
    levels = 0
    for game, laid_out, _, turns in recorded("solo_maze"):
        check_level(laid_out, 0)
        check_level(
            setup_board(
                map="solo_maze",
                width=game["width"],
                height=game["height"],
                snake_ids=["s0"],
                seed=1,
            ),
            0,
        )
        if game["ruleset"] == "royale":
            continue  # the ruleset wipes walls and level
        for t in (
            turns[:-1] if game["end"] == "runaway" else turns
        ):  # whose last end of a turn was not recorded
            before = t.stepped | {"turn": t.turn}
            levels += check_update(before, t.after)
            check_update(before, map_update(before, map="solo_maze", seed=t.turn))
    assert levels > 80


@pytest.mark.parametrize(("width", "height"), [(7, 7), (11, 11), (19, 21), (25, 9)])
def test_levels_go_on_beyond_what_was_recorded(width, height):
    board = setup_board(map="solo_maze", width=width, height=height, snake_ids=["a"])
    for level in range(1, 33):
        board = map_update(board | {"food": []}, map="solo_maze", seed=level)
        if level + 3 <= width * height:
            check_level(board, level)
        assert board["snakes"][0]["eliminatedCause"] == ""


def test_food_flees_on_high_levels_only():
    board = setup_board(map="solo_maze", width=7, height=7, snake_ids=["a"])
    jumps = {}
    for level in range(9):
        near = board | {"food": [{"x": 1, "y": 2}]}
        moved = [
            map_update(near, map="solo_maze", seed=seed)["food"] != near["food"]
            for seed in range(5)
        ]
        jumps[level] = any(moved)
        board = map_update(board | {"food": []}, map="solo_maze", seed=level)
    assert jumps == {level: level > 3 for level in range(9)}


def test_a_body_longer_than_the_ring_is_cut():
    state = State(1, width=7, height=7, num_snakes=1, settings=Settings(map="solo_maze", solo=True))
    maps.set_up(state, np.arange(1))
    for _ in range(60):
        state.arrays.food[:] = 0
        state.arrays.num_food[:] = 0
        maps.update(state, np.arange(1))
    assert state.arrays.length[0, 0] == state.arrays.body.shape[2] == 7 * 7 + 3
