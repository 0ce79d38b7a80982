"""Writes a sequential test as one HTML page that needs no network: verdict, ratio, strength,
effort, games.
"""

from __future__ import annotations

from pathlib import Path

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
    statement,
    table,
)
from agents.measure.sprt.play import SprtProgress, points
from agents.measure.sprt.settings import FIRST, SECOND
from agents.measure.sprt.statistics import Estimate, possible_scores
from envs.common.whole_files import make_folder_of, write_whole

_MOST_GAMES = 1000
"""The page lists the last games, at most so many."""


def verdict_in_words(progress: SprtProgress) -> str:
    """Return the test's verdict as a sentence."""
    h = progress.test.hypotheses
    first, second = progress.test.names
    if progress.verdict is None:
        return "Undecided: the test needs more games."
    measured = f"against {second}, {first} {_measured(progress)}"
    if progress.verdict == "H0":
        return f"H0 accepted: {measured}; {h.elo0:g} or less is likelier than {h.elo1:g} or more."
    # Where H0 lies below 0, H1 may hold for a player that isn't stronger.
    stronger = f"{first} is stronger: " if h.elo0 >= 0 else ""
    return (
        f"H1 accepted: {stronger}{measured}; {h.elo1:g} or more is likelier than {h.elo0:g} or"
        " less."
    )


def _measured(progress: SprtProgress) -> str:
    """The first player's strength as the games show it, in normalised Elo if that can be told."""
    strength = progress.strength()
    assert strength is not None
    if strength.normalised_elo is None:
        return f"scored {strength.score.value:.1%}"
    return f"measured {estimate_in_words(strength.normalised_elo)} normalised Elo"


def estimate_in_words(estimate: Estimate) -> str:
    """Return an estimate with its interval as text: "+17 (-3 … +38)"."""
    value, low, high = map(_signed, (estimate.value, estimate.low, estimate.high))
    return f"{value} ({low} … {high})"


def _signed(value: float) -> str:
    return f"{value:+.0f}".replace("inf", "∞")


def write_page(progress: SprtProgress, path: Path) -> Path:
    """Write the test's page to `path`, which is also returned. Raises `ConfigError` if it can't be
    written.
    """
    make_folder_of(path)
    write_whole(path, _page(progress))
    return path


def _page(progress: SprtProgress) -> str:
    t = progress.test
    if t.book:
        start = f"{len(t.book)} openings of a book"
    else:
        start = f"{t.opening_turns} random turns"
    what = (
        f"{' against '.join(t.names)}, {t.seats} snakes per game, {t.width}×{t.height}, ruleset"
        f" {t.settings.ruleset}, map {t.settings.map}, seed {t.seed}, {t.effort_in_words},"
        f" openings: {start}"
    )
    sections = [
        lead("Sequential test", what),
        section("Verdict", statement(verdict_in_words(progress)), _summary(progress)),
        section("Evidence", chart_grid([_ratios(progress)])),
        section(
            "Blocks",
            note(
                "A block is one start, played once with the first player in each seat; its score is"
                " the mean of its games."
            ),
            _blocks(progress),
        ),
        section("Effort", _effort(progress)),
        fold("Games", _games(progress)),
    ]
    return html_page("Sequential test", sections)


def _summary(progress: SprtProgress) -> str:
    strength = progress.strength()
    h = progress.test.hypotheses
    low, high = h.bounds
    rows = [
        ("hypotheses, normalised Elo", f"{h.elo0:g} against {h.elo1:g}"),
        ("accepted errors", f"α {h.alpha:g}, β {h.beta:g}"),
        ("log-likelihood ratio", f"{progress.ratio:.2f} ({low:.2f} … {high:.2f})"),
        ("games", str(len(progress.games))),
    ]
    if strength:
        score = strength.score
        normalised_elo = "unknown"
        if strength.normalised_elo:
            normalised_elo = estimate_in_words(strength.normalised_elo)
        rows += [
            ("score, 95 % interval", f"{score.value:.1%} ({score.low:.1%} … {score.high:.1%})"),
            ("Elo, 95 % interval", estimate_in_words(strength.elo)),
            ("normalised Elo, 95 % interval", normalised_elo),
        ]
    return table(rows)


def _ratios(progress: SprtProgress) -> Chart:
    low, high = progress.test.hypotheses.bounds
    games = progress.test.seats * np.arange(1.0, progress.blocks + 1)
    ends = games[[0, -1]] if len(games) else np.zeros(0)
    return Chart(
        title="log-likelihood ratio after each block",
        x_label="games",
        y_label="natural logarithm",
        lines=[
            Line(name="ratio", x=games, y=np.array(progress.ratios, float)),
            Line(name="H1 is accepted", x=ends, y=np.full(len(ends), high)),
            Line(name="H0 is accepted", x=ends, y=np.full(len(ends), low)),
        ],
    )


def _blocks(progress: SprtProgress) -> str:
    scores = possible_scores(progress.test.seats)
    rows = [
        (str(score), str(number))
        for score, number in zip(scores, progress.counts, strict=True)
        if number
    ]
    return table(rows, head=("score", "blocks"))


def _effort(progress: SprtProgress) -> str:
    rows = []
    for player in (FIRST, SECOND):
        spent = progress.spent(player)
        times = (
            f"{spent['cpu_ms']:.2f}",
            f"{spent['wall_ms']:.2f}",
            f"{spent['failures']:.0f}",
            f"{spent['excused']:.0f}",
        )
        rows.append((progress.test.names[player], *times))
    return table(
        rows,
        head=("player", "processor ms per move", "median wall ms", "failed requests", "excused"),
    )


def _games(progress: SprtProgress) -> str:
    names = progress.test.names
    rows = []
    for game in progress.games[-_MOST_GAMES:]:
        seats = " · ".join(names[seat.player] for seat in game.seats)
        rows.append((f"{game.round}/{game.number}", seats, str(points(game)), str(game.turns)))
    return table(
        rows, head=("game", "players by seat", f"score of {names[FIRST]}", "turns"), text_columns=2
    )
