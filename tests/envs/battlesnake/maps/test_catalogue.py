"""The official maps against every recorded set-up and every recorded end of a turn.

Where a map draws at random, both the official result and ours must satisfy what the facts sheet
says of the map, and ours is compared with the official one after finding a game of ours with the
same draw."""

from __future__ import annotations

import json
from collections import Counter
from functools import cache

import numpy as np
import pytest

from envs.battlesnake import map_update, maps, setup_board
from envs.battlesnake.settings import OFFICIAL_MAPS, Settings
from envs.battlesnake.state import State
from tests.envs.battlesnake.traces import DATA, games, start_boards, transitions

ON_BANKS = {m for m in OFFICIAL_MAPS if "rivers" in m or "islands" in m}
CASTLES = {"hz_castle_wall": 2, "hz_castle_wall_lg": 2, "hz_castle_wall_xl": 4}
FACTS = json.loads((DATA / "battlesnake-maps.json").read_text())["maps"]


@cache
def recorded(map_name):
    """Recorded games of a map, with their boards and transitions."""
    found = [g for g in games() if g["kind"] == "map" and g["map"] == map_name]
    return [(g, *start_boards(g), [t for t in transitions(g) if not t.over]) for g in found]


def points(cells):
    return Counter((p["x"], p["y"]) for p in cells)


def bodies(board, dead=False):
    return [
        [(p["x"], p["y"]) for p in s["body"]]
        for s in board["snakes"]
        if dead or not s["eliminatedCause"]
    ]


def beside(cell):
    x, y = cell
    return {(x + 1, y), (x - 1, y), (x, y + 1), (x, y - 1)}


def free_cells(board, map_name):
    """Where the map may put food, by the facts sheet."""
    food = points(board["food"])
    hazards = points(board["hazards"])
    if map_name in CASTLES or map_name == "arcade_maze":
        taken = {cell for body in bodies(board, dead=True) for cell in body} | set(food)
        if map_name in CASTLES:
            taken |= {c for body in bodies(board, dead=True) for c in beside(body[0])} | {
                c for f in food for c in beside(f)
            }
        return {tuple(c) for c in FACTS[map_name]["food_update"]["spots"]} - taken
    cells = {(x, y) for x in range(board["width"]) for y in range(board["height"])}
    taken = {cell for body in bodies(board) for cell in body} | {
        c for body in bodies(board) for c in beside(body[0])
    }
    return cells - taken - set(food) - (set(hazards) if map_name in ON_BANKS else set())


def food_counts(board, map_name, settings):
    """(least, most) food that the map adds to the board."""
    free = len(free_cells(board, map_name))
    chance = settings["foodSpawnChance"]
    if map_name == "empty":
        return 0, 0
    if map_name in CASTLES:
        due = board["turn"] >= 10 and len(board["food"]) != CASTLES[map_name] and free > 0
        return int(due), int(due)
    if map_name == "arcade_maze":
        return int(chance == 100 and free > 0), int(chance > 0 and free > 0)
    missing = settings["minimumFood"] - len(board["food"])
    if missing > 0:
        return min(missing, free), min(missing, free)
    return 0, int(chance > 1 and free > 0)


def check_food(before, after, map_name, settings):
    added = points(after["food"])
    added.subtract(points(before["food"]))
    assert min(added.values(), default=0) >= 0
    new = [cell for cell, n in added.items() if n]
    assert all(added[cell] == 1 for cell in new)
    least, most = food_counts(before, map_name, settings)
    assert least <= len(new) <= most
    assert set(new) <= free_cells(before, map_name)


def minus(after, before):
    """Cells that a map added and cells that it took away, with repeats."""
    gained = points(after)
    lost = points(before)
    return sorted((gained - lost).elements()), sorted((lost - gained).elements())


