"""Small tunings: short games on small boards. And the search's own evaluation of a position."""

from __future__ import annotations

from agents.measure.tournament.settings import Player
from agents.measure.tournament.store import Store
from agents.search.evaluation.evaluate import Weights, judge
from agents.search.evaluation.territory import Territory, survey
from agents.search.make_unmake import search_rules
from agents.search.tuning.parameters import choose, parameters_of
from agents.search.tuning.play import play_tuning
from agents.search.tuning.settings import Tuning
from envs.battlesnake.state import State

START = "alphabeta?weights.length=60"
SMALL = {"nodes": 40, "width": 7, "height": 7, "max_turns": 120}


def small(*asked: str, player: str = START, **options) -> Tuning:
    parameters = choose(parameters_of(player), asked or ["weights.length", "near:2"], r_end=0.1)
    sides = (Player("plus", player), Player("minus", player))
    return Tuning(
        players=sides,
        parameters=parameters,
        **{"pairs": 10, "batch": 4, "seed": 3, **SMALL, **options},
    )


def play(tuning, path, **options):
    with Store(path, Tuning) as store:
        return play_tuning(tuning, store, **options)


def evaluate(state: State, me: int, territory: Territory, weights: Weights) -> int:
    """Return the search's evaluation of board 0 for the living snake `me`."""
    s = state.arrays
    r = search_rules(state.rules)
    survey(s, r, territory)
    return int(judge(s, r, territory, weights, me))
