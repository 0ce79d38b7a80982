"""Draws this documentation's charts: `data/compare/benchmark.json`, which `procsnake benchmark
battlesnake` wrote, and the first snake's run.

`data/first-snake/` is a run of `procsnake train battlesnake-ppo` with seed 0, without its policy.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np

from agents.measure.evaluation import wilson_interval
from agents.measure.pages import Chart, Line
from agents.measure.pages.figure import save_charts
from train.comparison.battlesnake_benchmark import charts_of
from train.runs.curves.history import read_columns, read_config
from train.runs.report import charts as report

HERE = Path(__file__).parent
FIRST_SNAKE = HERE / "data" / "first-snake"
WIN_PROBABILITY = HERE.parents[1] / "agents" / "measure" / "analysis" / "win_probability.json"
COMPARISON = HERE / "data" / "compare" / "benchmark.json"
_CONTENDERS = {
    "ppo": ("ppo",),
    "dqn": ("dqn-1", "dqn-all"),
    "apex": ("apex",),
    "mxnet-dqn": ("mxnet-dqn", "mxnet-equal"),
}
_SEATS = {"duel": 2, "2": 2, "3": 3, "4": 4}


def one_trainer(contender: str) -> list[Chart]:
    """The comparison's charts with the lines of one trainer alone."""
    names = _CONTENDERS[contender]
    return [
        replace(chart, lines=[line for line in chart.lines if line.name in names])
        for chart in comparison()
    ]


def comparison() -> list[Chart]:
    """The learning curves of all contenders."""
    return charts_of(json.loads(COMPARISON.read_text(encoding="utf-8")))


def first_snake() -> dict[str, list[Chart]]:
    """The charts of the first snake's run, as in its report."""
    history = read_columns(FIRST_SNAKE)
    learning = {chart.title: chart for chart in report.learning(history)}
    wins, lengths = report.first(read_config(FIRST_SNAKE), history)
    named = ("policy entropy (entropy)", "value loss (vf_loss)")
    return {
        "first-snake-wins": [wins],
        "first-snake-length": [lengths],
        "first-snake-causes": report.causes(history),
        "first-snake-learning": [learning[name] for name in named],
        "first-snake-speed": report.speed(history)[1:],
    }


def first_snake_rates() -> list[tuple[str, float, float, float]]:
    """(opponents, share of games won, low, high) that `procsnake evaluate` measured of that run."""
    data = json.loads((FIRST_SNAKE / "evaluation.json").read_text(encoding="utf-8"))
    rows = []
    for score in data["scores"]:
        others = score["opponents"]
        name = f"{len(others)} × {others[0]}" if len(others) > 1 else f"{others[0]} (duel)"
        low, high = wilson_interval(score["wins"], score["games"])
        rows.append((name, score["wins"] / score["games"], low, high))
    return rows


def rates(path: Path) -> None:
    """Draw the first snake's wins with their intervals."""
    from matplotlib.figure import Figure
    from matplotlib.ticker import PercentFormatter

    from envs.common.palette import ROLES, TEAL

    rows = first_snake_rates()[::-1]
    names, values, lows, highs = zip(*rows, strict=True)
    ends = [np.subtract(values, lows), np.subtract(highs, values)]
    figure = Figure(figsize=(8, 2.8), layout="constrained")
    axes = figure.subplots()
    axes.errorbar(values, names, xerr=ends, fmt="o", color=TEAL, elinewidth=3)
    axes.set_title("Games won after three minutes of training", loc="left", fontweight="bold")
    axes.set_xlabel("share of 100 games, with 95 % intervals", color=ROLES["muted"][0])
    axes.set_xlim(0.0, 1.02)
    axes.xaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
    axes.grid(axis="x", color=ROLES["line"][0])
    axes.set_axisbelow(True)
    axes.spines[["top", "right", "left"]].set_visible(False)
    figure.savefig(path, dpi=140, metadata={"Software": None})


def win_probability() -> Chart:
    """How likely a win is by alpha-beta's evaluation, as the analysis counts it."""
    curves = json.loads(WIN_PROBABILITY.read_text(encoding="utf-8"))["curves"]
    scores = np.linspace(-6000.0, 6000.0, 121)
    lines = [
        Line(
            name=f"{name} snakes" if name != "duel" else "duel",
            x=scores,
            y=1.0 / (1.0 + np.exp(-(scores / curve["scale"] + curve["offset"]))),
        )
        for name, curve in curves.items()
    ]
    return Chart(
        title="probability of winning by the evaluation of a position",
        x_label="evaluation, in points of alpha-beta",
        y_label="share of games",
        lines=lines,
        shares=True,
    )


def makers() -> Iterator[tuple[str, Callable[[Path], None]]]:
    """Yield the name of each chart's picture with the function that draws it."""

    def saver(charts: Callable[[], list[Chart]]) -> Callable[[Path], None]:
        return lambda path: save_charts(path, charts())

    yield "compare.png", saver(comparison)
    for contender in _CONTENDERS:
        yield f"curves-{contender}.png", saver(lambda name=contender: one_trainer(name))
    for name in ("wins", "length", "causes", "learning", "speed"):
        yield (
            f"first-snake-{name}.png",
            saver(lambda name=name: first_snake()[f"first-snake-{name}"]),
        )
    yield "first-snake-rates.png", rates
    yield "win-probability.png", saver(lambda: [win_probability()])
