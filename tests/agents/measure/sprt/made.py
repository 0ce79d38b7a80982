"""Tests on small boards, where games are short."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from agents.measure.sprt.openings import opening
from agents.measure.sprt.play import play_sprt
from agents.measure.sprt.settings import Sprt
from agents.measure.sprt.statistics import Hypotheses
from agents.measure.tournament.settings import Match
from agents.measure.tournament.store import Store, StoreError
from tests.agents.measure.tournament.made import players


def small(*specs: str, elo1: float = 60.0, **options) -> Sprt:
    hypotheses = Hypotheses(elo0=0, elo1=elo1)
    return Sprt(
        players=players(*specs),
        hypotheses=hypotheses,
        **{"width": 7, "height": 7, "max_turns": 200, **options},
    )


def play(test, path, **options):
    with Store(path, Sprt) as store:
        return play_sprt(test, store, **options)


def with_book(*lengths: int) -> Sprt:
    """A test whose book has openings of so many turns."""
    test = small("flood", "greedy", seed=1)
    return replace(
        test,
        book=tuple(
            opening(replace(test, opening_turns=turns), n) for n, turns in enumerate(lengths)
        ),
    )


def num_played(path: Path, kind: type[Match] = Sprt) -> int:
    """How many games a store holds by now; 0 while another process is still making it."""
    if not path.exists():
        return 0
    try:
        with Store(path, kind) as store:
            return len(store.games())
    except StoreError:
        return 0
