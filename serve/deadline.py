"""An answer in time, whatever the agent does."""

from __future__ import annotations

import logging
import threading
import time
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as FutureTimeoutError
from concurrent.futures import wait as wait_for
from typing import Any

import numpy as np

from agents.agent import Agent, Decision
from envs.battlesnake.safety import safe_moves
from envs.battlesnake.state import State, head_cell, step_offset
from envs.battlesnake.webhook import Turn
from serve.cores import Cores, usable_cores
from serve.margins import Margins

log = logging.getLogger(__name__)

MIN_TIMEOUT_MS, MAX_TIMEOUT_MS = 100, 10_000
_GRACE_S = 0.02


class Decider:
    """Asks an agent for a move, waits no longer than the game allows, and answers for it if it fails.

    An answer is due at the game's time-out, limited to 100..10 000 ms, counted from the request's arrival, less the margin
    that `Margins` has learned of this game (half of the time-out at most). The agent is told to be done 20 ms earlier, and
    earlier still while more agents think than there are `cores`. If it raises or overruns, or if `max_concurrent` earlier
    calls are still running (an agent that hangs can't be stopped, only left behind), the answer is `safest_move`.
    """

    def __init__(self, agent: Agent, *, cores: Cores | None = None, max_concurrent: int = 8) -> None:
        self.agent, self.margins = agent, Margins()
        self._cores = cores or Cores(usable_cores())
        self._pool = ThreadPoolExecutor(max_concurrent, thread_name_prefix="agent")
        self._free = threading.BoundedSemaphore(max_concurrent)

    def decide(self, turn: Turn, *, arrived: float | None = None, reported: Any = None) -> Decision:
        """The agent's decision, or the safest move with the reason in `note["fallback"]`.

        `arrived`: when the request did, by `time.monotonic()`; `reported`: the engine's `you.latency`, whatever it is.
        """
        arrived = time.monotonic() if arrived is None else arrived
        game = turn.game_id, turn.ids[turn.you]
        timeout_ms = min(MAX_TIMEOUT_MS, max(MIN_TIMEOUT_MS, turn.timeout_ms))
        margin_ms = min(self.margins.margin_ms(game, turn.number, reported), timeout_ms / 2)
        decision = self._decide_by(arrived + (timeout_ms - margin_ms) / 1000, turn, f"{timeout_ms - margin_ms:.0f} ms")
        self.margins.answered(game, turn.number, 1000 * (time.monotonic() - arrived))
        return decision

    def _decide_by(self, due: float, turn: Turn, budget: str) -> Decision:
        enough = self._cores.enter(due - _GRACE_S)
        try:
            if not self._free.acquire(blocking=False):
                return self._fall_back(turn, "all of its calls are still running")
            call = self._pool.submit(self.agent.act, turn.state, turn.you, enough)
            call.add_done_callback(lambda _: self._free.release())
            # Whoever overruns its share of a core keeps its own game waiting, not the others'.
            wait_for([call], enough + _GRACE_S - time.monotonic())
        finally:
            self._cores.leave()
        return self._answer(call, turn, due, budget)

    def _answer(self, call: Future[Decision], turn: Turn, due: float, budget: str) -> Decision:
        try:
            error = call.exception(timeout=max(0.0, due - time.monotonic()))
        except FutureTimeoutError:
            return self._fall_back(turn, f"no answer within {budget}")
        if error is not None:
            log.error("agent %s failed in game %r, turn %d", self.agent.name, turn.game_id, turn.number, exc_info=error)
            return self._fall_back(turn, type(error).__name__)
        decision = call.result()
        if not _is_a_move(decision):
            return self._fall_back(turn, f"{decision!r:.100} is no decision for a move from 0 to 3")
        return decision

    def _fall_back(self, turn: Turn, why: str) -> Decision:
        log.warning("answering for agent %s in game %r, turn %d: %s", self.agent.name, turn.game_id, turn.number, why)
        return Decision(safest_move(turn.state, turn.you), note={"fallback": why})


def _is_a_move(decision: object) -> bool:
    return isinstance(decision, Decision) and isinstance(decision.move, int | np.integer) and 0 <= decision.move < 4


def safest_move(state: State, you: int) -> int:
    """Of the moves that are not certain death, the one whose cell has the most free neighbours; the first of equals."""
    arrays, rules = state.arrays, state.rules
    safe = safe_moves(state, np.array([0]), np.array([you]))[0]
    head = int(head_cell(arrays, 0, you))

    def step(cell: int, move: int) -> int:
        target = cell + step_offset(rules.width, move)
        return int(arrays.opposite[target]) if rules.wrapped else target

    def is_free(cell: int) -> bool:
        return not arrays.occupied[0, cell] and arrays.opposite[cell] == cell

    def room(move: int) -> int:
        target = step(head, move)
        if arrays.opposite[target] != target:
            return -1
        return sum(is_free(step(target, onward)) for onward in range(4))

    return max(np.flatnonzero(safe).tolist(), key=room)
