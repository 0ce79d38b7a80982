from __future__ import annotations

import numpy as np
import pytest
import torch
from safetensors.numpy import load as load_weights

import agents
import envs
from agents.agent import Agent
from agents.bundle import load
from agents.measure.evaluation import evaluate, procgen
from agents.measure.evaluation.anchored_elo import AnchoredGames, elo_against
from envs.battlesnake.observations import EgocentricPlanes
from envs.common.errors import ConfigError, UnknownNameError
from tests.train.experiments import toy
from tests.train.small_worlds import ToyWorld
from train.config import Experiment
from train.run import check
from train.runs.export import build_network
from train.runs.sessions.evaluation import Evaluator, episode_means, group_label


def snakes(**evaluation):
    settings = {"every_iterations": 4, "games": 12, **evaluation}
    options = {"num_games": 2, "num_snakes": 2, "observation": {"radius": 3, "rotate": True}}
    return Experiment.from_dict(
        {
            "name": "x",
            "env": {"name": "battlesnake", "options": options},
            "budget": {"max_minutes": 1},
            "evaluation": settings,
        }
    )


def weights_of(experiment, always=None):
    """The weights of a fresh network, as the learner holds them; `always`: the action that it takes
    whenever it may.
    """
    network = build_network(experiment, envs.make(experiment.env.name, **experiment.env.options))
    if always is not None:
        with torch.no_grad():
            network.heads.actor.bias[always] = 100.0
    return {f"network.{name}": value.numpy() for name, value in network.state_dict().items()}


class Left(Agent):
    """Always goes left unless that is death, as `weights_of_left` do."""

    name = "left"
    seen = EgocentricPlanes(radius=3, rotate=True)

    def act_batch(self, state, boards, slots):
        return self.seen.to_moves(
            state, boards, slots, self.seen.action_mask(state, boards, slots).argmax(axis=1)
        )


def weights_of_left(experiment):
    weights = weights_of(experiment)
    weights["network.heads.actor.bias"] = np.array([200.0, 100.0, 0.0], np.float32)
    return weights


def test_the_policy_plays_the_games_that_its_bundle_would_play():
    """A network that always goes left unless that is death, against an agent that does so by
    definition.
    """
    experiment = snakes(opponents=[["greedy"], ["random", "random", "flood"]])
    evaluator = Evaluator(experiment)
    weights = weights_of_left(experiment)
    found = evaluator.evaluate(weights)
    expected = evaluate(Left(), experiment.evaluation.opponents, num_games=12, seed=evaluator._seed)
    labels = ["greedy", "2xrandom+flood"]
    assert [found[f"win_rate_vs_{label}"] for label in labels] == [
        score.win_rate for score in expected
    ]
    assert [found[f"mean_turns_vs_{label}"] for label in labels] == [
        score.mean_turns for score in expected
    ]
    assert found["win_rate"] == np.mean([score.win_rate for score in expected])
    assert evaluator.evaluate(weights) | {"seconds_evaluation": 0} == found | {
        "seconds_evaluation": 0
    }


def test_it_is_due_by_iterations_and_by_minutes_of_training():
    evaluator = Evaluator(snakes(every_minutes=2.0))
    done = {"evaluated_iteration": 10, "evaluated_minutes": 5.0}
    assert not Evaluator(snakes()).is_due({"iteration": 3, "minutes": 99.0})
    assert Evaluator(snakes()).is_due({"iteration": 4, "minutes": 0.0})
    assert not evaluator.is_due({"iteration": 13, "minutes": 6.9, **done})
    assert evaluator.is_due({"iteration": 14, "minutes": 5.1, **done})
    assert evaluator.is_due({"iteration": 11, "minutes": 7.0, **done})


def test_unknown_opponents_are_refused_before_training():
    with pytest.raises(UnknownNameError, match="Did you mean 'greedy'"):
        Evaluator(snakes(opponents=[["greddy"]]))
    assert "greedy" in agents.names()


@pytest.mark.parametrize(
    ("board", "opponents", "why"),
    [
        ({}, 16, "num_snakes is 17; it must be an integer from 1 to 16"),
        ({"width": 5, "height": 5}, 8, "holds at most 8 snakes on 5x5, not 9"),
        ({"width": 3, "height": 3}, 4, "too few start cells for 5 snakes on 3x3"),
        (
            {"observation": "bordered-51s", "num_snakes": 2},
            2,
            "channels for 2 snakes, the game has 3",
        ),
    ],
)
def test_more_opponents_than_there_is_room_for_are_refused_before_training(board, opponents, why):
    changes = [f"env.options.{name}={value}" for name, value in board.items()]
    experiment = snakes(opponents=[["random"], ["random"] * opponents]).override(changes)
    with pytest.raises(
        ConfigError, match=rf"evaluation.opponents: .* {opponents}xrandom .*{why}.*Name fewer"
    ):
        check(experiment)


