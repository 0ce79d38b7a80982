"""What maps refuse, and how they say so."""

from __future__ import annotations

import pytest

from envs.battlesnake import Settings, map_update, maps, ruleset_step, setup_board
from envs.common.errors import ConfigError, UnknownNameError


def ids(num_snakes):
    return [str(i) for i in range(num_snakes)]


def test_an_unknown_map_is_answered_with_the_nearest_names():
    with pytest.raises(
        UnknownNameError, match=r"unknown map 'hz_spirall'\. Did you mean 'hz_spiral'"
    ):
        setup_board(map="hz_spirall")
    with pytest.raises(UnknownNameError, match="Did you mean 'arcade_maze'"):
        maps.check_board("arcade_maz", width=19, height=21, num_snakes=1)


@pytest.mark.parametrize(
    ("map_name", "width", "height", "message"),
    [
        ("arcade_maze", 11, 11, "map 'arcade_maze' is made for 19x21 only"),
        ("hz_castle_wall_xl", 25, 24, "is made for 25x25 only"),
        ("healing_pools", 9, 9, "is made for 7x7 or 11x11 or 19x19 only"),
        ("hz_hazard_pits", 7, 7, "is made for 11x11 only"),
        ("hz_grow_box", 3, 9, "needs 4 or more on both sides"),
        ("solo_maze", 7, 6, "needs 7 or more on both sides"),
    ],
)
def test_wrong_sizes_are_refused(map_name, width, height, message):
    with pytest.raises(ConfigError, match=f"^width x height is {width}x{height}; .*{message}"):
        setup_board(map=map_name, width=width, height=height, snake_ids=ids(1))


@pytest.mark.parametrize(
    ("map_name", "side", "num_snakes", "message"),
    [
        ("hz_castle_wall", 11, 9, "num_snakes is 9; map 'hz_castle_wall' takes at most 8"),
        ("hz_islands_bridges", 11, 5, "takes at most 4"),
        ("hz_rivers_bridges_lg", 19, 13, "takes at most 12"),
        ("hz_hazard_pits", 11, 5, "takes at most 4"),
        ("solo_maze", 11, 2, "takes at most 1"),
        ("standard", 5, 9, "holds at most 8 snakes on 5x5, not 9"),
        ("standard", 3, 5, "too few start cells for 5 snakes on 3x3"),
    ],
)
def test_too_many_snakes_are_refused(map_name, side, num_snakes, message):
    with pytest.raises(ConfigError, match=message):
        setup_board(map=map_name, width=side, height=side, snake_ids=ids(num_snakes))


@pytest.mark.parametrize("map_name", ["royale", "hz_hazard_pits"])
def test_a_period_of_zero_is_refused_for_games_and_harmless_for_boards(map_name):
    settings = Settings(map=map_name, shrink_every_n_turns=0)
    with pytest.raises(
        ConfigError, match=f"shrink_every_n_turns is 0; map '{map_name}' needs 1 or more"
    ):
        maps.check_game(settings, width=11, height=11, num_snakes=2)
    board = setup_board(map=map_name, settings={"shrinkEveryNTurns": 0})
    assert map_update(board, map=map_name, settings={"shrinkEveryNTurns": 0})["hazards"] == []


@pytest.mark.parametrize("map_name", ["hz_castle_wall", "arcade_maze", "hz_hazard_pits"])
def test_an_update_of_a_board_that_the_map_is_not_made_for_is_refused(map_name):
    with pytest.raises(ConfigError, match=f"width x height is 7x7; map '{map_name}' is made for"):
        map_update(setup_board(width=7, height=7) | {"turn": 10}, map=map_name)


def test_a_maze_without_end_is_refused():
    settings = Settings(map="solo_maze", ruleset="constrictor", solo=True)
    with pytest.raises(ConfigError, match="ruleset 'constrictor' takes the food away each turn"):
        maps.check_game(settings, width=11, height=11, num_snakes=1)
    maps.check_game(Settings(map="solo_maze", ruleset="solo"), width=11, height=11, num_snakes=1)


def test_official_names_and_empty_limits_cannot_be_registered():
    with pytest.raises(ConfigError, match="map 'royale' is an official one"):
        maps.register_map("royale", maps.set_up_board, maps.update_board)
    with pytest.raises(ConfigError, match="most_snakes 17"):
        maps.register_map("test_crowd", maps.set_up_board, maps.update_board, most_snakes=17)


def test_scatter_has_no_more_to_do_once_all_cells_are_used():
    board = setup_board(map="hz_scatter", width=7, height=7, snake_ids=["a"])
    late = board | {"turn": 2 * 7 * 7 + 1}
    assert map_update(late, map="hz_scatter")["hazards"] == []


def test_royale_rules_wipe_a_snails_trail_too():
    board = {
        "width": 7,
        "height": 7,
        "turn": 3,
        "food": [],
        "hazards": [{"x": 2, "y": 9}, {"x": 2, "y": 2}],
    }
    body = [{"x": 4, "y": 4}, {"x": 4, "y": 3}]
    board["snakes"] = [
        {"id": i, "health": 50, "body": [{"x": p["x"] + k, "y": p["y"]} for p in body]}
        for k, i in enumerate("ab")
    ]
    _, after = ruleset_step(
        board, ["up", "up"], ruleset="royale", settings={"shrinkEveryNTurns": 99}
    )
    assert after["hazards"] == []
