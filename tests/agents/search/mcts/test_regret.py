"""Regret matching on games of one simultaneous move whose equilibria are known in closed form."""

from __future__ import annotations

import numpy as np
import pytest

from agents.search import MCTS
from agents.search.mcts.regret import learn_regret, match_regret, new_regrets
from envs.common.errors import UnknownNameError
from tests.agents.boards import board, played_boards


def average_strategies(payoffs, rounds):
    """Of two players who match regrets in the matrix game `payoffs` (rows, columns, 2)."""
    rows, columns, _ = payoffs.shape
    prior = np.zeros((1, 2, 4), np.float32)
    prior[0, 0, :rows] = prior[0, 1, :columns] = 1
    g = new_regrets(2)
    for draws in np.random.default_rng(0).random((rounds, 2)):
        mine, theirs = (match_regret(g, prior, p, draws[p]) for p in range(2))
        learn_regret(g, prior, 2, mine + 4 * theirs, payoffs[mine, theirs][None], 0)
    return g.strategy / g.strategy.sum(axis=1, keepdims=True)


def zero_sum(rows):
    mine = np.array(rows, float)
    return np.stack([mine, -mine], axis=-1)


def test_pennies_of_unequal_stakes_come_to_their_mixed_equilibrium():
    # Of a game (a b; c d) without a saddle point: row 0 with (d - c) / (a - b - c + d), column 0
    # with (d - b) / the same.
    mine, theirs = average_strategies(zero_sum([[3, -1], [-2, 1]]), rounds=40_000)
    assert mine.tolist() == pytest.approx([3 / 7, 4 / 7, 0, 0], abs=0.03)
    assert theirs.tolist() == pytest.approx([2 / 7, 5 / 7, 0, 0], abs=0.03)


@pytest.mark.parametrize("stakes", [(1, 1, 1), (1, 2, 3)], ids=["even", "uneven"])
def test_rock_paper_scissors_comes_to_its_equilibrium(stakes):
    # Each is played in proportion to the stake between the other two.
    paper_rock, rock_scissors, scissors_paper = stakes
    rows = [
        [0, -paper_rock, rock_scissors],
        [paper_rock, 0, -scissors_paper],
        [-rock_scissors, scissors_paper, 0],
    ]
    expected = np.array([scissors_paper, rock_scissors, paper_rock]) / sum(stakes)
    for strategy in average_strategies(zero_sum(rows), rounds=40_000):
        assert strategy[:3] == pytest.approx(expected, abs=0.04)


def test_prisoners_betray_each_other():
    payoffs = np.array([[(3, 3), (0, 5)], [(5, 0), (1, 1)]], float)
    for strategy in average_strategies(payoffs, rounds=3000):
        assert strategy[1] > 0.99


def test_at_the_root_of_a_tree_it_repeats_itself_and_keeps_to_moves_that_are_not_certain_death():
    state, boards, _ = played_boards(1, num_snakes=3)[1]
    duel = state.select(boards[:1])
    first, again = (MCTS(simulations=500, root="regret").act(duel, 0) for _ in range(2))
    assert first.probabilities.tolist() == again.probabilities.tolist()
    assert first.note == again.note
    assert first.probabilities.sum() == pytest.approx(1)
    even = MCTS(simulations=500).act(duel, 0).probabilities
    assert ((first.probabilities > 0) == (even > 0)).all()


def test_two_heads_before_the_same_two_cells_keep_each_other_guessing():
    # I can only go up or right, and so can the longer snake come, to kill: whichever I always took
    # would be where it went.
    mine = [(1, 1), (0, 1), (0, 0), (1, 0), (1, 0)]
    theirs = [(2, 2), (3, 2), (3, 1), (3, 0), (4, 0), (5, 0)]
    decision = MCTS(simulations=5000, root="regret").act(
        board(mine, theirs, food_spawn_chance=0), 0
    )
    assert decision.probabilities[[0, 3]].min() > 0.2
    assert decision.probabilities[[1, 2]].tolist() == [0, 0]


def test_drawn_moves_follow_the_shares():
    mine = [(1, 1), (0, 1), (0, 0), (1, 0), (1, 0)]
    theirs = [(2, 2), (3, 2), (3, 1), (3, 0), (4, 0), (5, 0)]
    state = board(mine, theirs, food_spawn_chance=0)
    agents = [MCTS(simulations=50, root="regret", sample=True, seed=seed) for seed in range(100)]
    moves = [agent.act(state, 0).move for agent in agents]
    share = agents[0].act(state, 0).probabilities[0]
    assert set(moves) <= {0, 3}
    assert moves.count(0) / 100 == pytest.approx(share, abs=0.2)


def test_an_unknown_root_is_answered_with_the_known_ones():
    with pytest.raises(UnknownNameError, match=r"unknown root 'regrets'. Did you mean 'regret'"):
        MCTS(root="regrets")
