"""Small tunings: short games on small boards."""

from __future__ import annotations

from agents.tournament.settings import Player
from agents.tournament.store import Store
from agents.tuning.parameters import choose, parameters_of
from agents.tuning.play import play_tuning
from agents.tuning.settings import Tuning

START = "alphabeta?weights.length=60"
SMALL = {"nodes": 40, "width": 7, "height": 7, "max_turns": 120}


def small(*asked: str, player: str = START, **options) -> Tuning:
    parameters = choose(parameters_of(player), asked or ["weights.length", "near:2"], r_end=0.1)
    sides = (Player("plus", player), Player("minus", player))
    return Tuning(players=sides, parameters=parameters, **{"pairs": 10, "batch": 4, "seed": 3, **SMALL, **options})


def play(tuning, path, **options):
    with Store(path, Tuning) as store:
        return play_tuning(tuning, store, **options)
