"""The best reply to what a policy expects, against the mean worked out by hand on positions of one
turn.
"""

from __future__ import annotations

import math
import time

import numpy as np
import pytest

from agents.policy import Policy
from agents.search import AlphaBeta
from agents.search.alphabeta.agent import SOON
from agents.search.alphabeta.best_response import best_reply
from agents.search.evaluation.evaluate import SCALE, SURE, WIN
from envs.battlesnake.observations import EgocentricPlanes
from envs.battlesnake.state import DOWN, LEFT, RIGHT, UP
from tests.agents.boards import board
from tests.agents.bundles import make_bundle
from tests.agents.tactics.test_tactics import PUZZLES

ME = 0
RIVAL = 1
# I can go up or right, the rival left (my square if I go up), down (my square if I go right) and
# up.
CONTESTED = [[(2, 0), (1, 0), (0, 0)], [(3, 1), (4, 1), (5, 1), (5, 2), (5, 3)]]
AS_LONG = [[(2, 0), (1, 0), (0, 0), (0, 1), (0, 2)], CONTESTED[1]]


class Expecting(Policy):
    """A policy whose opinion of each snake's moves is planted."""

    def __init__(self, **chances: dict[int, float]) -> None:
        self.name = "planted"
        self.chances = {int(slot.removeprefix("slot")): of for slot, of in chances.items()}

    def move_probabilities(self, state, boards, slots):
        likely = np.zeros((len(slots), 4), np.float32)
        for row, slot in enumerate(slots):
            for move, chance in self.chances.get(int(slot), {UP: 1.0}).items():
                likely[row, move] = chance
        return likely, np.zeros(len(slots), np.float32)


@pytest.mark.parametrize(("left", "down", "move"), [(0.7, 0.2, RIGHT), (0.2, 0.7, UP)])
@pytest.mark.parametrize("budget", [{"nodes": 2000}, {"seconds": 0.2}], ids=str)
def test_of_two_squares_that_a_longer_rival_may_take_it_goes_to_the_one_that_is_less_expected(
    left, down, move, budget
):
    policy = Expecting(slot1={LEFT: left, DOWN: down, UP: 1 - left - down})
    state = board(*CONTESTED)
    deadline = time.monotonic() + budget["seconds"] if "seconds" in budget else None
    decision = AlphaBeta(policy, nodes=budget.get("nodes")).act(state, ME, deadline)
    assert decision.move == move
    assert decision.note["guessed"]
    assert decision.note["score"] == 1 - WIN


@pytest.mark.parametrize("chance", [0.3, 0.5])
def test_a_move_is_worth_the_mean_of_what_follows(chance):
    # Up: a draw if the rival goes left, else 700. Right: a draw if it goes down, else a little more
    # or less than would be even.
    policy = Expecting(slot1={LEFT: chance, DOWN: 0.5 - chance / 2, UP: 0.5 - chance / 2})
    up = (1 - chance) * 0.8 * math.tanh(700 / SCALE)
    break_even = SCALE * math.atanh(up / (0.5 + chance / 2) / 0.8)
    for other, move in ((break_even + 2, RIGHT), (break_even - 2, UP)):

        def scored(onward, share, other=other):
            return 700 if onward.body(0, ME)[0] == (2, 1) else other

        assert best_reply(policy, board(*AS_LONG), ME, RIVAL, scored) == move


@pytest.mark.parametrize(
    ("if_up", "if_right", "move"),
    [
        (-400, 300, RIGHT),
        (1 - WIN, 9 - WIN, RIGHT),
        (9 - WIN, 3 - WIN, UP),
        (8 - WIN, -1500, RIGHT),
        (40 - WIN, -1000, RIGHT),
        (WIN - 9, 5000, UP),
    ],
)
def test_won_is_better_than_judged_better_than_lost_and_lost_later_better_than_lost_now(
    if_up, if_right, move
):
    scores = {(2, 1): if_up, (3, 0): if_right}
    policy = Expecting(slot1={UP: 1.0, LEFT: 0.0, DOWN: 0.0})
    assert (
        best_reply(
            policy,
            board(*CONTESTED),
            ME,
            RIVAL,
            lambda onward, share: scores[onward.body(0, ME)[0]],
        )
        == move
    )


@pytest.mark.parametrize(("rival_length", "move"), [(5, UP), (6, RIGHT)])
def test_a_draw_is_better_than_a_loss(rival_length, move):
    # Up meets the rival's head for certain, right is lost in two turns.
    rival = [*CONTESTED[1], (5, 4)][:rival_length]
    policy = Expecting(slot1={LEFT: 1.0})
    found = best_reply(policy, board(AS_LONG[0], rival), ME, RIVAL, lambda onward, share: 2 - WIN)
    assert found == move


def test_the_others_make_the_move_that_is_likeliest_and_the_position_asked_about_stays_as_it_is():
    third = [(6, 5), (6, 6), (5, 6)]
    seen = set()
    state = board(*CONTESTED, third)
    before = state.copy()

    def noting(onward, share):
        seen.add(onward.body(0, 2)[0])
        return 0

    best_reply(Expecting(slot2={LEFT: 0.6, DOWN: 0.4}), state, ME, RIVAL, noting)
    assert seen == {(5, 5)}
    assert all((a == b).all() for a, b in zip(state.arrays, before.arrays, strict=True))


def test_the_budget_is_shared_out_to_its_end():
    shares = []
    best_reply(
        Expecting(slot1={UP: 1.0}),
        board(*AS_LONG),
        ME,
        RIVAL,
        lambda onward, share: shares.append(share) or 0,
    )
    # Two of the six pairs of moves are head to head: over without a search.
    assert len(shares) == 4
    assert shares == sorted(set(shares))
    assert shares[-1] == 1


def test_with_one_move_there_is_nothing_to_guess():
    state = board([(0, 0), (0, 1), (0, 2)], [(2, 0), (3, 0), (4, 0), (5, 0)])
    assert best_reply(Expecting(), state, ME, RIVAL, lambda onward, share: 0) is None


def test_what_is_not_soon_lost_is_left_to_the_search(tmp_path):
    # A window of the board fits boards of every size.
    policy = Policy.load(
        make_bundle(
            tmp_path / "window", EgocentricPlanes(view="window", radius=3, rotate=True), "mlp"
        )
    )
    plain = AlphaBeta(nodes=5000)
    advised = AlphaBeta(policy, nodes=5000)
    left = late = 0
    for puzzle in PUZZLES:
        expected, decision = (agent.act(puzzle.state(), 0) for agent in (plain, advised))
        assert {key: decision.note[key] for key in expected.note} == expected.note
        if expected.note["score"] > SOON - WIN:
            assert decision.move == expected.move
            assert "guessed" not in decision.note
            left += 1
            late += expected.note["score"] < -SURE
    assert left > 60
    assert late > 0


def test_the_first_search_of_all_guesses_too_for_itself_so_that_no_game_waits_for_a_compiler():
    class Counting(Expecting):
        asked = 0

        def move_probabilities(self, state, boards, slots):
            self.asked += 1
            return super().move_probabilities(state, boards, slots)

    policy = Counting()
    agent = AlphaBeta(policy, nodes=500)
    fine = board([(1, 1), (2, 1), (2, 0)], [(5, 5), (5, 4), (5, 3)])
    decisions = [agent.act(fine, ME) for _ in range(3)]
    assert policy.asked == 1
    assert len({(decision.move, str(decision.note)) for decision in decisions}) == 1
    assert "guessed" not in decisions[0].note
