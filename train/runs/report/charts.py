"""Makes the charts of a run's report from its columns of `progress.csv`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from agents.measure.evaluation import wilson_interval
from agents.measure.pages import Chart, Line
from envs.battlesnake.state import CAUSE_NAMES
from train.metrics.rows import group_in_words
from train.metrics.words import title_of, unit_of
from train.runs.curves.history import Columns
from train.runs.curves.statistics import OTHER_MEANS

_STEPS = "agent_steps"
_DECISIONS = "decisions"
_RETURN = "sum of rewards"
_WIN_RATE = "win_rate_vs_"
_CAUSE = "mean_cause_"
_SHOWN_APART = (
    "iteration",
    "env_steps",
    _STEPS,
    "minutes",
    "agent_steps_per_second",
    "episode_return_mean",
    "episode_len_mean",
    "episodes",
    "win_rate",
)
"""Columns that aren't metrics of updates, beside those with certain beginnings."""
_MOST_GAMES = 1 << 53
"""The largest number of games that a float64 holds exactly."""


def first(config: Mapping[str, Any], history: Columns) -> list[Chart]:
    """Return the two most telling curves: the games won, or without evaluations the return, and the
    length of episodes.
    """
    if not history:
        return []
    lengths = _chart(
        history,
        "episode length in training",
        "steps",
        {"training": "episode_len_mean"},
        from_zero=True,
    )
    if games_won := _games_won(config, history):
        return [games_won, lengths]
    returns = {"training": "episode_return_mean", "evaluation": "evaluation_return_mean"}
    return [_chart(history, "episode return", _RETURN, returns), lengths]


def evaluation_games(config: Mapping[str, Any]) -> int | None:
    """Return the games against each group of opponents in evaluations during training; None if the
    configuration has none.
    """
    settings = config.get("evaluation")
    if not isinstance(settings, dict):
        return None
    games = settings.get("games")
    if isinstance(games, int) and 0 < games <= _MOST_GAMES:
        return games
    return None


def last_evaluation(history: Columns) -> list[tuple[str, float, float]]:
    """Return (group of opponents, share of games won, turns per game) of the last evaluation during
    training.
    """
    results = []
    for group in _groups(history):
        rates = history[_WIN_RATE + group]
        turns = history.get(f"mean_turns_vs_{group}", np.full(len(rates), np.nan))
        rows = np.flatnonzero(np.isfinite(rates))
        if len(rows):
            last = rows[-1]
            results.append((group_in_words(group), float(rates[last]), float(turns[last])))
    return results


def evaluation_note(config: Mapping[str, Any]) -> str:
    """Return a sentence on the size of an evaluation; "" if there are none."""
    games = evaluation_games(config)
    if games is None:
        return ""
    return f"{games} games or episodes each."


def evaluations(history: Columns) -> list[Chart]:
    """Return the curves of evaluations during training, other than the games won."""
    groups = _groups(history)

    def against(title: str, unit: str, prefix: str) -> Chart:
        columns = {f"vs {group_in_words(group)}": prefix + group for group in groups}
        return _chart(history, title, unit, columns, from_zero=True)

    return [
        against("length of a game", "turns", "mean_turns_vs_"),
        against("own length at the end", "cells", "mean_length_vs_"),
        _chart(
            history,
            "episode return in evaluation",
            _RETURN,
            {"evaluation": "evaluation_return_mean"},
        ),
        _chart(
            history,
            "episode length in evaluation",
            "steps",
            {"evaluation": "evaluation_len_mean"},
            from_zero=True,
        ),
    ]


def causes(history: Columns) -> list[Chart]:
    """Return the chart of how the episodes of each iteration ended, as shares."""
    ended = np.flatnonzero(history.get("episodes", np.zeros(0)) > 0)
    names = sorted(
        name for name in history if name.startswith(_CAUSE) and (history[name] > 0).any()
    )
    lines = [
        Line(name=cause_name(name), x=history[_STEPS][ended], y=history[name][ended])
        for name in names
    ]
    return [
        Chart(
            title="how snakes ended",
            x_label=_DECISIONS,
            y_label="share of episodes",
            lines=lines,
            stacked=True,
            shares=True,
        )
    ]