def test_with_ratings_of_the_opponents_there_is_the_policys_own():
    """As many wins as losses against greedy alone are greedy's own rating; a draw counts as half of
    each.
    """
    experiment = snakes(opponents=[["greedy"]], ratings={"greedy": 250.0})
    found = Evaluator(experiment).evaluate(weights_of(experiment))
    points = 12 * (found["win_rate_vs_greedy"] + found["draw_rate_vs_greedy"] / 2)
    expected = 250 + 400 * np.log10((points + 0.5) / (12 - points + 0.5))
    assert found["elo"] == pytest.approx(expected, abs=1e-6)
    assert "elo" not in Evaluator(snakes(opponents=[["greedy"]])).evaluate(weights_of(experiment))


def test_games_without_a_winner_count_for_the_rating_only_if_the_policy_was_among_the_last():
    group = ["random"] * 3
    experiment = snakes(opponents=[group], ratings={"random": 0.0}, games=64)
    evaluator = Evaluator(experiment)
    (expected,) = evaluate(Left(), [group], num_games=64, seed=evaluator._seed)
    assert expected.wins <= expected.points < expected.wins + expected.draws / 4
    found = evaluator.evaluate(weights_of_left(experiment))
    assert found["elo"] == elo_against([AnchoredGames(expected.points, 64, [0.0] * 3)])


def test_ratings_are_of_all_opponents_or_of_none():
    with pytest.raises(ConfigError, match=r"ratings lacks flood; rate each opponent"):
        snakes(opponents=[["greedy"], ["flood", "greedy"]], ratings={"greedy": 0.0})


def test_groups_have_readable_names():
    assert group_label(["random"] * 3) == "3xrandom"
    assert group_label(["greedy", "flood", "greedy"]) == "2xgreedy+flood"


class Steady(torch.nn.Module):
    """Goes on in the corridor, except at the cells whose planes are listed: there it ends its
    episode.
    """

    def __init__(self, stops=()):
        super().__init__()
        self.stops = list(stops)

    def forward(self, observations):
        stop = observations[:, 0, 0, self.stops].sum(-1) > 0
        return torch.stack([stop.float(), 1 - stop.float()], -1), torch.zeros(len(observations))


@pytest.mark.parametrize(
    ("stops", "expected_return", "expected_length"), [((), 1.0, 10.0), ((4,), 0.0, 5.0)]
)
def test_other_worlds_are_measured_by_their_episodes(stops, expected_return, expected_length):
    world = envs.make("corridor", num_games=3)
    means = episode_means(Steady(stops), world, episodes=20, seed=0)
    assert means == {
        "evaluation_return_mean": expected_return,
        "evaluation_len_mean": expected_length,
    }


def on_levels(champion):
    """An experiment in the world of a shipped Procgen policy, and that policy's weights as the
    learner holds them.
    """
    bundle = load(champion)
    settings = {"every_iterations": 1, "games": 2, "env_options": {"levels": "test:200"}}
    experiment = Experiment.from_dict({**bundle.card.config, "evaluation": settings})
    weights = {f"network.{name}": value for name, value in load_weights(bundle.weights).items()}
    return experiment, weights


def test_where_levels_measure_a_run_measures_as_the_command_evaluate_does():
    """On the same unseen levels with the same seed the same episodes are played, action for
    action.
    """
    experiment, weights = on_levels("champion-coinrun")
    evaluator = Evaluator(experiment)
    measured, _ = procgen.evaluate(
        ["champion-coinrun"], levels="test:200", episodes=2, seed=evaluator._seed
    )
    means = evaluator.evaluate(weights)
    assert means["evaluation_return_mean"] == measured.score.mean_return
    assert means["evaluation_len_mean"] == measured.score.mean_length


def drawing_world(kind):
    """A Procgen game inside the worlds that are made of others."""
    game = {"name": "procgen/coinrun", "options": {"distribution_mode": "easy"}}
    options = {
        "mixture": {"worlds": [game, game]},
        "curriculum": {"stages": [{**game, "until": 9}, game]},
    }
    return envs.make(kind, num_games=1, **options[kind])


