from __future__ import annotations

from collections import deque

import numpy as np
import pytest

from agents.heuristics import FloodFill
from agents.heuristics.flood_kernels import begin_fills, fill_from, new_scratch
from envs.battlesnake.reach import reach
from envs.battlesnake.safety import safe_moves
from envs.battlesnake.state import DOWN, LEFT, MOVE_STEPS, RIGHT, UP, step_offset
from tests.agents.boards import board, played_boards
from tests.envs.battlesnake.positions import neighbours

FAR = 1 << 20


def move_on(state):
    return FloodFill().act(state, 0).move


def area(state, move):
    return reach(state, 0, 0, move).area


def blocked_cells(state, board_, slot, eaten, horizon):
    """For k = 0, 1, …: the cells that today's bodies still cover after k moves, taking their last
    entries off one by one.
    """
    bodies = {
        j: state.body(board_, j)
        for j in range(state.num_snakes)
        if state.arrays.cause[board_, j] == 0
    }
    blocked = [{p for body in bodies.values() for p in body}]
    for k in range(1, horizon + 1):
        for j, body in bodies.items():
            if body and not state.rules.constrictor:
                body.pop()
                if k == 1 and j == slot and body:
                    body += [body[-1]] * eaten
        blocked.append({p for body in bodies.values() for p in body})
    return blocked


def reference_reach(state, board_, slot, move):
    """(area, food, relief) by a breadth-first search on points, dictionaries and lists."""
    r = state.rules
    a = state.arrays
    food = set(state.points(a.food[board_]))
    layers = a.hazards[board_]

    def arrive(p, health):
        if p in food:
            return 100
        health = min(100, health - 1 - int(layers[state.cell(*p)]) * r.hazard_damage)
        return 100 if r.constrictor and health > 0 else health

    (x, y), (dx, dy) = state.body(board_, slot)[0], MOVE_STEPS[move]
    start = ((x + dx) % r.width, (y + dy) % r.height)
    eaten = int(a.food[board_, state.cell(*start)])
    blocked = blocked_cells(state, board_, slot, eaten, r.width * r.height + 1)
    arrival = {start: (1, arrive(start, int(a.health[board_, slot])))}
    queue = deque([start])
    while queue:
        p = queue.popleft()
        k, health = arrival[p]
        for q in neighbours(p, r):
            left = arrive(q, health)
            if q not in arrival and q not in blocked[k + 1] and left > 0:
                arrival[q] = (k + 1, left)
                queue.append(q)
    clean = [
        k - 1 for p, (k, _) in arrival.items() if layers[state.cell(*p)] * r.hazard_damage <= 0
    ]
    return (
        len(arrival),
        min((k for p, (k, _) in arrival.items() if p in food), default=FAR),
        min(clean, default=FAR),
    )


def filled_by_flood(state, board_, slot, move):
    """(area, food, relief), as the snake itself looks."""
    a = state.arrays
    scratch = new_scratch(state)
    target = a.opposite[a.body[board_, slot, a.head[board_, slot]] + step_offset(state.width, move)]
    where = a, board_, slot, state.rules
    begin_fills(*where, int(a.food[board_, target]), scratch)
    return fill_from(*where, target, scratch)


@pytest.mark.parametrize(
    "settings",
    [
        {"ruleset": "standard"},
        {"ruleset": "standard", "hazard_damage": 0},  # filled by bitboards
        {"ruleset": "standard", "hazard_damage": 20},
        {"ruleset": "standard", "hazard_damage": -5},
        {"ruleset": "wrapped", "hazard_damage": 40},
        {"ruleset": "constrictor"},
    ],
    ids=str,
)
def test_fills_agree_with_an_independent_search(settings):
    rng = np.random.default_rng(1)
    compared = 0
    for state, boards, slots in played_boards(12, width=9, height=8, **settings):
        disturb(state, rng)
        safe = safe_moves(state, boards, slots)
        safe[safe.all(axis=1)] = False  # all four means that all are death
        for row, move in np.argwhere(safe):
            where = boards[row], slots[row], move
            expected = reference_reach(state, *where)
            assert tuple(reach(state, *where))[:3] == expected
            assert filled_by_flood(state, *where) == expected
            compared += 1
    assert compared >= 100


def disturb(state, rng):
    """Up to two layers of hazard on a fifth of the cells, and any health, so that hunger and
    hazards decide something.
    """
    a = state.arrays
    a.health[:] = rng.integers(1, 101, a.health.shape)
    inner = a.hazards.reshape(-1, state.height + 2, state.width + 2)[:, 1:-1, 1:-1]
    inner[:] = rng.integers(1, 3, inner.shape) * (rng.random(inner.shape) < 0.2)
    a.num_hazards[:] = a.hazards.sum(axis=1)


