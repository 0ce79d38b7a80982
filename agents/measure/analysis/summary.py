"""Summarises many games of a snake: its results, and its causes of death by phase of the game,
length and opponent.
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
    counts the recorded killers."""
    dead = [one for one in analyses if cause_of(one) is not None and one.game.result != "won"]
    fault_counts: Counter[str] = Counter()
    for one in analyses:
        fault_counts.update(faults(one))
    games = max(1, len(analyses))
    return {
        "games": len(analyses),
        "results": dict(Counter(one.game.result or "unknown" for one in analyses)),
        "causes": dict(Counter(str(cause_of(one)) for one in dead).most_common()),
        "faults_per_game": {name: round(fault_counts[name] / games, 2) for name in FAULTS},
        "by_phase": _by(dead, lambda one: [_class(PHASES, _lost_turn(one))]),
        "by_length": _by(dead, lambda one: [_class(LENGTHS, _lengths(one)[0])]),
        "by_relative_length": _by(dead, lambda one: [_relation(*_lengths(one))]),
        "by_opponent": _by(dead, lambda one: sorted(set(one.game.opponents))),
        "by_killer": _by(dead, _killers),
    }


def _by(
    analyses: Sequence[Analysis], classes: Callable[[Analysis], list[str]]
) -> dict[str, dict[str, int]]:
    """The causes of death by class: classes with an order in it, the others by their games."""
    causes: dict[str, Counter[str]] = {}
    for one in analyses:
        for name in classes(one):
            causes.setdefault(name, Counter())[str(cause_of(one))] += 1

    order = {name: place for place, (_, name) in enumerate((*PHASES, *LENGTHS))}

    def place(name: str) -> tuple[int, int, str]:
        return order.get(name, len(order)), -causes[name].total(), name

    return {name: dict(causes[name].most_common()) for name in sorted(causes, key=place)}


def _place(one: Analysis) -> int:
    """The place of the turn that counts: the lost one, or else the last."""
    return len(one.turns) - 1 if one.lost is None else one.lost


def _lost_turn(one: Analysis) -> int:
    return one.turns[_place(one)].turn


def _lengths(one: Analysis) -> tuple[int, int]:
    """The snake's length where it lost, and that of the longest other."""
    living = one.game.positions[_place(one)].living
    lengths = {snake["id"]: len(snake["body"]) for snake in living}
    own = lengths.pop(one.game.snake["id"])
    return own, max(lengths.values())


def _class(classes: Sequence[tuple[int, str]], value: int) -> str:
    return next(name for least, name in reversed(classes) if value >= least)


def _relation(own: int, longest: int) -> str:
    if own > longest:
        return "longest"
    if own == longest:
        return "as long as the longest"
    return "shorter than the longest"


def _killers(one: Analysis) -> list[str]:
    death = one.game.death
    if death is not None and death.killer not in ("", one.game.snake["id"]):
        return [one.game.name_by_id(death.killer)]
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
    causes = [cause for cause in CAUSES if cause in figures["causes"]]
    if not causes:
        return "\n".join([*lines, "", "it died in none of them"])
    rows = [("all games", *_counts(figures["causes"], causes))]
    for key, heading in _HEADINGS.items():
        if figures[key]:
            rows.append((heading, *[""] * (len(causes) + 1)))
            rows += [(f"  {name}", *_counts(games, causes)) for name, games in figures[key].items()]
    return "\n".join([*lines, "", in_columns(rows, ("what kills it", *causes, "together"))])


def _counts(games: dict[str, int], causes: Sequence[str]) -> list[str]:
    """A row's cells: the games by cause, and all of them."""
    return [str(games.get(cause, "")) for cause in causes] + [str(sum(games.values()))]
