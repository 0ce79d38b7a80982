"""The fit: it finds the curve that made the results, and says how good it is on games that it
hasn't seen.
"""

from __future__ import annotations

import numpy as np
import pytest

from agents.measure.analysis import fitting
from agents.measure.analysis.fitting import Position, fit, fit_curve, measure, positions_of, table
from agents.measure.analysis.win_probability import GROUPS, Curve, WinProbability
from agents.measure.tournament.play import play_tournament
from agents.measure.tournament.settings import Player, Tournament
from agents.measure.tournament.store import Store
from agents.search.evaluation.evaluate import WIN
from agents.search.tuning.positions import read_games
from envs.common.errors import ConfigError
from tests.agents.measure.sprt import made as sprt

TRUE = Curve(scale=700, offset=-0.4, proven_loss=0.1, proven_win=0.9)


def made_positions(count, *, curve=TRUE, seed=0):
    """Positions whose games were won with the probabilities of a curve; every tenth is proven, won
    or lost.
    """
    rng = np.random.default_rng(seed)
    scores = np.where(
        rng.random(count) < 0.1,
        (WIN - 5) * rng.choice([-1, 1], count),
        rng.normal(0, 900, count).astype(int),
    )
    won = rng.random(count) < [curve(int(score)) for score in scores]
    return [
        Position("2", int(score), float(result), False)
        for score, result in zip(scores, won, strict=True)
    ]


def test_the_curve_that_made_the_results_is_found():
    found = fit_curve("2", made_positions(20_000))
    assert found.scale == pytest.approx(TRUE.scale, rel=0.06)
    assert found.offset == pytest.approx(TRUE.offset, abs=0.06)
    assert (found.proven_loss, found.proven_win) == pytest.approx((0.1, 0.9), abs=0.03)


def test_the_right_curve_is_calibrated_and_a_wrong_one_is_not():
    positions = made_positions(20_000, seed=1)
    right = measure(TRUE, positions)
    wrong = measure(Curve(scale=150, offset=1, proven_loss=0.1, proven_win=0.9), positions)
    assert all(abs(one.expected - one.won) < 0.06 for one in right.bins if one.positions > 300)
    assert sum(one.positions for one in right.bins) == right.positions == 20_000
    assert right.loss < right.loss_of_the_mean < wrong.loss


def test_scores_that_predict_nothing_are_refused():
    upside_down = [one._replace(result=1 - one.result) for one in made_positions(2000)]
    with pytest.raises(ConfigError, match="scores don't predict"):
        fit_curve("2", upside_down)


def test_positions_of_a_store_are_seen_by_every_living_snake(tmp_path):
    players = tuple(Player(name, name) for name in ("flood", "greedy", "random"))
    tournament = Tournament(players=players, seats=3, games=1, width=7, height=7, seed=3)
    with Store(tmp_path / "games.db", Tournament) as store:
        play_tournament(tournament, store)
    match, (game, *_) = read_games(tmp_path / "games.db")
    positions = positions_of((match, game, True), nodes=200)
    first = positions[: len(game.seats)]
    assert [one.group for one in first] == ["3"] * 3
    assert [one.result for one in first] == [float(seat.place == 1) for seat in game.seats]
    assert len(positions) == sum(
        1 + (seat.died - 1 if seat.died else game.turns - 1) // 16 for seat in game.seats
    )
    with pytest.raises(ConfigError, match="a curve needs 100 positions of its kind"):
        fit([tmp_path / "games.db"], nodes=200, pool=None, tell=lambda done, of: None)


def test_kinds_of_positions_that_are_too_rare_keep_the_built_in_curves(tmp_path, monkeypatch):
    monkeypatch.setattr(fitting, "EVERY", 1)
    players = tuple(Player(name, name) for name in ("flood", "random"))
    tournament = Tournament(players=players, games=30, width=7, height=7, seed=3)
    with Store(tmp_path / "games.db", Tournament) as store:
        play_tournament(tournament, store)
    curves, measured = fit([tmp_path / "games.db"], nodes=50, pool=None, tell=lambda done, of: None)
    shipped = WinProbability.shipped()
    assert list(measured) == ["2"]
    assert curves.curves["2"] != shipped.curves["2"]
    rare = [group for group in GROUPS if group != "2"]
    assert [curves.curves[group] for group in rare] == [shipped.curves[group] for group in rare]
    assert "duel: the built-in curve" in table(curves, measured)


def test_a_curve_that_no_held_out_game_could_measure_is_not_fitted(tmp_path, monkeypatch):
    sprt.play(sprt.with_book(1, 8), tmp_path / "sprt.db")
    monkeypatch.setattr(fitting, "positions_of", lambda game, nodes: made_positions(200))
    with pytest.raises(ConfigError, match="a curve needs 100 positions"):
        fit([tmp_path / "sprt.db"], nodes=200, pool=None, tell=lambda done, of: None)


def test_of_a_test_from_a_book_each_openings_own_turns_are_left_out(tmp_path, monkeypatch):
    monkeypatch.setattr(fitting, "EVERY", 1)
    sprt.play(sprt.with_book(1, 8), tmp_path / "sprt.db")
    match, games = read_games(tmp_path / "sprt.db")
    assert {game.round for game in games} == {0, 1}
    for game in games:
        # Both snakes live through the opening.
        turns = sum((seat.died or game.turns) - (1, 8)[game.round] for seat in game.seats)
        assert turns > 0
        assert len(positions_of((match, game, True), nodes=20)) == turns


def test_files_keep_of_a_bin_what_the_table_says():
    measured = measure(TRUE, made_positions(200))
    curves = WinProbability(dict.fromkeys(GROUPS, TRUE))
    printed = [line for line in table(curves, {"2": measured}).splitlines() if "% to" in line]
    rows = [one.row for one in measured.bins]
    kept = [(str(positions), f"{expected:.1%}", f"{won:.1%}") for positions, expected, won in rows]
    assert [tuple(line.split()[3:]) for line in printed] == kept


def test_the_table_names_all_groups():
    measured = measure(TRUE, made_positions(200))
    text = table(WinProbability(dict.fromkeys(GROUPS, TRUE)), dict.fromkeys(GROUPS, measured))
    assert [
        line.partition(":")[0] for line in text.splitlines() if not line.startswith(" ")
    ] == list(GROUPS)
