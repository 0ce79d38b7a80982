from __future__ import annotations

import json
import sys
from dataclasses import dataclass

import numpy as np
import pytest
from scipy.stats import binomtest, chisquare

import agents
import procsnake
from agents.agent import Agent
from agents.measure.evaluation import (
    NOBODY,
    GameResults,
    evaluate,
    play_games,
    score,
    table,
    wilson_interval,
)
from envs.battlesnake import BattlesnakeVectorEnv, EgocentricPlanes
from envs.battlesnake.settings import Settings
from envs.battlesnake.state import ALIVE, HEAD_COLLISION, OUT_OF_HEALTH, WALL_COLLISION
from envs.common import terminal
from envs.common.errors import ConfigError, UnknownNameError
from tests.agents.measure.evaluation.snakes import AlwaysUp
from tests.command_line import Terminal

RESULTS = (
    "winner",
    "capped",
    "turns",
    "cause",
    "killer",
    "death_turn",
    "snake_length",
    "food_eaten",
)


class Circler(Agent):
    """Goes round and round in a square of four cells, never eating on purpose."""

    name = "circler"

    def act_batch(self, state, boards, slots):
        return np.array([0, 3, 1, 2], np.int8)[state.arrays.turn[boards] % 4]


class TestWilsonInterval:
    @pytest.mark.parametrize(
        ("k", "n"), [(0, 10), (10, 10), (1, 3), (81, 263), (199, 200), (500, 1000)]
    )
    @pytest.mark.parametrize("confidence", [0.8, 0.95, 0.999])
    def test_agrees_with_scipy(self, k, n, confidence):
        expected = binomtest(k, n).proportion_ci(confidence, method="wilson")
        assert wilson_interval(k, n, confidence) == pytest.approx(
            (expected.low, expected.high), abs=1e-12
        )

    def test_agrees_with_a_published_value(self):
        # R. G. Newcombe, Statistics in Medicine 17 (1998), table I, method 3: 81 of 263.
        assert wilson_interval(81, 263) == pytest.approx((0.2553, 0.3662), abs=5e-5)

    def test_of_no_games_anything_is_possible(self):
        assert wilson_interval(0, 0) == (0.0, 1.0)

    @pytest.mark.parametrize("bad", [(-1, 10, 0.95), (11, 10, 0.95), (1, 10, 1.0), (1, 10, 0.0)])
    def test_refuses_what_is_no_proportion(self, bad):
        with pytest.raises(ConfigError, match="no interval"):
            wilson_interval(*bad)


def same(a: GameResults, b: GameResults, games=slice(None)) -> bool:
    return all((getattr(a, name)[games] == getattr(b, name)[games]).all() for name in RESULTS)


def flood_against_greedy(**options):
    return play_games(
        [agents.make("flood"), agents.make("greedy")], **{"num_games": 12, "seed": 4, **options}
    )


def test_each_turn_and_the_games_that_are_over_are_told():
    told = []
    turns = flood_against_greedy(on_turn=lambda turn, over: told.append((turn, over))).turns
    assert told == [(turn, int((turns <= turn).sum())) for turn in range(1, turns.max() + 1)]


@pytest.mark.parametrize("json_too", [True, False])
def test_a_terminal_shows_how_far_the_games_are(monkeypatch, json_too):
    monkeypatch.setattr(terminal, "_QUIET_S", 0.0)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(sys, "stderr", Terminal())
    options = ["--against", "greedy", "--num-snakes", "2", "--games", "2", *["--json"] * json_too]
    assert procsnake.main(["evaluate", "random", *options]) == 0
    assert ("turn 2, 0 of 2 games over, 0 s" in sys.stderr.getvalue()) != json_too
    assert "… greedy (duel)\n" in sys.stderr.getvalue()


def test_the_same_seed_gives_the_same_games():
    assert same(flood_against_greedy(), flood_against_greedy())
    assert not same(flood_against_greedy(), flood_against_greedy(seed=5))


def test_a_game_does_not_depend_on_how_many_are_played():
    few = flood_against_greedy(num_games=6)
    many = flood_against_greedy(num_games=24)
    assert all((getattr(many, name)[:6] == getattr(few, name)).all() for name in RESULTS)


