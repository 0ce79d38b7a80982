"""Compares existing runs at equal time or equal steps, for `procsnake compare RUN RUN …`.

Runs that differ in nothing but their seed are a group.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from agents.measure.pages import chart_grid, html_page, lead, note, section, table
from envs.common.errors import ConfigError
from envs.common.whole_files import write_whole
from train.runs.curves.plot import AXES, SeedGroup, apart, chart_of, chosen_metrics, groups_of
from train.runs.curves.statistics import (
    BAND_NOTE,
    CONFIDENCE,
    LAST_SHARE,
    SeedEstimate,
    difference,
    finite_or_none,
    holm,
    mean,
    p_value,
    reached_at,
)
from train.runs.folder import disk_errors

EXPLAINED = (
    "In brackets: 95 % intervals over seeds, Student's for a mean and Welch's for a difference. p:"
    " Welch's t-test against the first group, after Holm's correction for the number of groups. A"
    " difference that isn't shown may still be there: more seeds show smaller ones."
)


@dataclass(frozen=True, kw_only=True)
class GroupResult:
    """The result of a group of seeds in one metric."""

    metric: str
    group: str
    by_seed: list[float]
    """One figure per run, NaN for a run without one."""
    mean: SeedEstimate
    difference: SeedEstimate
    """The difference to the first group's mean; NaN for the first group itself."""
    p: float
    """The p-value of Welch's t-test, after Holm's correction for the other groups; NaN where there
    is not a test.
    """

    @property
    def verdict(self) -> str:
        """The difference in words: higher, lower, or not shown."""
        if math.isnan(self.difference.value):
            return ""
        if math.isnan(self.p):
            return "one seed: no test"
        if self.p >= 1 - CONFIDENCE:
            return "no difference shown"
        if self.difference.value > 0:
            return "higher"
        return "lower"


@dataclass(frozen=True, kw_only=True)
class RunComparison:
    """The comparison of several groups of runs."""

    by: str
    """The column along which they are equal: one of `AXES`."""
    at: float
    """The place in that column, in minutes or steps."""
    groups: list[SeedGroup]
    results: list[GroupResult]
    """The results, ordered by metric, and within a metric by group."""

    def to_dict(self) -> dict[str, Any]:
        """Return the figures as a JSON-able dict, with None for NaN."""
        return {
            "by": self.by,
            "at": self.at,
            "apart": apart(self.groups),
            "results": [_plain(one) for one in self.results],
        }


def compare_runs(
    runs: Sequence[str | os.PathLike[str]],
    metrics: Sequence[str] = (),
    *,
    by: str = "minutes",
    at: float | None = None,
) -> RunComparison:
    """Compare runs by `metrics` where the column `by` has the value `at`, by default at the end of
    the shortest run.

    The others are compared with the first run's group. Raises `ConfigError` if there is only one
    group or a run ends before `at`, and `RunError` and `UnknownNameError` as `write_curves` does.
    """
    groups = groups_of([Path(run) for run in runs])
    if len(groups) < 2:
        raise ConfigError(
            f"these {len(runs)} runs differ in nothing but their seeds; name some with other"
            " settings or of other experiments"
        )
    shortest = min(_end_of_shortest(group, by) for group in groups)
    place = at if at is not None else shortest
    if not 0 < place <= shortest:
        raise ConfigError(
            f"the shortest run ends at {shortest:g} {AXES[by]}, so runs can't be compared at"
            f" {place:g}"
        )
    results = []
    for metric in chosen_metrics(groups, metrics):
        results += _results(groups, metric, by, place)
    return RunComparison(by=by, at=place, groups=groups, results=results)


def _end_of_shortest(group: SeedGroup, by: str) -> float:
    return min(float(columns[by][-1]) for columns in group.histories)


def _results(groups: Sequence[SeedGroup], metric: str, by: str, at: float) -> list[GroupResult]:
    """A result per group. The first group is the baseline of all others."""
    by_seed = [_figures_of(group, metric, by, at) for group in groups]
    finite = [list(filter(math.isfinite, figures)) for figures in by_seed]
    baseline, *others = finite
    gaps = [SeedEstimate(math.nan), *(difference(values, baseline) for values in others)]
    p_values = [math.nan, *holm([p_value(values, baseline) for values in others])]
    return [
        GroupResult(
            metric=metric,
            group=group.name,
            by_seed=by_seed[number],
            mean=mean(finite[number]),
            difference=gaps[number],
            p=p_values[number],
        )
        for number, group in enumerate(groups)
    ]


def _figures_of(group: SeedGroup, metric: str, by: str, at: float) -> list[float]:
    return [reached_at(columns, metric, at, by=by) for columns in group.histories]


def rows_of(comparison: RunComparison) -> tuple[list[str], list[list[str]]]:
    """Return the heads of a table, and a row for each metric and group."""
    rows = [_row_of(one) for one in comparison.results]
    return ["metric", "group", "seeds", "mean", "difference", "p", "verdict"], rows


def _row_of(result: GroupResult) -> list[str]:
    seeds = sum(map(math.isfinite, result.by_seed))
    gap = ""
    if math.isfinite(result.difference.value):
        gap = result.difference.text("{:+.3g}")
    p = ""
    if math.isfinite(result.p):
        p = f"{result.p:.2g}"
    return [result.metric, result.group, str(seeds), result.mean.text(), gap, p, result.verdict]


def heading(comparison: RunComparison) -> str:
    """Return a sentence on where the runs are compared, and with which group."""
    number_format = ".3g" if comparison.by == "minutes" else ",.0f"
    return (
        f"at {comparison.at:{number_format}} {AXES[comparison.by]}, means of the last"
        f" {LAST_SHARE:.0%} before; compared with {comparison.groups[0].name}"
    )


def write_comparison(comparison: RunComparison, out: str | os.PathLike[str]) -> list[Path]:
    """Write the table and the curves as `out`.html, and the figures as `out`.json.

    Returns both files.
    """
    page = Path(f"{out}.html")
    figures = Path(f"{out}.json")
    heads, rows = rows_of(comparison)
    metrics = dict.fromkeys(one.metric for one in comparison.results)
    sections = [
        lead("Runs compared", heading(comparison)),
        section(
            "At equal " + AXES[comparison.by],
            table(rows, head=heads, text_columns=2),
            note(EXPLAINED),
            note(apart(comparison.groups)),
        ),
        chart_grid([chart_of(comparison.groups, metric, comparison.by) for metric in metrics]),
        note(BAND_NOTE),
    ]
    with disk_errors(page.parent):
        page.parent.mkdir(parents=True, exist_ok=True)
        write_whole(page, html_page("Runs compared", sections))
        write_whole(figures, json.dumps(comparison.to_dict(), indent=2, allow_nan=False) + "\n")
    return [page, figures]


def _plain(one: GroupResult) -> dict[str, Any]:
    return asdict(one) | {
        "by_seed": finite_or_none(one.by_seed),
        "mean": one.mean.to_dict(),
        "difference": one.difference.to_dict(),
        "p": finite_or_none([one.p])[0],
        "verdict": one.verdict,
    }
