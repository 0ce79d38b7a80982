"""What is expected of a run by measured speeds: the figures of docs/lab/cluster.md, and sums done
by hand.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from train.cluster.sizes import sized
from train.cluster.speeds import MEASURED, expected_stages, fullest, measured_like
from train.config import Experiment
from train.settings.scale import scale_overrides

DOCS = Path(__file__).parents[3] / "docs" / "lab" / "cluster.md"


def load(name: str, instances: str, *overrides: str) -> Experiment:
    return sized(Experiment.load(name, [*scale_overrides(instances), *overrides]))


def test_the_figures_are_those_that_the_page_tells():
    rows = [
        line.split("|")[1:-1] for line in DOCS.read_text().splitlines() if line.startswith("| ")
    ]
    told = {row[0].strip(): [cell.strip().replace(" ", "") for cell in row[1:]] for row in rows}
    ppo = MEASURED["battlesnake-ppo"]
    apex = MEASURED["battlesnake-apex"]
    assert told["decisions played"] == [f"{one.played_a_second:.0f}" for one in (ppo, apex)]
    assert told["decisions learned from once"] == [
        f"{one.learned_a_second:.0f}" for one in (ppo, apex)
    ]
    assert told["bytes per decision over the network"][0] == f"{ppo.bytes_a_decision:.0f}"
    assert told["bytes per decision over the network"][1].startswith(
        f"{apex.bytes_a_decision:.0f}("
    )
    assert (
        told["decisions a shard of replay takes in and gives out"][1]
        == f"{apex.remembered_a_second:.0f}"
    )


def test_of_eight_processors_seven_play_and_one_thread_learns_twice_from_each_decision():
    through = expected_stages(load("battlesnake-ppo", "ml.c5.2xlarge"))
    assert through["play"] == 7 * 112_000
    assert through["learn"] == 159_000 / 2
    assert fullest(through) == "learn"


def test_more_learners_more_threads_and_fewer_epochs_learn_faster():
    through = expected_stages(
        load("battlesnake-ppo", "ml.g5.12xlarge", "ppo.num_epochs=1", "ppo.num_threads=3")
    )
    assert through["learn"] == 4 * 3 * 159_000


def test_the_link_carries_weights_besides_decisions():
    through = expected_stages(load("battlesnake-apex", "ml.g5.2xlarge+2*ml.c5.9xlarge"))
    assert through["network"] == pytest.approx(1.25e9 / (1_968 + 2.1e6 / 2_900))
    assert through["shards"] == 5 * 106_000


def test_a_learner_that_replays_each_decision_three_times_gets_through_a_third():
    through = expected_stages(load("battlesnake-apex", "ml.c5.2xlarge", "apex.replay_ratio=3"))
    assert through["learn"] == 51_900 / 3


@pytest.mark.parametrize(
    ("overrides", "like"),
    [
        ([], "battlesnake-ppo"),
        (["seed=3", "ppo.learning_rate=1e-4", "env.options.num_games=16"], "battlesnake-ppo"),
        (["network.options.hidden_sizes=[1024]"], None),
        (["env.options.width=19"], None),
        (["ppo.lstm_units=32"], None),
    ],
)
def test_only_a_run_like_one_that_was_measured_has_an_expectation(overrides, like):
    assert measured_like(Experiment.load("battlesnake-ppo", overrides)) == like


def test_another_world_has_none():
    assert expected_stages(load("procgen-ppo", "ml.c5.2xlarge")) is None
