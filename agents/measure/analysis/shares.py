"""Takes a position's evaluation apart: the share of each feature, in points and in plain words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from agents.measure.analysis.win_probability import EVALUATION
from agents.search.evaluation.evaluate import CROWD, SCALE, Weights
from agents.search.evaluation.hidden_units import add_up, new_hidden_units
from agents.search.evaluation.learned import (
    LearnedEvaluation,
    evaluation_in_words,
    find_evaluation,
)
from agents.search.evaluation.learned_features import OWN, SHARED
from agents.search.evaluation.learned_weights import UNIT
from agents.search.evaluation.territory import REACHED_AFTER, new_territory, survey
from agents.search.make_unmake import search_rules
from agents.search.players import among_the_living
from agents.search.tuning.positions import LINEAR, features_of
from agents.search.tuning.positions import UNIT as WHOLE
from agents.search.tuning.self_play import Viewer
from envs.battlesnake.state import State

_LEAST = 0.5
"""In points: shares below it aren't shown."""
HAND = "by hand"
LEARNED = "learned"
_HAND_WORDS = {
    "cell": "room: cells that it reaches first, less the others'",
    "hazard_cell": "cells with a hazard that it reaches first, less the others'",
    "length": "length against the others, and food that would add to it",
    "cramped": "bodies that don't fit into their room",
    "hunger": "hunger, and food that would still it",
    "starving": "no food in time",
    "hazard": "health on a board with hazards, less the others'",
    "prize": "few rivals left",
}
_GROUPS = {
    "room": (
        *(f"reached_{moves}" for moves in REACHED_AFTER),
        "area",
        "neighbours",
        "edge_cells",
        "contact",
        "freed_cells",
    ),
    "bodies that fit, and tails in reach": ("lack", "tight", "tail_reached", "other_tail_reached"),
    "length": ("length", "longer", "lead_3", "lead_8", "even_longer", "close_longer"),
    "food and health": (
        "health",
        "hunger",
        "food_near",
        "no_food",
        "starving",
        "food_owned",
        "food",
    ),
    "where the heads are": (
        "head_at_edge",
        "head_off_edge",
        "distance",
        "even",
        "at_two",
        "at_three",
    ),
    "being the one to move": ("tempo",),
}
"""The features of a learned evaluation by what they are about. The features of a group say nearly
the same, and it is chance how their weights share it out; so a group's sum says more than its
parts.
"""
_WORDS = {
    **{
        f"reached_{moves}": f"cells reached first within {moves} move{'s' * (moves > 1)}"
        for moves in REACHED_AFTER
    },
    "area": "cells reached first",
    "neighbours": "pairs of neighbouring cells in the room",
    "edge_cells": "cells of the room at an edge",
    "contact": "cells of the room beside the other's",
    "freed_cells": "cells of the room that a body covered",
    "lack": "body entries that don't fit into the room",
    "tight": "a body longer than its reach after 14 moves",
    "tail_reached": "the own tail is in reach",
    "other_tail_reached": "the other's tail is in reach",
    "length": "length",
    "longer": "longer (1) or shorter (-1)",
    "lead_3": "length ahead, up to 3",
    "lead_8": "length ahead, up to 8",
    "even_longer": "longer, with heads that can meet",
    "close_longer": "longer, with heads close by",
    "health": "health",
    "hunger": "hunger",
    "food_near": "nearness of the next food",
    "no_food": "no food in reach",
    "starving": "no food in time",
    "food_owned": "food reached first",
    "food": "food on the board",
    "head_at_edge": "edges that the head touches",
    "head_off_edge": "the head's way to the edges",
    "distance": "moves between the heads",
    "even": "heads that can meet",
    "at_two": "heads that can meet with the next move",
    "at_three": "heads three moves apart",
    "tempo": "being the one to move",
}
_HIDDEN = "hidden units, which see all features together"


@dataclass(frozen=True)
class Share:
    """What one feature adds to the evaluation of a position."""

    source: str
    """`HAND` or `LEARNED`."""
    group: str
    """What the feature is about, in words; for a hand-written feature and for the hidden units
    the same as `words`.
    """
    words: str
    """The feature in words."""
    points: float
    """What it adds, in points of `agents.search.evaluation.evaluate`; positive is good for the
    snake.
    """
    mine: int | None = None
    """The feature's value for the snake, or for the pair; None for a hand-written feature and
    for the hidden units.
    """
    theirs: int | None = None
    """Its value for the other snake; None if it has none of its own."""


