from __future__ import annotations

import threading
import time

import numpy as np
import pytest

from agents import make
from agents.search import AlphaBeta
from agents.search.alphabeta.iterative_deepening import NEVER
from agents.search.alphabeta.stack import MAX_DEPTH, NODES
from agents.search.evaluation.evaluate import CROWD, SURE, WIN, Weights, judge
from agents.search.evaluation.territory import new_territory, survey
from agents.search.make_unmake import search_rules
from envs.battlesnake.rules import step_board
from envs.battlesnake.safety import safe_moves
from envs.battlesnake.state import ALIVE, HEAD_COLLISION, UP
from envs.common.errors import ConfigError
from tests.agents.boards import board, played_boards

RULESETS = ("standard", "solo", "royale", "wrapped", "constrictor", "wrapped_constrictor")
BOTH = np.arange(2)
MOVES = {(0, 1): 0, (0, -1): 1, (-1, 0): 2, (1, 0): 3}


class Plain:
    """The same search without any cleverness: every line of play to its end, on copies, for two
    snakes.
    """

    def __init__(self, root, me):
        self.me = me
        self.other = 1 - me
        self.rules = search_rules(root.rules)
        self.weights = Weights()
        self.territory = new_territory(root)
        survey(root.arrays, self.rules, self.territory)

    def best(self, root, depth):
        self.depth = depth
        return self.value(root, depth, 0)

    def value(self, state, depth, turn):
        a = state.arrays
        if a.cause[0, self.me] != ALIVE:
            mutual = a.cause[0, self.me] == HEAD_COLLISION and a.cause[0, self.other] != ALIVE
            return self.weights.draw if mutual or a.num_alive[0] == 0 else turn - WIN
        if a.num_alive[0] == 1:
            return WIN - turn
        if depth <= 0 and (depth <= -min(4, self.depth) or self.apart(state) != 2):
            return judge(a, self.rules, self.territory, self.weights, self.me)
        return max(self.reply(state, mine, depth, turn) for mine in self.moves(state, self.me))

    def reply(self, state, mine, depth, turn):
        return min(
            self.value(self.after(state, mine, m), depth - 1, turn + 1)
            for m in self.moves(state, self.other)
        )

    def moves(self, state, slot):
        # Where every move is death the search goes on with one only: they all lose, except for what
        # the others do.
        mask = safe_moves(state, np.zeros(1, int), np.array([slot]))[0]
        return np.flatnonzero(mask)

    def after(self, state, mine, theirs):
        onward = state.copy()
        moves = np.zeros((1, 2), np.int8)
        moves[0, self.me] = mine
        moves[0, self.other] = theirs
        step_board(onward.arrays, 0, self.rules, moves)
        return onward

    def apart(self, state):
        (x, y), (v, w) = (state.body(0, i)[0] for i in (0, 1))
        dx = abs(x - v)
        dy = abs(y - w)
        if self.rules.wrapped:
            dx = min(dx, self.rules.width - dx)
            dy = min(dy, self.rules.height - dy)
        return dx + dy


def duels(ruleset, count, **settings):
    states = [
        state.select(boards[[k]])
        for state, boards, _ in played_boards(
            30, width=7, height=7, num_snakes=2, ruleset=ruleset, **settings
        )
        for k in range(0, len(boards), 4)
    ]
    return [s for s in states if s.arrays.num_alive[0] == 2][:count]


@pytest.mark.parametrize("ruleset", ["standard", "wrapped", "royale", "constrictor"])
def test_scores_are_those_of_a_search_that_tries_everything(ruleset):
    agent = AlphaBeta(max_depth=2, nodes=10**6)
    compared = 0
    for state in duels(ruleset, 12, food_spawn_chance=60, shrink_every_n_turns=4):
        expected = Plain(state, 0).best(state, 2)
        note = agent.act(state, 0).note
        if note["depth"] == 2 and all(has_choice(state, i) for i in BOTH):
            assert note["score"] == expected
            compared += 1
    assert compared >= 6


@pytest.mark.parametrize("ruleset", ["standard", "constrictor"])
def test_each_moves_score_is_that_of_a_search_that_tries_everything(ruleset):
    agent = AlphaBeta(max_depth=2, nodes=10**6)
    compared = 0
    for state in duels(ruleset, 12, food_spawn_chance=60):
        (scores,), plain = (
            agent.score_moves(state, np.zeros(1, int), np.ones(1, int)),
            Plain(state, 1),
        )
        plain.depth = 2
        moves = plain.moves(state, 1)
        assert (np.delete(scores, moves) == NEVER).all()
        if len(moves) > 1 and all(has_choice(state, i) for i in BOTH):
            expected = [plain.reply(state, move, 2, 0) for move in moves]
            assert scores[moves].tolist() == expected or (np.abs(expected) > SURE).all()
            compared += 1
    assert compared >= 6


