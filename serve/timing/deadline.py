"""Answers in time, whatever the agent does."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as FutureTimeoutError
from concurrent.futures import wait as wait_for
from typing import Any, Protocol

import numpy as np

from agents.agent import Agent, Decision
from envs.battlesnake.safety import safe_moves
from envs.battlesnake.state import State, head_cell, step_offset
from envs.battlesnake.webhook import Turn
from envs.common.cores import usable_cores
from serve.monitoring.logs import Seldom
from serve.timing.cores import Cores
from serve.timing.game_memory import GameKey, GameMemory
from serve.timing.stalls import stall_ms

log = logging.getLogger(__name__)

MIN_TIMEOUT_MS = 100
MAX_TIMEOUT_MS = 10_000
MAX_THINK_MS = 1000
"""How long one call may think by default.

A bound is needed because strangers choose a game's timeout, and cores are shared.
"""
_GRACE_S = 0.02
_LEAST_CALLS = 32
_SPARE_CALLS = 8


class LastWord(Protocol):
    """The event loop, which answers in time even if this thread can't."""

    def at(self, due: float, move: int) -> None:
        """Answer with this move at `due` (`time.monotonic()`), unless the answer has been claimed
        by then.
        """

    def claim(self) -> bool:
        """Claim the answer. Returns whether it was still open; if so, nobody else can give it any
        more.
        """