def test_seats_rotate():
    # One agent runs into the wall, the other plays on: the loser must be agent 0 whatever its seat,
    # in each of the games.
    results = play_games([AlwaysUp(), agents.make("flood")], num_games=10, seed=1)
    assert (results.winner == 1).all()
    assert (results.cause[:, 0] == WALL_COLLISION).all()
    assert (results.cause[:, 1] == ALIVE).all()
    assert (results.death_turn[:, 0] == results.turns).all()


def test_equal_agents_win_equally_often():
    results = play_games([agents.make("flood")] * 4, num_games=600, seed=2)
    assert results.wins.sum() + results.draws == 600
    assert chisquare(results.wins).pvalue > 1e-3
    low, high = wilson_interval(int(results.wins[0]), int(results.wins.sum()), 0.999)
    assert low < 0.25 < high


@pytest.mark.parametrize("ruleset", ["standard", "wrapped", "constrictor"])
def test_agrees_with_the_vector_environment(ruleset):
    games = 8
    snakes = 3
    agent = agents.make("flood")
    results = play_games(
        [agent] * snakes,
        num_games=games,
        settings=Settings(ruleset=ruleset),
        seed=11,
        max_turns=400,
    )
    env = BattlesnakeVectorEnv(
        num_games=games,
        num_snakes=snakes,
        observation=EgocentricPlanes(),
        ruleset=ruleset,
        max_turns=400,
    )
    env.restart(11)
    slots = np.tile(np.arange(snakes), games)
    boards = np.arange(games).repeat(snakes)
    ended = {}
    while len(ended) < games * snakes:
        env.advance(agent.act_batch(env.state, boards, slots))
        episodes = env.drain_episodes()
        for k, row in enumerate(episodes["row"]):
            ended.setdefault(int(row), {name: column[k] for name, column in episodes.items()})
    for row, episode in ended.items():
        g, slot = divmod(row, snakes)
        a = (slot - g) % snakes
        assert episode["won"] == (results.winner[g] == a)
        assert episode["cause"] == results.cause[g, a]
        assert episode["snake_length"] == results.snake_length[g, a]
        assert episode["food_eaten"] == results.food_eaten[g, a]
        if episode["game_over"]:
            assert episode["length"] == results.turns[g]


def test_all_dead_at_once_is_a_draw_and_nobody_wins():
    # Two snakes that start in the same row and go up meet the wall on the same turn.
    results = play_games([AlwaysUp()] * 2, num_games=200, width=5, height=5, seed=0)
    together = (results.cause != ALIVE).all(axis=1)
    assert 0 < together.sum() < 200
    assert (results.winner[together] == NOBODY).all()
    assert (results.winner[~together] >= 0).all()
    assert results.draws == together.sum()


def test_a_game_scores_an_equal_share_for_those_who_last_longest_and_nothing_for_others():
    survived = ALIVE
    died = WALL_COLLISION
    causes = np.array(
        [[survived, died, died], [died, died, died], [died, died, died], [survived, survived, died]]
    )
    results = GameResults(
        names=["a", "b", "c"],
        winner=np.array([0, NOBODY, NOBODY, NOBODY], np.int16),
        capped=np.array([False, False, False, True]),
        turns=np.array([9, 9, 9, 9], np.int32),
        cause=causes.astype(np.uint8),
        killer=np.full((4, 3), NOBODY, np.int16),
        death_turn=np.array([[0, 4, 9], [4, 9, 9], [9, 9, 9], [0, 0, 4]], np.int32),
        snake_length=np.full((4, 3), 3, np.int16),
        food_eaten=np.zeros((4, 3), np.int16),
    )
    assert [score(results, agent).points for agent in range(3)] == pytest.approx(
        [1 + 0 + 1 / 3 + 1 / 2, 0 + 1 / 2 + 1 / 3 + 1 / 2, 0 + 1 / 2 + 1 / 3 + 0]
    )


