from __future__ import annotations

import numpy as np
import pytest

import agents
from agents.agent import Agent, Decision
from agents.heuristics import FloodFill
from agents.heuristics.composition import SURE, Heuristics, RuleError, load_rules
from agents.heuristics.sight import Sight
from agents.policy import Policy
from envs.battlesnake.observations import EgocentricPlanes
from envs.battlesnake.safety import safe_moves
from envs.battlesnake.state import DOWN, LEFT, RIGHT, UP
from envs.common.errors import UnknownNameError
from tests.agents.boards import board, played_boards
from tests.agents.bundles import make_bundle

OPEN = board([(3, 3)])
"""No move is death here."""
FIVE_LINES = '''
def middle(me):
    """Stay off the edge."""
    steps = [me.ahead(move) for move in range(4)]
    return [p is not None and 0 < p[0] < me.width - 1 and 0 < p[1] < me.height - 1 for p in steps]
'''


class Fixed(Agent):
    """Always has the same opinion."""

    name = "fixed"

    def __init__(self, logits=None, move=0):
        self.logits = logits
        self.move = move

    def act_batch(self, state, boards, slots):
        return np.full(len(boards), self.move, np.int8)

    def act(self, state, you, deadline=None):
        if self.logits is None:
            return Decision(self.move)
        shares = np.exp(self.logits - np.max(self.logits))
        return Decision(int(np.argmax(shares)), (shares / shares.sum()).astype(np.float32), 0.5)


def bans(*moves):
    return lambda me: [move not in moves for move in range(4)]


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_a_ban_holds_whatever_the_sign_of_logits_and_preferences(sign):
    random = np.random.default_rng(3)
    for _ in range(200):
        logits = sign * random.exponential(5, 4)
        wishes = sign * random.exponential(5, 4)
        allowed = random.random(4) < 0.5
        rules = [lambda me, w=wishes: w, lambda me, a=allowed: a]
        decision = Heuristics(rules, Fixed(logits)).act(OPEN, 0)
        # What the starter pack did, multiplying logits by masks, picks a banned move whenever all
        # logits are negative.
        total = logits + wishes
        kept = allowed if allowed.any() else np.ones(4, bool)
        assert decision.move == max(np.flatnonzero(kept), key=lambda move: total[move])
        expected = np.where(kept, np.exp(total - total.max()), 0)
        np.testing.assert_allclose(decision.probabilities, expected / expected.sum(), atol=1e-4)
        assert decision.value == 0.5


def test_a_ban_that_would_leave_nothing_is_passed_over_and_the_first_weighs_most():
    rules = [bans(UP, DOWN), bans(LEFT, RIGHT), bans(LEFT)]
    assert Heuristics(rules).act(OPEN, 0).move == RIGHT
    assert Heuristics(rules[::-1]).act(OPEN, 0).move == UP


def test_an_agent_without_probabilities_is_overruled_by_bans_and_by_strong_wishes_alone():
    base = Fixed(move=LEFT)
    assert Heuristics([lambda me: [0, 0, 0, 0.9 * SURE]], base).act(OPEN, 0).move == LEFT
    assert Heuristics([lambda me: [0, 0, 0, 1.1 * SURE]], base).act(OPEN, 0).move == RIGHT
    assert Heuristics([bans(LEFT)], base).act(OPEN, 0).move == UP


BESIDE_THE_EDGE = board([(3, 1), (2, 1), (1, 1)], [(4, 4), (4, 3), (4, 2), (4, 1), (5, 1)])


def test_a_snake_whose_move_is_banned_takes_its_next_best_and_never_a_certain_death():
    """The five lines ban down; up is left, for left would be the own neck."""
    five = {}
    exec(FIVE_LINES, five)
    one = np.zeros(1, int)
    assert safe_moves(BESIDE_THE_EDGE, one, one)[0].tolist() == [True, True, False, False]
    for base in (
        FloodFill(),
        agents.make("greedy"),
        agents.make("alphabeta", nodes=200),
        Fixed(move=DOWN),
        Fixed(move=LEFT),
    ):
        agent = Heuristics([five["middle"]], base)
        assert agent.act(BESIDE_THE_EDGE, 0).move == UP
        assert agent.act_batch(BESIDE_THE_EDGE, one, one).tolist() == [UP]
        assert Heuristics([bans(UP, DOWN, RIGHT)], base).act(BESIDE_THE_EDGE, 0).move in (UP, DOWN)


