"""Plots several runs in one chart, for `procsnake plot RUN RUN …`.

The seeds of an experiment become one line with a band.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from agents.measure.pages import Chart, chart_grid, html_page, lead, note, section, table
from agents.measure.pages.figure import save_charts
from envs.common.columns import counted
from envs.common.errors import UnknownNameError
from envs.common.plain_values import flat
from envs.common.whole_files import write_whole
from train.metrics.rows import comes_late
from train.metrics.words import title_of, unit_of
from train.runs.curves.history import Columns, read_columns, read_config
from train.runs.curves.statistics import BAND_NOTES, LAST_SHARE, mean, mean_line, reached_at
from train.runs.folder import RunError, disk_errors

USUAL = (
    "win_rate",
    "episode_return_mean",
    "episode_len_mean",
    "held_out_accuracy",
    "best_generation",
)
"""The columns that are shown by default, as far as the runs have them."""
SPEED = "agent_steps_per_second"
"""The column that is shown if no run has one of `USUAL`, as before the first episode has ended.
Every run has it.
"""
AXES = {
    "minutes": "minutes of training",
    "agent_steps": "decisions",
    "env_steps": "steps of the world",
}
"""The columns of progress.csv that curves can be drawn along, and their labels."""
_SHARES = "win_rate"
"""Beginning of the columns that are shares."""


@dataclass(frozen=True)
class SeedGroup:
    """Runs of one experiment that differ in nothing but their seed."""

    name: str
    histories: list[Columns]
    config: dict[str, Any]
    """The runs' settings, without the seed."""

    @property
    def minutes(self) -> float:
        """The minutes of training that all of the runs have had."""
        return float(min(columns["minutes"][-1] for columns in self.histories))


def write_curves(
    runs: Sequence[str | os.PathLike[str]],
    out: str | os.PathLike[str],
    metrics: Sequence[str] = (),
    *,
    by: str = "minutes",
    interval: str = "bootstrap",
) -> list[SeedGroup]:
    """Draw the runs' curves of `metrics` along the axis `by`, one of `AXES`, and return the groups
    of runs.

    The files are `out`.html and `out`.png.
    `metrics` are columns of progress.csv; the default is `usual`. `interval` is one of
    `BAND_NOTES`: the band over seeds. Raises `RunError` if one is not a run or has no iteration
    yet, and `UnknownNameError` for a metric that none of them has."""
    groups = groups_of([Path(run) for run in runs])
    target = Path(out)
    names = chosen_metrics(groups, metrics)
    charts = [chart_of(groups, name, by, interval) for name in names]
    with disk_errors(target.parent):
        target.parent.mkdir(parents=True, exist_ok=True)
        write_whole(target.with_name(f"{target.name}.html"), _page(groups, names, charts, interval))
        save_charts(target.with_name(f"{target.name}.png"), charts)
    return groups


def chosen_metrics(groups: Sequence[SeedGroup], metrics: Sequence[str]) -> list[str]:
    """Return `metrics`, or `usual` ones if there are none. Raises `UnknownNameError` for a metric
    that no run will have, and `RunError` for one without values yet.
    """
    available = _metrics_of(groups)
    for name in metrics:
        if name not in available and comes_late(name):
            raise RunError(
                f"none of the runs has a value of {name} yet, because no episode has ended in them;"
                " train on"
            )
        if name not in available:
            raise UnknownNameError("metric", name, sorted(available))
    return list(metrics) or usual(groups)


def usual(groups: Sequence[SeedGroup]) -> list[str]:
    """Return those of `USUAL` that any of the runs has, or else `SPEED`."""
    available = _metrics_of(groups)
    return [name for name in USUAL if name in available] or [SPEED]


def _metrics_of(groups: Sequence[SeedGroup]) -> set[str]:
    """The columns that at least one run has."""
    names: set[str] = set()
    for group in groups:
        names.update(*group.histories)
    return names


