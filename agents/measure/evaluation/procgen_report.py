"""Writes the results of an evaluation on Procgen as one HTML file for reading offline: figures,
references, curves, films.
"""

from __future__ import annotations

import csv
import io
import math
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from agents.measure.evaluation import procgen_episodes
from agents.measure.evaluation.procgen import (
    POLICY,
    Played,
    ProcgenScore,
    aggregates_by_split,
    score_matrix,
    worth,
)
from agents.measure.evaluation.procgen_aggregates import AggregateEstimate, performance_profile
from agents.measure.pages import (
    Chart,
    Line,
    chart_grid,
    columns,
    film,
    fold,
    html_page,
    lead,
    note,
    section,
    table,
)
from envs.common.strangers.bounded import read_text
from envs.common.whole_files import write_whole
from envs.procgen.scores import LARS_8M_ALL, PPO

_POINTS = 61
_FEW_OUTCOMES = 30
MAX_CURVE_BYTES = 256 << 20


def write_evaluation(
    path: Path, title: str, played: Sequence[Played], curve: Path | None = None
) -> Path:
    """Write the page to `path` and return it; `curve`: the `progress.csv` of the run, if it is one
    run.

    A curve that can't be read is left out.

    Raises `ConfigError` if it can't be written, `MissingDependencyError` without imageio-ffmpeg.
    """
    scores = [one.score for one in played]
    splits = ", ".join(dict.fromkeys(score.levels for score in scores))
    films = list(_films(played))
    sections = [
        lead(
            title, f"Procgen, levels {splits}: {sum(score.episodes for score in scores):,} episodes"
        ),
        note(f"{time.strftime('%Y-%m-%d %H:%M')} · intervals: 95 %, by bootstrap"),
        columns(section("Returns", _score_table(scores)), section("An episode", *films[:1])),
        _together(scores),
        chart_grid([*_curves(curve), *list(_distributions(played))[:1]]),
        fold("How the returns are distributed", chart_grid(_distributions(played))),
        *(_references(game) for game in dict.fromkeys(score.game for score in scores)),
        fold("More films: best and worst episodes, played once more", *films[1:]),
    ]
    write_whole(path, html_page(title, sections))
    return path


def _score_table(scores: Sequence[ProcgenScore]) -> str:
    rows = [
        (
            score.player,
            score.game,
            score.levels,
            f"{score.mean_return:.2f}",
            f"{score.interval[0]:.2f} … {score.interval[1]:.2f}",
            _decimal(score.normalised),
            f"{score.episodes}",
            f"{score.mean_length:.0f}",
        )
        for score in scores
    ]
    head = (
        "player",
        "game",
        "levels",
        "return",
        "95 % interval",
        "normalised",
        "episodes",
        "length",
    )
    return table(rows, head=head, text_columns=3)


def _together(scores: Sequence[ProcgenScore]) -> str:
    """Of several runs: aggregates and performance profiles."""
    parts = []
    for split, estimates in aggregates_by_split(scores).items():
        matrix = score_matrix(score for score in scores if score.split == split)
        assert matrix is not None
        runs, games = matrix.shape
        profile = profile_chart(
            f"performance profile of {runs} × {games} scores (runs × games)", split, matrix
        )
        parts.append(section(f"Together, {split}", _estimates(estimates), chart_grid([profile])))
    return "".join(parts)


def profile_chart(title: str, name: str, matrix: np.ndarray) -> Chart:
    """Return the performance profile of normalised scores (runs, games) as a chart with one line,
    called `name`.
    """
    x = np.linspace(min(0.0, float(matrix.min())), max(1.0, float(matrix.max())), _POINTS)
    line = _profile(name, matrix, x)
    return Chart(
        title=title if line.low is None else f"{title}; band: 95 %, stratified bootstrap",
        x_label="normalised score",
        y_label="share of scores above",
        lines=[line],
        shares=True,
    )


def _estimates(estimates: Sequence[AggregateEstimate]) -> str:
    return table((one.name, f"{one.value:.3f}", one.interval_in_words) for one in estimates)


