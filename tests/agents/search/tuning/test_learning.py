"""The fit of a learned evaluation, and its command."""

from __future__ import annotations

import json
import re
import shlex
from dataclasses import replace
from itertools import islice

import numpy as np
import pytest
from scipy.optimize import minimize

import agents
from agents.measure.tournament.settings import derived_seed
from agents.search.evaluation.learned import LearnedEvaluation
from agents.search.evaluation.learned_features import NUM_FEATURES, OWN
from agents.search.evaluation.learned_weights import UNIT
from agents.search.tuning import learning
from agents.search.tuning.learning import Fitting, corrections, learn, ridge_regression, targets
from agents.search.tuning.self_play import SelfPlay, Views
from agents.search.tuning.texel import probability
from envs.common.errors import ConfigError
from procsnake import main
from tests.agents.search.evaluation.test_hidden_units import random_units
from tests.agents.search.evaluation.test_learned import correction, random_weights
from tests.agents.search.evaluation.test_learned_features import positions

LENGTH = OWN.index("length")


def made_views(count, weights, seed=0):
    """Positions of games that are decided by the hand-written score plus `weights` times the
    features, both / 500.
    """
    random = np.random.default_rng(seed)
    features = random.integers(0, 30, (count, NUM_FEATURES))
    hand = random.integers(-800, 800, count)
    score = hand + features @ weights
    result = (random.random(count) < probability(score / 500)).astype(np.float32)
    left = np.ones(count, np.int16)
    game = np.arange(count) // 5
    return Views(
        features.astype(np.int16), hand.astype(np.int32), score.astype(np.int32), result, left, game
    )


def planted():
    weights = np.zeros(NUM_FEATURES)
    weights[[0, 5, len(OWN) + 5, 2 * len(OWN) + 1]] = 12, 25, -25, -8
    return weights


@pytest.mark.parametrize("piece", [1 << 16, 96], ids=["at once", "in pieces"])
def test_the_regression_finds_the_minimum_that_scipy_finds(piece, monkeypatch):
    monkeypatch.setattr(learning, "_PIECE", piece)
    random = np.random.default_rng(1)
    features = random.normal(size=(400, 4)) * [1, 3, 0.2, 1]
    offset = random.normal(size=400)
    features[:, 3] = 2.0
    target = random.random(400)
    unit = np.array([*features[:, :3].std(axis=0), 1.0])

    def loss(w):
        logits = features @ w + offset
        return float(
            (np.logaddexp(0, logits) - target * logits).sum() + 20 / 2 * ((w * unit) ** 2).sum()
        )

    expected = minimize(loss, np.zeros(4), method="BFGS", options={"gtol": 1e-7}).x
    assert ridge_regression(features, target, offset, 20) == pytest.approx(expected, abs=1e-5)


def test_planted_weights_are_found_again():
    views = made_views(40_000, planted())
    found = learn(views, SelfPlay(), Fitting(discount=1.0, search_share=1.0, ridge=1.0, phases=1))
    weights = np.array(found.evaluation.phases[0].weights) / UNIT * 500 / found.scale
    assert np.abs(weights - planted()).max() < 3
    assert found.loss < found.loss_before
    assert found.loss == pytest.approx(found.least_loss, abs=0.002)


def test_the_learning_curve_shows_what_more_games_bring():
    """By chance, a fit of W weights to the results of N games loses W / 2N nats (Wilks 1938)."""
    views = made_views(40_000, planted())
    found = learn(views, SelfPlay(), Fitting(discount=1.0, search_share=0.0, ridge=1.0, phases=1))
    sizes, losses = zip(*found.learning_curve, strict=True)
    assert sizes == (4500, 9000, 18_000, 36_000)
    by_chance = NUM_FEATURES / 2 * (1 / 4500 - 1 / 36_000)
    assert losses[0] - losses[-1] == pytest.approx(by_chance, rel=0.4)
    assert found.loss == losses[-1]


def test_each_phase_has_weights_of_its_own():
    random = np.random.default_rng(3)
    views = made_views(20_000, np.zeros(NUM_FEATURES))
    together = views.features[:, LENGTH] + views.features[:, len(OWN) + LENGTH]
    # In long games, and only there, an area of 10 cells more wins.
    score = np.where(together > 29, 50 * (views.features[:, 5] - 15), 0)
    result = (random.random(len(score)) < probability(score / 500)).astype(np.float32)
    views = Views(
        views.features,
        views.hand,
        (score + views.hand).astype(np.int32),
        result,
        views.turns_left,
        views.game,
    )
    early, late = learn(views, SelfPlay(), Fitting(search_share=0.0, phases=2)).evaluation.phases
    assert early.up_to in (28, 29, 30)
    assert late.mine["area"] > 5 * abs(early.mine["area"])


def test_units_learn_what_the_phases_leave():
    """A snake wins with much or with little room, which no linear sum can say."""
    random = np.random.default_rng(3)
    views = made_views(20_000, np.zeros(NUM_FEATURES))
    score = 100 * np.maximum(0, np.abs(views.features[:, 5] - 15) - 5)
    views = replace(views, search=(views.hand + score).astype(np.int32))
    results = random.random(len(score)) < probability(views.search / 500)
    views = replace(views, result=results.astype(np.float32))
    linear, network = (
        learn(views, SelfPlay(), Fitting(search_share=1.0, phases=1, units=units))
        for units in (0, 8)
    )
    assert network.evaluation.phases == linear.evaluation.phases
    assert network.loss - network.least_loss < 0.3 * (linear.loss - linear.least_loss)