def test_scores_of_moves_share_the_nodes_and_are_asked_of_many_snakes_at_once():
    states = duels("standard", 6)
    agent = AlphaBeta(nodes=300)
    one = np.concatenate(
        [agent.score_moves(state, np.zeros(1, int), np.zeros(1, int)) for state in states]
    )
    both = agent.score_moves(states[0], np.zeros(2, int), BOTH)
    ((_, space),) = agent._idle._idle
    assert 150 < space.stack.reg[NODES] <= 300
    assert (both[0] == one[0]).all()
    best = [agent.act(state, 0).note["score"] for state in states]
    # The best of them is what one search comes to, but for its greater depth.
    assert np.corrcoef(one.max(axis=1), best)[0, 1] > 0.8


def has_choice(state, slot):
    return not safe_moves(state, np.zeros(1, int), np.array([slot]))[0].all()


@pytest.mark.parametrize("table_bits", [8, 20])
def test_the_table_changes_the_time_but_not_the_score(table_bits):
    for state in duels("standard", 8):
        scores = {
            AlphaBeta(max_depth=5, nodes=10**7, table_bits=bits).act(state, 1).note["score"]
            for bits in (14, table_bits)
        }
        assert len(scores) == 1


@pytest.mark.parametrize("table_bits", [8, 17])
def test_what_an_earlier_search_learned_is_forgotten(table_bits):
    # The same positions, with scores for the other snake.
    agent = AlphaBeta(nodes=3000, table_bits=table_bits)
    for state in duels("standard", 4):
        for me in (0, 1, 0):
            assert (
                agent.act(state, me).note
                == AlphaBeta(nodes=3000, table_bits=table_bits).act(state, me).note
            )


def replayed(root, inside):
    """The turns that the rules need from `root` to `inside`, whose bodies show the moves; None if
    they don't lead there.
    """
    for turns in range(int(inside.arrays.length.min())):
        onward = root.copy()
        for ahead in range(turns, 0, -1):
            steps = [
                np.subtract(inside.body(0, i)[ahead - 1], inside.body(0, i)[ahead]) for i in BOTH
            ]
            moves = [MOVES.get(tuple(step), 0) for step in steps]
            step_board(onward.arrays, 0, search_rules(root.rules), np.array([moves], np.int8))
        names = ("health", "length", "food", "occupied", "cause")
        same = all(
            (getattr(onward.arrays, name) == getattr(inside.arrays, name)).all() for name in names
        )
        if same and all(onward.body(0, i) == inside.body(0, i) for i in BOTH):
            return turns
    return None


def test_the_positions_inside_a_search_are_those_to_which_the_rules_lead():
    depths = []
    for root in (
        root for root in duels("standard", 60, food_spawn_chance=60) if root.arrays.length.min() > 6
    ):
        before = root.copy()
        agent = AlphaBeta(nodes=200)
        expected = agent.act(root, 1).note
        for inside in agent.positions_inside(root, 1, range(1, 200, 3)):
            if inside.arrays.num_alive[0] == 2:
                depths.append(replayed(root, inside))
        assert agent.act(root, 1).note == expected
        assert (root.arrays.occupied == before.arrays.occupied).all()
    assert None not in depths
    assert set(depths) >= set(range(6))
    assert agent.positions_inside(root, 1, []) == []


@pytest.mark.parametrize("ruleset", RULESETS)
def test_it_plays_every_ruleset_and_never_takes_certain_death_for_a_choice(ruleset):
    agent = AlphaBeta(nodes=200)
    for state, boards, slots in played_boards(
        4, num_snakes=8, width=19, height=19, ruleset=ruleset
    )[:4]:
        before = state.copy()
        moves = agent.act_batch(state, boards, slots)
        assert safe_moves(state, boards, slots)[np.arange(len(moves)), moves].all()
        assert all((x == y).all() for x, y in zip(before.arrays, state.arrays))


def scores(snakes, **options):
    """What an agent thinks of a few positions, the first two turns ahead."""
    agent = make("alphabeta", max_depth=2, **options)
    seen = played_boards(8, num_snakes=snakes)
    states = [
        state.select(boards[k : k + 1])
        for state, boards, _ in seen
        for k in range(0, len(boards), snakes)
    ]
    return [
        agent.act(state, 0).note["score"] for state in states if state.arrays.num_alive[0] == snakes
    ]


def test_fewer_quiet_turns_count_where_a_search_begins_with_more_than_two():
    for snakes, counts in ((2, False), (4, True)):
        found = [scores(snakes, crowd_quiet_turns=turns) for turns in (0, 1, 4)]
        assert (found[0] != found[1] != found[2]) == counts
        assert (found[0] == found[1] == found[2]) == (not counts)
    with pytest.raises(ConfigError, match="crowd_quiet_turns is 5"):
        make("alphabeta", crowd_quiet_turns=5)