def _profile(name: str, scores: np.ndarray, x: np.ndarray) -> Line:
    share, low, high = performance_profile(scores, x)
    return Line(name=name, x=x, y=share, low=low, high=high)


def _distributions(played: Sequence[Played]) -> Iterator[Chart]:
    for game, split in dict.fromkeys((one.score.game, one.score.split) for one in played):
        own = [one for one in played if (one.score.game, one.score.split) == (game, split)]
        returns = [np.array([[episode.episode_return] for episode in one.episodes]) for one in own]
        x = _thresholds(np.concatenate(returns))
        yield Chart(
            title=f"distribution of returns, {game}, {split}",
            x_label="return",
            y_label="share of episodes above",
            lines=[
                _profile(one.score.player, column, x)
                for one, column in zip(own, returns, strict=True)
            ],
            shares=True,
        )


def _thresholds(returns: np.ndarray) -> np.ndarray:
    """Where the share of returns above is asked for: evenly, or for few outcomes on both sides of
    each, which draws steps.
    """
    outcomes = np.unique(returns)
    low = min(0.0, float(outcomes[0]))
    high = max(1.0, float(outcomes[-1]))
    if len(outcomes) > _FEW_OUTCOMES:
        return np.linspace(low, high, _POINTS)
    return np.unique(np.concatenate([[low, high], np.nextafter(outcomes, -np.inf), outcomes]))


def _curves(curve: Path | None) -> list[Chart]:
    """Return in training and, where the run measured itself, in evaluation; the band lies between
    them.
    """
    try:
        if curve is not None:
            rows = list(csv.DictReader(io.StringIO(read_text(curve, MAX_CURVE_BYTES), newline="")))
        else:
            rows = []
    except (OSError, ValueError, csv.Error):
        rows = []
    if not rows:
        return []
    steps, trained, measured = (
        np.array([_number(row.get(name)) for row in rows])
        for name in ("agent_steps", "episode_return_mean", "evaluation_return_mean")
    )
    lines = [Line(name="training", x=steps, y=trained)]
    known = np.isfinite(measured)
    seen = np.isfinite(trained)
    if known.any() and seen.any():
        beside = np.interp(steps[known], steps[seen], trained[seen])
        low = np.minimum(beside, measured[known])
        high = np.maximum(beside, measured[known])
        lines.append(Line(name="evaluation", x=steps[known], y=measured[known], low=low, high=high))
    if len(lines) > 1:
        shaded = "; the gap between training and evaluation is shaded"
    else:
        shaded = ""
    return [
        Chart(
            title=f"return of an episode{shaded}",
            x_label="decisions",
            y_label="return",
            lines=lines,
        )
    ]


def _number(text: str | None) -> float:
    try:
        return float(text or "nan")
    except ValueError:
        return math.nan


def _references(game: str) -> str:
    ppo = PPO[game]
    known = [
        ("OpenAI's PPO", "8 M", "all levels", ppo.all_8m),
        ("OpenAI's PPO", "8 M, 200 levels", "unseen levels", ppo.unseen_8m),
        ("OpenAI's PPO", "25 M", "all levels", ppo.all_25m),
        ("OpenAI's PPO", "25 M, 200 levels", "unseen levels", ppo.unseen_25m),
    ]
    if game in LARS_8M_ALL:
        known.append(("LARS, 2020 competition", "8 M", "all levels", LARS_8M_ALL[game]))
    rows = [
        (who, steps, on, f"{value:.2f}", _decimal(worth(value, game, "easy")))
        for who, steps, on, value in known
    ]
    head = ("player", "trained on", "measured on", "mean return", "normalised")
    return fold(f"Published figures for {game}, easy", table(rows, head=head, text_columns=3))


def _films(played: Sequence[Played]) -> Iterator[str]:
    for one in played:
        if one.score.player == POLICY:
            ordered = sorted(one.episodes, key=lambda episode: episode.episode_return)
            for which, episode in (("best", ordered[-1]), ("worst", ordered[0])):
                caption = (
                    f"{one.score.game}, {one.score.split}, {which}: level {episode.level}, return"
                    f" {episode.episode_return:g}"
                )
                yield film(procgen_episodes.film(one.world, one.options, episode), caption)


def _decimal(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"
