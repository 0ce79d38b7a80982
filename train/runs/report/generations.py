"""Shows the result of each generation of a learned evaluation on a run's report."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from agents.measure.pages import Chart, Line, chart_grid, note, section, table
from agents.player import EVALUATION
from envs.common.errors import ProcsnakeError
from train.runs.curves.history import Columns
from train.runs.folder import GENERATIONS

_HEAD = (
    "generation",
    "games",
    "positions",
    "loss by hand",
    "loss",
    "of the targets",
    "tested against",
    "games of the test",
    "score",
    "Elo, 95 % interval",
    "verdict",
)
_NOTE = (
    "Losses are in nats per position, on every tenth game, which the fit didn't see. No evaluation"
    " can have less than the targets themselves. The Elo of a test that has stopped errs towards"
    " its verdict."
)


def generations(run: Path) -> str:
    """Return the table of a run's generations as HTML. It is empty for a run that has none."""
    paths = sorted((run / GENERATIONS).glob("evaluation-*.json"))
    cards = [card for card in map(_card, paths) if card]
    if not cards:
        return ""
    parts = [
        table([_row(card) for card in cards], head=_HEAD),
        note(_NOTE),
        chart_grid([_learning_curves(cards)]),
    ]
    if (run / EVALUATION).is_file():
        parts.append(note(f"The run's evaluation is {run / EVALUATION}."))
    return section("Generations", *parts)


def _card(path: Path) -> dict[str, Any] | None:
    """The record of an evaluation's training in its file; None if the file is not an evaluation or
    the record can't be read.
    """
    # It compiles kernels, which other reports don't need.
    from agents.search.evaluation.learned import LearnedEvaluation

    try:
        card = dict(LearnedEvaluation.read(path).training)
        _row(card)
        _learning_curve(card)
    except (ProcsnakeError, LookupError, TypeError, ValueError):
        return None
    return card


def _row(card: dict[str, Any]) -> tuple[str, ...]:
    losses = (f"{card[name]:.5f}" for name in ("loss_before", "loss", "least_loss"))
    return (
        str(card["generation"]),
        f"{card['games']:,}",
        f"{card['positions']:,}",
        *losses,
        *_test(card),
    )


def _learning_curves(cards: list[dict[str, Any]]) -> Chart:
    """The loss of each generation after fits to a part of its games: would more games help?"""
    return Chart(
        title="loss on games held out, by the positions that were fitted",
        x_label="positions",
        y_label="nats per position",
        lines=[_learning_curve(card) for card in cards],
    )


def _learning_curve(card: dict[str, Any]) -> Line:
    curve = np.array(card.get("learning_curve", []), float).reshape(-1, 2)
    return Line(name=f"generation {card['generation']}", x=curve[:, 0], y=curve[:, 1])


def _test(card: dict[str, Any]) -> tuple[str, ...]:
    test = card["test"]
    if test is None:
        return ("", "", "", "", "not tested yet")
    value, low, high = (_elo(test["elo"][name]) for name in ("value", "low", "high"))
    if card["accepted"]:
        verdict = "accepted"
    elif test["verdict"] == "H0":
        verdict = "refused"
    else:
        verdict = "undecided, not accepted"
    return (
        str(test["against"]),
        f"{test['games']:,}",
        f"{test['score']['value']:.1%}",
        f"{value} ({low} to {high})",
        verdict,
    )


def _elo(points: float | None) -> str:
    if points is None:
        return "unbounded"
    return f"{points:+.0f}"


def charts(history: Columns) -> list[Chart]:
    """Return the curves of the losses and of the tests; none for other runs."""
    if "best_generation" not in history:
        return []
    steps = history["agent_steps"]
    named = {"by hand": "loss_hand_written", "learned": "loss", "of the targets": "loss_of_targets"}
    losses = [
        Line(name=name, x=steps, y=history[column])
        for name, column in named.items()
        if column in history
    ]
    lines = []
    if "test_elo" in history:
        # Of few games the interval may have no end that is a number.
        unbounded = np.full(len(steps), np.nan)
        lines.append(
            Line(
                name="new against the best so far",
                x=steps,
                y=history["test_elo"],
                low=history.get("test_elo_low", unbounded),
                high=history.get("test_elo_high", unbounded),
            )
        )
    return [
        Chart(
            title="loss on games held out",
            x_label="decisions",
            y_label="nats per position",
            lines=losses,
        ),
        Chart(
            title="Elo in each generation's test, 95 % intervals",
            x_label="decisions",
            y_label="Elo",
            lines=lines,
        ),
    ]
