"""Rewards: each event has a weight, which a snake is paid in the turn in which the event
happens.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, fields
from numbers import Real

import numpy as np

from envs.battlesnake.jit import kernel
from envs.battlesnake.settings import Rules
from envs.battlesnake.state import (
    BODY_COLLISION,
    HAZARD,
    HEAD_COLLISION,
    OUT_OF_HEALTH,
    SELF_COLLISION,
    WALL_COLLISION,
    Boards,
    body_cell,
    head_cell,
    is_alive,
)
from envs.common.errors import ConfigError, UnknownNameError
from envs.common.parts import Parts

MAX_WEIGHT = 1e9
"""Weights are from -`MAX_WEIGHT` to `MAX_WEIGHT`. The squares that trainers make of returns are
float32 and end at 3e38.
"""


@dataclass(frozen=True, kw_only=True)
class Rewards:
    """The reward of each event, paid each time the event happens to a snake. The names are those of
    the SageMaker starter pack.

    A turn's reward is the sum over its events. So a snake that dies in a hazard gets `died` +
    `died_in_hazard`. Raises `ConfigError` for a weight that isn't a number from -`MAX_WEIGHT` to
    `MAX_WEIGHT`."""

    another_turn: float = 0.0
    """The snake lives after the turn."""
    ate_food: float = 0.0
    """Paid for each food that the snake eats."""
    won: float = 0.0
    """The game ended and this snake alone is left (never in a game that is played solo)."""
    died: float = 0.0
    """The snake died, from any cause."""
    ate_another_snake: float = 0.0
    """Paid for each shorter snake that died head to head against this one, while this one lives."""
    hit_wall: float = 0.0
    """The snake died off the board."""
    hit_other_snake: float = 0.0
    """The snake died in another's body."""
    hit_self: float = 0.0
    """The snake died in its own body."""
    was_eaten: float = 0.0
    """The snake died head to head, against a longer snake or an equal one."""
    other_snake_hit_body: float = 0.0
    """Paid for each other snake that died in this one's body."""
    forbidden_move: float = 0.0
    """The snake turned back into its own neck."""
    starved: float = 0.0
    """The snake died of hunger."""
    died_in_hazard: float = 0.0
    """The snake died of hazard damage."""

    def __post_init__(self) -> None:
        for name in EVENTS:
            weight: float = getattr(self, name)
            if (
                isinstance(weight, bool)
                or not isinstance(weight, Real)
                or not abs(weight) <= MAX_WEIGHT
            ):
                raise ConfigError(
                    f"rewards.{name} is {weight!r}; it must be a number from {-MAX_WEIGHT:g} to"
                    f" {MAX_WEIGHT:g}"
                )

    def weights(self) -> np.ndarray:
        """Return the weights as float32 (events,), in the order of `EVENTS`."""
        return np.array([getattr(self, name) for name in EVENTS], np.float32)

    @classmethod
    def preset(cls, name: str) -> Rewards:
        """Return the configuration of that name in `PRESETS`. Raises `UnknownNameError` for an
        unknown name.
        """
        if name not in PRESETS:
            raise UnknownNameError("reward preset", name, PRESETS)
        return PRESETS[name]

    @classmethod
    def from_options(cls, options: str | Rewards | dict[str, float]) -> Rewards:
        """Make a configuration from a preset's name or from a dict of weights by event.

        Raises `UnknownNameError` for a preset or event that doesn't exist, and `ConfigError` for
        anything else and for a weight that can't be."""
        if isinstance(options, Rewards):
            return options
        if isinstance(options, str):
            return cls.preset(options)
        if not isinstance(options, dict):
            raise ConfigError(
                f"rewards is {options!r}; it must be a preset's name ({', '.join(PRESETS)}), a dict"
                " of weights by event, or a function of events"
            )
        for name in options:
            if name not in EVENTS:
                raise UnknownNameError("reward event", name, EVENTS)
        return cls(**options)

    def options(self) -> dict[str, float]:
        """Return the weights that are not zero, by event."""
        return {name: weight for name, weight in asdict(self).items() if weight}


EVENTS = tuple(field.name for field in fields(Rewards))
(
    ANOTHER_TURN,
    ATE_FOOD,
    WON,
    DIED,
    ATE_ANOTHER_SNAKE,
    HIT_WALL,
    HIT_OTHER_SNAKE,
    HIT_SELF,
    WAS_EATEN,
    OTHER_SNAKE_HIT_BODY,
    FORBIDDEN_MOVE,
    STARVED,
    DIED_IN_HAZARD,
) = range(len(EVENTS))

PRESETS = {
    "win": Rewards(won=1.0, died=-1.0),
    "survival": Rewards(another_turn=0.01, died=-1.0),
    "starter-pack": Rewards(another_turn=1.0),
}

# The event that goes with each cause of death, at the index of the cause's code.
_EVENT_OF_CAUSE = np.zeros(8, np.int64)
_EVENT_OF_CAUSE[BODY_COLLISION] = HIT_OTHER_SNAKE
_EVENT_OF_CAUSE[SELF_COLLISION] = HIT_SELF
_EVENT_OF_CAUSE[HEAD_COLLISION] = WAS_EATEN
_EVENT_OF_CAUSE[WALL_COLLISION] = HIT_WALL
_EVENT_OF_CAUSE[OUT_OF_HEALTH] = STARVED
_EVENT_OF_CAUSE[HAZARD] = DIED_IN_HAZARD

RewardFunction = Callable[[np.ndarray], np.ndarray]
"""A reward function of a user's own: it takes event counts, uint8 (rows, events), and returns
rewards, float32 (rows,).
"""