def chart_of(
    groups: Sequence[SeedGroup], metric: str, by: str, interval: str = "bootstrap"
) -> Chart:
    """Return a chart of a metric along the axis `by`: a line per group, with the band `interval`,
    one of `BAND_NOTES`.
    """
    lines = [
        mean_line(group.name, group.histories, metric, by=by, interval=interval) for group in groups
    ]
    shares = metric.startswith(_SHARES)
    unit = "share of games" if shares else unit_of(metric)
    return Chart(
        title=title_of(metric),
        x_label=AXES[by],
        y_label=unit,
        lines=lines,
        from_zero=True,
        shares=shares,
    )


def rows_of(
    groups: Sequence[SeedGroup], metrics: Sequence[str]
) -> tuple[list[str], list[list[str]]]:
    """Return the heads of a table, and a row for each group: its runs' results after the minutes
    that all of them have trained.

    A figure is the mean over seeds of `reached_at`, with Student's 95 % interval."""
    rows = []
    for group in groups:
        minutes = group.minutes
        steps = [
            np.interp(minutes, columns["minutes"], columns["agent_steps"])
            for columns in group.histories
        ]
        cells = [group.name, str(len(steps)), f"{minutes:.1f}", f"{np.mean(steps):,.0f}"]
        for name in metrics:
            by_seed = [reached_at(columns, name, minutes) for columns in group.histories]
            cells.append(mean(by_seed).text())
        rows.append(cells)
    return ["experiment", "seeds", "minutes", "decisions", *metrics], rows


def groups_of(runs: Sequence[Path]) -> list[SeedGroup]:
    """Group runs that differ only in their seed. Each counts once, however often it is named.

    Raises `RunError` for a folder that isn't a run or has no iteration yet.
    """
    by_config: dict[str, SeedGroup] = {}
    numbers: Counter[str] = Counter()
    # `compare runs/first runs/*` names the first one twice; as two seeds it would make intervals
    # and p-values too small.
    for run in {os.path.realpath(run): run for run in runs}.values():
        config = read_config(run)
        columns = read_columns(run)
        if not columns:
            raise RunError(
                f"{run} has no finished iteration yet, so no curve. Wait for one, or leave this"
                " run out"
            )
        config = {key: value for key, value in config.items() if key not in {"run", "seed"}}
        key = yaml.safe_dump(config)
        if key not in by_config:
            name = str(config.get("name", run.name))
            numbers[name] += 1
            if numbers[name] > 1:
                name += f" #{numbers[name]}"
            by_config[key] = SeedGroup(name, [], config)
        by_config[key].histories.append(columns)
    return list(by_config.values())


def apart(groups: Sequence[SeedGroup]) -> str:
    """Return labels that distinguish groups of one experiment, e.g. "x: ppo.gamma=0.9; x #2:
    ppo.gamma=0.5".
    """
    sentences = []
    for group in groups:
        own = flat(group.config)
        namesakes = [
            flat(other.config)
            for other in groups
            if other.config.get("name") == group.config.get("name")
        ]
        differing = [
            f"{key}={value}" for key, value in own.items() if not _all_have(namesakes, key, value)
        ]
        if differing:
            sentences.append(f"{group.name}: {' '.join(differing)}")
    return "; ".join(sentences)


def _all_have(settings: Sequence[Mapping[str, Any]], key: str, value: Any) -> bool:
    return all(other.get(key) == value for other in settings)


def _page(
    groups: Sequence[SeedGroup], names: Sequence[str], charts: Sequence[Chart], interval: str
) -> str:
    heads, rows = rows_of(groups, names)
    title = " and ".join(dict.fromkeys(group.name for group in groups))
    counts = " · ".join(
        f"{group.name}: {counted(len(group.histories), 'seed')}" for group in groups
    )
    sections = [
        lead("Runs beside each other", counts),
        section(
            f"Reached in the last {LAST_SHARE:.0%} of the time",
            table(rows, head=heads),
            note(
                "Means over the episodes that ended then; of what is measured now and then, the"
                " mean of the measurements in that time, or the last one before. The intervals are"
                " Student's of 95 % over seeds. The time is what all seeds of the row have had."
                " Runs of one experiment whose configurations differ in more than the seed are"
                " numbered."
            ),
            note(apart(groups)),
        ),
        chart_grid(charts),
        note(BAND_NOTES[interval]),
    ]
    return html_page(title, sections)
