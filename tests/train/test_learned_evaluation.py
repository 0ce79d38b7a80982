"""Training an evaluation as a run: games, fit, test, next generation."""

from __future__ import annotations

from dataclasses import replace

import pytest

import agents
import train.learned_evaluation as module
from agents.player import EVALUATION
from agents.search.evaluation.learned import LearnedEvaluation
from agents.search.evaluation.learned_features import NUM_FEATURES, OWN
from agents.search.evaluation.learned_weights import LearnedEvaluationError, Phase
from agents.search.tuning.learning import Learned
from agents.search.tuning.self_play import SelfPlay
from envs.common.errors import ConfigError
from train.config import Experiment
from train.run import check, train
from train.runs.folder import GENERATIONS, RunFolder
from train.runs.report.page import write_report

TIMES = ("minutes", "agent_steps_per_second", "seconds_play", "seconds_learner")


def small(*, generations=1, **settings):
    own = {
        "games": 32,
        "nodes": 20,
        "max_turns": 60,
        "gate_nodes": 20,
        "gate_games": 8,
        "games_per_iteration": 16,
    }
    return Experiment.from_dict(
        {
            "name": "small",
            "env": {"name": "battlesnake", "options": {"width": 7, "height": 7, "num_snakes": 2}},
            "learned_evaluation": {**own, "num_processes": 1, **settings},
            "stop": {"metric": "generations", "at_least": generations},
            "budget": {"max_minutes": 60},
        }
    )


def curve(path):
    return [
        {name: value for name, value in row.items() if name not in TIMES}
        for row in RunFolder(path).curve()
    ]


def weights_of(path):
    return LearnedEvaluation.read(path).weights


def fits(monkeypatch, weights):
    """Has every fit end with these weights of the search's own features, by name."""

    def learn(views, self_play, fitting):
        row = [0] * NUM_FEATURES
        for name, weight in weights.items():
            row[OWN.index(name)] = weight
            row[len(OWN) + OWN.index(name)] = -weight
        told = {
            "self_play": vars(self_play).copy(),
            "games": 1,
            "positions": 1,
            "loss_before": 0.7,
            "learning_curve": [[1, 0.6]],
            "loss": 0.6,
            "least_loss": 0.5,
        }
        made = LearnedEvaluation(width=7, height=7, phases=(Phase.of(None, row),), training=told)
        return Learned(made, 1.0, 1, 1, 0.7, ((1, 0.6),), 0.5)

    monkeypatch.setattr(module, "learn", learn)


def test_a_run_that_was_stopped_and_resumed_comes_to_what_an_uninterrupted_one_does(tmp_path):
    whole = train(small(), runs_dir=tmp_path / "whole")
    assert whole.finished
    assert whole.bundle == whole.path / EVALUATION
    parts = train(small(), runs_dir=tmp_path / "parts", on_iteration=lambda row: True)
    sessions = 1
    while not parts.finished:
        assert parts.bundle is None
        parts = train(resume=parts.path, on_iteration=lambda row: True)
        sessions += 1
    assert sessions == len(curve(whole.path)) == 3
    assert curve(parts.path) == curve(whole.path)
    assert weights_of(parts.bundle) == weights_of(whole.bundle)


def test_a_run_with_hidden_units_comes_to_the_same_network_every_time(tmp_path):
    chosen = small(units=4, epochs=2, search_share=1.0, gate_nodes=100, gate_games=2)
    first, second = (train(chosen, runs_dir=tmp_path / name) for name in ("first", "second"))
    network = LearnedEvaluation.read(first.bundle)
    assert len(network.units) == network.training["fitting"]["units"] == 4
    assert any(unit.points for unit in network.units)
    # A node takes longer with a correction, and longer still with units.
    assert network.training["test"]["nodes"] == [round(100 * 0.87 * 0.9), 100]
    assert weights_of(second.bundle) == network.weights
    assert curve(first.path) == curve(second.path)


def test_the_best_evaluation_costs_nothing_on_boards_that_it_is_not_for(tmp_path, monkeypatch):
    """The shipped one is for 11×11, so on 7×7 only the new one makes the search slower."""
    fits(monkeypatch, {})
    chosen = small(player="alphabeta", gate_nodes=100, gate_games=2)
    learned = LearnedEvaluation.read(train(chosen, runs_dir=tmp_path).bundle)
    assert learned.training["test"]["nodes"] == [87, 100]


def test_games_that_a_kill_left_without_a_checkpoint_are_used(tmp_path, monkeypatch):
    begun = train(small(), runs_dir=tmp_path, on_iteration=lambda row: True)
    blocks = begun.path / GENERATIONS / "games-001"
    assert len(list(blocks.glob("*.npz"))) == 2
    trainer = module.EvaluationTrainer(small())
    trainer.work_in(begun.path)
    trainer.train()
    trainer.train()
    # The checkpoint knows of 16 games, the folder has all 32.
    assert len(list(blocks.glob("*.npz"))) == 4
    monkeypatch.setattr("agents.search.tuning.self_play.play_block", None)
    ended = train(resume=begun.path)
    assert ended.finished
    assert ended.metrics["generations"] == 1


@pytest.mark.long
def test_a_run_that_was_moved_goes_on(tmp_path):
    begun = train(small(), runs_dir=tmp_path, on_iteration=lambda row: True)
    moved = begun.path.rename(tmp_path / "moved")
    ended = train(resume=moved)
    assert ended.finished
    alone = train(small(), runs_dir=tmp_path)
    assert weights_of(ended.bundle) == weights_of(alone.bundle)


