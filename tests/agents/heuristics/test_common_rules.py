from __future__ import annotations

import numpy as np
import pytest

from agents.agent import Agent
from agents.heuristics import RandomLegal
from agents.heuristics import common_rules as rules
from agents.heuristics.composition import Heuristics, classics, starter_pack
from agents.heuristics.sight import Sight
from agents.measure.evaluation import play_games
from envs.battlesnake.safety import safe_moves
from envs.battlesnake.settings import RULESETS, Settings
from envs.battlesnake.state import CAUSE_NAMES, DOWN, LEFT, RIGHT, UP
from tests.agents.boards import board


def said(rule, state, **options):
    return np.asarray(rule(Sight(state, 0, 0), **options))


def test_walls_and_neck():
    corner = board([(0, 0), (0, 1), (0, 2)])
    assert said(rules.walls, corner).tolist() == [True, False, False, True]
    assert said(rules.neck, corner).tolist() == [False, True, True, True]
    assert said(rules.walls, board([(0, 0), (0, 1)], ruleset="wrapped")).all()
    assert said(rules.neck, board([(3, 3), (3, 3), (3, 3)])).all()


def test_eats_beside_food_only_when_hungry():
    beside = [(3, 4), (5, 5)]
    assert said(
        rules.food_when_hungry, board([(3, 3), (2, 3)], food=beside, health=30)
    ).tolist() == [True, False, False, False]
    assert said(rules.food_when_hungry, board([(3, 3), (2, 3)], food=beside, health=31)).all()
    assert said(rules.food_when_hungry, board([(3, 3), (2, 3)], food=[(5, 5)], health=3)).all()


def test_room_refuses_the_dead_end_that_is_too_small():
    # A pocket of two cells to the left, the open board to the right.
    body = [(2, 0), (2, 1), (1, 1), (0, 1), (0, 2), (1, 2), (2, 2), (3, 2), (4, 2), (4, 3)]
    assert said(rules.room, board(body)).tolist() == [False, False, False, True]


def test_head_to_head_fears_equals_and_hunts_the_shorter():
    other = [(5, 3), (6, 3), (6, 4)]
    fears = said(rules.head_to_head, board([(3, 3), (2, 3), (1, 3)], other))
    hunts = said(rules.head_to_head, board([(3, 3), (2, 3), (1, 3), (0, 3)], other))
    assert fears.tolist() == [0, 0, 0, -6]
    assert hunts.tolist() == [0, 0, 0, 1]


def test_food_is_nearest_by_the_way_not_by_the_bird():
    # The food above is behind the own body, which stays; that to the right is farther off but
    # nearer to walk.
    body = [(3, 3), (3, 2), (2, 2), (1, 2), (1, 3), (1, 4), (2, 4), (3, 4), (4, 4), (4, 4)]
    wishes = said(rules.food, board(body, food=[(3, 5)], health=10))
    assert wishes[RIGHT] > wishes[LEFT]
    hungry, full = (
        said(rules.food, board([(3, 3), (2, 3)], food=[(3, 6)], health=h)) for h in (5, 100)
    )
    assert hungry[UP] - hungry[RIGHT] > 2 * (full[UP] - full[RIGHT]) > 0


def test_territory_prefers_the_open_side():
    wishes = said(rules.territory, board([(5, 3), (5, 2), (5, 1)], [(1, 1), (1, 0), (2, 0)]))
    assert wishes[LEFT] > wishes[RIGHT]


def test_tail_leads_back_to_the_tail():
    wishes = said(rules.tail, board([(3, 3), (4, 3), (5, 3), (5, 2), (4, 2), (3, 2)]))
    assert wishes.argmax() == DOWN


def test_a_hazard_costs_and_food_shields():
    state = board([(3, 3), (2, 3)], hazards=[(3, 4), (3, 4), (3, 2)], food=[(3, 2)])
    assert said(rules.hazards, state).tolist() == [pytest.approx(-2.8), 0, 0, 0]
    assert said(rules.hazards, board([(3, 3), (2, 3)], hazards=[(3, 4)], hazard_damage=-10))[UP] > 0


class Watched(Agent):
    """Moves as the classics do, and sees that no move is certain death where another isn't."""

    name = "watched"

    def __init__(self):
        self.player = classics()
        self.warned = 0

    def act_batch(self, state, boards, slots):
        moves = self.player.act_batch(state, boards, slots)
        safe = safe_moves(state, boards, slots)
        assert safe[np.arange(len(moves)), moves].all()
        self.warned += (~safe).any(axis=1).sum()
        return moves


@pytest.mark.parametrize("ruleset", RULESETS)
def test_the_classics_play_every_ruleset_and_never_step_into_certain_death_needlessly(ruleset):
    agent = Watched()
    play_games(
        [agent] * 2,
        num_games=1,
        width=7,
        height=7,
        settings=Settings(ruleset=ruleset),
        seed=4,
        max_turns=40,
    )
    assert agent.warned > 10


def test_the_classics_beat_random_and_the_starter_pack_never_runs_into_a_wall():
    results = play_games([starter_pack(), *[RandomLegal()] * 3], num_games=20, seed=1)
    causes = [CAUSE_NAMES[cause] for cause in results.cause[:, 0]]
    assert "wall-collision" not in causes
    assert (
        play_games([classics(), RandomLegal()], num_games=12, width=7, height=7, seed=1).wins[0]
        >= 11
    )


def test_every_rule_has_four_opinions():
    state = board([(3, 3), (2, 3), (1, 3)], [(0, 0), (0, 1)], food=[(6, 6)])
    for name in rules.RULES:
        assert Heuristics([name]).act(state, 0).probabilities.shape == (4,)
