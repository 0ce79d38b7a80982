from __future__ import annotations

import time

import numpy as np
import pytest

from agents import make
from agents.policy import Policy
from agents.search import MCTS
from envs.battlesnake.rules import step_board
from envs.battlesnake.safety import safe_moves
from envs.common.errors import ConfigError, ProcsnakeError
from tests.agents.boards import board, played_boards
from tests.agents.tactics.test_tactics import PUZZLES


@pytest.fixture(scope="module")
def duel():
    state, boards, _ = played_boards(1, num_snakes=2)[1]
    return state.select(boards[:1])


def test_it_finds_most_of_the_tactics_though_it_believes_in_luck():
    agent = MCTS(simulations=4000)
    found = sum(agent.act(p.state(), 0).move == p.move for p in PUZZLES)
    assert found >= 0.8 * len(PUZZLES)


def test_a_forced_win_is_worth_a_win():
    puzzle = next(p for p in PUZZLES if p.task == "win" and p.turns == 2)
    decision = MCTS(simulations=5000).act(puzzle.state(), 0)
    assert decision.move == puzzle.move
    assert decision.value > 0.9


def test_simulations_are_counted_and_repeat(duel):
    first, again = (MCTS(simulations=1234).act(duel, 0) for _ in range(2))
    assert first.note == again.note
    assert first.note["simulations"] == 1234
    assert first.probabilities.tolist() == again.probabilities.tolist()


def test_a_full_tree_goes_on_counting(duel):
    note = MCTS(simulations=2000, max_nodes=50).act(duel, 0).note
    assert (note["nodes"], note["simulations"]) == (50, 2000)


@pytest.mark.parametrize(
    "ruleset", ["standard", "solo", "royale", "wrapped", "constrictor", "wrapped_constrictor"]
)
def test_it_plays_every_ruleset_and_leaves_the_board_as_it_was(ruleset):
    agent = MCTS(simulations=50)
    for state, boards, slots in played_boards(4, num_snakes=5, ruleset=ruleset)[:3]:
        before = state.copy()
        moves = agent.act_batch(state, boards, slots)
        assert safe_moves(state, boards, slots)[np.arange(len(moves)), moves].all()
        assert all((x == y).all() for x, y in zip(before.arrays, state.arrays))


def test_a_deadline_that_has_passed_still_gets_a_move():
    state = board([(0, 0), (1, 0), (2, 0)], [(5, 5), (5, 4), (5, 3)])
    assert MCTS().act(state, 0, time.monotonic() - 1).move == 0


def test_with_a_policy_the_first_tries_follow_its_priors(bundle_path, duel):
    # With exploration beyond all values PUCT tries moves in proportion to their priors.
    policy = Policy.load(bundle_path)
    agent = MCTS(policy, simulations=400, exploration=1e5, batch=1)
    expected = policy.act(duel, 0).probabilities
    assert np.abs(agent.act(duel, 0).probabilities - expected).max() < 0.02
    assert agent.name == make(f"{bundle_path}+mcts").name == f"{policy.name}-mcts"


def test_with_a_policy_a_simulation_is_worth_what_the_policy_says_of_its_end(bundle_path, duel):
    # The first simulation goes one turn on, each snake by its likeliest move.
    policy = Policy.load(bundle_path)
    end = duel.copy()
    moves = [policy.act(duel, i).move for i in range(2)]
    step_board(end.arrays, 0, end.rules, np.array([moves], np.int8))
    end.arrays.turn[0] += 1
    decision = MCTS(policy, simulations=1).act(duel, 0)
    assert decision.move == moves[0]
    assert decision.value == pytest.approx(np.clip(policy.act(end, 0).value, -1, 1), abs=1e-5)


def test_there_is_room_for_the_bodies_of_any_board(bundle_path):
    """A stranger's board of much food comes with longer body rings, which a kernel copies without
    looking at bounds.
    """
    everywhere = [(x, y) for x in range(11) for y in range(11)]
    usual, crowded = (
        board([(5, 5)], [(8, 8)], size=(11, 11), food=food) for food in ([(2, 2)], everywhere)
    )
    assert crowded.arrays.body.shape > usual.arrays.body.shape
    agent = MCTS(Policy.load(bundle_path), simulations=20)
    for state in (usual, crowded, usual):
        with agent._idle.borrow(state) as space:
            assert space.leaves.arrays.body.shape[1:] == state.arrays.body.shape[1:]
    assert agent.act(crowded, 0).note["simulations"] == 20


def test_a_policy_sees_the_rules_of_the_game_whatever_was_played_before(bundle_path):
    policy = Policy.load(bundle_path)
    bodies = ([(0, 3), (1, 3), (2, 3)], [(9, 9), (9, 8), (9, 7)])
    wrapped, standard = (
        board(*bodies, size=(11, 11), ruleset=ruleset) for ruleset in ("wrapped", "standard")
    )
    agent, fresh = (MCTS(policy, simulations=100) for _ in range(2))
    agent.act(wrapped, 0)
    assert (
        agent.act(standard, 0).probabilities.tolist()
        == fresh.act(standard, 0).probabilities.tolist()
    )


def test_a_policy_for_another_board_is_refused(bundle_path):
    state = board([(0, 0), (1, 0), (2, 0)], [(5, 5), (5, 4), (5, 3)])
    with pytest.raises(ProcsnakeError, match="board"):
        make("mcts", policy=bundle_path, simulations=10).act(state, 0)


@pytest.mark.parametrize(
    "options",
    [
        {"simulations": 0},
        {"batch": 0},
        {"max_rivals": 3},
        {"max_nodes": 1},
        {"near": -5},
        {"margin_ms": "far"},
        {"exploration": "far"},
    ],
    ids=str,
)
def test_options_out_of_range_are_refused(options):
    with pytest.raises(ConfigError, match=f"{next(iter(options))} is"):
        MCTS(**options)