def test_weights_for_more_than_two_snakes_are_used_where_a_search_begins_with_more_than_two():
    usual = Weights()
    other = Weights(cell=9, hunger=0)
    for snakes, takes_them in ((2, False), (4, True)):
        found = scores(snakes, weights=usual, crowd_weights=other)
        assert len(found) > 3
        assert found == scores(snakes, weights=other if takes_them else usual)
        assert found != scores(snakes, weights=usual if takes_them else other)
    # Weights that are given count everywhere, in a crowd before its own defaults.
    assert make("alphabeta", weights={"length": 60}).crowd_weights == CROWD._replace(length=60)
    assert make("alphabeta", weights={"cell": 9}).crowd_weights == CROWD._replace(cell=9)
    assert make(
        "alphabeta", weights={"cell": 9}, crowd_weights={"cell": 3}
    ).crowd_weights == CROWD._replace(cell=3)


def test_under_a_node_budget_it_is_deterministic_however_often_it_looks_at_the_clock():
    state = duels("standard", 1)[0]
    straight = AlphaBeta(nodes=7000).act(state, 0)
    paused = AlphaBeta(nodes=7000).act(state, 0, time.monotonic() + 3600)
    assert (straight.move, straight.note) == (paused.move, paused.note)
    assert straight.note["nodes"] == 7000


def test_one_agent_in_several_threads_is_as_many_agents():
    from concurrent.futures import ThreadPoolExecutor

    agent = AlphaBeta(nodes=3000)
    states = duels("standard", 6)
    expected = [AlphaBeta(nodes=3000).act(s, 0).note for s in states]
    with ThreadPoolExecutor(3) as pool:
        assert [d.note for d in pool.map(lambda s: agent.act(s, 0), states)] == expected


def test_a_second_thread_changes_the_time_but_not_the_score():
    compared = 0
    for state in duels("standard", 8):
        alone, together = (
            AlphaBeta(max_depth=5, nodes=10**7, threads=threads).act(state, 0).note
            for threads in (1, 2)
        )
        if alone["depth"] == 5:
            assert (together["score"], together["depth"]) == (alone["score"], 5)
            compared += 1
    assert compared >= 4


def test_a_second_thread_sees_further_nodes_and_ends_with_the_first():
    state = duels("standard", 1)[0]
    running = threading.active_count()
    assert AlphaBeta(nodes=7000, threads=2).act(state, 0).note["nodes"] > 7000
    assert threading.active_count() == running


def test_of_two_threads_the_deeper_one_answers():
    # The first may see one node, the second begins with two turns ahead and always makes a start.
    easy = next(
        s
        for s in duels("standard", 12)
        if AlphaBeta(max_depth=2, nodes=10**6).act(s, 0).note["nodes"] < 900
    )
    alone, together = (
        AlphaBeta(nodes=1, threads=threads).act(easy, 0).note["depth"] for threads in (1, 2)
    )
    assert alone == 0
    assert together >= 2


def test_a_deadline_that_has_passed_still_gets_a_move():
    state = board([(0, 0), (1, 0), (2, 0)], [(5, 5), (5, 4), (5, 3)])
    assert AlphaBeta().act(state, 0, time.monotonic() - 1).move == UP


def test_asked_after_the_end_of_a_game_it_says_that_it_has_won():
    # The official engine asks the last snake for one more move.
    agent = AlphaBeta()
    state = board([(0, 0), (1, 0), (2, 0)])
    agent.act(board([(0, 0), (1, 0), (2, 0)], [(5, 5), (5, 4), (5, 3)]), 0)
    decision = agent.act(state, 0)
    assert (decision.move, decision.value, decision.note["score"]) == (UP, 1.0, WIN)


def test_alone_it_keeps_alive():
    state = board(
        [(1, 1), (1, 0), (0, 0), (0, 1)], size=(3, 3), ruleset="solo", food_spawn_chance=0
    )
    agent = AlphaBeta(nodes=2000)
    for _ in range(30):
        step_board(state.arrays, 0, state.rules, np.array([[agent.act(state, 0).move]], np.int8))
        state.arrays.turn[0] += 1
    assert state.arrays.cause[0, 0] == ALIVE


def test_it_is_known_by_name(bundle_path):
    assert make("alphabeta", nodes=10).name == "alphabeta"
    assert (
        make(f"{bundle_path}+alphabeta").name
        == make("alphabeta", policy=bundle_path).name
        == "snake-alphabeta"
    )


@pytest.mark.parametrize(
    "options",
    [
        {"nodes": 0},
        {"max_rivals": 4},
        {"max_depth": MAX_DEPTH + 1},
        {"table_bits": 40},
        {"threads": 0},
    ],
    ids=str,
)
def test_options_out_of_range_are_refused(options):
    with pytest.raises(ConfigError, match=next(iter(options))):
        AlphaBeta(**options)