class Decider:
    """Asks an agent for a move, waits at most as long as the game allows, and answers for it if it
    fails.

    An answer is due at the game's timeout, limited to 100..10 000 ms and counted from the
    request's arrival, less a margin. The margin is what `GameMargin` has learned about this game,
    in its record in `memory`, plus the latest stalls of this process (`stall_ms`), as long as half
    of the timeout remains. An answer is always due after `max_think_ms`. If a game had timeouts,
    the log says how much of its time is left.

    The agent is told to be done 20 ms and half of that stall earlier, and still earlier while more
    games think than there are `cores`. The answer is `safest_move` if the agent raises or takes too
    long, or if `max_concurrent` earlier calls are still running: an agent that hangs can't be
    stopped, only abandoned. By default these are 32, or, if that is more, 8 beside twice as many as
    there are `cores`. The log says so once a minute for each of these reasons and each type of
    exception."""

    def __init__(
        self,
        agent: Agent,
        *,
        cores: Cores | None = None,
        memory: GameMemory | None = None,
        max_concurrent: int | None = None,
        max_think_ms: float = MAX_THINK_MS,
        stall_ms: Callable[[], float] = stall_ms,
    ) -> None:
        self.agent = agent
        self._memory = memory or GameMemory()
        self._max_think_ms = max_think_ms
        self._stall_ms = stall_ms
        self._cores = cores or Cores(usable_cores())
        most = max_concurrent or max(_LEAST_CALLS, 2 * self._cores.count + _SPARE_CALLS)
        self._pool = ThreadPoolExecutor(most, thread_name_prefix="agent")
        self._free = threading.BoundedSemaphore(most)
        self._seldom = Seldom()

    def decide(
        self,
        turn: Turn,
        *,
        arrived: float | None = None,
        reported: Any = None,
        last_word: LastWord | None = None,
    ) -> Decision:
        """Return the agent's decision, or the safest move with the reason in `note["fallback"]`.

        `arrived` is when the request arrived, by `time.monotonic()`. `reported` is the engine's
        `you.latency`, whatever it is. `last_word` gets the safest move, to answer with when time is
        up; if it did, that move is the decision."""
        if arrived is None:
            arrived = time.monotonic()
        game = turn.game_id, turn.ids[turn.you]
        timeout_ms = min(MAX_TIMEOUT_MS, max(MIN_TIMEOUT_MS, turn.timeout_ms))
        with self._memory.record(game, turn.number) as record:
            margin = record.margin
            learned_ms = margin.margin_ms(turn.number, reported, timeout_ms)
            self._tell(margin.news(turn.number, learned_ms, timeout_ms), game)
        margin_ms = min(learned_ms + self._stall_ms(), max(learned_ms, timeout_ms / 2))
        budget_ms = min(timeout_ms - margin_ms, self._max_think_ms)
        due = arrived + budget_ms / 1000
        if last_word is not None:
            last_word.at(due, safest_move(turn.state, turn.you))
        # What makes our answer late makes the agent late, too, and its move is worth more than the
        # safest.
        enough = due - _GRACE_S - (margin_ms - learned_ms) / 2000
        decision = self._decide_by(due, enough, turn, f"{budget_ms:.0f} ms")
        if last_word is not None and not last_word.claim() and "fallback" not in decision.note:
            decision = self._fall_back(turn, "late", f"no answer within {budget_ms:.0f} ms")
        # Not by way of the memory, which would begin anew if the next turn's request has come
        # meanwhile.
        margin.answered(turn.number, 1000 * (time.monotonic() - arrived))
        return decision

    def _tell(self, news: str, game: GameKey) -> None:
        """Log what the owner should know of a game's way, "" for nothing."""
        if news and self._seldom.allows("far"):
            log.warning("%s", news, extra={"game": game[0]})

    def _decide_by(self, due: float, enough: float, turn: Turn, budget: str) -> Decision:
        place = self._cores.enter(enough, game=turn.game_id)
        try:
            if not self._free.acquire(blocking=False):
                return self._fall_back(turn, "busy", "all of its calls are still running")
            call = self._pool.submit(self.agent.act, turn.state, turn.you, place.until)
            call.add_done_callback(lambda _: self._free.release())
            # Whoever overruns its share of a core keeps its own game waiting, not the others'.
            wait_for([call], place.until + _GRACE_S - time.monotonic())
        finally:
            self._cores.leave(place)
        return self._answer(call, turn, due, budget)

    def _answer(self, call: Future[Decision], turn: Turn, due: float, budget: str) -> Decision:
        try:
            error = call.exception(timeout=max(0.0, due - time.monotonic()))
        except FutureTimeoutError:
            return self._fall_back(turn, "late", f"no answer within {budget}")
        if error is not None:
            return self._fall_back(turn, type(error).__name__, type(error).__name__, error)
        decision = call.result()
        if not _is_a_move(decision):
            return self._fall_back(
                turn, "no move", f"{decision!r:.100} is not a decision for a move from 0 to 3"
            )
        return decision

    def _fall_back(
        self, turn: Turn, kind: str, why: str, error: BaseException | None = None
    ) -> Decision:
        # Strangers choose boards and timeouts, so they could have all of these logged as often as
        # they like.
        if self._seldom.allows(kind):
            log.log(
                logging.WARNING if error is None else logging.ERROR,
                "answering for agent %s, turn %d: %s",
                self.agent.name,
                turn.number,
                why,
                exc_info=error,
                extra={"game": turn.game_id},
            )
        return Decision(safest_move(turn.state, turn.you), note={"fallback": why})


def _is_a_move(decision: object) -> bool:
    return (
        isinstance(decision, Decision)
        and isinstance(decision.move, int | np.integer)
        and 0 <= decision.move < 4
    )


def safest_move(state: State, you: int) -> int:
    """Return the move whose cell has the most free neighbours, among those that are not certain
    death; the first of equals.
    """
    arrays = state.arrays
    rules = state.rules
    safe = safe_moves(state, np.array([0]), np.array([you]))[0]
    head = int(head_cell(arrays, 0, you))

    def step(cell: int, move: int) -> int:
        target = cell + step_offset(rules.width, move)
        if rules.wrapped:
            return int(arrays.opposite[target])
        return target

    def is_free(cell: int) -> bool:
        return not arrays.occupied[0, cell] and arrays.opposite[cell] == cell

    def room(move: int) -> int:
        target = step(head, move)
        if arrays.opposite[target] != target:
            return -1
        return sum(is_free(step(target, onward)) for onward in range(4))

    return max(np.flatnonzero(safe).tolist(), key=room)
