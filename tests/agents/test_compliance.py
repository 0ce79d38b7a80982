"""Every agent that comes with procsnake, alone and under rules, is one that others can build on."""

from __future__ import annotations

import numpy as np
import pytest

import agents
from agents.agent import Agent, Decision
from agents.compliance import check_agent
from agents.heuristics import FloodFill
from agents.heuristics.composition import Heuristics
from envs.common.errors import ComplianceError
from tests.agents.heuristics.test_composition import FIVE_LINES

SEARCHES = {"alphabeta": {"nodes": 300}, "mcts": {"simulations": 60}}
BASES = [*agents.names(), "champion-standard+alphabeta", "champion-standard+mcts"]


@pytest.fixture(scope="module")
def rule(tmp_path_factory):
    """The example of docs/heuristics.md in a file, without its ending."""
    path = tmp_path_factory.mktemp("rules") / "my_rule.py"
    path.write_text(FIVE_LINES)
    return path


def options(name):
    return SEARCHES.get(name.rpartition("+")[2], {})


@pytest.mark.parametrize("name", BASES)
def test_every_agent_is_sound_alone_and_under_the_pages_rule(name, rule):
    side = 7 if "duel" in name or "royale" in name else 11
    for player in (
        agents.make(name, **options(name)),
        agents.make(f"{rule}+{name}", **options(name)),
    ):
        check_agent(player, num_positions=8, width=side, height=side)
        check_agent(player, num_positions=8, width=side, height=side, num_snakes=2, seed=1)


@pytest.mark.parametrize(
    "setting",
    [{"ruleset": "wrapped"}, {"map": "hz_islands_bridges"}, {"ruleset": "constrictor"}],
    ids=str,
)
def test_rules_on_rules_on_a_snake_are_sound_everywhere(setting, rule):
    check_agent(agents.make(f"{rule}+{rule}+flood"), num_positions=15, **setting)


class Faulty(FloodFill):
    """Answers what it likes."""

    name = "faulty"

    def __init__(self, decision, *, meddles=False):
        super().__init__()
        self.decision = decision
        self.meddles = meddles

    def act(self, state, you, deadline=None):
        if self.meddles:
            state.arrays.health[:] = 7
        return self.decision


class Listed(Agent):
    name = "listed"

    def act_batch(self, state, boards, slots):
        return [0] * len(boards)


@pytest.mark.parametrize(
    ("agent", "message"),
    [
        (Faulty(Decision(4)), "'faulty', turn 0 of seed 0, .*answers 4, not a move"),
        (Faulty(Decision(1, np.ones(4, np.float32))), "sum to 1"),
        (Faulty(Decision(1), meddles=True), "changed the state's health"),
        (Faulty(None), "answers None, not an agents.agent.Decision"),
        (Faulty(Decision("up")), "answers 'up', not a move"),
        (Faulty(Decision(1.0)), "answers 1.0, not a move"),
        (Faulty(Decision(1, [0.25] * 4)), "they must be an array of four"),
        (Listed(), r"act_batch answers \[0\], not an array of one move"),
    ],
    ids=[
        "no move",
        "no shares",
        "meddles",
        "nothing",
        "a name",
        "a float",
        "a list of shares",
        "a list of moves",
    ],
)
def test_an_unsound_agent_is_named_with_its_answer(agent, message):
    with pytest.raises(ComplianceError, match=message):
        check_agent(agent, num_positions=3)


class Stubborn(Heuristics):
    """Rules that don't ask their base again."""

    def act_among(self, state, you, allowed, deadline=None):
        return Decision(int(allowed.argmax()))


def test_a_composition_that_plays_into_death_or_past_its_base_is_found():
    with pytest.raises(ComplianceError, match=r"its bans leave|thinks .* best"):
        check_agent(Stubborn([], FloodFill()), num_positions=20)


class Silent(Agent):
    """Tells no probabilities and can't be asked again: always the first move."""

    name = "silent"

    def act_batch(self, state, boards, slots):
        return np.zeros(len(boards), np.int8)


def test_an_agent_of_ones_own_that_only_answers_batches_is_sound_under_rules():
    check_agent(Heuristics(["room"], Silent()), num_positions=20, num_snakes=2)
