"""`report.html` of a run: one file that needs nothing else, made of `progress.csv` and `config.yaml`, at any time."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Mapping
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from agents.charts import Line, area_chart, line_chart
from agents.evaluation import wilson_interval
from agents.page import figures, html_page, table
from envs.battlesnake.state import CAUSE_NAMES
from envs.command_line import write_whole
from train.run_folder import BUNDLE, CONFIG, REPORT, RunError, RunFolder, disk_errors

Columns = dict[str, np.ndarray]

_STEPS = "agent_steps"
_WIN_RATE = "win_rate_vs_"
_CAUSE = "mean_cause_"
_COUNTERS = ("iteration", "env_steps", _STEPS, "minutes")
_SHOWN_APART = (*_COUNTERS, "agent_steps_per_second", "episode_return_mean", "episode_len_mean", "episodes", "win_rate")


def write_report(run: str | os.PathLike[str]) -> Path:
    """Write the report of the run in folder `run`, under way or ended, and return its path.

    Raises `RunError` if `run` is no run or can't be written to.
    """
    folder = Path(run)
    with disk_errors(folder):
        config = read_config(folder)
        write_whole(folder / REPORT, _page(folder, config, read_columns(folder)))
    return folder / REPORT


def read_columns(folder: Path) -> Columns:
    """`progress.csv` as float64 columns; what is missing or cut off is NaN."""
    rows = RunFolder(folder).curve()
    names = [name for name in (rows[0] if rows else {}) if name]
    return {name: np.array([_number(row.get(name)) for row in rows]) for name in names}


def _number(text: str | None) -> float:
    try:
        return float(text or "nan")
    except ValueError:
        return math.nan


def read_config(folder: Path) -> dict[str, Any]:
    """A run's `config.yaml`, plain. Raises `RunError` if there is none or it can't be read."""
    try:
        config = yaml.safe_load((folder / CONFIG).read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise RunError(f"{folder} is no run: it has no {CONFIG}. Runs lie in runs/; start one with procsnake train") from error
    except (UnicodeDecodeError, yaml.YAMLError) as error:
        raise RunError(f"{folder / CONFIG} can't be read as YAML: {' '.join(str(error).split())}") from error
    if not isinstance(config, dict):
        raise RunError(f"{folder / CONFIG} holds no experiment but {type(config).__name__}. Put back the run's own file")
    return config


def _page(folder: Path, config: Mapping[str, Any], columns: Columns) -> str:
    name = str(config.get("name", folder.name))
    note = config.get("run") if isinstance(config.get("run"), dict) else {}
    sections = [f"<h1>{escape(name)}</h1>", _state(folder, note, columns)]
    if columns:
        sections += [
            _headlines(columns),
            figures("Episodes", "of training, over those that ended in each iteration", _episodes(columns), wide=True),
            figures("Evaluations", _evaluation_note(config), _evaluations(config, columns), wide=True),
            figures("How snakes ended", "share of the episodes that ended in each iteration", _causes(columns), wide=True),
            figures("Learning", "of each iteration's update", _learning(columns)),
            figures("The world's own figures", "means over the episodes that ended", _world(columns)),
            figures("Speed", "wall time of training alone, without evaluations and checkpoints", _speed(columns), wide=True),
        ]
    settings = {key: value for key, value in config.items() if key != "run"}
    sections.append(f"<h2>Configuration</h2><pre>{escape(yaml.safe_dump(settings, sort_keys=False, allow_unicode=True))}</pre>")
    sections.append(_versions(note))
    return html_page(name, sections)


def _state(folder: Path, note: Mapping[str, Any], columns: Columns) -> str:
    if not columns:
        state = "no iteration has ended yet"
    elif (folder / BUNDLE / "card.json").is_file():
        state = "finished"
    else:
        state = f"under way or interrupted; go on with: procsnake train --resume {folder}"
    text = f"{state} · begun {note.get('started', '?')} · report of {time.strftime('%Y-%m-%d %H:%M')} · {folder}"
    return f'<p class="note">{escape(text)}</p>'


def _headlines(columns: Columns) -> str:
    rows = [
        ("decisions", f"{columns[_STEPS][-1]:,.0f}"),
        ("game steps", f"{columns['env_steps'][-1]:,.0f}"),
        ("minutes of training", f"{columns['minutes'][-1]:.1f}"),
        ("iterations", f"{columns['iteration'][-1]:,.0f}"),
    ]
    for name, title in (("episode_return_mean", "return, last tenth"), ("episode_len_mean", "episode length, last tenth")):
        if name in columns:
            rows.append((title, f"{_mean(columns[name][-max(1, len(columns[name]) // 10) :]):.3g}"))
    rows += [(name.replace("_", " "), f"{_last(columns[name]):.1%}") for name in columns if name.startswith(_WIN_RATE)]
    return table(rows)


def _curve(columns: Columns, name: str, caption: str, *, zero: bool = False) -> tuple[str, str]:
    if name not in columns:
        return caption, ""
    return caption, line_chart([Line(name=caption, x=columns[_STEPS], y=columns[name])], x_label="decisions", zero=zero)


def _episodes(columns: Columns) -> list[tuple[str, str]]:
    return [
        _curve(columns, "episode_return_mean", "return"),
        _curve(columns, "episode_len_mean", "length in decisions", zero=True),
    ]


def _evaluation_note(config: Mapping[str, Any]) -> str:
    games = (config.get("evaluation") or {}).get("games", "?")
    return f"{games} games each; bands: 95 % Wilson intervals; a draw is not a win"


def _evaluations(config: Mapping[str, Any], columns: Columns) -> list[tuple[str, str]]:
    games = (config.get("evaluation") or {}).get("games")
    groups = [name.removeprefix(_WIN_RATE) for name in columns if name.startswith(_WIN_RATE)]
    rates = [_rate_line(group, columns[_STEPS], columns[_WIN_RATE + group], games) for group in groups]

    def lines(prefix: str) -> list[Line]:
        known = [group for group in groups if prefix + group in columns]
        return [Line(name=f"vs {group}", x=columns[_STEPS], y=columns[prefix + group]) for group in known]

    return [
        ("games won", line_chart(rates, x_label="decisions", zero=True)),
        ("turns a game", line_chart(lines("mean_turns_vs_"), x_label="decisions", zero=True)),
        ("own length at the end", line_chart(lines("mean_length_vs_"), x_label="decisions", zero=True)),
        _curve(columns, "evaluation_return_mean", "return"),
        _curve(columns, "evaluation_len_mean", "length in decisions", zero=True),
    ]


def _rate_line(group: str, steps: np.ndarray, rates: np.ndarray, games: Any) -> Line:
    name = f"vs {group}"
    if not isinstance(games, int) or games < 1:
        return Line(name=name, x=steps, y=rates)
    known = np.isfinite(rates)
    steps, rates = steps[known], rates[known]
    bands = np.array([wilson_interval(min(games, max(0, round(rate * games))), games) for rate in rates]).reshape(-1, 2)
    return Line(name=name, x=steps, y=rates, low=bands[:, 0], high=bands[:, 1])


def _causes(columns: Columns) -> list[tuple[str, str]]:
    ended = np.flatnonzero(columns.get("episodes", np.zeros(0)) > 0)
    names = sorted(name for name in columns if name.startswith(_CAUSE))
    lines = [Line(name=_cause_name(name), x=columns[_STEPS][ended], y=columns[name][ended]) for name in names]
    return [("causes", area_chart(lines, x_label="decisions"))] if lines else []


def _cause_name(column: str) -> str:
    """Codes as `envs.battlesnake.state` has them."""
    code = column.removeprefix(_CAUSE)
    known = code.isdigit() and int(code) < len(CAUSE_NAMES)
    return (CAUSE_NAMES[int(code)] or "survived") if known else f"cause {code}"


def _learning(columns: Columns) -> list[tuple[str, str]]:
    apart = ("mean_", "seconds_", _WIN_RATE, "draw_rate_vs_", "evaluation_")
    names = [name for name in columns if name not in _SHOWN_APART and (not name.startswith(apart) or name == "mean_kl_loss")]
    return [_curve(columns, name, name) for name in sorted(names)]


def _world(columns: Columns) -> list[tuple[str, str]]:
    apart = (_CAUSE, "mean_turns_vs_", "mean_length_vs_", "mean_kl_loss")
    names = [name for name in columns if name.startswith("mean_") and not name.startswith(apart)]
    return [_curve(columns, name, name.removeprefix("mean_")) for name in sorted(names)]


def _speed(columns: Columns) -> list[tuple[str, str]]:
    # The first iteration loads what was compiled; beside it all others would look alike.
    later = slice(1 if len(columns[_STEPS]) > 1 else 0, None)
    decisions = np.diff(columns[_STEPS], prepend=0.0)[later]
    phases = sorted(name for name in columns if name.startswith("seconds_") and name != "seconds_evaluation")
    with np.errstate(divide="ignore", invalid="ignore"):
        lines = [
            Line(name=name.removeprefix("seconds_"), x=columns[_STEPS][later], y=1e6 * columns[name][later] / decisions)
            for name in phases
        ]
    return [
        _curve(columns, "agent_steps_per_second", "decisions a second", zero=True),
        ("microseconds a decision, by phase", area_chart(lines, x_label="decisions")),
    ]


def _versions(note: Mapping[str, Any]) -> str:
    versions = note.get("versions") if isinstance(note.get("versions"), dict) else {}
    rows = {**versions, "commit": note.get("git_commit", "")}
    return f"<h2>Versions</h2>{table(((str(name), str(value)) for name, value in rows.items()), text_columns=2)}"


def _mean(values: np.ndarray) -> float:
    known = values[np.isfinite(values)]
    return float(known.mean()) if len(known) else math.nan


def _last(values: np.ndarray) -> float:
    known = values[np.isfinite(values)]
    return float(known[-1]) if len(known) else math.nan