def test_the_player_itself_chooses_among_the_moves_that_are_left():
    """Down and left are as near to the food for greedy; if down is banned, it is left, and not the
    first of the rest.
    """
    here = board([(4, 4)], food=[(2, 2)])
    one = np.zeros(1, int)
    assert agents.make("greedy").act(here, 0).move == DOWN
    agent = Heuristics([bans(DOWN)], agents.make("greedy"))
    assert agent.act(here, 0).move == agent.act_batch(here, one, one)[0] == LEFT
    assert Heuristics([bans(LEFT)], agent).act(here, 0).move in (UP, RIGHT)


def test_a_wish_without_end_is_no_ban_and_no_fault():
    base = Fixed(logits=np.array([0.0, 1.0, 0.0, 0.0]))
    nothing = [lambda me: [-np.inf] * 4, lambda me: [np.inf, 0, 0, 0]]
    assert Heuristics(nothing[:1], base).act(OPEN, 0).move == DOWN
    assert np.isfinite(Heuristics(nothing, base).act(OPEN, 0).probabilities).all()


def test_a_batch_plays_as_one_at_a_time(tmp_path):
    policy = Policy.load(make_bundle(tmp_path / "bundle", EgocentricPlanes(rotate=True)))
    state, boards, slots = played_boards(2)[2]
    for agent in (
        Heuristics(["room", "food"], policy),
        Heuristics(["head_to_head"], FloodFill()),
        Heuristics([bans(UP)], agents.make("random")),
        Heuristics([lambda me: [0, 2, 0, 2]], agents.make("mcts", simulations=100)),
        Heuristics([lambda me: [0, 2, 0, 2]], agents.make("classics")),
        agents.make("classics"),
    ):
        one_by_one = [
            agent.act(state.select(np.array([b])), i).move
            for b, i in zip(boards, slots, strict=True)
        ]
        np.testing.assert_array_equal(agent.act_batch(state, boards, slots), one_by_one)


def test_rules_that_say_nothing_leave_a_policy_as_it_is(tmp_path):
    policy = Policy.load(make_bundle(tmp_path / "bundle", EgocentricPlanes(view="board")))
    for state, boards, slots in played_boards(3)[:8]:
        wrapped = Heuristics([lambda me: [True] * 4, lambda me: [0.0] * 4], policy)
        np.testing.assert_array_equal(
            wrapped.act_batch(state, boards, slots), policy.act_batch(state, boards, slots)
        )


def test_five_lines_in_a_file_are_a_snake_and_wrap_another(tmp_path):
    path = tmp_path / "my_rule.py"
    path.write_text(FIVE_LINES)
    beside = board([(1, 3), (2, 3), (3, 3)])
    alone = agents.make(path)
    wrapped = agents.make(f"{path}+flood")
    assert (alone.name, wrapped.name) == ("my_rule", "my_rule+flood")
    assert LEFT not in {alone.act(beside, 0).move, wrapped.act(beside, 0).move}
    assert wrapped.act(beside, 0).note["rules"]["middle"] == {
        "up": True,
        "down": True,
        "left": False,
        "right": True,
    }


def test_a_file_wraps_a_policy_with_its_search(tmp_path):
    path = tmp_path / "my_rule.py"
    path.write_text(FIVE_LINES)
    bundle = make_bundle(tmp_path / "bundle", EgocentricPlanes(rotate=True))
    agent = agents.make(f"{path}+{bundle}+mcts", simulations=8)
    assert agent.base.policy is not None
    assert safe_moves(OPEN, np.zeros(1, int), np.zeros(1, int))[
        0, agent.act(board([(3, 3), (2, 3)], size=(11, 11)), 0).move
    ]