class TestTailTiming:
    def test_a_tail_in_front_of_the_head_is_free_in_time(self):
        # A ring of 8 round the middle of a 3x3 board, the head next to its tail: each cell leaves
        # just before the fill comes.
        ring = [(0, 0), (0, 1), (0, 2), (1, 2), (2, 2), (2, 1), (2, 0), (1, 0)]
        assert area(board(ring, size=(3, 3)), RIGHT) == 9

    def test_a_doubled_tail_stays_one_move_longer(self):
        # The fill comes to (3, 1) on move 2; if that is too early, then by way of (3, 0) on move 4.
        me = [(1, 1), (0, 1), (0, 0)]
        wall = [(3, 2), (3, 1), (3, 0)]
        assert reach(board(me, wall, size=(7, 3), food=[(3, 1)]), 0, 0, RIGHT).food == 2
        assert (
            reach(board(me, [*wall, wall[-1]], size=(7, 3), food=[(3, 1)]), 0, 0, RIGHT).food == 4
        )

    def test_a_wall_of_body_opens_if_it_leaves_before_the_fill_comes(self):
        # The other's three entries at x = 3 leave on moves 1, 2, 3 (bottom to top); the fill is at
        # x = 3 on move 2 and later.
        passing = board([(1, 1), (0, 1), (0, 0)], [(3, 2), (3, 1), (3, 0)], size=(7, 3))
        assert area(passing, RIGHT) == 21
        # Followed by five more entries they leave on moves 6, 7, 8: the fill has seen all of x < 3
        # by move 4.
        tail = [(4, 0), (4, 1), (4, 2), (5, 2), (5, 1)]
        staying = board([(1, 1), (0, 1), (0, 0)], [(3, 2), (3, 1), (3, 0), *tail], size=(7, 3))
        assert area(staying, RIGHT) == 9

    def test_eating_keeps_the_own_body_one_move_longer(self):
        # Its own body crosses the way at (3, 1) and leaves on move 2, just in time; after a meal it
        # must go round by (3, 0).
        body = [(1, 1), (0, 1), (0, 2), (1, 2), (2, 2), (3, 2), (3, 1), (3, 0)]
        hazards = [(x, y) for x in range(5) for y in range(3) if (x, y) != (4, 1)]
        there = {"size": (5, 3), "hazards": hazards, "hazard_damage": 1}
        assert reach(board(body, **there), 0, 0, RIGHT).relief == 2
        assert reach(board(body, food=[(2, 1)], **there), 0, 0, RIGHT).relief == 4

    def test_nothing_leaves_in_constrictor(self):
        me = [(1, 1), (0, 1), (0, 0)]
        wall = [(3, 2), (3, 1), (3, 0)]
        assert area(board(me, wall, size=(7, 3), ruleset="constrictor"), RIGHT) == 6


class TestChoice:
    def test_prefers_room_to_a_pocket_with_food(self):
        # Left: a pocket of three cells with food, closed by its own long body. Right: the open
        # board.
        body = [
            (3, 0),
            (3, 1),
            (2, 1),
            (1, 1),
            (0, 1),
            (0, 2),
            (1, 2),
            (2, 2),
            (3, 2),
            (4, 2),
            (5, 2),
            (5, 3),
            (4, 3),
        ]
        assert area(board(body, food=[(2, 0)]), LEFT) == 3
        assert move_on(board(body, food=[(2, 0)])) == RIGHT

    def test_stays_away_from_a_stronger_head_even_if_there_is_food(self):
        me = [(2, 3), (1, 3), (0, 3)]
        other = [(4, 3), (5, 3), (6, 3)]
        assert move_on(board(me, other, food=[(3, 3)])) != RIGHT

    def test_challenges_a_weaker_head(self):
        me = [(2, 3), (1, 3), (0, 3), (0, 2)]
        other = [(4, 3), (5, 3), (6, 3)]
        assert move_on(board(me, other, food=[(3, 3)])) == RIGHT

    def test_meets_one_rival_rather_than_two(self):
        # Heading left between two rivals and a third ahead: ahead all meet, below only the lower
        # one.
        me = [(4, 3), (5, 3), (6, 3)]
        above = [(3, 4), (3, 5), (3, 6)]
        ahead = [(2, 3), (1, 3), (0, 3)]
        below = [(3, 2), (3, 1), (3, 0)]
        assert move_on(board(me, above, ahead, below, food=[(3, 3)])) in (UP, DOWN)

    def test_leaves_a_hazard_by_the_shortest_way(self):
        hazards = [(x, y) for x in range(7) for y in range(7) if x < 5]
        body = [(3, 3), (3, 2), (3, 1)]
        assert move_on(board(body, hazards=hazards, food=[(0, 3)])) == RIGHT

    def test_goes_for_food_by_path_and_not_as_the_crow_flies(self):
        # The food beyond the wall is 2 away in a line but 12 on foot; the other one is 4 away.
        wall = [
            (4, 5),
            (4, 4),
            (4, 3),
            (4, 2),
            (4, 1),
            (4, 0),
            (5, 0),
            (6, 0),
            (6, 1),
            (6, 2),
            (6, 3),
            (6, 4),
        ]
        me = [(3, 2), (2, 2), (1, 2)]
        assert move_on(board(me, wall, food=[(5, 1), (3, 0)])) == DOWN

    def test_eats_across_the_edge_of_a_wrapped_board(self):
        body = [(0, 3), (1, 3), (2, 3)]
        assert move_on(board(body, food=[(6, 3)], ruleset="wrapped")) == LEFT