@dataclass(frozen=True)
class Explanation:
    """The evaluation of a position for one snake, without any search."""

    evaluation: str
    """Which evaluation it is, and why."""
    shares: tuple[Share, ...]
    """The shares. They add up to the score, but for rounding, and for a learned sum beyond
    `learned.MOST`.
    """

    def sum(self, source: str | None = None) -> float:
        """Return the sum of all shares, or of those of one source."""
        return sum(share.points for share in self.shares if source in (None, share.source))

    def to_dict(self) -> dict[str, Any]:
        """Return the explanation in JSON's types, with points rounded to tenths."""
        shares = [{**vars(share), "points": round(share.points, 1)} for share in self.shares]
        return {"evaluation": self.evaluation, "score": round(self.sum(), 1), "shares": shares}


def explain(state: State, me: int, learned: LearnedEvaluation | None = None) -> Explanation:
    """Return the terms of the evaluation of board 0 for the living snake `me`.

    `learned` is the learned evaluation, used where it applies; by default `EVALUATION`."""
    learned = learned or find_evaluation(EVALUATION)
    state, me = among_the_living(state, 0, me)
    weights = CROWD if state.num_snakes > 2 else Weights()
    shares = _by_hand(state, me, weights)
    if learned is not None and learned.applies_to(state):
        shares += _learned(state, me, weights, learned)
    return Explanation(evaluation_in_words(learned, state), tuple(shares))


def _group_by_feature() -> dict[str, str]:
    groups = {}
    for group, names in _GROUPS.items():
        groups.update(dict.fromkeys(names, group))
    return groups


def _by_hand(state: State, me: int, weights: Weights) -> list[Share]:
    territory = new_territory(state)
    survey(state.arrays, search_rules(state.rules), territory)
    features = features_of(state, me, territory, weights) / WHOLE
    points = {
        name: float(feature * getattr(weights, name))
        for name, feature in zip(LINEAR, features, strict=True)
    }
    return [
        Share(HAND, _HAND_WORDS[name], _HAND_WORDS[name], value) for name, value in points.items()
    ]


def _learned(state: State, me: int, weights: Weights, learned: LearnedEvaluation) -> list[Share]:
    features, _ = Viewer(state, weights)(state, me)
    together = int(state.arrays.length[0, :2].sum())
    phase = next(one for one in learned.phases if one.up_to is None or together <= one.up_to)
    mine, theirs, pair = np.split(features, [len(OWN), 2 * len(OWN)])
    group_of = _group_by_feature()
    shares = []
    for name, own, other in zip(OWN, map(int, mine), map(int, theirs), strict=True):
        points = (phase.mine.get(name, 0) * own + phase.theirs.get(name, 0) * other) / UNIT
        shares.append(Share(LEARNED, group_of[name], _WORDS[name], points, own, other))
    for name, value in zip(SHARED, map(int, pair), strict=True):
        points = phase.shared.get(name, 0) * value / UNIT
        shares.append(Share(LEARNED, group_of[name], _WORDS[name], points, value))
    if learned.units:
        # A unit sees all features, so its points belong to none of them.
        points = add_up(new_hidden_units(learned.units), features) / UNIT
        shares.append(Share(LEARNED, _HIDDEN, _HIDDEN, points))
    return shares


def in_words(explanation: Explanation) -> str:
    """Return the shares as a table: each hand-written feature, each group of learned ones, and the
    largest learned ones.

    Shares of less than half a point are left out.
    """
    total = f"{explanation.sum():+.0f} points ({SCALE} are as good as a win)"
    lines = [f"{total}, evaluated by: {explanation.evaluation}", ""]
    lines += [_line(share.points, share.words, HAND) for share in _largest(explanation, HAND)]

    groups: dict[str, float] = {}
    for share in explanation.shares:
        if share.source == LEARNED:
            groups[share.group] = groups.get(share.group, 0.0) + share.points
    largest_first = sorted(groups.items(), key=lambda item: -abs(item[1]))
    lines += [
        _line(points, group, LEARNED) for group, points in largest_first if abs(points) >= _LEAST
    ]
    if not groups:
        return "\n".join(lines)

    lines += [
        "",
        "the learned features that add most, of which those of a group must be seen together:",
    ]
    lines += [
        _line(share.points, f"{share.words}: {_values(share)}", share.group)
        for share in _largest(explanation, LEARNED)
        if share.mine is not None
    ][:6]
    return "\n".join(lines)


def _largest(explanation: Explanation, source: str) -> list[Share]:
    """The shares of this source that are worth telling, the largest first."""
    shares = [share for share in explanation.shares if share.source == source]
    worth_telling = [share for share in shares if abs(share.points) >= _LEAST]
    return sorted(worth_telling, key=lambda share: -abs(share.points))


def _values(share: Share) -> str:
    if share.theirs is None:
        return f"{share.mine}"
    return f"{share.mine}, the other {share.theirs}"


def _line(points: float, words: str, source: str) -> str:
    return f"{points:>+8.0f}  {words}  ({source})"
