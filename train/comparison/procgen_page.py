"""The page of a benchmark of Procgen: one file with table, aggregates, curves and films.

It needs no network.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from agents.measure.evaluation.procgen import POLICY, RANDOM
from agents.measure.evaluation.procgen_aggregates import interval_in_words
from agents.measure.evaluation.procgen_report import profile_chart
from agents.measure.pages import (
    Chart,
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
from envs.common.columns import counted
from envs.procgen.scores import PPO, normalised
from train.runs.curves.history import read_columns
from train.runs.curves.statistics import BAND_NOTE, mean, mean_line


def page(result: Mapping[str, Any], folder: Path) -> str:
    """Return the page of a benchmark's result, as HTML. `folder` has its runs and films."""
    protocol = result["protocol"]
    heads, rows = rows_of(result)
    sections = [
        lead("procsnake benchmark procgen", _what(protocol)),
        note(
            f"{time.strftime('%Y-%m-%d %H:%M')} · brackets: Student's 95 % intervals over seeds,"
            " none for a single seed"
        ),
        section("Scores", table(rows, head=heads)),
        section("Together", _aggregates(result), chart_grid([_profile(result)])),
        section("Learning", chart_grid(_curves(result, folder)), note(BAND_NOTE)),
        fold(
            "An episode of each game: the one in the middle of the first policy's returns",
            *_films(protocol, folder),
        ),
        fold("Published figures", note(_published(protocol["games"]))),
        fold("How it was made", table(_made(result))),
    ]
    return html_page("procsnake benchmark procgen", sections)


def rows_of(result: Mapping[str, Any]) -> tuple[list[str], list[list[str]]]:
    """Return the table of a benchmark: its heads, and a row for each game."""
    protocol = result["protocol"]
    splits = list(dict.fromkeys(score["split"] for score in result["scores"]))
    heads = ["game", *(f"return, levels {split}" for split in splits), "random", "normalised"]
    with_ppo = protocol["distribution_mode"] == "easy" and protocol["levels"] == "train:200"
    if with_ppo:
        heads += ["OpenAI's PPO, 8 M", "25 M steps"]
    rows = []
    for game in protocol["games"]:
        cells = [game]
        for split in splits:
            returns = _figures(result, "mean_return", game, split)
            cells.append(mean(returns).text("{:.2f}"))
        by_chance = _figures(result, "mean_return", game, splits[-1], RANDOM)[0]
        cells.append(f"{by_chance:.2f}")
        cells.append(mean(_figures(result, "normalised", game, splits[-1])).text("{:.2f}"))
        if with_ppo:
            cells += [f"{PPO[game].unseen_8m}", f"{PPO[game].unseen_25m}"]
        rows.append(cells)
    return heads, rows


def _figures(
    result: Mapping[str, Any], name: str, game: str, split: str, player: str = POLICY
) -> list[float]:
    """One figure of all scores of a game, e.g. "mean_return", with a value per run."""
    return [
        score[name]
        for score in result["scores"]
        if (score["game"], score["split"], score["player"]) == (game, split, player)
    ]


def _what(protocol: Mapping[str, Any]) -> str:
    if protocol["minutes"]:
        budget = f"{protocol['minutes']:g} minutes"
    else:
        budget = f"{protocol['steps']:,} decisions"
    games = len(protocol["games"])
    return (
        f"{games} game{'s' * (games != 1)}, {protocol['distribution_mode']}, trained on levels"
        f" {protocol['levels']}: {budget} each, {counted(protocol['seeds'], 'seed')},"
        f" {protocol['experiment']} {' '.join(protocol['overrides'])}"
    )


def _published(games: Sequence[str]) -> str:
    after_8m = np.mean([normalised(PPO[game].unseen_8m, game) for game in games])
    after_25m = np.mean([normalised(PPO[game].unseen_25m, game) for game in games])
    return (
        "OpenAI's PPO: means of its published logs of 3 runs in easy mode, trained on 200 levels,"
        f" measured on unseen ones. Its mean normalised score of these games is {after_8m:.3f}"
        f" after 8 million steps and {after_25m:.3f} after 25 million."
    )


def _aggregates(result: Mapping[str, Any]) -> str:
    named = [(one["name"], one) for one in result["aggregates"]]
    if "against" in result:
        named.append(
            (f"{result['against']['name']} over {result['against']['file']}", result["against"])
        )
    rows = [
        (name, f"{one['value']:.3f}", interval_in_words(one["interval"])) for name, one in named
    ]
    return table(
        rows, head=("of the normalised scores", "value", "95 % interval, stratified bootstrap")
    )


def _profile(result: Mapping[str, Any]) -> Chart:
    split = result["scores"][-1]["split"]
    by_game = [_figures(result, "normalised", game, split) for game in result["protocol"]["games"]]
    matrix = np.array(by_game).T
    return profile_chart(f"performance profile, levels {split}", split, matrix)


def _curves(result: Mapping[str, Any], folder: Path) -> Iterator[Chart]:
    by = "minutes" if result["protocol"]["minutes"] else "agent_steps"
    for game in result["protocol"]["games"]:
        runs = [
            read_columns(folder / run)
            for name, run in result["runs"].items()
            if name.startswith(f"{game}, ")
        ]
        line = mean_line("training", runs, "episode_return_mean", by=by)
        yield Chart(
            title=game,
            x_label=by.replace("agent_steps", "decisions"),
            y_label="return in training",
            lines=[line],
        )


def _films(protocol: Mapping[str, Any], folder: Path) -> Iterator[str]:
    films = [
        film((folder / "films" / f"{game}.mp4").read_bytes(), game) for game in protocol["games"]
    ]
    yield columns(*films)


def _made(result: Mapping[str, Any]) -> list[tuple[str, str]]:
    protocol = {
        name: ", ".join(value) if isinstance(value, list) else str(value)
        for name, value in result["protocol"].items()
        if value not in (None, [])
    }
    machine = {
        "cores": str(result["cores"]),
        "trainings at a time": str(result["jobs"]),
        "commit": result["commit"] or "unknown",
    }
    return [*protocol.items(), *machine.items(), *result["versions"].items()]