@pytest.mark.parametrize("kind", ["mixture", "curriculum"])
def test_worlds_made_of_procgen_games_draw_their_actions_too(kind):
    world = drawing_world(kind)
    plain = envs.make("corridor", num_games=1)
    assert (world.samples_actions, plain.samples_actions) == (True, False)
    world.close()


class UnevenWorld(ToyWorld):
    """Two rows whose episodes last one step and ten, whatever is done; each step pays 1."""

    def __init__(self) -> None:
        super().__init__(num_games=2, rows_per_game=1, planes=11, num_actions=2)

    def _show(self, rows: np.ndarray) -> None:
        pass

    def advance(self, actions: np.ndarray) -> None:
        self.rewards[:] = 1.0
        self.terminated[:] = self.lengths + 1 == [1, 10]
        self._book(self.valid)


def test_short_episodes_count_no_more_than_long_ones():
    means = episode_means(Steady(), UnevenWorld(), episodes=6, seed=0)
    assert means == {"evaluation_return_mean": 5.5, "evaluation_len_mean": 5.5}


def in_stages(world, first, last, **evaluation):
    """An experiment with a curriculum of two stages, by their options; the first ends within any
    evaluation.
    """
    return Experiment.from_dict(
        {
            "name": "x",
            "env": {
                "name": "curriculum",
                "imports": ["tests.train.small_worlds"],
                "options": {
                    "num_games": 2,
                    "stages": [
                        {"name": world, "until": 20, "options": first},
                        {"name": world, "options": last},
                    ],
                },
            },
            "network": {"name": "mlp", "options": {"hidden_sizes": [8]}},
            "budget": {"max_minutes": 1},
            "evaluation": {"every_iterations": 1, "games": 4, **evaluation},
        }
    )


@pytest.mark.parametrize("snakes_at_first", [2, 4])
def test_a_curriculum_of_snakes_is_measured_by_games_on_its_last_board(snakes_at_first):
    board = {"width": 7, "height": 7, "observation": {"radius": 3, "rotate": True}}
    first = {**board, "num_snakes": snakes_at_first}
    last = {**board, "width": 11, "height": 11, "num_snakes": 3}
    evaluator = Evaluator(in_stages("battlesnake", first, last, opponents=[["greedy"]]))
    weights = weights_of_left(evaluator.experiment)
    found = evaluator.evaluate(weights)
    again = evaluator.evaluate(weights)
    (expected,) = evaluate(
        Left(), [["greedy"]], num_games=4, seed=evaluator._seed, width=11, height=11
    )
    assert found["mean_turns_vs_greedy"] == expected.mean_turns
    assert found | {"seconds_evaluation": 0} == again | {"seconds_evaluation": 0}


@pytest.mark.parametrize(("own", "length"), [({}, 4.0), ({"max_turns": 3}, 3.0)])
def test_a_curriculum_of_another_world_is_measured_by_episodes_of_its_last_stage(own, length):
    experiment = in_stages("corridor", {"max_turns": 2}, {"max_turns": 4}, env_options=own)
    evaluator = Evaluator(experiment)
    weights = weights_of(experiment, always=1)
    assert [evaluator.evaluate(weights)["evaluation_len_mean"] for _ in range(3)] == [length] * 3


def test_a_mixture_of_curricula_is_measured_in_their_last_stages():
    parts = [in_stages("corridor", {"max_turns": 2}, {"max_turns": most}).env for most in (4, 6)]
    worlds = [{"name": part.name, "options": part.options} for part in parts]
    mixture = {"name": "mixture", "imports": parts[0].imports, "options": {"worlds": worlds}}
    experiment = Experiment.from_dict({**in_stages("corridor", {}, {}).to_dict(), "env": mixture})
    evaluator = Evaluator(experiment)
    weights = weights_of(experiment, always=1)
    assert [evaluator.evaluate(weights)["evaluation_len_mean"] for _ in range(3)] == [5.0] * 3


def test_options_of_the_world_can_differ_from_those_of_training():
    experiment = toy("corridor", options={"max_turns": 1000})
    data = {
        **experiment.to_dict(),
        "evaluation": {"every_iterations": 1, "env_options": {"max_turns": 3}},
    }
    means = Evaluator(Experiment.from_dict(data)).evaluate(weights_of(experiment, always=1))
    assert means["evaluation_len_mean"] == 3.0
