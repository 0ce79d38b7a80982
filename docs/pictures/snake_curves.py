"""Keeps and draws how the snake experiments learn: the games that each won against three flood
snakes, by minutes of training, three seeds each.

    python docs/pictures/snake_curves.py curves RUN …    # writes data/snakes/curves.json

The runs are those of `procsnake train EXPERIMENT --set evaluation.every_minutes=1 --set
'evaluation.opponents=[[flood, flood, flood]]' --set evaluation.games=200 --set seed=N`. Those that
were trained by turns on one machine have a file of their own. The laboratory notes say on which:
docs/lab/compare.md."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

from agents.measure.pages import Chart, Line
from agents.measure.pages.figure import save_charts

RESULTS = Path(__file__).parent / "data" / "snakes"
TITLES = {"curves": "five algorithms", "recipes": "recipes, and the readable DQN"}
"""The files of results, and what stands above their charts."""
METRIC = "win_rate_vs_3xflood"


def main(file: str, *runs: str) -> None:
    """Write what these runs' folders hold: [minutes, decisions, share of games won] by seed."""
    from train.runs.curves.history import read_columns, read_config

    experiments: dict[str, dict[str, list[list[float]]]] = {}
    for run in runs:
        config = read_config(Path(run))
        columns = read_columns(Path(run))
        measured = np.isfinite(columns[METRIC])
        rows = np.column_stack([columns[name] for name in ("minutes", "agent_steps", METRIC)])
        by_seed = experiments.setdefault(config["name"], {})
        by_seed[str(config["seed"])] = [
            [round(minutes, 2), int(decisions), won] for minutes, decisions, won in rows[measured]
        ]
    text = json.dumps({"experiments": experiments})
    lines = text.replace('"battlesnake', '\n"battlesnake') + "\n"
    (RESULTS / f"{file}.json").write_text(lines, encoding="utf-8")


def line_of(name: str, by_seed: dict[str, list[list[float]]]) -> Line:
    """The mean over seeds after each minute, between the lowest and the highest seed."""
    seeds = [np.array(rows) for rows in by_seed.values()]
    minutes = np.arange(1.0, min(rows[-1, 0] for rows in seeds) + 0.01)
    won = np.array([np.interp(minutes, rows[:, 0], rows[:, 2]) for rows in seeds])
    return Line(
        name=name.removeprefix("battlesnake-"),
        x=minutes,
        y=won.mean(axis=0),
        low=won.min(axis=0),
        high=won.max(axis=0),
    )


def chart(file: str, title: str) -> Chart:
    """The curves of a file's experiments, the best at the end first."""
    data: dict[str, Any] = json.loads((RESULTS / f"{file}.json").read_text(encoding="utf-8"))
    lines = [line_of(name, by_seed) for name, by_seed in data["experiments"].items()]
    return Chart(
        title=f"{title}: games won against three flood",
        x_label="minutes of training",
        y_label="share of games",
        lines=sorted(lines, key=lambda line: -line.y[-1]),
        from_zero=True,
        shares=True,
    )


def draw(path: Path) -> None:
    save_charts(path, [chart(file, title) for file, title in TITLES.items()])


MAKERS = {"snake-curves.png": draw}

if __name__ == "__main__":
    main(*sys.argv[1:])
