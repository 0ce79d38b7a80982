"""The page of a benchmark of Procgen: one file with table, aggregates, curves and films, which
needs no network.
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


def page(found: Mapping[str, Any], folder: Path) -> str:
    """Return the page of a benchmark's result, as HTML. `folder` has its runs and films."""
    protocol = found["protocol"]
    heads, rows = rows_of(found)
    sections = [
        lead("procsnake benchmark procgen", _what(protocol)),
        note(
            f"{time.strftime('%Y-%m-%d %H:%M')} · brackets: Student's 95 % intervals over seeds,"
            " none for a single seed"
        ),
        section("Scores", table(rows, head=heads)),
        section("Together", _aggregates(found), chart_grid([_profile(found)])),
        section("Learning", chart_grid(_curves(found, folder)), note(BAND_NOTE)),
        fold(
            "An episode of each game: the one in the middle of the first policy's returns",
            *_films(protocol, folder),
        ),
        fold("Published figures", note(_published(protocol["games"]))),
        fold("How it was made", table(_made(found))),
    ]
    return html_page("procsnake benchmark procgen", sections)


def rows_of(found: Mapping[str, Any]) -> tuple[list[str], list[list[str]]]:
    """Return the table of a benchmark: its heads, and a row for each game."""
    protocol = found["protocol"]
    splits = list(dict.fromkeys(score["split"] for score in found["scores"]))
    heads = ["game", *(f"return, levels {split}" for split in splits), "random", "normalised"]
    with_ppo = protocol["distribution_mode"] == "easy" and protocol["levels"] == "train:200"
    heads += ["OpenAI's PPO, 8 M", "25 M steps"] if with_ppo else []
    rows = []
    for game in protocol["games"]:
        own = {
            (split, player): [
                s
                for s in found["scores"]
                if (s["game"], s["split"], s["player"]) == (game, split, player)
            ]
            for split in splits
            for player in (POLICY, RANDOM)
        }
        last = own[splits[-1], POLICY]
        returns = [
            mean([s["mean_return"] for s in own[split, POLICY]]).text("{:.2f}") for split in splits
        ]
        blind = [
            f"{own[splits[-1], RANDOM][0]['mean_return']:.2f}",
            mean([s["normalised"] for s in last]).text("{:.2f}"),
        ]
        rows.append(
            [
                game,
                *returns,
                *blind,
                *([f"{PPO[game].unseen_8m}", f"{PPO[game].unseen_25m}"] if with_ppo else []),
            ]
        )
    return heads, rows


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
    means = [
        np.mean([normalised(getattr(PPO[game], name), game) for game in games])
        for name in ("unseen_8m", "unseen_25m")
    ]
    return (
        "OpenAI's PPO: means of its published logs of 3 runs in easy mode, trained on 200 levels,"
        f" measured on unseen ones. Its mean normalised score of these games is {means[0]:.3f}"
        f" after 8 million steps and {means[1]:.3f} after 25 million."
    )


def _aggregates(found: Mapping[str, Any]) -> str:
    named = [(one["name"], one) for one in found["aggregates"]]
    if "against" in found:
        named.append(
            (f"{found['against']['name']} over {found['against']['file']}", found["against"])
        )
    rows = [
        (name, f"{one['value']:.3f}", interval_in_words(one["interval"])) for name, one in named
    ]
    return table(
        rows, head=("of the normalised scores", "value", "95 % interval, stratified bootstrap")
    )


def _profile(found: Mapping[str, Any]) -> Chart:
    split = found["scores"][-1]["split"]
    by_game = {
        game: _normalised(found["scores"], game, split) for game in found["protocol"]["games"]
    }
    matrix = np.array(list(by_game.values())).T
    return profile_chart(f"performance profile, levels {split}", split, matrix)


def _normalised(scores: Sequence[Mapping[str, Any]], game: str, split: str) -> list[float]:
    return [
        s["normalised"]
        for s in scores
        if (s["game"], s["split"], s["player"]) == (game, split, POLICY)
    ]


def _curves(found: Mapping[str, Any], folder: Path) -> Iterator[Chart]:
    by = "minutes" if found["protocol"]["minutes"] else "agent_steps"
    for game in found["protocol"]["games"]:
        runs = [
            read_columns(folder / run)
            for name, run in found["runs"].items()
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
    shown = [
        film((folder / "films" / f"{game}.mp4").read_bytes(), game) for game in protocol["games"]
    ]
    yield columns(*shown)


def _made(found: Mapping[str, Any]) -> list[tuple[str, str]]:
    protocol = {name: str(value) for name, value in found["protocol"].items()}
    machine = {
        "cores": str(found["cores"]),
        "trainings at a time": str(found["jobs"]),
        "commit": found["commit"] or "unknown",
    }
    return [*protocol.items(), *machine.items(), *found["versions"].items()]
