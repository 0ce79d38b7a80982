"""Shows on a run's report what became of each generation of a learned evaluation."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from agents.measure.pages import Chart, Line, note, section, table
from agents.registry import EVALUATION
from envs.common.errors import ProcsnakeError
from train.runs.curves.history import Columns
from train.runs.folder import GENERATIONS

_HEAD = ("generation", "games", "positions", "loss by hand", "loss", "of the targets", "tested against", "games of the test",
         "score", "Elo, 95 % interval", "verdict")  # fmt: skip
_NOTE = (
    "Losses are in nats per position, on every tenth game, which the fit didn't see. No evaluation"
    " can have less than the targets themselves. The Elo of a test that has stopped errs towards"
    " its verdict."
)


def generations(run: Path) -> str:
    """Return the table of a run's generations as HTML. It is empty for a run that has none."""
    cards = [
        card
        for path in sorted((run / GENERATIONS).glob("evaluation-*.json"))
        if (card := _card(path))
    ]
    if not cards:
        return ""
    if (run / EVALUATION).is_file():
        state = note(f"The run's evaluation is {run / EVALUATION}.")
    else:
        state = ""
    return section(
        "Generations", table([_row(card) for card in cards], head=_HEAD), note(_NOTE), state
    )


def _card(path: Path) -> dict[str, Any] | None:
    """What an evaluation tells of its training; None if anybody has changed it beyond
    recognition.
    """
    # It compiles kernels, which other reports don't need.
    from agents.search.evaluation.learned import LearnedEvaluation

    try:
        card = dict(LearnedEvaluation.read(path).training)
        _row(card)
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


def _test(card: dict[str, Any]) -> tuple[str, ...]:
    test = card["test"]
    if test is None:
        return ("", "", "", "", "not tested yet")
    parts = [test["elo"][name] for name in ("value", "low", "high")]
    value, low, high = ("unbounded" if part is None else f"{part:+.0f}" for part in parts)
    interval = f"{value} ({low} to {high})"
    if card["accepted"]:
        verdict = "accepted"
    else:
        verdict = "refused" if test["verdict"] == "H0" else "undecided, not accepted"
    return (
        str(test["against"]),
        f"{test['games']:,}",
        f"{test['score']['value']:.1%}",
        interval,
        verdict,
    )


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
        low = history["test_elo_low"]
        high = history["test_elo_high"]
        lines = [
            Line(
                name="new against the best so far",
                x=steps,
                y=history["test_elo"],
                low=low,
                high=high,
            )
        ]
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
