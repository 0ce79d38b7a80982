"""Writes a run's `report.html` from the files of its folder, during the run or afterwards.

The page is one file that needs nothing else. The most important things come first: what was
trained, how often it wins against whom, two curves and a game. The rest is folded."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping
from datetime import datetime
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from agents.measure.evaluation import opponents_text, wilson_interval
from agents.measure.evaluation.record import (
    RECORD,
    EvaluationRecord,
    WorldRecord,
    read_record,
    read_world_record,
)
from agents.measure.pages import chart_grid, columns, fold, html_page, lead, note, section, table
from agents.player import EVALUATION
from envs.common.columns import counted
from envs.common.shell_command import shell_command
from envs.common.whole_files import write_whole
from train.runs.curves.history import Columns, read_columns, read_config
from train.runs.folder import BUNDLE, REPORT, disk_errors, resume_command
from train.runs.report import charts, generations
from train.runs.report.film import film_of
from train.settings import ALGORITHMS

_WITHOUT_NETWORK = {name for name, settings in ALGORITHMS.items() if not settings.has_policy}
_OPTIONS = {
    "map": "map {}",
    "ruleset": "ruleset {}",
    "rewards": "rewards {}",
    "distribution_mode": "{}",
    "levels": "levels {}",
}
"""The options of a world that the page's title line names, with their wording."""


def write_report(run: str | os.PathLike[str]) -> Path:
    """Write the report of the run in folder `run`, finished or not, and return its path.

    A finished run's policy plays a game for the report. Raises `RunError` if `run` is not a run or
    can't be written to."""
    folder = Path(run)
    with disk_errors(folder):
        config = read_config(folder)
        write_whole(folder / REPORT, _page(folder, config, read_columns(folder)))
    return folder / REPORT


def _page(folder: Path, config: Mapping[str, Any], history: Columns) -> str:
    name = str(config.get("name", folder.name))
    about = _part(config, "run")
    record = read_record(folder)
    settings = {key: value for key, value in config.items() if key != "run"}
    sections = [
        lead(name, _what_was_trained(config, history)),
        note(_state(folder, about, history)),
        columns(
            *_measured(folder, config, history, record),
            section("A game", film_of(folder)),
        ),
        generations.generations(folder),
        chart_grid(generations.charts(history) or charts.first(config, history)),
    ]
    if history:
        sections += [
            fold("Figures", table(_figures(history))),
            fold(
                "Evaluations during training",
                note(charts.evaluation_note(config)),
                chart_grid(charts.evaluations(history)),
            ),
            fold("How snakes ended", chart_grid(charts.causes(history))),
            fold("Learning, of each iteration's update", chart_grid(charts.learning(history))),
            fold(
                "The world's own figures, means over the episodes that ended",
                chart_grid(charts.world(history)),
            ),
            fold("Speed, without evaluations and checkpoints", chart_grid(charts.speed(history))),
        ]
    sections += [
        fold("Configuration", f"<pre>{_escaped_yaml(settings)}</pre>"),
        fold("Versions", table(_versions(about), text_columns=2)),
    ]
    return html_page(name, sections)


def _part(config: Mapping[str, Any], key: str) -> dict[str, Any]:
    """The section `key` of a configuration that anybody may have edited; empty if it is none."""
    part = config.get(key)
    if not isinstance(part, dict):
        return {}
    return part


def _what_was_trained(config: Mapping[str, Any], history: Columns) -> str:
    """ "PPO on battlesnake, 11×11, 4 snakes, …: 5,000,000 decisions in 3.0 minutes"."""
    env = _part(config, "env")
    network = _part(config, "network")
    options = _part(env, "options")
    algorithm = str(config.get("algorithm", "ppo"))
    parts = [f"{algorithm.upper()} on {env.get('name', 'an unknown world')}"]
    if "width" in options and "height" in options:
        parts.append(f"{options['width']}×{options['height']}")
    if "num_snakes" in options:
        parts.append(counted(options["num_snakes"], "snake"))
    for key, wording in _OPTIONS.items():
        if isinstance(options.get(key), str):
            parts.append(wording.format(options[key]))
    if algorithm not in _WITHOUT_NETWORK:
        parts.append(f"network {network.get('name', 'mlp')}")
    text = ", ".join(parts)
    if history:
        decisions = history["agent_steps"][-1]
        minutes = history["minutes"][-1]
        text += f": {decisions:,.0f} decisions in {minutes:.1f} minutes"
    return text


def _state(folder: Path, about: Mapping[str, Any], history: Columns) -> str:
    if not history:
        state = "no iteration has ended yet"
    elif (folder / BUNDLE / "card.json").is_file() or (folder / EVALUATION).is_file():
        state = "finished"
    else:
        state = f"running or interrupted; continue with: {resume_command(folder)}"
    return (
        f"{state} · started {_moment(about.get('started', '?'))} · report of"
        f" {time.strftime('%Y-%m-%d %H:%M')} · {folder}"
    )


