"""Trains the contenders on one board for the same time, for `procsnake benchmark battlesnake`.

Every training is an ordinary run in a process of its own, one after the other. A finished training
is not run again.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from agents.measure.pages import (
    Chart,
    Line,
    chart_grid,
    fold,
    html_page,
    lead,
    note,
    section,
    table,
)
from agents.measure.pages.figure import save_charts
from envs.common.columns import counted
from envs.common.cores import usable_cores
from envs.common.errors import ConfigError, UnknownNameError
from envs.common.whole_files import write_whole
from train.comparison.trainings import Say, Training, is_finished, train_all
from train.config import Experiment
from train.runs.curves.history import read_columns
from train.runs.curves.statistics import (
    BAND_NOTE,
    LAST_SHARE,
    SeedEstimate,
    finite_or_none,
    mean,
    mean_line,
    ratio,
    reached,
)
from train.runs.folder import BUNDLE, disk_errors
from train.settings import MXNetDQNSettings

BOARD: dict[str, Any] = {
    "width": 11,
    "height": 11,
    "num_snakes": 4,
    "rewards": "starter-pack",
    "max_turns": 1000,
}
BASELINE = "mxnet-dqn"
"""The starter pack's DQN as it was: no action is masked, and one game is played at a time."""
EQUAL = "mxnet-equal"
"""The same trainer with the mask, the observation and the number of games of the others."""
CURVES = {
    "episode_return_mean": ("reward per snake", "reward"),
    "episode_len_mean": ("turns that a snake lives", "turns"),
}
"""The columns of progress.csv that are compared, with the title and the unit of their charts."""
_FIGURES = {
    "episode_return_mean": ("reward", "{:.3g}"),
    "episode_len_mean": ("turns lived", "{:.3g}"),
    "policy_turns": ("policy: turns of a game among itself", "{:.3g}"),
    "agent_steps": ("decisions", "{:,.0f}"),
}
"""The figures that are also given as ratios to the baselines', with the head of their column and
the format of their means.
"""
_GAMES = 100


@dataclass(frozen=True)
class Contender:
    """A trainer with its settings, as it is compared."""

    title: str
    experiment: str
    overrides: tuple[str, ...] = ()
    """Values as for `procsnake train --set`. {cores} and {games} (256 shared by all cores) are
    filled in.
    """
    num_threads: int | None = None
    """The number of threads of its numerical libraries; None leaves it to them."""


CONTENDERS = {
    BASELINE: Contender(
        "MXNet DQN, the starter pack's configuration", "battlesnake-mxnet-starter-pack"
    ),
    EQUAL: Contender(
        "MXNet DQN, with the others' mask, observation and games",
        "battlesnake-mxnet-starter-pack",
        (
            "mxnet_dqn.mask_actions=true",
            "mxnet_dqn.num_steps=1",  # a hundred of them take minutes, and the clock is read after
            "env.options.num_games=256",
            "env.options.observation={{view: window, radius: 5, rotate: true, reach: true}}",
            "network.options.state_type=layered",
            "network.options.scales=planes",
        ),
    ),
    "dqn-1": Contender(
        "DQN, 1 worker on 1 core", "battlesnake-dqn", ("dqn.num_threads=1",), num_threads=1
    ),
    "dqn-all": Contender(
        "DQN, a worker for each core",
        "battlesnake-dqn",
        ("num_env_runners={cores}", "env.options.num_games={games}"),
    ),
    "apex": Contender(
        "APEX, a worker for each core",
        "battlesnake-apex",
        ("num_env_runners={cores}", "env.options.num_games={games}"),
    ),
    "ppo": Contender("PPO", "battlesnake-ppo", ("ppo.norm_reward=true",)),
    "mxnet-own": Contender("MXNet DQN, procsnake's configuration", "battlesnake-mxnet"),
}
USUAL = tuple(CONTENDERS)[:6]


