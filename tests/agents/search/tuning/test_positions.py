"""The features that the regression sees are the search's own evaluation."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from dataclasses import replace

import numpy as np
import pytest

from agents.measure.tournament.store import Store, StoreError
from agents.search.evaluation.evaluate import SCALE, Weights
from agents.search.evaluation.territory import new_territory, survey
from agents.search.make_unmake import search_rules
from agents.search.tuning.positions import LINEAR, UNIT, collect, features_of, is_quiet, read_games
from agents.search.tuning.regression import regress
from agents.search.tuning.settings import Tuning
from envs.battlesnake.games import play_turn, start_games
from envs.battlesnake.safety import safe_moves
from envs.battlesnake.settings import Settings
from envs.battlesnake.state import ALIVE, State, head_cell
from envs.common.errors import ConfigError, UnknownNameError
from tests.agents.measure.sprt import made as sprt
from tests.agents.search.tuning.made import START, evaluate, play, small

GAMES = [
    (2, Settings()),
    (4, Settings()),
    (3, Settings(ruleset="wrapped")),
    (2, Settings(ruleset="royale", shrink_every_n_turns=3)),
    (4, Settings(ruleset="royale", shrink_every_n_turns=3, hazard_damage=-5)),
    (2, Settings(ruleset="constrictor")),
]


def positions(seats, settings, games=6, turns=60):
    """Positions of games of random safe moves, with a living snake each."""
    random = np.random.default_rng(seats)
    for seed in range(games):
        state = State(1, width=9, height=9, num_snakes=seats, settings=settings)
        state.seed(seed)
        running = start_games(state)
        for _ in range(turns):
            for me in map(int, np.flatnonzero(state.arrays.cause[0] == ALIVE)):
                yield state, me
            safe = safe_moves(state, np.zeros(seats, int), np.arange(seats))
            moves = [random.choice(np.flatnonzero(row)) if row.any() else 0 for row in safe]
            play_turn(state, np.array([moves], np.int8), running)
            if not running[0]:
                break


def random_weights(random) -> Weights:
    drawn = {
        name: int(random.integers(0, 2 * value + 40))
        for name, value in Weights()._asdict().items()
        if name in LINEAR
    }
    return Weights(**drawn, length_cap=int(random.integers(1, 9)))


@pytest.mark.parametrize(
    ("seats", "settings"), GAMES, ids=lambda value: getattr(value, "ruleset", value)
)
def test_weighted_features_are_exactly_the_searchs_evaluation(seats, settings):
    random = np.random.default_rng(1)
    seen = 0
    for state, me in positions(seats, settings):
        seen += 1
        weights = random_weights(random)
        territory = new_territory(state)
        survey(state.arrays, search_rules(state.rules), territory)
        features = features_of(state, me, territory, weights).tolist()
        small_weights = [getattr(weights, name) for name in LINEAR]
        exact = sum(
            feature * weight for feature, weight in zip(features, small_weights, strict=True)
        )
        # With weights that all of the evaluation's divisors divide nothing is rounded: the same
        # integer, to the last bit.
        in_units = weights._replace(**{name: UNIT * getattr(weights, name) for name in LINEAR})
        assert evaluate(state, me, territory, in_units) == exact
        # With the weights themselves, each of its few divisions rounds down by less than a point.
        assert abs(evaluate(state, me, territory, weights) - exact / UNIT) < 5
    assert seen > 100


def test_a_position_is_quiet_unless_my_head_can_meet_another():
    quiet = []
    width = 9 + 2
    for state, me in positions(3, Settings()):
        s = state.arrays
        steps = {+1, -1, +width, -width}
        reach = [{head_cell(s, 0, i) + step for step in steps} for i in range(3)]
        meets = any(reach[me] & reach[i] for i in range(3) if i != me and s.cause[0, i] == ALIVE)
        # Snakes whose heads are side by side reach no common cell.
        assert is_quiet(state, me) == (not meets)
        quiet.append(is_quiet(state, me))
    assert 10 < sum(quiet) < len(quiet) - 10


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    path = tmp_path_factory.mktemp("games") / "games.db"
    play(small(pairs=6, batch=6, width=9, height=9, max_turns=300), path, concurrency=2)
    return path


def test_positions_of_recorded_games_have_the_games_results(recorded):
    match, games = read_games(recorded)
    assert isinstance(match, Tuning)
    found = collect([(match, games)], Weights(), every=2, most=10)
    assert found.games == 10
    assert found.features.shape == (len(found.results), len(LINEAR))
    assert set(found.results) <= {0.0, 0.5, 1.0}
    # Far fewer points than a decided game has.
    scores = found.features @ [getattr(Weights(), name) for name in LINEAR]
    assert 0 < np.abs(scores).max() < 10 * SCALE
    # Snakes that are ahead win more often.
    assert found.results[scores > 300].mean() > found.results[scores < -300].mean()
    assert len(collect([(match, games)], Weights(), every=8, most=10).results) < len(found.results)


def test_of_a_test_from_a_book_each_openings_own_turns_are_left_out(tmp_path):
    sprt.play(sprt.with_book(1, 8), tmp_path / "sprt.db")
    match, games = read_games(tmp_path / "sprt.db")
    assert len(games) == 4
    for game in games:
        plain = replace(match, book=(), opening_turns=(1, 8)[game.round])
        found, expected = (
            collect([(one, [game])], Weights(), every=1, most=1) for one in (match, plain)
        )
        np.testing.assert_array_equal(found.features, expected.features)


def test_a_damaged_store_is_called_that_whatever_it_held(tmp_path):
    path = tmp_path / "sprt.db"
    sprt.play(sprt.with_book(1, 8), path)
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("UPDATE tournament SET config = json_remove(config, '$.players')")
    with pytest.raises(StoreError, match="is damaged"):
        read_games(path)


def test_a_regression_fits_what_is_asked_for(recorded):
    found = regress(START, ["weights.cell"], [recorded], every=4)
    assert list(found.values) == ["weights.cell"]
    assert found.fit.loss <= found.fit.loss_before
    assert found.to_dict()["parameters"]["weights.cell"]["start"] == 6
    everything = regress(START, ["weights"], [recorded], every=4)
    assert set(everything.values) == {f"weights.{name}" for name in LINEAR}
    # No board had hazards.
    assert everything.values["weights.hazard"] == 1
    assert everything.fit.loss < found.fit.loss


def test_what_cannot_be_fitted_is_refused(recorded, tmp_path):
    with pytest.raises(ConfigError, match=r"isn't linear in weights\.draw"):
        regress("alphabeta", ["weights.draw"], [recorded])
    with pytest.raises(UnknownNameError, match=r"Did you mean 'weights\.cell'"):
        regress("alphabeta", ["weights.cel"], [recorded])
    with pytest.raises(StoreError, match="there is no"):
        regress("alphabeta", ["weights"], [tmp_path / "nowhere.db"])
    with Store(tmp_path / "empty.db", Tuning) as store:
        store.begin(small())
    with pytest.raises(ConfigError, match="no quiet, undecided position"):
        regress("alphabeta", ["weights"], [tmp_path / "empty.db"])