def test_a_result_counts_less_the_later_it_comes_and_a_proven_score_counts_most():
    count = 4
    views = Views(
        features=np.zeros((count, NUM_FEATURES), np.int16),
        hand=np.zeros(count, np.int32),
        search=np.array([0, 0, 999_990, -999_990], np.int32),
        result=np.array([1, 1, 0, 1], np.float32),
        turns_left=np.array([0, 10, 5, 5], np.int16),
        game=np.zeros(count, np.int64),
    )
    found = targets(views, Fitting(search_share=0.5), 100.0)
    assert found == pytest.approx([0.75, 0.5 + 0.25 * 0.97**10, 0.99, 0.01])


def test_a_position_from_inside_a_search_is_worth_what_its_search_says():
    count = 3
    unknown = np.nan
    views = Views(
        features=np.zeros((count, NUM_FEATURES), np.int16),
        hand=np.zeros(count, np.int32),
        search=np.array([0, 100, -999_990], np.int32),
        result=np.full(count, unknown, np.float32),
        turns_left=np.full(count, 3, np.int16),
        game=np.zeros(count, np.int64),
    )
    assert targets(views, Fitting(search_share=0.25), 100.0) == pytest.approx(
        [0.5, 1 / (1 + np.exp(-1)), 0.01]
    )


def test_positions_without_a_result_help_the_fit_where_games_are_few():
    few = made_views(3000, planted())
    many = made_views(30_000, planted(), seed=1)
    inner = Views(
        **{**vars(many), "result": np.full(30_000, np.nan, np.float32), "game": many.game % 600}
    )
    both = Views(
        *(
            np.concatenate([a, b])
            for a, b in zip(vars(few).values(), vars(inner).values(), strict=True)
        )
    )
    fitting = Fitting(discount=1.0, search_share=0.5, phases=1)
    off = []
    for views in (few, both):
        found = learn(views, SelfPlay(), fitting)
        off.append(
            np.abs(
                np.array(found.evaluation.phases[0].weights) / UNIT * 500 / found.scale - planted()
            ).max()
        )
    assert off[1] < off[0] / 2


@pytest.mark.parametrize("units", [0, 8])
def test_the_fit_adds_what_the_search_adds(units):
    learned = replace(random_weights(6), units=random_units(units))
    for state, me in islice(positions(width=11, height=11), 20):
        points, features = correction(learned, state, me)
        one = np.zeros(1, np.int32)
        views = Views(
            features[None].astype(np.int16),
            one,
            one,
            one.astype(np.float32),
            one.astype(np.int16),
            one,
        )
        assert corrections(learned, views) == [points]


def test_too_few_positions_and_impossible_options_are_refused():
    with pytest.raises(ConfigError, match="too few"):
        learn(made_views(100, planted()), SelfPlay(), Fitting())
    with pytest.raises(ConfigError, match="can't be used"):
        learn(made_views(5000, planted()), SelfPlay(), Fitting(ridge=0.0))
    with pytest.raises(ConfigError, match="the units between 0 and 64"):
        learn(made_views(5000, planted()), SelfPlay(), Fitting(units=65))


SMALL = shlex.split("--nodes 20 --width 7 --height 7 --max-turns 80 --games 64 --jobs 1")


@pytest.mark.slow
def test_the_command_writes_an_evaluation_that_a_search_takes(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["tune-search", "learn", "alphabeta", "outputs/learned.json", *SMALL]) == 0
    told = capsys.readouterr().out
    player = "learned=alphabeta?evaluation=outputs%2Flearned.json"
    assert (
        f" sprt '{player}' before=alphabeta --nodes=2000 --elo1=15 --width=7 --height=7 --seed="
        in told
    )
    seed = int(re.search(r"--seed=(\d+)", told)[1])
    assert not {derived_seed(0, game) for game in range(64)} & {
        derived_seed(seed, block, 0) for block in range(64)
    }
    learned = LearnedEvaluation.read("outputs/learned.json")
    assert (learned.width, learned.height) == (7, 7)
    # A game that ends at once has no position.
    assert 40 < learned.training["games"] <= 64
    assert agents.make("alphabeta?evaluation=outputs%2Flearned.json").learned == learned
    # The same command finds its games there, and comes to the same file.
    assert main(["tune-search", "learn", "alphabeta", "again.json", *SMALL, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["loss"] == learned.training["loss"]
    assert LearnedEvaluation.read("again.json") == learned


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["mcts", "x.json"], "only alphabeta"),
        (["alphabeta", "nowhere/x.json"], "no folder nowhere"),
        (
            ["alphabeta", ".", "--games", "8", "--nodes", "9", "--jobs", "1"],
            "it is a folder",
        ),
        (["alphabeta?evaluation=./x.json", "x.json"], "must stay there"),
    ],
    ids=str,
)
def test_what_can_not_be_learned_is_told_before_a_game_is_played(
    words, told, tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    assert main(["tune-search", "learn", *words]) != 0
    assert told in capsys.readouterr().err
    assert not list(tmp_path.iterdir())