def test_games_over_the_turn_limit_are_draws_and_counted():
    results = play_games(
        [Circler()] * 2, num_games=8, max_turns=20, settings=Settings(minimum_food=0), seed=0
    )
    open_games = (results.cause == ALIVE).all(axis=1)
    assert open_games.any()
    assert (results.capped == open_games).all()
    assert (results.turns[open_games] == 20).all()
    assert (results.winner[open_games] == NOBODY).all()
    assert score(results).capped == open_games.sum()


def test_one_agent_plays_solo_until_it_dies():
    results = play_games(
        [Circler()], num_games=4, settings=Settings(minimum_food=0, food_spawn_chance=0), seed=0
    )
    assert (results.winner == NOBODY).all()
    assert (results.cause == OUT_OF_HEALTH).all()


def test_killers_are_agents_and_not_seats():
    results = play_games([agents.make("greedy"), agents.make("flood")], num_games=60, seed=3)
    lost_head_on = (results.cause[:, 0] == HEAD_COLLISION) & (results.cause[:, 1] == ALIVE)
    assert lost_head_on.any()
    assert (results.killer[lost_head_on, 0] == 1).all()


def test_each_built_in_opponent_is_better_than_the_one_before():
    def duel(one, other):
        return evaluate(agents.make(one), [(other,)], num_games=200, seed=6)[0]

    assert duel("greedy", "random").interval[0] > 0.5
    assert duel("flood", "greedy").interval[0] > 0.5
    against_three = evaluate(
        agents.make("flood"), [("random",) * 3, ("greedy",) * 3], num_games=200, seed=6
    )
    assert all(s.interval[0] > 0.25 for s in against_three)


@pytest.fixture(scope="module")
def scores():
    return evaluate(
        agents.make("greedy"),
        [("random",) * 3, ("random", agents.make("flood"))],
        num_games=30,
        seed=1,
    )


class TestScores:
    def test_add_up(self, scores):
        for s in scores:
            assert s.games == 30 == sum(s.causes.values())
            assert s.wins <= s.causes.get("survived", 0)
            assert s.interval == wilson_interval(s.wins, 30)

    def test_are_json(self, scores):
        again = json.loads(json.dumps([s.to_dict() for s in scores]))
        assert again[0]["opponents"] == ["random"] * 3
        assert again[0]["win_rate"] == scores[0].win_rate

    def test_are_shown_with_their_intervals(self, scores):
        lines = table(scores).splitlines()
        assert len(lines) == 3
        assert lines[1].startswith("3 × random ")
        assert lines[2].startswith("random, flood ")
        assert f"{scores[0].win_rate:.1%}" in lines[1]
        assert f"{scores[0].interval[0]:.1%} to {scores[0].interval[1]:.1%}" in lines[1]

    def test_are_told_one_by_one(self):
        heard = []
        scores = evaluate(
            agents.make("greedy"), [("random",), ("flood",)], num_games=4, on_score=heard.append
        )
        assert heard == scores


def test_bad_input_is_refused():
    with pytest.raises(ConfigError, match="num_games is 0"):
        play_games([AlwaysUp()], num_games=0)
    with pytest.raises(UnknownNameError, match="Did you mean 'flood'"):
        evaluate(AlwaysUp(), [("floods",)])
    with pytest.raises(ConfigError, match="num_snakes"):
        play_games([AlwaysUp()] * 17, num_games=1)
    with pytest.raises(ConfigError, match=r"max_turns is 100\.0; it must be an integer"):
        play_games([AlwaysUp()], num_games=1, max_turns=1e2)
    with pytest.raises(ConfigError, match="map 'royale' needs 1 or more"):
        play_games(
            [AlwaysUp()] * 2, num_games=1, settings=Settings(map="royale", shrink_every_n_turns=0)
        )


@dataclass
class Weighted(AlwaysUp):
    """An agent of a user's own. It has no hash, and the comparison of two has no truth."""

    weights: np.ndarray


def test_agents_may_be_dataclasses_with_arrays():
    one = Weighted(np.ones(2))
    other = Weighted(np.ones(2))
    results = play_games([one, other, one], num_games=3)
    np.testing.assert_array_equal(results.cause, play_games([AlwaysUp()] * 3, num_games=3).cause)
    assert evaluate(one, [(other, one)], num_games=3)[0].games == 3
