"""The nine maps that are drawn cell by cell: castles, rivers, islands and the arcade's maze.

A drawing shows the top row first. `#` is a hazard, and a digit is a hazard of that many layers. `f`
is a cell where food may appear. `a` to `d` are start cells of the groups 0 to 3, and `A` is a start
cell where food may appear, too. Only boards of the drawing's size can be played."""

from __future__ import annotations

import numpy as np

from envs.battlesnake.settings import MAP_IDS

DRAWINGS = {
    "hz_castle_wall": (
        """
...........
.a...b...a.
..##2f2##..
..#.....#..
..2.....2..
.bf.....fb.
..2.....2..
..#.....#..
..##2f2##..
.a...b...a.
...........
"""
    ),
    "hz_castle_wall_lg": (
        """
...................
.a.......b.......a.
..#####2f2f2#####..
..#####2f2f2#####..
..##...........##..
..##...........##..
..##...........##..
..22...........22..
..ff...........ff..
.b22...........22b.
..ff...........ff..
..22...........22..
..##...........##..
..##...........##..
..##...........##..
..#####2f2f2#####..
..#####2f2f2#####..
.a.......b.......a.
...................
"""
    ),
    "hz_castle_wall_xl": (
        """
.........................
.....b......c......b.....
.........................
...####2f2#2f2#2f2####...
...####2f2#2f2#2f2####...
.a.##...............##.a.
...##...............##...
...22...............22...
...ff...............ff...
...22...............22...
...##...............##...
...22...............22...
.c.ff...............ff.c.
...22...............22...
...##...............##...
...22...............22...
...ff...............ff...
...22...............22...
...##...............##...
.a.##...............##.a.
...####2f2#2f2#2f2####...
...####2f2#2f2#2f2####...
.........................
.....b......c......b.....
.........................
"""
    ),
    "hz_rivers_bridges": (
        """
.....#.....
.c.c.#...b.
...........
.....#.b...
.....#.....
##.#####.##
.....#.....
...a.#.d...
...........
.a...#...d.
.....#.....
"""
    ),
    "hz_rivers_bridges_lg": (
        """
.........#.........
.c...c...#...d...d.
.........#.........
...................
.........#.........
.c...c...#...d...d.
.........#.........
.........#.........
........###........
####.#########.####
........###........
.........#.........
.........#.........
.a...a...#...b...b.
.........#.........
...................
.........#.........
.a...a...#...b...b.
.........#.........
"""
    ),
    "hz_rivers_bridges_xl": (
        """
............#............
.d.......d.....b.......b.
............#............
............#............
............#............
............#............
............#............
.........................
............#............
.d.......d..#..b.......b.
...........###...........
..........#####..........
#.#####.#########.#####.#
..........#####..........
...........###...........
.a.......a..#..c.......c.
............#............
.........................
............#............
............#............
............#............
............#............
............#............
.a.......a.....c.......c.
............#............
"""
    ),
    "hz_islands_bridges": (
        """
##..###..##
#..c.#.b..#
...........
.c...#...b.
#....#....#
##.#####.##
#....#....#
.a...#...d.
...........
#..a.#.d..#
##..###..##
"""
    ),
    "hz_islands_bridges_lg": (
        """
####..#######..####
##......###......##
#.d...d..#..c...c.#
#........#........#
...................
.........#.........
#.d...d..#..c...c.#
#........#........#
##......###......##
####.#########.####
##......###......##
#........#........#
#.a...a..#..b...b.#
.........#.........
...................
#........#........#
#.a...a..#..b...b.#
##......###......##
####..#######..####
"""
    ),
    "arcade_maze": (
        """
#.###############.#
#........#........#
#.##.###.#.###.##.#
#...A....f....A...#
#.##.#.#####.#.##.#
#....#...#...#....#
#..#.###.#.###.#..#
#..#.#...c...#.#..#
####.#.#.#.#.#.####
...f...#.f.#...f...
####.#.#.#.#.#.####
#..#.#...b...#.#..#
#..#.#.#####.#.#..#
#...A....#....A...#
#.##.###.#.###.##.#
#..#.....f.....#..#
##.#.#.#####.#.#.##
#....#...#...#....#
#.######.#.######.#
#f.......f.......f#
#.###############.#
"""
    ),
}

FIRST_DRAWN = MAP_IDS["hz_castle_wall"]
_MOST_CELLS = (25 + 2) * (25 + 2)


def size(name: str) -> tuple[int, int]:
    """Return (width, height) of a drawing."""
    rows = DRAWINGS[name].split()
    return len(rows[0]), len(rows)


def _cells(name: str, letters: str) -> list[int]:
    """Return the padded numbers of the cells that bear one of the letters, by column and then
    upwards.
    """
    rows = DRAWINGS[name].split()[::-1]
    width, height = size(name)
    cells = []
    for x in range(width):
        for y in range(height):
            if rows[y][x] in letters:
                cells.append((y + 1) * (width + 2) + x + 1)
    return cells


def _table(lists: list[list[int]], columns: int) -> np.ndarray:
    table = np.full((len(lists), columns), -1, np.int16)
    for row, cells in zip(table, lists, strict=True):
        row[: len(cells)] = cells
    return table


def _hazard_layers() -> np.ndarray:
    layers = np.zeros((len(DRAWINGS), _MOST_CELLS), np.uint8)
    for drawing, name in enumerate(DRAWINGS):
        for count, letters in enumerate(("#1", "2", "3", "4"), 1):
            layers[drawing, _cells(name, letters)] = count
    return layers


def _start_groups(name: str) -> np.ndarray:
    """Return the cells of the groups a to d, one group per row, int16 (4, 4)."""
    return _table([_cells(name, letter + letter.upper()) for letter in "abcd"], 4)


# What the kernels read, row = map id - FIRST_DRAWN. Lists of padded cells are filled up with -1.
SIZES = np.array([size(name) for name in DRAWINGS], np.int16)  # (9, 2): width, height
LAYERS = _hazard_layers()  # (9, cells): hazard layers
FOOD_SPOTS = _table([_cells(name, "fA") for name in DRAWINGS], 24)  # (9, 24)
START_GROUPS = np.stack([_start_groups(name) for name in DRAWINGS])  # (9, 4, 4)