def cause_name(column: str) -> str:
    """Return the cause of death that a column counts, by the codes of `envs.battlesnake.state`."""
    code = column.removeprefix(_CAUSE)
    if code.isdigit() and int(code) < len(CAUSE_NAMES):
        return CAUSE_NAMES[int(code)] or "survived"
    return f"cause {code}"


def learning(history: Columns) -> list[Chart]:
    """Return a chart of each metric of the updates."""
    apart = ("mean_", "seconds_", _WIN_RATE, "draw_rate_vs_", "evaluation_")
    names = [
        name
        for name in history
        if name not in _SHOWN_APART and (not name.startswith(apart) or name == "mean_kl_loss")
    ]
    return _chart_each(history, names)


def world(history: Columns) -> list[Chart]:
    """Return charts of the return and of each metric that the world itself counts."""
    apart = (_CAUSE, *OTHER_MEANS)
    names = [name for name in history if name.startswith("mean_") and not name.startswith(apart)]
    return _chart_each(history, ["episode_return_mean", *names])


def speed(history: Columns) -> list[Chart]:
    """Return charts of the decisions per second and of the time that each phase takes."""
    # The first iteration loads what was compiled; beside it all others would look alike.
    first = min(1, len(history[_STEPS]) - 1)
    decisions = np.diff(history[_STEPS], prepend=0.0)[first:]
    phases = sorted(
        name for name in history if name.startswith("seconds_") and name != "seconds_evaluation"
    )
    with np.errstate(divide="ignore", invalid="ignore"):
        lines = [
            Line(
                name=name.removeprefix("seconds_"),
                x=history[_STEPS][first:],
                y=1e6 * history[name][first:] / decisions,
            )
            for name in phases
        ]
    rate = {"decisions per second": "agent_steps_per_second"}
    return [
        _chart(history, "speed", "decisions per second", rate, from_zero=True),
        Chart(
            title="time by phase",
            x_label=_DECISIONS,
            y_label="microseconds per decision",
            lines=lines,
            stacked=True,
        ),
    ]


def _groups(history: Columns) -> list[str]:
    return [name.removeprefix(_WIN_RATE) for name in history if name.startswith(_WIN_RATE)]


def _chart_each(history: Columns, names: Sequence[str]) -> list[Chart]:
    """A chart per column, in the order of their titles."""
    return [
        _chart(history, title_of(name), unit_of(name), {name: name})
        for name in sorted(names, key=title_of)
    ]


def _chart(
    history: Columns, title: str, unit: str, named: Mapping[str, str], *, from_zero: bool = False
) -> Chart:
    """A chart over decisions. `named` has the column of each line by the line's name; columns that
    the run hasn't are left out.
    """
    lines = [
        Line(name=name, x=history[_STEPS], y=history[column])
        for name, column in named.items()
        if column in history
    ]
    return Chart(title=title, x_label=_DECISIONS, y_label=unit, lines=lines, from_zero=from_zero)


def _games_won(config: Mapping[str, Any], history: Columns) -> Chart | None:
    games = evaluation_games(config)
    lines = [
        _rate_line(group, history[_STEPS], history[_WIN_RATE + group], games)
        for group in _groups(history)
    ]
    if not lines:
        return None
    title = "games won in evaluations"
    if games:
        title += ", 95 % Wilson intervals"
    return Chart(
        title=title, x_label=_DECISIONS, y_label="share of games", lines=lines, shares=True
    )


def _rate_line(group: str, steps: np.ndarray, rates: np.ndarray, games: int | None) -> Line:
    line = Line(name=f"vs {group_in_words(group)}", x=steps, y=rates).known()
    if games is None:
        return line
    bounds = [wilson_interval(min(games, max(0, round(rate * games))), games) for rate in line.y]
    low, high = np.array(bounds).reshape(-1, 2).T
    return Line(name=line.name, x=line.x, y=line.y, low=low, high=high)
