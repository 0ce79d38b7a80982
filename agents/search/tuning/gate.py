"""The sequential test that a tuned or learned player has to pass, and its stored results."""

from __future__ import annotations

from typing import Any

from agents.measure.sprt.play import SprtProgress
from agents.measure.sprt.settings import Sprt
from agents.measure.sprt.statistics import Hypotheses
from agents.measure.tournament.settings import Player, derived_seed
from agents.search.tuning.parameters import with_values


def gate_of(
    new: str,
    old: str,
    *,
    nodes: int,
    new_nodes: int,
    hypotheses: Hypotheses,
    width: int,
    height: int,
    seed: int,
) -> Sprt:
    """Return the test of a search `new` against the search `old`, given as for `agents.make`, with
    each one's nodes per move.

    If a node of the new player takes longer, `new_nodes` is less than `nodes`, so that both get
    equal time."""
    players = (
        Player("new", with_values(new, {"nodes": new_nodes})),
        Player("old", with_values(old, {"nodes": nodes})),
    )
    return Sprt(players=players, hypotheses=hypotheses, width=width, height=height, seed=seed)


def seed_of_gate(seed: int) -> int:
    """Return a seed that differs from the tuning's, so that the player is tested on other games
    than it was fitted to.
    """
    # Texel's method draws nothing, so it takes any number as its seed.
    return derived_seed(abs(seed), 1)


def figures_of(progress: SprtProgress) -> dict[str, Any]:
    """Return a test's figures for its file, in JSON's types."""
    figures = progress.to_dict()
    names = ("verdict", "games", "score", "elo", "llr", "elo0", "elo1", "snakes", "effort")
    return {name: figures[name] for name in names}