def experiment_of(name: str, *, minutes: float, seed: int, cores: int) -> Experiment:
    """Return the experiment that a contender trains. Raises `UnknownNameError` for a contender that
    doesn't exist.
    """
    if name not in CONTENDERS:
        raise UnknownNameError("contender", name, CONTENDERS)
    contender = CONTENDERS[name]
    board = [f"env.options.{key}={value}" for key, value in BOARD.items()]
    own = [text.format(cores=cores, games=max(1, 256 // cores)) for text in contender.overrides]
    rest = [
        f"name={name}",
        f"seed={seed}",
        f"budget.max_minutes={minutes:g}",
        "budget.total_agent_steps=null",
    ]
    return Experiment.load(contender.experiment, [*board, *own, *rest])


def benchmark(
    *,
    minutes: float,
    seeds: int,
    out: str | os.PathLike[str],
    contenders: Iterable[str] = USUAL,
    say: Say = print,
) -> dict[str, Any]:
    """Train each contender with seeds 0 … seeds - 1 for `minutes`, and write the comparison into
    the folder `out`.

    `out` gets `runs/`, `benchmark.json` (which is also returned), `benchmark.html` and
    `benchmark.png`. Raises `ConfigError` or `UnknownNameError` for contenders that can't be
    compared, `MissingDependencyError` for one that needs MXNet if that isn't installed, and
    `RunError` if a training fails."""
    if minutes <= 0 or seeds < 1:
        raise ConfigError(f"minutes is {minutes:g} and seeds {seeds}; they must be above 0")
    folder = Path(out)
    cores = usable_cores()
    names = list(contenders)
    trainings = _trainings(names, minutes=minutes, seeds=seeds, cores=cores)
    _look_for_mxnet(folder, [training.experiment for training in trainings])

    runs: dict[str, list[Path]] = {name: [] for name in names}
    for training, run in zip(trainings, train_all(trainings, folder, say=say), strict=True):
        runs[training.experiment.name].append(run)

    result = _measure(runs, minutes, cores)
    charts = charts_of(result)
    with disk_errors(folder):
        write_whole(folder / "benchmark.json", json.dumps(result, indent=2) + "\n")
        write_whole(folder / "benchmark.html", _page(result, charts))
        save_charts(folder / "benchmark.png", charts)
    return result


def _trainings(names: Sequence[str], *, minutes: float, seeds: int, cores: int) -> list[Training]:
    """All trainings, every contender of a seed before the next seed."""
    trainings: list[Training] = []
    for seed in range(seeds):
        for name in names:
            number = len(trainings) + 1
            trainings.append(
                Training(
                    f"{number} of {seeds * len(names)}: {name}, seed {seed}",
                    experiment_of(name, minutes=minutes, seed=seed, cores=cores),
                    CONTENDERS[name].num_threads,
                )
            )
    return trainings


def _look_for_mxnet(folder: Path, experiments: Iterable[Experiment]) -> None:
    """Raise MXNet's error here, where it is read, and not in the log of a training."""
    if any(
        isinstance(one.settings, MXNetDQNSettings) and not is_finished(folder, one)
        for one in experiments
    ):
        import_module("agents.networks.mxnet_runtime")


def _measure(runs: Mapping[str, Sequence[Path]], minutes: float, cores: int) -> dict[str, Any]:
    figures = {name: _figures_of(paths, minutes) for name, paths in runs.items()}
    baselines = [name for name in (BASELINE, EQUAL) if name in figures]
    contenders = {}
    for name, own in figures.items():
        ratios = {
            baseline: {key: ratio(own[key], figures[baseline][key]).to_dict() for key in _FIGURES}
            for baseline in baselines
        }
        contenders[name] = {
            "title": CONTENDERS[name].title,
            "by_seed": {key: finite_or_none(values) for key, values in own.items()},
            "mean": {key: mean(values).to_dict() for key, values in own.items()},
            "ratio": ratios,
            "curves": _curves_of(runs[name]),
        }
    return {
        "minutes": minutes,
        "seeds": len(next(iter(runs.values()))),
        "cores": cores,
        "board": BOARD,
        "contenders": contenders,
    }


def _figures_of(runs: Sequence[Path], minutes: float) -> dict[str, list[float]]:
    """The figures of `_end_of` by name, each with a value per run."""
    ends = [_end_of(run, minutes) for run in runs]
    figures: dict[str, list[float]] = {key: [] for key in ends[0]}
    for end in ends:
        for key, value in end.items():
            figures[key].append(value)
    return figures


def _end_of(run: Path, minutes: float) -> dict[str, float]:
    """What a run reached in training, and what its exported policy reaches at play."""
    from agents.measure.evaluation import play_games
    from agents.policy import Policy
    from agents.registry import make

    columns = read_columns(run)
    policy = Policy.load(run / BUNDLE)
    size: dict[str, Any] = {"width": BOARD["width"], "height": BOARD["height"]}
    among_itself = play_games(
        [policy] * 4, num_games=_GAMES, max_turns=BOARD["max_turns"], seed=1, **size
    )
    against = play_games(
        [policy, *[make("random")] * 3],
        num_games=_GAMES,
        max_turns=BOARD["max_turns"],
        seed=1,
        **size,
    )
    return {
        **{key: reached(columns, key, minutes) for key in CURVES},
        "agent_steps": float(columns["agent_steps"][-1]),
        "env_steps": float(columns["env_steps"][-1]),
        "policy_turns": float(among_itself.turns.mean()),
        "policy_won": float(against.wins[0] / _GAMES),
    }


def _curves_of(runs: Sequence[Path]) -> dict[str, dict[str, list[float]]]:
    """The learning curves of a contender by metric, as JSON holds them: lists of one length, to
    four digits.
    """
    histories = list(map(read_columns, runs))
    curves = {}
    for key in CURVES:
        line = mean_line("", histories, key)
        arrays = {"minutes": line.x, "mean": line.y, "low": line.low, "high": line.high}
        curves[key] = {
            name: [float(f"{value:.4g}") for value in array]
            for name, array in arrays.items()
            if array is not None
        }
    return curves


def charts_of(comparison: Mapping[str, Any]) -> list[Chart]:
    """Return the learning curves of a comparison, as `benchmark` returns and writes it."""
    charts = []
    for key, (title, unit) in CURVES.items():
        lines = [
            _line(name, data["curves"][key]) for name, data in comparison["contenders"].items()
        ]
        charts.append(
            Chart(
                title=title,
                x_label="minutes of training",
                y_label=unit,
                lines=lines,
                from_zero=True,
            )
        )
    return charts


def _line(name: str, curve: Mapping[str, Sequence[float]]) -> Line:
    band = {key: np.array(curve[key]) for key in ("low", "high") if key in curve}
    return Line(name=name, x=np.array(curve["minutes"]), y=np.array(curve["mean"]), **band)


def rows_of(comparison: Mapping[str, Any]) -> tuple[list[str], list[list[str]]]:
    """Return the table of the comparison: its heads, and a row for each contender."""
    contenders = comparison["contenders"]
    baselines = [name for name in (BASELINE, EQUAL) if name in contenders]
    heads = ["contender"]
    for title, _ in _FIGURES.values():
        heads += [title, *(f"{title}, × {baseline}" for baseline in baselines)]
    heads.append("policy: won against 3 random")
    rows = []
    for name, data in contenders.items():
        means = {key: SeedEstimate.from_dict(value) for key, value in data["mean"].items()}
        cells = [f"{name}: {data['title']}"]
        for key, (_, number_format) in _FIGURES.items():
            cells.append(means[key].text(number_format))
            for baseline in baselines:
                cells.append(SeedEstimate.from_dict(data["ratio"][baseline][key]).text())
        cells.append(means["policy_won"].text("{:.0%}"))
        rows.append(cells)
    return heads, rows


def _page(comparison: Mapping[str, Any], charts: Sequence[Chart]) -> str:
    from agents.card import library_versions

    heads, rows = rows_of(comparison)
    board = (
        f"{BOARD['width']}×{BOARD['height']}, {BOARD['num_snakes']} snakes, reward 1 for each turn"
        " lived"
    )
    what = (
        f"{board}; {comparison['minutes']:g} minutes of training each,"
        f" {counted(comparison['seeds'], 'seed')}, {comparison['cores']} cores, one after the other"
    )
    explained = (
        "Reward and turns: episodes of training, exploration included, that ended in the last"
        f" {LAST_SHARE:.0%} of the time. In brackets: Student's 95 % intervals over seeds. Policies"
        f" play with certain death masked, {_GAMES} games."
    )
    unequal = (
        f"{BASELINE} trains as the starter pack did: it masks no action, plays one game at a time"
        f" and sees other planes than procsnake's trainers. {EQUAL} is the same trainer with"
        " procsnake's mask, observation and number of games; what is left is the trainer and its"
        " network."
    )
    versions = ", ".join(f"{name} {version}" for name, version in library_versions().items())
    sections = [
        lead("Same board, same reward, same time", what),
        section("At equal time", table(rows, head=heads), note(explained), note(unequal)),
        chart_grid(charts),
        note(BAND_NOTE),
        fold("Versions", note(versions)),
    ]
    return html_page("procsnake benchmark battlesnake", sections)
