"""`procsnake report RUN RUN …`: several runs in one frame, the seeds of an experiment as one line with a band."""

from __future__ import annotations

import math
import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import yaml

from agents.charts import Line, line_chart
from agents.charts_png import save_charts
from agents.page import figures, html_page, table
from envs.command_line import write_whole
from envs.errors import UnknownNameError
from train.comparison import LAST_SHARE, mean, on_grid, reached
from train.report import Columns, read_columns, read_config
from train.run_folder import RunError, disk_errors

USUAL = ("episode_return_mean", "episode_len_mean", "win_rate")
"""Columns that are shown unless others are asked for, as far as the runs have them."""
_POINTS = 40


@dataclass(frozen=True)
class Group:
    """Runs of one experiment that differ in nothing but their seed."""

    name: str
    histories: list[Columns]

    @property
    def minutes(self) -> float:
        """Of training that all of them have had."""
        return float(min(columns["minutes"][-1] for columns in self.histories))


def write_curves(
    runs: Sequence[str | os.PathLike[str]], out: str | os.PathLike[str], metrics: Sequence[str] = ()
) -> list[Group]:
    """Write the runs' curves of `metrics` (columns of progress.csv; default: `USUAL`) by minutes as `out`.html and `out`.png.

    Raises `RunError` if one is no run or has no iteration yet, `UnknownNameError` for a metric that none of them has.
    """
    groups, target = _groups([Path(run) for run in runs]), Path(out)
    known = {name for group in groups for columns in group.histories for name in columns}
    for name in metrics:
        if name not in known:
            raise UnknownNameError("metric", name, sorted(known))
    shown = {name: _lines(groups, name) for name in metrics or [name for name in USUAL if name in known]}
    with disk_errors(target.parent):
        target.parent.mkdir(parents=True, exist_ok=True)
        write_whole(target.with_name(f"{target.name}.html"), _page(groups, shown))
        save_charts(target.with_name(f"{target.name}.png"), list(shown.items()))
    return groups


def rows_of(groups: Sequence[Group], metrics: Sequence[str]) -> tuple[list[str], list[list[str]]]:
    """Heads, and a row for each group: what it reached in the last fifth of its time, with 95 % intervals over seeds."""
    rows = []
    for group in groups:
        steps = np.mean([columns["agent_steps"][-1] for columns in group.histories])
        ends = [mean([reached(columns, name, group.minutes) for columns in group.histories]) for name in metrics]
        cells = [end.text() for end in ends]
        rows.append([group.name, str(len(group.histories)), f"{group.minutes:.1f}", f"{steps:,.0f}", *cells])
    return ["experiment", "seeds", "minutes", "decisions", *metrics], rows


def _groups(runs: Sequence[Path]) -> list[Group]:
    by_config: dict[str, Group] = {}
    numbers: Counter[str] = Counter()
    for run in runs:
        config, columns = read_config(run), read_columns(run)
        if not columns:
            raise RunError(f"{run} has no finished iteration yet, so no curve. Wait for one, or leave this run out")
        config = {key: value for key, value in config.items() if key not in ("run", "seed")}
        key = yaml.safe_dump(config)
        if key not in by_config:
            name = str(config.get("name", run.name))
            numbers[name] += 1
            by_config[key] = Group(name if numbers[name] == 1 else f"{name} #{numbers[name]}", [])
        by_config[key].histories.append(columns)
    return list(by_config.values())


def _lines(groups: Sequence[Group], name: str) -> list[Line]:
    lines = []
    for group in groups:
        # As many points as the rarest column has, or evaluations of several seeds would hardly ever fall together.
        known = min(int(np.isfinite(columns.get(name, np.array([math.nan]))).sum()) for columns in group.histories)
        # A little longer: the last iteration, and the evaluation after it, end when the budget is used up already.
        grid = np.linspace(0, group.minutes * 1.02, max(1, min(known, _POINTS)) + 1)[1:]
        by_run = on_grid(group.histories, name, grid)
        met = np.isfinite(by_run)
        middle = np.where(met.any(0), np.nansum(by_run, axis=0) / np.maximum(met.sum(0), 1), math.nan)
        band = {"low": np.fmin.reduce(by_run), "high": np.fmax.reduce(by_run)} if len(by_run) > 1 else {}
        lines.append(Line(name=group.name, x=grid, y=middle, **band))
    return lines


def _page(groups: Sequence[Group], shown: dict[str, list[Line]]) -> str:
    note = (
        "Mean over seeds; bands from the lowest to the highest. In the table: episodes that ended in the last "
        f"{LAST_SHARE:.0%} of the time, with 95 % intervals over seeds (Student). Runs of one experiment whose configurations "
        "differ in more than the seed are numbered."
    )
    charts = [(name, line_chart(lines, x_label="minutes", zero=True)) for name, lines in shown.items()]
    heads, rows = rows_of(groups, list(shown))
    title = " and ".join(dict.fromkeys(group.name for group in groups))
    curves = figures("Curves", note, charts, wide=True)
    return html_page(title, ["<h1>Runs beside each other</h1>", curves, table(rows, head=heads)])
