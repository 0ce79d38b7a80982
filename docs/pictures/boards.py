"""Draws worlds: Battlesnake's maps and rulesets, what a network sees, what players answer, and
Procgen's games and levels.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from PIL import ImageColor

import agents
import envs
from agents.measure.evaluation.referee import Referee
from envs.battlesnake import EgocentricPlanes, Settings, State
from envs.battlesnake.maps.catalogue import LIMITS
from envs.battlesnake.observing.painting import PLANES
from envs.battlesnake.plain import board_from_state, map_update, setup_board
from envs.battlesnake.render.rgb import paint, rgb_array
from envs.battlesnake.settings import OFFICIAL_MAPS
from envs.battlesnake.state import MOVE_NAMES
from envs.common.palette import ROLES, TEAL
from envs.procgen.games import GAMES

_DPI = 110
_MUTED, _ = ROLES["muted"]
_PLANE_COLOURS = LinearSegmentedColormap.from_list("planes", [ROLES["raised"][0], TEAL])
_BIG_MAP = 11


def gallery(path: Path, pictures: Sequence[tuple[str, Any]], columns: int, size: float) -> None:
    """Write named pictures (RGB or planes) in a grid of `columns`, each `size` inches wide."""
    rows = -(-len(pictures) // columns)
    figure = Figure(figsize=(size * columns, (size + 0.22) * rows), layout="constrained")
    for axes in figure.subplots(rows, columns, squeeze=False).flat:
        axes.set_axis_off()
    for axes, (name, image) in zip(figure.axes, pictures):
        axes.imshow(image, interpolation="nearest", cmap=_PLANE_COLOURS)
        axes.set_title(name, fontsize=9, color=_MUTED)
    figure.savefig(path, dpi=_DPI, metadata={"Software": None})


def maps(path: Path) -> None:
    """Every official map after 30 turns, on the smallest board that it can be played on from 11×11
    up."""
    gallery(path, [(name, _map(name)) for name in OFFICIAL_MAPS], columns=5, size=1.9)


def _map(name: str, turns: int = 30) -> np.ndarray:
    sizes = LIMITS[name].sizes or ((_BIG_MAP, _BIG_MAP),)
    width, height = next((size for size in sizes if size[0] >= _BIG_MAP), sizes[-1])
    ids = "abcd"[: min(4, LIMITS[name].most_snakes)]
    board = setup_board(map=name, width=width, height=height, snake_ids=ids)
    for turn in range(turns):
        board = map_update({**board, "turn": turn}, map=name, seed=turn)
    return np.asarray(paint(board, cell=max(6, 200 // width)))


def rulesets(path: Path) -> None:
    """A game of flood snakes by each ruleset."""
    turns = {"standard": 60, "royale": 60, "wrapped": 60, "constrictor": 14, "solo": 60}
    shown = [
        (f"{ruleset}, turn {turn}", _paint(_played(ruleset, turn)))
        for ruleset, turn in turns.items()
    ]
    gallery(path, shown, columns=5, size=2.2)


def _played(ruleset: str, turns: int) -> State:
    """A game between flood snakes on turn `turns`, or at its end."""
    settings = Settings(ruleset=ruleset, map="royale" if ruleset == "royale" else "standard")
    seats = [agents.make("flood")] * (1 if ruleset == "solo" else 4)
    referee = Referee(seats, settings=settings, seed=3, max_turns=turns)
    for _ in referee.play():
        pass
    return referee.state


def _paint(state: State) -> np.ndarray:
    return rgb_array(state, 0, cell=20)


def planes(path: Path) -> None:
    """A board, and the twelve planes that the first snake's network sees of it."""
    state = _played("standard", 50)
    seen = EgocentricPlanes().observe(state, np.zeros(1, np.int64), np.zeros(1, np.int64))[0]
    shown = [(name.replace("_", " "), seen[..., k]) for k, name in enumerate(PLANES)]
    gallery(path, [("the board", _paint(state)), *shown], columns=7, size=1.5)


def heuristics(path: Path) -> None:
    """One board, and what four players answer for its first snake."""
    state = _played("standard", 32)
    shown = []
    for name in ("random", "greedy", "flood", "champion-standard"):
        move = agents.make(name).act(state, 0).move
        shown.append((f"{name}: {MOVE_NAMES[move]}", _marked(state, move)))
    gallery(path, shown, columns=4, size=2.4)


def _marked(state: State, move: int) -> np.ndarray:
    """The board with the cell that the first snake's move leads to in teal."""
    head = board_from_state(state, 0, list("abcd"))["snakes"][0]["body"][0]
    dx, dy = ((0, 1), (0, -1), (-1, 0), (1, 0))[move]
    left = 10 + 20 * (head["x"] + dx)
    top = 10 + 20 * (state.height - 1 - head["y"] - dy)
    marked = _paint(state).copy()
    marked[top + 1 : top + 19, left + 1 : left + 19] = ImageColor.getrgb(TEAL)
    return marked


def procgen_games(path: Path) -> None:
    """All sixteen games after random steps, in the 64 × 64 pixels that an agent sees."""
    gallery(path, [(game, _frame(game)) for game in sorted(GAMES)], columns=8, size=1.35)


def procgen_levels(path: Path) -> None:
    """Eight levels of one game: what "unseen levels" means."""
    gallery(path, [(f"level {k}", _frame("maze", k)) for k in range(8)], 8, 1.35)


def procgen_modes(path: Path) -> None:
    """The same games in easy and in hard mode."""
    shown = [
        (f"{game}, {mode}", _frame(game, 1, mode))
        for mode in ("easy", "hard")
        for game in ("bigfish", "chaser", "maze", "heist", "leaper", "miner")
    ]
    gallery(path, shown, 6, 1.6)


def _frame(game: str, level: int = 1, mode: str = "easy", steps: int = 40) -> np.ndarray:
    options = {"distribution_mode": mode, "levels": f"{level}:1"}
    world = envs.make(f"procgen/{game}", num_games=1, **options)
    generator = np.random.default_rng(0)
    world.restart(1)
    for _ in range(steps):
        world.advance(generator.integers(world.single_action_space.n, size=1))
    frame = np.array(world.observations[0])
    world.close()
    return frame


MAKERS = {
    "heuristics.png": heuristics,
    "maps.png": maps,
    "planes.png": planes,
    "procgen.png": procgen_games,
    "procgen-levels.png": procgen_levels,
    "procgen-modes.png": procgen_modes,
    "rulesets.png": rulesets,
}
