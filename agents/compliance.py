"""A check for authors of agents and of rules. It asks the agent about many positions and tests the
answers.

from agents.compliance import check_agent
check_agent(agents.make("my_rule.py+flood"))
"""

from __future__ import annotations

from collections.abc import Iterator
from numbers import Integral
from typing import Any

import numpy as np

from agents.agent import Agent, Decision
from agents.heuristics.composition import Heuristics
from agents.heuristics.sight import Sight
from envs.battlesnake.games import play_turn, start_games
from envs.battlesnake.safety import safe_moves
from envs.battlesnake.settings import Settings
from envs.battlesnake.state import ALIVE, MOVE_NAMES, State
from envs.common.errors import ComplianceError

_EVERY_MOVE = np.ones(4, np.bool_)
_TURNS_APART = 5


def check_agent(
    agent: Agent,
    *,
    width: int = 11,
    height: int = 11,
    num_snakes: int = 4,
    num_positions: int = 40,
    seed: int = 0,
    **settings: Any,
) -> None:
    """Ask the agent about `num_positions` positions of random games, by `act`, `act_batch` and
    `act_among`.

    Each answer must be a move, and for `act_among` an allowed one. Probabilities, if there are any,
    must be four that sum to one. The state must stay unchanged. Rules on top of a base must never
    choose certain death where there is another move. If they only ban moves, they must play the
    base's best of the moves that are left. `settings` are fields of `Settings`.

    Raises `ComplianceError`, which names the agent, the position and what is wrong with its answer.
    """
    rules = Settings(solo=settings.pop("solo", num_snakes == 1), **settings)
    size = {"width": width, "height": height, "num_snakes": num_snakes, "settings": rules}
    masks = np.random.default_rng(seed).random((num_positions, 4)) < 0.5
    for (state, you), mask in zip(_positions(num_positions, seed, **size), masks, strict=True):
        where = f"agent {agent.name!r}, turn {state.arrays.turn[0]} of seed {seed}, slot {you}"
        before = state.copy()
        allowed = mask
        if not mask.any():
            allowed = _EVERY_MOVE
        _check_decision(agent.act(state, you), _EVERY_MOVE, f"{where}: act")
        _check_decision(agent.act_among(state, you, allowed), allowed, f"{where}: act_among")
        moves = agent.act_batch(state, np.zeros(1, np.int64), np.array([you]))
        is_one_move = isinstance(moves, np.ndarray) and moves.shape == (1,) and moves[0] in range(4)
        _require(is_one_move, f"{where}: act_batch answers {moves!r}, not an array of one move")
        for name, array in state.arrays._asdict().items():
            _require(
                (array == getattr(before.arrays, name)).all(),
                f"{where}: it changed the state's {name}",
            )
        if isinstance(agent, Heuristics) and agent.base is not None:
            _check_composition(agent, agent.base, state, you, where)


def _positions(count: int, seed: int, **size: Any) -> Iterator[tuple[State, int]]:
    """Yield a snake's position every few turns of games in which all move at random, as long as
    they can.
    """
    state = State(1, **size)
    rng = np.random.default_rng(seed)
    state.seed(seed)
    start_games(state)
    slots = np.arange(state.num_snakes)
    running = np.ones(1, np.bool_)
    turn = 0
    while count:
        if turn % _TURNS_APART == 0:
            yield state.copy(), int(rng.choice(np.flatnonzero(state.arrays.cause[0] == ALIVE)))
            count -= 1
        weights = rng.random((len(slots), 4)) * safe_moves(state, np.zeros_like(slots), slots)
        play_turn(state, weights.argmax(axis=1).astype(np.int8)[None], running)
        turn += 1
        if not running[0]:
            start_games(state)
            running[0] = True
            turn = 0


def _check_decision(decision: Decision, allowed: np.ndarray, where: str) -> None:
    _require(
        isinstance(decision, Decision),
        f"{where} answers {decision!r}, not an agents.agent.Decision",
    )
    is_move = isinstance(decision.move, Integral) and decision.move in range(4)
    _require(is_move, f"{where} answers {decision.move!r}, not a move from 0 to 3")
    _require(
        bool(allowed[decision.move]),
        f"{where} answers {MOVE_NAMES[decision.move]}; allowed are {_names_of(allowed)}",
    )
    shares = decision.probabilities
    if shares is not None:
        is_array = isinstance(shares, np.ndarray) and shares.shape == (4,)
        sound = is_array and (shares >= 0).all() and abs(float(shares.sum()) - 1) < 1e-3
        _require(
            bool(sound),
            f"{where} tells the probabilities {shares}; they must be an array of four that sum"
            " to 1",
        )


def _check_composition(agent: Heuristics, base: Agent, state: State, you: int, where: str) -> None:
    """Check rules on top of a base: their bans hold, and if they only ban, the base decides."""
    permitted = safe_moves(state, np.zeros(1, np.int64), np.array([you]))[0].copy()
    only_bans = True
    for rule in agent.rules:
        opinion = np.asarray(rule(Sight(state, 0, you)))
        if opinion.dtype != np.bool_:
            only_bans = False
        elif (permitted & opinion).any():
            permitted &= opinion
    move = agent.act(state, you).move
    problem = f"{where}: it plays {MOVE_NAMES[move]}, but"
    _require(bool(permitted[move]), f"{problem} its bans leave {_names_of(permitted)}")
    if only_bans:
        best = base.act_among(state, you, permitted).move
        problem = f"{problem} of {_names_of(permitted)} its base thinks {MOVE_NAMES[best]} best"
        _require(move == best, problem)


def _names_of(moves: np.ndarray) -> str:
    return ", ".join(MOVE_NAMES[move] for move in np.flatnonzero(moves))


def _require(holds: bool, what: str) -> None:
    if not holds:
        raise ComplianceError(what)
