"""The summary of many games counts causes by phase, length, opponent and killer."""

from __future__ import annotations

import pytest

from agents.measure.analysis.game import analyse
from agents.measure.analysis.snake_game import game_of
from agents.measure.analysis.summary import in_words, summary
from agents.measure.analysis.win_probability import WinProbability
from tests.agents.measure.analysis.throw_aways import kept


@pytest.fixture(scope="module")
def analyses():
    """Three lost games, and the first of them as its winner saw it."""
    chosen = sorted(kept(), key=lambda game: game[1].turn)[:3]
    seats = [(recording, proof.victim) for recording, proof in chosen]
    seats.append((chosen[0][0], "ab".replace(chosen[0][1].victim, "")))
    return [
        analyse(game_of(game, snake), nodes=300, curves=WinProbability.shipped())
        for game, snake in seats
    ]


def test_every_loss_is_counted_once_per_view(analyses):
    figures = summary(analyses)
    assert (figures["games"], figures["results"]) == (4, {"lost": 3, "won": 1})
    assert sum(figures["causes"].values()) == 3
    for view in ("by_phase", "by_length", "by_relative_length", "by_opponent"):
        assert sum(sum(causes.values()) for causes in figures[view].values()) == 3, view
    assert set(figures["by_opponent"]) == {one.game.opponents[0] for one in analyses[:3]}
    assert set(figures["by_phase"]) == {"turns 0 to 49"}


def test_the_text_has_a_row_per_class_whose_numbers_add_up(analyses):
    figures = summary(analyses)
    text = in_words(figures)
    assert text.startswith("4 games: 1 won, 3 lost\n")
    rows = {line[:30].strip(): line.split() for line in text.splitlines()}
    assert rows["turns 0 to 49"][-1] == "3"
    assert all(cause in text for cause in figures["causes"])


def test_games_without_a_death_are_summed_up_too(analyses):
    assert in_words(summary(analyses[3:])).endswith("it died in none of them")