def test_a_file_that_is_edited_is_read_anew(tmp_path):
    path = tmp_path / "mine.py"
    path.write_text("def rule(me): return [0, 0, 0, 1]")
    assert agents.make(path).act(OPEN, 0).move == RIGHT
    path.write_text("def rule(me): return [0, 1, 0, 0]")
    assert agents.make(path).act(OPEN, 0).move == DOWN


@pytest.mark.parametrize(
    "head",
    [
        b"",
        b"from __future__ import annotations\n",
        b"\xef\xbb\xbf",
        b"# -*- coding: latin-1 -*-\n# \xe4\n",
    ],
    ids=["plain", "annotations", "byte order mark", "latin-1"],
)
def test_a_file_is_run_as_python_runs_it(tmp_path, head):
    rules = b"""
from dataclasses import dataclass

@dataclass
class Wish:
    weight: float

def up(me):
    assert isinstance(Wish.__annotations__["weight"], str) == ("annotations" in globals())
    return [Wish(1.0).weight, 0, 0, 0]
"""
    (tmp_path / "wishes.py").write_bytes(head + rules)
    assert agents.make(str(tmp_path / "wishes.py")).act(OPEN, 0).move == UP


def test_a_list_names_the_rules_and_their_order(tmp_path):
    path = tmp_path / "mine.py"
    path.write_text("def b(me): return [0] * 4\ndef a(me): return [0] * 4\ndef _c(me): pass\n")
    assert [rule.__name__ for rule in load_rules(path)] == ["b", "a"]
    path.write_text(path.read_text() + "RULES = ['walls', a]")
    assert [rule.__name__ for rule in load_rules(path)] == ["walls", "a"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("def rule(me): return me.nose", r"failed on turn 10.*nose.* \(.*faulty\.py:1\)"),
        (
            "import numpy\ndef rule(me):\n  return numpy.ones(3).reshape(5, 5)",
            r"reshape.* \(.*faulty\.py:3\)",
        ),
        ("def rule(): return [0] * 4", r"failed on turn 10.*1 was given$"),
        (
            "def rule(me): raise SystemExit(3)",
            r"failed on turn 10.*SystemExit: 3 \(.*faulty\.py:1\)",
        ),
        ("\nraise SystemExit(3)", r"can't be loaded: SystemExit: 3 \(.*faulty\.py:2\)"),
        ("def rule(me): return [True, False]", "returned.*four booleans"),
        ("def rule(me): return 'up'", "returned"),
        ("def rule(me): return [float('nan')] * 4", "returned"),
        ("x = 1", "holds no rules"),
        ("def rule(me:", "can't be loaded.*SyntaxError"),
    ],
)
def test_a_faulty_rule_is_said_with_its_name(tmp_path, text, message):
    path = tmp_path / "faulty.py"
    path.write_text(text)
    with pytest.raises(RuleError, match=message):
        agents.make(path).act(OPEN, 0)


def test_unknown_rules_and_missing_files_are_refused(tmp_path):
    with pytest.raises(UnknownNameError, match="head_to_head"):
        Heuristics(["head_to_haed"])
    with pytest.raises(RuleError, match="No such file"):
        agents.make(tmp_path / "missing.py")


def test_sight_shows_the_board_as_it_is():
    state = board(
        [(0, 3), (0, 2), (0, 2)],
        [(5, 5), (5, 6)],
        food=[(1, 3)],
        hazards=[(1, 1), (1, 1)],
        ruleset="wrapped",
    )
    me = Sight(state, 0, 0)
    assert (me.head, me.length, me.health, me.turn) == ((0, 3), 3, 90, 10)
    assert [(other.slot, other.head, other.length) for other in me.others] == [(1, (5, 5), 2)]
    assert (me.food, me.hazards) == ({(1, 3)}, {(1, 1): 2})
    assert [me.ahead(move) for move in range(4)] == [(0, 4), (0, 2), (6, 3), (1, 3)]
    assert me.distance((0, 0), (6, 6)) == 2
    assert me.around((0, 0)) == {(0, 1), (0, 6), (6, 0), (1, 0)}
