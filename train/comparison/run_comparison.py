"""Compares runs that are there at equal time or equal steps, for `procsnake compare RUN RUN …`.

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
    """What a group of seeds reached in one metric."""

    metric: str
    group: str
    by_seed: list[float]
    """One figure per run, NaN for a run without one."""
    mean: SeedEstimate
    difference: SeedEstimate
    """To the first group's mean. NaN for the first group itself."""
    p: float
    """Of Welch's t-test, after Holm's correction for the other groups; NaN where there is no
    test.
    """

    @property
    def verdict(self) -> str:
        """In words: higher, lower, or that no difference is shown."""
        if math.isnan(self.difference.value):
            return ""
        if math.isnan(self.p):
            return "one seed: no test"
        if self.p >= 1 - CONFIDENCE:
            return "no difference shown"
        return "higher" if self.difference.value > 0 else "lower"


@dataclass(frozen=True, kw_only=True)
class RunComparison:
    """The comparison of several groups of runs."""

    by: str
    """Along what they are equal: one of `AXES`."""
    at: float
    """Where: this many minutes or steps."""
    groups: list[SeedGroup]
    results: list[GroupResult]
    """By metric, and within a metric by group."""

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
    """Compare runs by `metrics` when each has had `at` of the column `by`; by default when the
    shortest of them ends.

    The first run's group is what the others are compared with. Raises `ConfigError` if there is
    only one group or a run ends before `at`, and `RunError` and `UnknownNameError` as
    `write_curves` does."""
    groups = groups_of([Path(run) for run in runs])
    if len(groups) < 2:
        raise ConfigError(
            f"these {len(runs)} runs differ in nothing but their seeds; name some with other"
            " settings or of other experiments"
        )
    ends = [float(columns[by][-1]) for group in groups for columns in group.histories]
    place = min(ends) if at is None else at
    if not 0 < place <= min(ends):
        raise ConfigError(
            f"the shortest run ends at {min(ends):g} {AXES[by]}, so runs can't be compared at"
            f" {place:g}"
        )
    results = [
        one
        for metric in chosen_metrics(groups, metrics)
        for one in _results(groups, metric, by, place)
    ]
    return RunComparison(by=by, at=place, groups=groups, results=results)


def _results(groups: Sequence[SeedGroup], metric: str, by: str, at: float) -> list[GroupResult]:
    figures = [
        [reached_at(columns, metric, at, by=by) for columns in group.histories] for group in groups
    ]
    known = [[value for value in values if math.isfinite(value)] for values in figures]
    baseline, *others = known
    adjusted = holm([p_value(values, baseline) for values in others])
    nothing = SeedEstimate(math.nan)
    gaps = [nothing, *(difference(values, baseline) for values in others)]
    return [
        GroupResult(
            metric=metric, group=group.name, by_seed=values, mean=mean(kept), difference=gap, p=p
        )
        for group, values, kept, gap, p in zip(
            groups, figures, known, gaps, [math.nan, *adjusted], strict=True
        )
    ]


def rows_of(found: RunComparison) -> tuple[list[str], list[list[str]]]:
    """Return the heads of a table, and a row for each metric and group."""
    rows = [
        [
            one.metric,
            one.group,
            str(sum(map(math.isfinite, one.by_seed))),
            one.mean.text(),
            "" if math.isnan(one.difference.value) else one.difference.text("{:+.3g}"),
            "" if math.isnan(one.p) else f"{one.p:.2g}",
            one.verdict,
        ]
        for one in found.results
    ]
    return ["metric", "group", "seeds", "mean", "difference", "p", "verdict"], rows


def heading(found: RunComparison) -> str:
    """Return in a sentence where the runs are compared, and with which group."""
    what = f"{found.at:.3g}" if found.by == "minutes" else f"{found.at:,.0f}"
    return (
        f"at {what} {AXES[found.by]}, means of the last {LAST_SHARE:.0%} before; compared with"
        f" {found.groups[0].name}"
    )


def write_comparison(found: RunComparison, out: str | os.PathLike[str]) -> list[Path]:
    """Write the table and the curves as `out`.html, and the figures as `out`.json. Returns the
    files.
    """
    page = Path(f"{out}.html")
    figures = Path(f"{out}.json")
    heads, rows = rows_of(found)
    metrics = dict.fromkeys(one.metric for one in found.results)
    sections = [
        lead("Runs compared", heading(found)),
        section(
            "At equal " + AXES[found.by],
            table(rows, head=heads, text_columns=2),
            note(EXPLAINED),
            note(apart(found.groups)),
        ),
        chart_grid([chart_of(found.groups, metric, found.by) for metric in metrics]),
        note(BAND_NOTE),
    ]
    with disk_errors(page.parent):
        page.parent.mkdir(parents=True, exist_ok=True)
        write_whole(page, html_page("Runs compared", sections))
        write_whole(figures, json.dumps(found.to_dict(), indent=2, allow_nan=False) + "\n")
    return [page, figures]


def _plain(one: GroupResult) -> dict[str, Any]:
    plain = asdict(one) | {
        "mean": one.mean.to_dict(),
        "difference": one.difference.to_dict(),
        "verdict": one.verdict,
    }
    return plain | {
        "by_seed": [value if math.isfinite(value) else None for value in one.by_seed],
        "p": one.p if math.isfinite(one.p) else None,
    }