def test_a_worse_evaluation_is_refused_and_says_so(tmp_path, monkeypatch, capsys):
    """It hates room and length, so the hand-written one beats it."""
    fits(monkeypatch, {"area": -20_000, "length": -50_000})
    refused = train(
        small(gate_games=80, gate_nodes=60, games_per_iteration=80, gate_elo1=100.0),
        runs_dir=tmp_path,
    )
    card = LearnedEvaluation.read(refused.bundle).training
    assert (card["accepted"], card["test"]["verdict"]) == (False, "H0")
    assert card["test"]["elo"]["high"] < 0
    assert refused.metrics["best_generation"] == refused.metrics["accepted"] == 0
    assert "NOT ACCEPTED: no generation passed its test" in capsys.readouterr().out
    assert "refused" in write_report(refused.path).read_text(encoding="utf-8")


@pytest.mark.long
def test_a_better_evaluation_is_accepted_and_plays_the_next_generation(tmp_path, monkeypatch):
    """The player to beat throws its room away; the correction takes that back."""
    fits(monkeypatch, {"area": 64 * 26})
    weights = ("cell", "length", "cramped", "hunger")
    zeros = "&".join(f"weights.{weight}=0" for weight in weights)
    bad = f"alphabeta?evaluation=hand-written&{zeros}"
    chosen = small(
        player=bad,
        gate_games=80,
        gate_nodes=60,
        games_per_iteration=80,
        gate_elo1=100.0,
        generations=2,
    )
    better = train(replace(chosen, seed=1), runs_dir=tmp_path)
    first = LearnedEvaluation.read(better.path / GENERATIONS / "evaluation-001.json").training
    second = LearnedEvaluation.read(better.path / GENERATIONS / "evaluation-002.json").training
    assert (first["accepted"], first["test"]["verdict"], first["test"]["against"]) == (
        True,
        "H1",
        bad,
    )
    # Equal time against a player without a correction, equal nodes against one that has it.
    assert first["test"]["nodes"] == [52, 60]
    assert second["test"]["nodes"] == [60, 60]
    assert second["self_play"]["player"] == second["test"]["against"] == "generation 1"
    assert not second["accepted"]
    card = LearnedEvaluation.read(better.bundle).training
    assert (card["generation"], card["accepted"]) == (1, True)
    assert agents.make("alphabeta", evaluation=better.bundle).learned is not None


def test_a_cluster_plays_the_same_games_and_tests(one_ray, tmp_path, monkeypatch):
    alone = train(small(), runs_dir=tmp_path / "alone")
    # From here on this process can play no game itself.
    monkeypatch.setattr("agents.search.tuning.self_play.play_block", None)
    monkeypatch.setattr("agents.measure.tournament.workers.play_game", None)
    together = train(small(), runs_dir=tmp_path / "together", cluster="auto")
    assert together.finished
    assert curve(together.path) == curve(alone.path)
    assert weights_of(together.bundle) == weights_of(alone.bundle)


def test_a_cluster_that_can_not_play_says_why_and_no_task_is_cancelled(one_ray, monkeypatch):
    from agents.search.tuning.on_cluster import blocks_on_cluster

    # Cancelled as it ended, a task had Ray abort this process ("Tried to complete task that was not
    # pending").
    monkeypatch.setattr("ray.cancel", None)
    games = SelfPlay(player="alphabeta?evaluation=nowhere.json", nodes=20, width=7, height=7)
    with pytest.raises(LearnedEvaluationError, match=r"nowhere\.json can't be read"):
        list(blocks_on_cluster(games, [0, 1]))


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        (
            {"env": {"name": "battlesnake", "options": {"num_snakes": 4}}},
            "duels of Battlesnake's standard game",
        ),
        (
            {"env": {"name": "battlesnake", "options": {"ruleset": "royale"}}},
            "duels of Battlesnake's standard game",
        ),
        ({"env": {"name": "procgen"}}, "env is procgen with no options"),
        (
            {"env": {"name": "battlesnake", "options": {"width": 19, "height": 19}}},
            "more cells than 128",
        ),
        ({"learned_evaluation": {"player": "flood"}}, "only alphabeta can"),
        ({"learned_evaluation": {"units": 65}}, "units is 65; it must be between 0 and 64"),
        ({"learned_evaluation": {"ridge": 0.0}}, "the ridge above 0"),
        ({"learned_evaluation": {"gate_speed": 0.0}}, "gate_speed is 0.0; it must be between"),
        ({"learned_evaluation": {"gate_elo1": -5.0}}, "elo0 must be the smaller one"),
        (
            {"learned_evaluation": {"games_per_iteration": 1}},
            "games_per_iteration is 1; it must be at least 2",
        ),
        ({"evaluation": {"every_minutes": 1.0}}, "trains no policy that could be measured"),
        ({"num_env_runners": 2}, "must be 0 for learned_evaluation"),
    ],
    ids=str,
)
def test_what_can_not_be_learned_is_told_before_anything_is_written(changes, told):
    with pytest.raises(ConfigError, match=told):
        check(Experiment.from_dict({**small().to_dict(), **changes}))


def test_a_budget_too_short_for_a_generation_leaves_no_evaluation(tmp_path, capsys):
    short = replace(small(), budget=replace(small().budget, max_minutes=1e-9))
    ended = train(short, runs_dir=tmp_path)
    assert ended.finished
    assert ended.bundle is None
    assert "before the first generation was fitted" in capsys.readouterr().out
