"""Tests on small boards, where games are short."""

from __future__ import annotations

from agents.sprt.play import play_sprt
from agents.sprt.settings import Sprt
from agents.sprt.statistics import Hypotheses
from agents.tournament.store import Store
from tests.agents.tournament.made import players


def small(*specs: str, elo1: float = 60.0, **options) -> Sprt:
    hypotheses = Hypotheses(elo0=0, elo1=elo1)
    return Sprt(players=players(*specs), hypotheses=hypotheses, **{"width": 7, "height": 7, "max_turns": 200, **options})


def play(test, path, **options):
    with Store(path, Sprt) as store:
        return play_sprt(test, store, **options)
