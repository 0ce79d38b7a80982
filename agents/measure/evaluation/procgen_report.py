"""Writes the results of an evaluation on Procgen as one HTML page that needs no network: scores,
published figures, curves, films.
"""

from __future__ import annotations

import csv
import io
import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from agents.measure.evaluation import procgen_episodes
from agents.measure.evaluation.procgen import (
    POLICY,
    PlayerEpisodes,
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
    path: Path, title: str, results: Sequence[PlayerEpisodes], curve: Path | None = None
) -> Path:
    """Write the page to `path` and return it. `curve` is the `progress.csv` of the run, if there is
    one run; a file that can't be read is left out.

    Raises `ConfigError` if the page can't be written, and `MissingDependencyError` without
    imageio-ffmpeg."""
    scores = [one.score for one in results]
    splits = ", ".join(dict.fromkeys(score.levels for score in scores))
    episodes = sum(score.episodes for score in scores)
    films = list(_films(results))
    distributions = list(_distributions(results))
    sections = [
        lead(title, f"Procgen, levels {splits}: {episodes:,} episodes"),
        note(f"{time.strftime('%Y-%m-%d %H:%M')} · intervals: 95 %, by bootstrap"),
        columns(section("Returns", _score_table(scores)), section("An episode", *films[:1])),
        _together(scores),
        chart_grid([*_curves(curve), *distributions[:1]]),
        fold("How the returns are distributed", chart_grid(distributions)),
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
    """The aggregates and performance profiles of several runs."""
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
    if line.low is not None:
        title = f"{title}; band: 95 %, stratified bootstrap"
    return Chart(
        title=title,
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


def _distributions(results: Sequence[PlayerEpisodes]) -> Iterator[Chart]:
    """A chart per game and split, with a line per player."""
    groups: dict[tuple[str, str], list[PlayerEpisodes]] = {}
    for one in results:
        groups.setdefault((one.score.game, one.score.split), []).append(one)
    for (game, split), own in groups.items():
        returns = [_returns(one) for one in own]
        x = _thresholds(np.concatenate(returns))
        players = [one.score.player for one in own]
        yield Chart(
            title=f"distribution of returns, {game}, {split}",
            x_label="return",
            y_label="share of episodes above",
            lines=[_profile(player, column, x) for player, column in zip(players, returns)],
            shares=True,
        )


def _returns(result: PlayerEpisodes) -> np.ndarray:
    """The episodes' returns, float64 (E, 1)."""
    return np.array([[episode.episode_return] for episode in result.episodes])


def _thresholds(returns: np.ndarray) -> np.ndarray:
    """The returns for which the chart shows the share above: evenly spaced ones, or if there are
    few outcomes both sides of each, which draws steps.
    """
    outcomes = np.unique(returns)
    low = min(0.0, float(outcomes[0]))
    high = max(1.0, float(outcomes[-1]))
    if len(outcomes) > _FEW_OUTCOMES:
        return np.linspace(low, high, _POINTS)
    return np.unique(np.concatenate([[low, high], np.nextafter(outcomes, -np.inf), outcomes]))


def _curves(curve: Path | None) -> list[Chart]:
    """The chart of the return in training and, where the run measured itself, in evaluation, with a
    band between them.
    """
    rows = _rows(curve) if curve is not None else []
    if not rows:
        return []

    def column(name: str) -> np.ndarray:
        return np.array([_number(row.get(name)) for row in rows])

    steps = column("agent_steps")
    training = Line(name="training", x=steps, y=column("episode_return_mean"))
    evaluation = Line(name="evaluation", x=steps, y=column("evaluation_return_mean")).known()
    title = "episode return"
    lines = [training]
    trained = training.known()
    if len(evaluation.x) and len(trained.x):
        beside = np.interp(evaluation.x, trained.x, trained.y)
        low = np.minimum(beside, evaluation.y)
        high = np.maximum(beside, evaluation.y)
        lines.append(replace(evaluation, low=low, high=high))
        title += "; the gap between training and evaluation is shaded"
    return [Chart(title=title, x_label="decisions", y_label="sum of rewards", lines=lines)]


def _rows(curve: Path) -> list[dict[str, str]]:
    """The lines of a `progress.csv`; empty if it can't be read."""
    try:
        text = read_text(curve, MAX_CURVE_BYTES)
        return list(csv.DictReader(io.StringIO(text, newline="")))
    except (OSError, ValueError, csv.Error):
        return []


def _number(text: str | None) -> float:
    try:
        return float(text or "nan")
    except ValueError:
        return math.nan


def _references(game: str) -> str:
    ppo = PPO[game]
    figures = [
        ("OpenAI's PPO", "8 M", "all levels", ppo.all_8m),
        ("OpenAI's PPO", "8 M, 200 levels", "unseen levels", ppo.unseen_8m),
        ("OpenAI's PPO", "25 M", "all levels", ppo.all_25m),
        ("OpenAI's PPO", "25 M, 200 levels", "unseen levels", ppo.unseen_25m),
    ]
    if game in LARS_8M_ALL:
        figures.append(("LARS, 2020 competition", "8 M", "all levels", LARS_8M_ALL[game]))
    rows = [
        (who, steps, on, f"{value:.2f}", _decimal(worth(value, game, "easy")))
        for who, steps, on, value in figures
    ]
    head = ("player", "trained on", "measured on", "mean return", "normalised")
    return fold(f"Published figures for {game}, easy", table(rows, head=head, text_columns=3))


def _films(results: Sequence[PlayerEpisodes]) -> Iterator[str]:
    """The films of each policy's best and worst episode."""
    for one in results:
        if one.score.player != POLICY:
            continue
        ordered = sorted(one.episodes, key=lambda episode: episode.episode_return)
        for which, episode in (("best", ordered[-1]), ("worst", ordered[0])):
            caption = (
                f"{one.score.game}, {one.score.split}, {which}: level {episode.level}, return"
                f" {episode.episode_return:g}"
            )
            yield film(procgen_episodes.film(one.world, one.options, episode), caption)


def _decimal(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"
