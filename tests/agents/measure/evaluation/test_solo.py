"""Solo as a challenge: survival turns against closed forms, their interval, and the command."""

from __future__ import annotations

import json
import statistics

import numpy as np
import pytest

import procsnake
from agents.agent import Agent
from agents.measure.evaluation.solo import evaluate_solo, mean_interval
from envs.battlesnake.games import start_games
from envs.battlesnake.settings import Settings
from envs.battlesnake.state import State
from tests.agents.bundles import make_bundle
from tests.agents.measure.evaluation.snakes import AlwaysUp


class Round(Agent):
    """Goes round in a square of two by two, by the parity of its head's place."""

    name = "round"

    def act_batch(self, state, boards, slots):
        heads = [state.body(board, slot)[0] for board, slot in zip(boards, slots, strict=True)]
        # Up on even columns of even rows, then right, down, left: 0 up, 1 down, 2 left, 3 right.
        return np.array(
            [{(0, 0): 0, (0, 1): 3, (1, 1): 1, (1, 0): 2}[x % 2, y % 2] for x, y in heads], np.int8
        )


def test_whoever_goes_up_survives_as_many_turns_as_there_are_rows_above():
    state = State(30, width=11, height=11, num_snakes=1, settings=Settings(solo=True))
    state.seed(5)
    start_games(state)
    expected = [11 - state.body(board, 0)[0][1] for board in range(30)]
    (score,) = evaluate_solo(AlwaysUp(), [(11, 11)], num_games=30, seed=5)
    assert score.mean_turns == pytest.approx(statistics.mean(expected))
    assert score.median_turns == statistics.median(expected)
    assert score.causes == {"wall-collision": 30}
    assert score.survived == 0
    spread = 1.959964 * statistics.stdev(expected) / 30**0.5
    assert score.interval == pytest.approx((score.mean_turns - spread, score.mean_turns + spread))


def test_whoever_goes_round_lives_until_hunger_or_the_turn_limit():
    """No food is near: 100 turns without food are the most, and the hundredth kills."""
    rules = Settings(food_spawn_chance=0, minimum_food=0)
    (short,) = evaluate_solo(Round(), [(8, 8)], num_games=8, settings=rules, max_turns=40)
    assert (short.mean_turns, short.interval, short.survived) == (40.0, (40.0, 40.0), 8)
    assert short.causes == {"survived": 8}
    (long,) = evaluate_solo(Round(), [(8, 8)], num_games=8, settings=rules)
    assert long.survived == 0
    assert long.median_turns >= 100
    assert set(long.causes) == {"out-of-health"}


def test_intervals_cover_the_mean_as_often_as_they_say():
    rng = np.random.default_rng(3)
    samples = rng.exponential(100.0, (2000, 100))
    covered = sum(low <= 100.0 <= high for low, high in map(mean_interval, samples))
    assert 0.92 < covered / 2000 < 0.96


def test_the_command_measures_several_players_on_several_boards(capsys):
    words = ["solo", "greedy", "random", "--boards", "7,8", "--games", "5"]
    assert procsnake.main([*words, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert [(score["agent"], score["width"]) for score in told] == [
        ("greedy", 7),
        ("greedy", 8),
        ("random", 7),
        ("random", 8),
    ]
    assert all(score["games"] == 5 and 0 < score["mean_turns"] < 5000 for score in told)
    assert procsnake.main(words) == 0
    assert f"{told[0]['mean_turns']:.1f}" in capsys.readouterr().out.splitlines()[1]


def test_boards_that_a_policy_cannot_play_are_left_out_and_said(capsys, tmp_path):
    policy = str(make_bundle(tmp_path / "policy"))
    assert procsnake.main(["solo", policy, "--games", "2", "--boards", "7,11", "--json"]) == 0
    out, err = capsys.readouterr()
    assert [score["width"] for score in json.loads(out)] == [11]
    assert "left out policy on 7×7" in err
    assert procsnake.main(["solo", policy, "--games", "2", "--boards", "7"]) == 2


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--boards", "7x7"], "7,11,19"),
        (["--boards", ","], "7,11,19"),
    ],
)
def test_what_is_no_challenge_is_refused(capsys, words, message):
    assert procsnake.main(["solo", "greedy", *words]) == 2
    assert message in capsys.readouterr().err