def _moment(written: Any) -> str:
    """A run's time on this machine's clock; what isn't a time stays as it was written."""
    try:
        moment = datetime.strptime(str(written), "%Y-%m-%dT%H:%M:%S%z").astimezone()
    except (ValueError, OverflowError, OSError):
        return str(written)
    return f"{moment:%Y-%m-%d %H:%M}"


def _measured(
    folder: Path, config: Mapping[str, Any], history: Columns, record: EvaluationRecord | None
) -> Iterator[str]:
    """The section on how good the policy is: games that it won, or the returns of its episodes."""
    if record is None and (episodes := read_world_record(folder)):
        yield section("Returns", *_returns(episodes))
        return
    title = "Evaluation"
    if record or charts.last_evaluation(history):
        title = "Games won"
    yield section(title, *_win_rates(folder, config, history, record))


def _returns(record: WorldRecord) -> Iterator[str]:
    rows = [
        (
            score.player,
            str(score.episodes),
            f"{score.mean_return:.3g}",
            f"{score.interval[0]:.3g} to {score.interval[1]:.3g}",
            f"{score.mean_length:.0f}",
        )
        for score in record.scores
    ]
    yield table(rows, head=("player", "episodes", "return", "95 % interval", "steps"))
    yield note("After training, beside random play. Intervals: bootstrap.")


def _win_rates(
    folder: Path, config: Mapping[str, Any], history: Columns, record: EvaluationRecord | None
) -> list[str]:
    """The games of `evaluation.json`, or else the last evaluation during training."""
    if record is not None:
        return _recorded_win_rates(record)
    stale = ""
    if (folder / RECORD).is_file():
        stale = f"{RECORD} is of another policy or can't be read. "
    games = charts.evaluation_games(config)
    last = charts.last_evaluation(history)
    if last and games:
        rows = [
            _win_rate_row(group, games, round(rate * games), turns) for group, rate, turns in last
        ]
        origin = f"{stale}The last evaluation during training, likeliest moves."
        return [table(rows, head=_WIN_RATE_HEAD), note(f"{origin} {_WIN_RATE_NOTE}")]
    if (folder / BUNDLE / "card.json").is_file() and not (folder / "evaluation.html").is_file():
        evaluate = shell_command("evaluate", folder)
        report = shell_command("report", folder)
        return [note(f"{stale}Not measured yet: {evaluate}, then: {report}")]
    return [note(stale)] if stale else []


_WIN_RATE_HEAD = ("against", "games", "won", "95 % interval", "turns")
_WIN_RATE_NOTE = "A draw is not a win; intervals: Wilson."


def _recorded_win_rates(record: EvaluationRecord) -> list[str]:
    rows = [
        _win_rate_row(opponents_text(score.opponents), score.games, score.wins, score.mean_turns)
        for score in record.scores
    ]
    board = record.board
    where = (
        f"{board['width']}×{board['height']}, ruleset {board['ruleset']}, map"
        f" {board['map']}{record.unusual}"
    )
    return [
        table(rows, head=_WIN_RATE_HEAD),
        note(f"After training, on {where}. {_WIN_RATE_NOTE}"),
    ]


def _win_rate_row(against: str, games: int, wins: int, turns: float) -> tuple[str, ...]:
    low, high = wilson_interval(min(wins, games), games)
    turns_text = f"{turns:.0f}" if np.isfinite(turns) else ""
    return against, str(games), f"{wins / games:.1%}", f"{low:.1%} to {high:.1%}", turns_text


def _figures(history: Columns) -> list[tuple[str, str]]:
    rows = [
        ("decisions", f"{history['agent_steps'][-1]:,.0f}"),
        ("game steps", f"{history['env_steps'][-1]:,.0f}"),
        ("minutes of training", f"{history['minutes'][-1]:.1f}"),
        ("iterations", f"{history['iteration'][-1]:,.0f}"),
    ]
    for name, title in (
        ("episode_return_mean", "return, last tenth"),
        ("episode_len_mean", "episode length, last tenth"),
    ):
        values = history.get(name, np.zeros(0))
        last_tenth = values[-max(1, len(values) // 10) :]
        if np.isfinite(last_tenth).any():
            rows.append((title, f"{np.nanmean(last_tenth):.3g}"))
    return rows


def _versions(about: Mapping[str, Any]) -> list[tuple[str, str]]:
    versions = {**_part(about, "versions"), "commit": about.get("git_commit", "")}
    return [(str(name), str(value)) for name, value in versions.items()]


def _escaped_yaml(settings: Mapping[str, Any]) -> str:
    return escape(yaml.safe_dump(dict(settings), sort_keys=False, allow_unicode=True))
