"""Evaluates a position for one snake where the search stops: an integer made of territory, lengths
and hunger.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, NamedTuple

from agents.search.evaluation.fill import divide
from agents.search.evaluation.territory import NO_FOOD, Territory
from agents.search.options import Range, ranges_of
from envs.battlesnake.jit import kernel
from envs.battlesnake.settings import Rules
from envs.battlesnake.state import Boards, is_alive
from envs.common.errors import ConfigError, UnknownNameError

WIN = 1_000_000
"""A game won on the search's turn t counts WIN - t, a lost one -WIN + t. Evaluations are always far
smaller.
"""
SURE = WIN - 10_000
"""Scores beyond this are proven wins or losses, not evaluations."""
SCALE = 1500
"""An evaluation of this much is as good as a win: `Decision.value` shows it as 1."""

_FAR = 20
"""Food that is farther than this many moves is worth nothing."""


_LOW_HEALTH = 20
"""With less health, a snake that reaches no food is half starving."""


class Weights(NamedTuple):
    """The weights of the evaluation. They are plain integers, so that they can be tuned without
    compiling again.
    """

    cell: Annotated[int, Range(0, 30, 1, is_linear=True)] = 6
    """Points for each cell that I reach first. The others' mean of such points is subtracted."""
    hazard_cell: Annotated[int, Range(0, 30, 1, is_linear=True)] = 1
    """The same for a cell with a harmful hazard."""
    length: Annotated[int, Range(0, 600, 20, is_linear=True)] = 180
    """Points for each body entry that I have more than another snake, as a mean over the others."""
    length_cap: Annotated[int, Range(1, 20, 1)] = 5
    """The most entries of difference that count."""
    cramped: Annotated[int, Range(0, 150, 5, is_linear=True)] = 30
    """Points lost for each entry of a body that doesn't fit into the snake's territory."""
    hunger: Annotated[int, Range(0, 2000, 60, is_linear=True)] = 400
    """Points lost at health 0. The loss grows with the square of the health that is missing."""
    starving: Annotated[int, Range(0, 6000, 200, is_linear=True)] = 1500
    """Points lost if the nearest food is farther than my health lasts."""
    hazard: Annotated[int, Range(0, 10, 0.5, is_linear=True)] = 1
    """Points for each point of health on a board that has hazards, because they take health."""
    prize: Annotated[int, Range(0, 20_000, 500, is_linear=True)] = 0
    """With n living snakes, `prize` · (1/n − 1/4) points are added, because one of n equal snakes
    wins one game in n. So a rival's death is worth points. In a duel this is a constant.
    """
    draw: Annotated[int, Range(-6000, 0, 200)] = -2000
    """The score if I die together with one of the snakes that try to prevent my best."""


CROWD = Weights(length=300, prize=7000)
"""The default weights in a search that begins with more than two living snakes. docs/lab/search.md
says why they differ.
"""


def crowd_weights_of(
    weights: Weights | Mapping[str, Any] | None, crowd_weights: Weights | Mapping[str, Any] | None
) -> Weights:
    """Return the weights for more than two living snakes: those in `crowd_weights`, else those in
    `weights`, else the defaults in `CROWD`.

    Raises as `weights_of` does.
    """
    return weights_of(crowd_weights, weights_of(weights, CROWD))


def weights_of(
    weights: Weights | Mapping[str, Any] | None, default: Weights | None = None
) -> Weights:
    """Return all weights. A weight that a mapping doesn't name comes from `default`, or from the
    usual weights.

    Raises `UnknownNameError` for a name that no weight has, and `ConfigError` for a value that is
    not a whole number in its range."""
    default = default or Weights()
    if weights is None or isinstance(weights, Weights):
        return weights or default
    if not isinstance(weights, Mapping):
        raise ConfigError(
            f"weights are {weights!r}; they must be given by name, as in weights.cell=7"
        )
    for name, value in weights.items():
        if name not in Weights._fields:
            raise UnknownNameError("weight", name, Weights._fields)
        ranges_of(Weights)[name].check(f"weights.{name}", value)
    return default._replace(**weights)


@kernel
def judge(s: Boards, r: Rules, f: Territory, w: Weights, me: int) -> int:
    """Return the score of board 0, whose game isn't over, for the living snake `me`; larger is
    better. Fills `f`.
    """
    divide(s, r, f, me)
    return weigh(s, r, f, w, me)


@kernel
def weigh(s: Boards, r: Rules, f: Territory, w: Weights, me: int) -> int:
    """Return the score of board 0 that follows from what `divide` wrote into `f`."""
    score = _room(s, r, f, w, me)
    theirs = 0
    leads = 0
    matters = 0
    others = 0
    for i in range(s.cause.shape[1]):
        if i != me and is_alive(s, 0, i):
            theirs += _room(s, r, f, w, i)
            lead = s.length[0, me] - s.length[0, i]
            leads += w.length * max(-w.length_cap, min(w.length_cap, lead))
            if abs(lead) < w.length_cap:
                matters += w.length
            others += 1
    if others:
        score += (leads - theirs) // others
        score += w.prize * (3 - others) // (4 * (1 + others))
        matters //= others
    if not r.constrictor:
        score += _prospects(s, f, w, me, matters + w.length // 4)
    return score


@kernel
def _room(s: Boards, r: Rules, f: Territory, w: Weights, i: int) -> int:
    """Return the points for a snake's territory and health, less those for the part of its body
    that doesn't fit into the territory.
    """
    score = w.cell * f.clean_area[i] + w.hazard_cell * (f.area[i] - f.clean_area[i])
    lack = s.length[0, i] - f.area[i]
    if lack > 0 and not r.constrictor:
        score -= w.cramped * lack
    if s.num_hazards[0]:
        score += w.hazard * s.health[0, i]
    return score


@kernel
def _prospects(s: Boards, f: Territory, w: Weights, me: int, growth: int) -> int:
    """Return the worth of the next food, less the points lost by hunger.

    Food is worth `growth` and an end of the hunger; farther food is worth less, and any is worth
    less than food that is eaten, so that the snake does eat."""
    distance = f.food_distance[me]
    health = s.health[0, me]
    hunger = w.hunger * (100 - health) ** 2 // 10_000
    if distance == NO_FOOD:
        # It may appear yet, or the others leave some.
        if health < _LOW_HEALTH:
            return -hunger - w.starving // 2
        return -hunger
    if distance > health:
        return -hunger - w.starving
    return (hunger + growth) * max(0, _FAR - distance) // (_FAR + 4) - hunger