_NAMED = Parts("reward preset", "procsnake.rewards", PRESETS)


def register(name: str, rewards: Rewards | RewardFunction | str) -> None:
    """Add weights or a reward function under `name`, or its place as "module:function"."""
    _NAMED.register(name, rewards)


def choose_rewards(
    option: str | Rewards | dict[str, float] | RewardFunction,
) -> Rewards | RewardFunction:
    """Return the weights or the reward function that an environment's option `rewards` stands for.

    A name is a preset's, one that was registered, or "module:function". A function is called once,
    with no events. Raises `UnknownNameError` or `ConfigError`, also for a function that doesn't
    return one number per row."""
    rewards = option
    if isinstance(option, str):
        rewards = _NAMED.find(option)
    if not callable(rewards):
        return Rewards.from_options(rewards)
    paid = np.asarray(rewards(np.zeros((2, len(EVENTS)), np.uint8)))
    if paid.shape != (2,) or paid.dtype.kind not in "fiub":
        name = getattr(rewards, "__name__", rewards)
        raise ConfigError(
            f"the reward function {name!r} returns {paid.dtype} {paid.shape} for the events of two"
            f" snakes, uint8 (2, {len(EVENTS)}); it must return one number per row, (2,)"
        )
    return rewards


class PotentialShaping:
    """Potential-based shaping: it adds gamma * Phi(s') - Phi(s), which doesn't change the best
    policy (Ng et al., 1999).

    Call `start(potential)` after a reset, with Phi of the first states, (rows,). Then call `shape`
    once per turn. `gamma` must be the trainer's own discount."""

    def __init__(self, gamma: float) -> None:
        if not 0.0 <= gamma <= 1.0:
            raise ConfigError(f"gamma is {gamma}; it lies between 0 and 1")
        self.gamma = gamma
        self._previous: np.ndarray | None = None

    def start(self, potential: np.ndarray) -> None:
        """Begin with the potentials of the first states, (rows,)."""
        self._previous = np.array(potential, np.float64)

    def shape(
        self,
        potential: np.ndarray,
        terminated: np.ndarray,
        truncated: np.ndarray,
        final_potential: np.ndarray,
    ) -> np.ndarray:
        """Return the shaping reward of the turn that led to these states, float64 (rows,).

        `potential` is Phi of the states that rows see now: where an episode ended, of the next
        one's first. `terminated` and `truncated`, bool (rows,), are the batch's. Where a row
        terminated, Phi(s') is 0. Where it was truncated, Phi(s') is `final_potential`, that of its
        final observation: trainers add the value of this observation, from which the shaping has
        taken its potential, and a 0 would make it worth that much less to be cut off there.

        Raises `ConfigError` if `start` wasn't called.
        """
        if self._previous is None:
            raise ConfigError(
                "PotentialShaping.start(potential) has to be called after the reset, before shape"
            )
        reached = np.where(terminated, 0.0, np.where(truncated, final_potential, potential))
        bonus = self.gamma * reached - self._previous
        self.start(potential)
        return bonus


@kernel
def pay_board(
    s: Boards,
    b: int,
    r: Rules,
    weights: np.ndarray,
    ate: np.ndarray,
    acted: np.ndarray,
    rewards: np.ndarray,
    events: np.ndarray,
) -> None:
    """Pay every snake of board b for the turn that was just played. Call it before the turn number
    goes up.

    `ate`, int16 (N, S), is the food that each had eaten before the turn. `acted`, bool (rows,),
    says who was alive. `rewards`, float32 (rows,), is written. `events`, uint8 (rows, events),
    counts the events, unless it has no rows."""
    snakes = s.cause.shape[1]
    over = s.num_alive[b] == 1 and not r.solo
    for i in range(snakes):
        row = b * snakes + i
        rewards[row] = 0.0
        if events.shape[0]:
            events[row] = 0
        if acted[row]:
            _pay_snake(s, b, i, weights, s.food_eaten[b, i] - ate[b, i], over, row, rewards, events)
    for i in range(snakes):
        killer = s.killer[b, i]
        if s.death_turn[b, i] == s.turn[b] + 1 and killer >= 0 and killer != i:
            row = b * snakes + killer
            if s.cause[b, i] == BODY_COLLISION:
                _pay(OTHER_SNAKE_HIT_BODY, 1, weights, row, rewards, events)
            elif is_alive(s, b, killer):
                _pay(ATE_ANOTHER_SNAKE, 1, weights, row, rewards, events)


@kernel
def _pay_snake(
    s: Boards,
    b: int,
    i: int,
    weights: np.ndarray,
    food: int,
    sole_survivor: bool,
    row: int,
    rewards: np.ndarray,
    events: np.ndarray,
) -> None:
    if food:
        _pay(ATE_FOOD, food, weights, row, rewards, events)
    if s.length[b, i] > 2 and body_cell(s, b, i, 2) == head_cell(s, b, i):
        _pay(FORBIDDEN_MOVE, 1, weights, row, rewards, events)
    if is_alive(s, b, i):
        _pay(ANOTHER_TURN, 1, weights, row, rewards, events)
        if sole_survivor:
            _pay(WON, 1, weights, row, rewards, events)
    else:
        _pay(DIED, 1, weights, row, rewards, events)
        _pay(_EVENT_OF_CAUSE[s.cause[b, i]], 1, weights, row, rewards, events)


@kernel
def _pay(
    event: int, count: int, weights: np.ndarray, row: int, rewards: np.ndarray, events: np.ndarray
) -> None:
    rewards[row] += weights[event] * count
    if events.shape[0]:
        events[row, event] += count
