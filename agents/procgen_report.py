"""What an evaluation on Procgen found, as one HTML file that can be read offline: figures, references, curves, films."""

from __future__ import annotations

import base64
import csv
import math
import time
from collections.abc import Iterator, Sequence
from html import escape
from pathlib import Path

import numpy as np

from agents.charts import Line, line_chart
from agents.page import figures, html_page, table
from agents.procgen_aggregates import Estimate, performance_profile
from agents.procgen_episodes import Episode, film
from agents.procgen_evaluation import POLICY, Played, Score, aggregates_by_split, score_matrix, worth
from envs.command_line import write_whole
from envs.procgen.scores import LARS_8M_ALL, PPO

_POINTS = 61


def write_evaluation(path: Path, title: str, played: Sequence[Played], curve: Path | None = None) -> Path:
    """Write the page to `path` and return it; `curve`: the `progress.csv` of the run, if it is one run.

    Raises `ConfigError` if it can't be written, `MissingDependencyError` without imageio-ffmpeg.
    """
    scores = [one.score for one in played]
    splits = ", ".join(dict.fromkeys(score.levels for score in scores))
    note = f"levels {splits} · {time.strftime('%Y-%m-%d %H:%M')} · intervals: 95 %, by bootstrap"
    sections = [
        f'<h1>{escape(title)}</h1><p class="note">{escape(note)}</p>',
        _score_table(scores),
        _together(scores),
        figures("Training", "the gap between training and evaluation is shaded", _curves(curve), wide=True),
        figures("Returns", "share of the episodes with a return above x; bands: 95 %", list(_distributions(played)), wide=True),
        *(_references(game) for game in dict.fromkeys(score.game for score in scores)),
        figures("Films", "best and worst episode, played once more", list(_films(played)), wide=True),
    ]
    write_whole(path, html_page(title, sections))
    return path


def _score_table(scores: Sequence[Score]) -> str:
    rows = [
        (
            score.player,
            score.game,
            score.split,
            score.levels,
            f"{score.episodes}",
            f"{score.mean_return:.2f}",
            f"{score.interval[0]:.2f} … {score.interval[1]:.2f}",
            _decimal(score.normalised),
            f"{score.mean_length:.0f}",
        )
        for score in scores
    ]
    head = ("player", "game", "split", "levels", "episodes", "mean return", "interval", "normalised", "length")
    return table(rows, head=head, text_columns=4)


def _together(scores: Sequence[Score]) -> str:
    """Of several runs: aggregates and performance profiles."""
    parts = []
    for split, estimates in aggregates_by_split(scores).items():
        matrix = score_matrix(score for score in scores if score.split == split)
        assert matrix is not None
        runs, games = matrix.shape
        parts.append(f"<h2>Together, {escape(split)}</h2>{_estimates(estimates)}")
        note = f"share of {runs} × {games} normalised scores (runs × games) above x; band: 95 %, stratified bootstrap"
        x = np.linspace(min(0.0, float(matrix.min())), max(1.0, float(matrix.max())), _POINTS)
        parts.append(figures("Performance profile", note, [(split, line_chart([_profile(split, matrix, x)], zero=True))]))
    return "".join(parts)


def _estimates(estimates: Sequence[Estimate]) -> str:
    return table((one.name, f"{one.value:.3f}", f"{one.interval[0]:.3f} … {one.interval[1]:.3f}") for one in estimates)


def _profile(name: str, scores: np.ndarray, x: np.ndarray) -> Line:
    share, low, high = performance_profile(scores, x)
    return Line(name=name, x=x, y=share, low=low, high=high)


def _distributions(played: Sequence[Played]) -> Iterator[tuple[str, str]]:
    for game, split in dict.fromkeys((one.score.game, one.score.split) for one in played):
        own = [one for one in played if (one.score.game, one.score.split) == (game, split)]
        returns = [np.array([[episode.episode_return] for episode in one.episodes]) for one in own]
        highest = max(float(column.max()) for column in returns)
        x = np.linspace(min(0.0, *(float(column.min()) for column in returns)), max(highest, 1.0), _POINTS)
        lines = [_profile(one.score.player, column, x) for one, column in zip(own, returns, strict=True)]
        yield f"{game}, {split}", line_chart(lines, x_label="return", zero=True)


def _curves(curve: Path | None) -> list[tuple[str, str]]:
    """Return in training and, where the run measured itself, in evaluation; the band lies between them."""
    if curve is None or not curve.is_file():
        return []
    with open(curve, newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    steps, trained, measured = (
        np.array([_number(row.get(name)) for row in rows])
        for name in ("agent_steps", "episode_return_mean", "evaluation_return_mean")
    )
    lines = [Line(name="training", x=steps, y=trained)]
    known = np.isfinite(measured)
    if known.any():
        seen = np.isfinite(trained)
        beside = np.interp(steps[known], steps[seen], trained[seen])
        low, high = np.minimum(beside, measured[known]), np.maximum(beside, measured[known])
        lines.append(Line(name="evaluation", x=steps[known], y=measured[known], low=low, high=high))
    return [("return", line_chart(lines, x_label="decisions"))]


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
    rows = [(who, steps, on, f"{value:.2f}", _decimal(worth(value, game, "easy"))) for who, steps, on, value in known]
    head = ("player", "trained on", "measured on", "mean return", "normalised")
    return f"<h2>Published figures for {escape(game)}, easy</h2>{table(rows, head=head, text_columns=3)}"


def _films(played: Sequence[Played]) -> Iterator[tuple[str, str]]:
    for one in played:
        if one.score.player == POLICY:
            ordered = sorted(one.episodes, key=lambda episode: episode.episode_return)
            for which, episode in (("best", ordered[-1]), ("worst", ordered[0])):
                caption = (
                    f"{one.score.game}, {one.score.split}, {which}: level {episode.level}, return {episode.episode_return:g}"
                )
                yield caption, _video(film(one.world, one.options, episode), episode)


def _video(content: bytes, episode: Episode) -> str:
    source = f"data:video/mp4;base64,{base64.b64encode(content).decode()}"
    return f'<video controls muted loop width="320" src="{source}" title="{episode.length} steps"></video>'


def _decimal(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"