def check_hazards(map_name, settings, width, height, turns):
    """`turns`: (T, hazards before the map's step, hazards after it) of one game from turn 0 on."""
    if map_name in SPREADING:
        added = {}
        for turn, before, after in turns:
            gained, lost = minus(after, before)
            assert lost == []
            added[turn + 1] = gained, len(before) == width * height
        SPREADING[map_name](width, height, added)
        return
    for turn, before, after in turns:
        gained, lost = minus(after, before)
        every = settings["shrinkEveryNTurns"]
        if map_name == "healing_pools":
            assert gained == []
            assert len(lost) == (turn > 0 and every > 0 and turn % every == 0 and len(before) > 0)
        elif map_name == "royale" and turn + 1 >= every:
            check_royale(width, height, (turn + 1) // every, points(after))
        else:
            assert gained == lost == []


def check_royale(width, height, moves, hazards):
    """All but a rectangle is one layer deep, and its sides have moved in by as many cells as there
    were moves.
    """
    open_cells = [(x, y) for x in range(width) for y in range(height) if (x, y) not in hazards]
    assert set(hazards.values()) <= {1}
    if not open_cells:
        assert moves >= min(width, height)
        return
    xs = {x for x, _ in open_cells}
    ys = {y for _, y in open_cells}
    assert len(open_cells) == len(xs) * len(ys)
    assert max(xs) - min(xs) + 1 == len(xs)
    assert max(ys) - min(ys) + 1 == len(ys)
    assert (width - len(xs)) + (height - len(ys)) == moves


def check_spiral(width, height, added):
    (first,), _ = added.get(3, ([(width // 2, height // 2)], False))
    x0, y0 = first
    assert int(0.3 * width) <= x0 <= width - 1 - int(0.3 * width)
    assert int(0.3 * height) <= y0 <= height - 1 - int(0.3 * height)
    walk, (x, y) = [first], first
    for ring in range(1, max(x0, y0, width - x0, height - y0) + 1):
        x = x0 - ring
        y = y0 + ring
        for dx, dy in ((1, 0), (0, -1), (-1, 0), (0, 1)):
            for _ in range(2 * ring):
                x = x + dx
                y = y + dy
                walk.append((x, y))
    for turn, (cells, _) in added.items():
        nth = turn // 3 - 1
        due = turn % 3 == 0 and nth < len(walk)
        assert cells == [
            c for c in walk[nth : nth + 1] if due and 0 <= c[0] < width and 0 <= c[1] < height
        ]


def check_scatter(width, height, added):
    used = [cell for cells, _ in added.values() for cell in cells]
    assert len(used) == len(set(used))
    for turn, (cells, _) in added.items():
        assert len(cells) == (turn % 2 == 0 and turn <= 2 * width * height)


def check_grow_box(width, height, added):
    (first,), _ = added[1]
    assert 2 <= first[0] <= width - 2
    assert 2 <= first[1] <= height - 2
    left, bottom, right, top = *first, *first
    for turn, (cells, full) in added.items():
        if (
            turn == 1
            or turn % 12 != 1
            or full
            or not (left or bottom or right < width - 1 or top < height - 1)
        ):
            assert turn == 1 or cells == []
            continue
        lines = {}
        if left > 0:
            lines[left - 1, bottom, right, top] = [(left - 1, y) for y in range(bottom, top + 1)]
        if right < width - 1:
            lines[left, bottom, right + 1, top] = [(right + 1, y) for y in range(bottom, top + 1)]
        if bottom > 0:
            lines[left, bottom - 1, right, top] = [(x, bottom - 1) for x in range(left, right + 1)]
        if top < height - 1:
            lines[left, bottom, right, top + 1] = [(x, top + 1) for x in range(left, right + 1)]
        ((left, bottom, right, top),) = [
            box for box, line in lines.items() if sorted(line) == cells
        ]


def ring(first, distance, width, height):
    x0, y0 = first
    cells = [(x, y) for x in range(width) for y in range(height)]
    return [(x, y) for x, y in cells if max(abs(x - x0), abs(y - y0)) == distance]


def check_expand_box(width, height, added):
    if not added[1][0]:
        return  # the first cell lies above a board that is lower than wide
    (first,), _ = added[1]
    assert 2 <= first[0] <= width - 2
    assert 2 <= first[1] <= width - 2
    for turn, (cells, full) in added.items():
        due = turn % 20 == 1 and not full
        assert cells == (ring(first, turn // 20, width, height) if due else [])


def check_expand_scatter(width, height, added):
    if not added[1][0]:
        return
    (first,), _ = added[1]
    assert first[0] >= 1
    assert first[1] >= 1
    order = [cell for d in range(max(width, height)) for cell in ring(first, d, width, height)]
    distance = [max(abs(x - first[0]), abs(y - first[1])) for x, y in order]
    used = []
    for turn, (cells, full) in added.items():
        assert len(cells) == (turn % 2 == 1 and not full and turn // 2 < len(order))
        for cell in cells:
            assert max(abs(cell[0] - first[0]), abs(cell[1] - first[1])) == distance[turn // 2]
            used.append(cell)
    assert len(used) == len(set(used))


SPREADING = {
    "hz_spiral": check_spiral,
    "hz_scatter": check_scatter,
    "hz_grow_box": check_grow_box,
    "hz_expand_box": check_expand_box,
    "hz_expand_scatter": check_expand_scatter,
}
RANDOM_HAZARDS = [*SPREADING, "royale", "healing_pools"]


@pytest.mark.parametrize("map_name", [m for m in OFFICIAL_MAPS if m != "solo_maze"])
def test_every_recorded_turn_ends_as_the_facts_say_and_ours_ends_alike(map_name):
    compared = 0
    for game, _, _, turns in recorded(map_name):
        for t in turns:
            before = t.stepped | {"turn": t.turn}
            ours = map_update(before, map=map_name, settings=game["settings"], seed=t.turn)
            check_food(before, t.after, map_name, game["settings"])
            check_food(before, ours, map_name, game["settings"])
            assert ours["snakes"] == before["snakes"] == t.after["snakes"]
            if map_name not in RANDOM_HAZARDS:
                assert points(ours["hazards"]) == points(t.after["hazards"]), (game["id"], t.turn)
            compared += 1
        if map_name in RANDOM_HAZARDS:
            steps = [(t.turn, t.stepped["hazards"], t.after["hazards"]) for t in turns]
            check_hazards(map_name, game["settings"], game["width"], game["height"], steps)
    assert compared > 600


def bare_games(map_name, width, height, *, num_games, num_turns, num_snakes=1, **settings):
    """Games of the map alone, nobody moving: for each one, (T, hazards before, hazards after) of
    all turns.
    """
    state = State(
        num_games,
        width=width,
        height=height,
        num_snakes=num_snakes,
        settings=Settings(map=map_name, **settings),
    )
    boards = np.arange(num_games)
    maps.set_up(state, boards)
    histories = [[] for _ in boards]
    now = [hazard_points(state, b) for b in boards]
    for turn in range(num_turns):
        maps.update(state, boards)
        for b in boards:
            after = hazard_points(state, b)
            histories[b].append((turn, now[b], after))
            now[b] = after
        state.arrays.turn[:] += 1
    return histories


def hazard_points(state, board):
    return [{"x": x, "y": y} for x, y in state.points(state.arrays.hazards[board])]


@pytest.mark.parametrize(
    ("map_name", "width", "height"),
    [
        (map_name, width, height)
        for map_name in RANDOM_HAZARDS
        for width, height in [(7, 7), (11, 11), (8, 8), (11, 7), (7, 11), (4, 5), (11, 3)]
        if (map_name != "healing_pools" or (width, height) in maps.catalogue.LIMITS[map_name].sizes)
        and height >= maps.catalogue.LIMITS[map_name].smallest_side
    ],
)
def test_our_own_games_keep_the_schedule_of_random_hazards(map_name, width, height):
    every = 7
    games_ = bare_games(
        map_name,
        width,
        height,
        num_games=4,
        num_turns=260,
        shrink_every_n_turns=every,
        minimum_food=0,
    )
    for history in games_:
        check_hazards(map_name, {"shrinkEveryNTurns": every}, width, height, history)
    if width == 11:
        assert len({str(history) for history in games_}) > 1


def patterned(map_name, width, height):
    """The cells of a map whose hazards follow from the size, by the facts sheet."""
    cells = [(x, y) for x in range(width) for y in range(height)]
    inset = {(x, y): min(x, y, width - 1 - x, height - 1 - y) for x, y in cells}
    if map_name == "hz_columns":
        return {(x, y) for x, y in cells if x % 2 and y % 2}
    insets = (
        {1}
        if map_name == "hz_inner_wall"
        else {offset - 1 for offset in range(2, 25, 2) if offset < width // 2}
    )
    return {cell for cell in cells if inset[cell] in insets}


@pytest.mark.parametrize(("width", "height"), [(7, 11), (11, 7), (19, 9)])
@pytest.mark.parametrize("map_name", ["hz_inner_wall", "hz_rings", "hz_columns"])
def test_patterns_follow_from_width_and_height(map_name, width, height):
    ((_, _, after),) = bare_games(map_name, width, height, num_games=1, num_turns=1)[0]
    assert points(after) == Counter(patterned(map_name, width, height))


@pytest.mark.parametrize(
    ("width", "height", "rings"), [(7, 11, 3), (11, 7, 5), (19, 11, 7), (11, 19, 5)]
)
def test_the_width_says_how_many_rings_a_sinkhole_has(width, height, rings):
    every = 4
    expected = Counter()
    for turn, _, after in bare_games(
        "sinkholes", width, height, num_games=1, num_turns=40, shrink_every_n_turns=every
    )[0]:
        radius = (turn - 1) // every
        if turn >= 1 and (turn - 1) % every == 0 and radius < rings:
            x0 = width // 2
            y0 = height // 2
            square = [
                (x, y)
                for x in range(width)
                for y in range(height)
                if max(abs(x - x0), abs(y - y0)) <= radius
            ]
            corners = (
                {(x0 + dx, y0 + dy) for dx in (-radius, radius) for dy in (-radius, radius)}
                if radius
                else set()
            )
            expected.update(cell for cell in square if cell not in corners)
        assert points(after) == expected, turn


def quadrants_of(width):
    """The standard map's four lists of start cells for 9 to 16 snakes."""
    near = width // 2 // 3
    far = width // 2 - width // 2 // 3
    corner = [(x, y) for x in (near, far) for y in (near, far)]
    flip = width - 1
    across = [(flip - x, y) for x, y in corner]
    up = [(x, flip - y) for x, y in corner]
    return [corner, across, up, [(flip - x, flip - y) for x, y in corner]]


def check_round_robin(heads, lists):
    """Snake i starts on an unused cell of list (first + i) mod 4."""
    assert len(heads) == len(set(heads))
    assert any(
        all(h in map(tuple, lists[(first + i) % 4]) for i, h in enumerate(heads))
        for first in range(4)
    )


def check_standard_start(heads, width, height):
    assert len(heads) == len(set(heads))
    centre = (width - 1) // 2, (height - 1) // 2
    if width == height >= 7 and len(heads) <= 8:
        low = 1
        mid = (width - 1) // 2
        high = width - 2
        corners = {(low, low), (low, high), (high, low), (high, high)}
        middles = {(low, mid), (mid, low), (mid, high), (high, mid)}
        first, second = (corners, middles) if heads[0] in corners else (middles, corners)
        assert set(heads[:4]) <= first
        assert set(heads[4:]) <= second
    elif width == height >= 11:
        check_round_robin(heads, quadrants_of(width))
    else:
        assert all((x + y) % 2 == 0 and (x, y) != centre for x, y in heads)


def check_start(map_name, heads, width, height):
    start = FACTS[map_name]["start"]
    if start["policy"] == "standard":
        check_standard_start(heads, width, height)
    elif start["policy"] == "quadrants":
        check_round_robin(heads, start["quadrants"])
    else:
        groups = start.get("groups") or [start.get("positions") or start["shuffled"]]
        num_groups = -(-len(heads) // 4) if "groups" in start else 1
        fixed = [tuple(c) for c in start.get("then_in_order", [])]
        pool = [tuple(c) for group in groups[:num_groups] for c in group]
        shuffled = heads[:4] if fixed else heads
        assert len(set(heads)) == len(heads)
        assert set(shuffled) <= set(pool)
        assert heads[len(shuffled) :] == fixed[: len(heads) - len(shuffled)]


def diagonals(head, width, height, taken):
    """Where the first food of a snake may lie."""
    centre = (width - 1) // 2, (height - 1) // 2
    cells = [(head[0] + dx, head[1] + dy) for dx in (-1, 1) for dy in (-1, 1)]
    outward = [
        c
        for c in cells
        if any(c[k] < head[k] < centre[k] or centre[k] < head[k] < c[k] for k in (0, 1))
    ]
    corners = {(x, y) for x in (0, width - 1) for y in (0, height - 1)}
    inside = [c for c in outward if 0 <= c[0] < width and 0 <= c[1] < height]
    return [c for c in inside if c not in corners | taken | {centre}]


def can_match(choices, cells):
    """Whether each list of choices can get a cell of its own, with none left over."""
    if not choices:
        return not cells
    return any(can_match(choices[1:], cells - {c}) for c in choices[0] if c in cells)


def check_first_food(map_name, board, settings):
    food = set(points(board["food"]))
    width = board["width"]
    height = board["height"]
    heads = [body[0] for body in bodies(board)]
    policy = FACTS[map_name]["initial_food"]["policy"]
    centre = ((width - 1) // 2, (height - 1) // 2)
    assert len(food) == len(board["food"])
    if policy == "none":
        assert not food
    elif policy == "cells":
        assert food == ({(9, 11)} if settings["minimumFood"] > 0 else set())
    elif policy == "fixed_avoiding_occupied":
        taken = set(points(board["hazards"])) | set(heads)
        assert can_match([diagonals(h, width, height, taken) for h in heads], food)
    elif width == height >= 7:
        assert centre in food
        many = len(heads) > 4 and width * height < 121
        assert can_match(
            [] if many else [diagonals(h, width, height, set()) for h in heads], food - {centre}
        )
    else:
        assert len(food) == len(heads)
        assert food <= free_cells(board | {"food": []}, map_name)


def check_first_hazards(map_name, board):
    facts = FACTS[map_name]["hazards"]
    size = f"{board['width']}x{board['height']}"
    hazards = points(board["hazards"])
    if "options_by_size" in facts:
        assert hazards in [Counter(map(tuple, option)) for option in facts["options_by_size"][size]]
    elif "by_size" in facts:
        assert hazards == Counter(map(tuple, facts["by_size"][size]))
    elif facts["policy"] == "static":
        assert hazards == Counter(map(tuple, facts["cells"]))
    else:
        assert not hazards


def check_laid_out(map_name, board, settings):
    assert all(
        len(s["body"]) == 3 and s["health"] == 100 and len(set(points(s["body"]))) == 1
        for s in board["snakes"]
    )
    check_start(map_name, [body[0] for body in bodies(board)], board["width"], board["height"])
    check_first_food(map_name, board, settings)
    check_first_hazards(map_name, board)


@pytest.mark.parametrize("map_name", [m for m in OFFICIAL_MAPS if m != "solo_maze"])
def test_recorded_set_ups_and_ours_satisfy_the_facts(map_name):
    for game, laid_out, _, _ in recorded(map_name):
        check_laid_out(map_name, laid_out, game["settings"])
    facts = FACTS[map_name]
    for width, height in facts["sizes"]:
        for num_snakes in range(1, min(facts["max_players"], 8 if width < 11 else 16) + 1):
            ids = [str(i) for i in range(num_snakes)]
            for seed in range(4):
                settings = {"minimumFood": seed % 2, "shrinkEveryNTurns": 5}
                board = setup_board(
                    map=map_name,
                    width=width,
                    height=height,
                    snake_ids=ids,
                    settings=settings,
                    seed=seed,
                )
                check_laid_out(map_name, board, settings)


@pytest.mark.parametrize(
    ("width", "height"), [(3, 3), (5, 5), (4, 9), (8, 8), (10, 10), (24, 25), (25, 7)]
)
def test_standard_set_up_on_unlisted_sizes(width, height):
    for num_snakes in (1, 2, 4) if width == 3 else (1, 4, 8):
        for seed in range(8):
            ids = [str(i) for i in range(num_snakes)]
            board = setup_board(width=width, height=height, snake_ids=ids, seed=seed)
            check_standard_start([body[0] for body in bodies(board)], width, height)
            if width != height or width >= 7:
                check_first_food("standard", board, {})
