"""Sums up many games of a snake: how it fared, and what kills it, by phase of the game, by its
length, and by opponent.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from agents.measure.analysis.causes import CAUSES, cause_of, faults
from agents.measure.analysis.game import Analysis
from agents.measure.analysis.move_classes import FAULTS
from envs.common.columns import in_columns

PHASES = (
    (0, "turns 0 to 49"),
    (50, "turns 50 to 149"),
    (150, "turns 150 to 299"),
    (300, "turn 300 or later"),
)
"""The phases of a game by the turn of the loss, each with its first turn."""
LENGTHS = (
    (0, "length up to 9"),
    (10, "length 10 to 19"),
    (20, "length 20 to 39"),
    (40, "length 40 or more"),
)
"""The snake's length when it lost the game, each class with its least length."""


def summary(analyses: Sequence[Analysis]) -> dict[str, Any]:
    """Return the figures, JSON-able: `games`, `results`, `causes`, `faults_per_game`, and losses
    `by_phase`, `by_length`, `by_relative_length` and `by_opponent`, each {class: {cause: games}}.

    A game counts where it was lost: phase and length are those of the lost turn, or of the last
    turn if there is none. A game against several opponents counts for each of them; `by_killer`
    counts who the recording says has killed."""
    dead = [one for one in analyses if cause_of(one) is not None and one.played.result != "won"]
    total = Counter(
        name for one in analyses for name, count in faults(one).items() for _ in range(count)
    )
    return {
        "games": len(analyses),
        "results": dict(Counter(one.played.result or "unknown" for one in analyses)),
        "causes": dict(Counter(str(cause_of(one)) for one in dead).most_common()),
        "faults_per_game": {name: round(total[name] / max(1, len(analyses)), 2) for name in FAULTS},
        "by_phase": _by(dead, lambda one: [_class(PHASES, _lost_turn(one))]),
        "by_length": _by(dead, lambda one: [_class(LENGTHS, _lengths(one)[0])]),
        "by_relative_length": _by(dead, lambda one: [_relation(*_lengths(one))]),
        "by_opponent": _by(dead, lambda one: sorted(set(one.played.opponents))),
        "by_killer": _by(dead, _killers),
    }


def _by(
    analyses: Sequence[Analysis], classes: Callable[[Analysis], list[str]]
) -> dict[str, dict[str, int]]:
    found: dict[str, Counter[str]] = {}
    for one in analyses:
        for name in classes(one):
            found.setdefault(name, Counter())[str(cause_of(one))] += 1
    order = [name for _, name in (*PHASES, *LENGTHS)]
    known = sorted(
        found,
        key=lambda name: (
            order.index(name) if name in order else len(order),
            -found[name].total(),
            name,
        ),
    )
    return {name: dict(found[name].most_common()) for name in known}


def _place(one: Analysis) -> int:
    return len(one.turns) - 1 if one.lost is None else one.lost


def _lost_turn(one: Analysis) -> int:
    return one.turns[_place(one)].turn


def _lengths(one: Analysis) -> tuple[int, int]:
    """The snake's length where it lost, and that of the longest other."""
    living = one.played.positions[_place(one)].living
    own = next(len(snake["body"]) for snake in living if snake["id"] == one.played.snake["id"])
    return own, max(len(snake["body"]) for snake in living if snake["id"] != one.played.snake["id"])


def _class(classes: Sequence[tuple[int, str]], value: int) -> str:
    return next(name for least, name in reversed(classes) if value >= least)


def _relation(own: int, longest: int) -> str:
    if own > longest:
        return "longest"
    return "as long as the longest" if own == longest else "shorter than the longest"


def _killers(one: Analysis) -> list[str]:
    by = one.played.ending.get("eliminatedBy") or ""
    if by and by != one.played.snake["id"]:
        return [one.played.name_by_id(by)]
    return []


_HEADINGS = {
    "by_phase": "lost on",
    "by_length": "at",
    "by_relative_length": "when it was",
    "by_opponent": "in games with",
    "by_killer": "killed by",
}


def in_words(figures: dict[str, Any]) -> str:
    """Return the figures as text for people."""
    results = figures["results"]
    per_game = figures["faults_per_game"]
    ended = ", ".join(
        f"{results[name]} {name}" for name in ("won", "lost", "draw", "unknown") if name in results
    )
    lines = [f"{figures['games']} game{'s' * (figures['games'] != 1)}: {ended}"]
    lines.append(
        "faults per game: " + ", ".join(f"{per_game[name]:g} {name}" for name in reversed(FAULTS))
    )
    shown = [cause for cause in CAUSES if cause in figures["causes"]]
    if not shown:
        return "\n".join([*lines, "", "it died in none of them"])
    rows = [("all games", *_counts(figures["causes"], shown))]
    for heading, told in _HEADINGS.items():
        if figures[heading]:
            rows.append((told, *[""] * (len(shown) + 1)))
            rows += [
                (f"  {name}", *_counts(causes, shown)) for name, causes in figures[heading].items()
            ]
    return "\n".join([*lines, "", in_columns(rows, ("what kills it", *shown, "together"))])


def _counts(causes: dict[str, int], shown: Sequence[str]) -> list[str]:
    return [str(causes.get(cause, "")) for cause in shown] + [str(sum(causes.values()))]
