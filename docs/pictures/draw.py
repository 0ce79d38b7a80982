"""Draws this documentation's charts from `curves/*.csv`, and the sixteen Procgen games: `python
docs/pictures/draw.py`.

`compare.csv` and `trainers.csv` were read back, to two pixels, from the pictures that commit
9be3ed9 held, because the runs themselves were not kept. In `trainers.csv` points that were no means
over all three seeds are left out."""

from __future__ import annotations

import csv
from itertools import groupby
from pathlib import Path

import numpy as np

import envs
from agents.measure.pages import Chart, Line
from agents.measure.pages.figure import save_charts
from envs.procgen.games import GAMES

HERE = Path(__file__).parent
UNITS = {
    "reward per snake": "reward",
    "turns that a snake lives": "turns",
    "duels won against random": "share of duels",
    "turns that a snake lives in self-play": "turns",
}


def read_charts(path: Path) -> list[Chart]:
    """The charts of a CSV file: a row for each point, those of a line together, those of a chart
    together.
    """
    with open(path, newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    return [
        Chart(
            title=title,
            x_label="minutes of training",
            y_label=UNITS[title],
            lines=[
                _line(name, list(points))
                for name, points in groupby(own, key=lambda row: row["line"])
            ],
            from_zero=True,
            shares=UNITS[title].startswith("share"),
        )
        for title, own in groupby(rows, key=lambda row: row["chart"])
    ]


def _line(name: str, points: list[dict[str, str]]) -> Line:
    mean, minutes = (
        np.array([float(point[key]) for point in points]) for key in ("mean", "minutes")
    )
    bands = {
        key: np.array([float(point[key]) for point in points])
        for key in ("low", "high")
        if points[0][key]
    }
    return Line(name=name, x=minutes, y=mean, **bands)


def draw_games(path: Path, *, steps: int = 40) -> None:
    """All sixteen games with their names, each after random steps, in the 64 × 64 pixels that an
    agent sees.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 3.4), layout="constrained")
    for axes, game in zip(figure.subplots(2, 8).flat, sorted(GAMES), strict=True):
        world = envs.make(f"procgen/{game}", num_games=1, distribution_mode="easy")
        generator = np.random.default_rng(0)
        world.restart(1)
        for _ in range(steps):
            world.advance(generator.integers(world.single_action_space.n, size=1))
        axes.imshow(world.observations[0], interpolation="nearest")
        axes.set_title(game, fontsize=10)
        axes.set_axis_off()
        world.close()
    figure.savefig(path, dpi=140, metadata={"Software": None})


if __name__ == "__main__":
    for stem in ("compare", "trainers"):
        save_charts(HERE / f"{stem}.png", read_charts(HERE / "curves" / f"{stem}.csv"))
    draw_games(HERE / "procgen.png")
