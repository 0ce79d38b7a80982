"""A game between local agents and snakes behind URLs, refereed as the official command line does it.

Every living snake behind a URL is asked at once; a request that takes longer than the time-out, fails, or gets an answer that
is no move counts as a failure, and then the snake's last good answer is played again, `up` if there is none. (Facts:
the official `battlesnake play`, December 2025.)
"""

from __future__ import annotations

import json
import os
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures import wait as wait_for
from contextlib import nullcontext, suppress
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from agents.agent import Agent, Decision
from agents.connection import CALL_ERRORS, Connection
from envs.battlesnake.games import play_turn, start_games
from envs.battlesnake.maps import check_game
from envs.battlesnake.plain import board_from_state
from envs.battlesnake.recording import Recorder
from envs.battlesnake.settings import Settings
from envs.battlesnake.state import ALIVE, MOVE_NAMES, UP, State
from envs.battlesnake.webhook import game_object, move_request
from envs.errors import ConfigError, ProcsnakeError

_INFO_TIMEOUT_S = 5.0


class SnakeUnreachableError(ProcsnakeError):
    """Nothing that speaks the Battlesnake API answers at a URL."""


@dataclass(frozen=True)
class Frame:
    """One board of a game, and how it came about."""

    state: State
    """The game's own state: read it before the next frame."""
    moves: list[int | None]
    """The move each slot made to get here; None for the dead and on the first board."""
    latencies_ms: list[float | None]
    """How long each asked snake took."""
    failures: dict[int, str]
    """Slots whose request failed, and why."""


@dataclass(frozen=True)
class Result:
    """How a game ended."""

    winner: str | None
    """Name of the last survivor; None after a draw or a solo game."""
    turns: int
    causes: list[int]
    """By slot: ALIVE or the cause of death."""


class Referee:
    """One game. `seats` are agents or URLs, in slot order; `play` plays it, then `result` tells how it ended.

    With one seat the game is played solo. `names` by slot, all different (default: from the seats). `recording`: a file to
    write the game to (`envs.battlesnake.recording`). `tell_deadline`: agents hear when their answer is due; False: they take
    what time they take of themselves, and a game among agents alone is a function of them and the seed. `must_answer`: a URL
    that doesn't answer before the game raises `SnakeUnreachableError` from `play`; False: it plays on as one that fails.
    Raises `ConfigError` for settings or seats that no game can have.
    """

    def __init__(
        self,
        seats: Sequence[Agent | str],
        *,
        settings: Settings | None = None,
        width: int = 11,
        height: int = 11,
        seed: int = 0,
        timeout_ms: int = 500,
        max_turns: int = 5000,
        recording: str | os.PathLike[str] | None = None,
        names: Sequence[str] | None = None,
        tell_deadline: bool = True,
        must_answer: bool = True,
    ) -> None:
        chosen = settings or Settings()
        if len(seats) == 1:
            chosen = replace(chosen, solo=True)
        if not seats or timeout_ms < 1 or max_turns < 1:
            raise ConfigError(f"a game of {len(seats)} seats, {timeout_ms} ms and at most {max_turns} turns can't be played")
        check_game(chosen, width=width, height=height, num_snakes=len(seats))
        self.state = State(1, width=width, height=height, num_snakes=len(seats), settings=chosen)
        self.state.seed(seed)
        self.names = list(names) if names else _names(seats)
        self.ids = [f"{slot}-{uuid.uuid5(uuid.NAMESPACE_URL, f'{seed}/{name}')}" for slot, name in enumerate(self.names)]
        self.result: Result | None = None
        self._seats = list(seats)
        self._timeout_ms, self._max_turns, self._recording = timeout_ms, max_turns, recording
        self._tell_deadline, self._must_answer = tell_deadline, must_answer
        self._game = game_object(chosen, str(uuid.uuid4()), timeout_ms=timeout_ms)
        self._remote = {slot: RemoteSnake(seat, timeout_ms) for slot, seat in enumerate(seats) if isinstance(seat, str)}
        self._latencies = ["0"] * len(seats)

    def play(self) -> Iterator[Frame]:
        """Play to the end; yields the first board and the board after every turn."""
        try:
            yield from self._play()
        finally:
            for snake in self._remote.values():
                snake.close()

    def _play(self) -> Iterator[Frame]:
        for snake in self._remote.values():
            with nullcontext() if self._must_answer else suppress(SnakeUnreachableError):
                snake.check()
        running = start_games(self.state)
        nothing: list[Any] = [None] * len(self._seats)
        recorder = Recorder(self._recording, self._game) if self._recording else nullcontext()
        with ThreadPoolExecutor(max(1, len(self._remote))) as pool, recorder as record:
            self._tell(pool, "start")
            yield Frame(self.state, nothing, nothing, {})
            while running[0] and self.state.arrays.turn[0] < self._max_turns:
                decisions, frame = self._ask_all(pool)
                if record:
                    self._record(record, decisions)
                moves = np.array([[UP if d is None else d.move for d in decisions]], np.int8)
                play_turn(self.state, moves, running)
                yield frame
            self.result = self._result()
            self._tell(pool, "end")
            if record:
                self._record(record, nothing)
                winner = self.names.index(self.result.winner) if self.result.winner else None
                record.finish(
                    winner_id="" if winner is None else self.ids[winner],
                    winner_name=self.result.winner or "",
                    is_draw=self.result.winner is None and len(self._seats) > 1,
                )

    def _ask_all(self, pool: ThreadPoolExecutor) -> tuple[list[Decision | None], Frame]:
        """Everyone's decision at once: URLs in their threads, local agents meanwhile in this one."""
        slots = [slot for slot in range(len(self._seats)) if self.state.arrays.cause[0, slot] == ALIVE]
        calls = {slot: pool.submit(self._remote[slot].move, self._request(slot)) for slot in slots if slot in self._remote}
        decisions: list[Decision | None] = [None] * len(self._seats)
        latencies: list[float | None] = [None] * len(self._seats)
        failures: dict[int, str] = {}
        for slot in slots:
            seat = self._seats[slot]
            if not isinstance(seat, str):
                began = time.monotonic()
                due = began + self._timeout_ms / 1000 if self._tell_deadline else None
                decisions[slot] = seat.act(self._own_board(), slot, due)
                latencies[slot] = 1000 * (time.monotonic() - began)
        for slot, call in calls.items():
            move, latencies[slot], failure = call.result()
            decisions[slot] = Decision(move)
            if failure:
                failures[slot] = failure
        self._latencies = [str(round(ms)) if ms is not None else "0" for ms in latencies]
        return decisions, Frame(self.state, [None if d is None else d.move for d in decisions], latencies, failures)

    def _own_board(self) -> State:
        """Agents may search on their state, so each gets its own."""
        return self.state.copy()

    def _request(self, slot: int) -> dict[str, Any]:
        return move_request(self.state, 0, game=self._game, ids=self.ids, names=self.names, you=slot, latencies=self._latencies)

    def _tell(self, pool: ThreadPoolExecutor, event: str) -> None:
        wait_for([pool.submit(snake.tell, event, self._request(slot)) for slot, snake in self._remote.items()])

    def _record(self, recorder: Recorder, decisions: Sequence[Decision | None]) -> None:
        board = board_from_state(self.state, 0, self.ids)
        recorder.turn(
            self._request(0),
            decisions={self.ids[slot]: _as_json(d) for slot, d in enumerate(decisions) if d is not None},
            dead=[snake for snake in board["snakes"] if snake["eliminatedCause"]],
        )

    def _result(self) -> Result:
        causes = self.state.arrays.cause[0].tolist()
        alive = [slot for slot, cause in enumerate(causes) if cause == ALIVE]
        winner = self.names[alive[0]] if len(alive) == 1 and not self.state.rules.solo else None
        return Result(winner, int(self.state.arrays.turn[0]), causes)


class RemoteSnake:
    """A snake behind a URL, with one kept connection. One request at a time."""

    def __init__(self, url: str, timeout_ms: int) -> None:
        self.url, self._timeout = url, timeout_ms / 1000
        self._connection = Connection(url)
        self._last_move = UP

    def check(self) -> None:
        """Fetch the snake's info, as engines do before a game. Raises `SnakeUnreachableError`."""
        try:
            answer = self._exchange("GET", "", None, _INFO_TIMEOUT_S)
            if not isinstance(json.loads(answer), Mapping):
                raise ValueError("the answer is no JSON object")
        except (*CALL_ERRORS, RecursionError) as error:
            raise SnakeUnreachableError(
                f"no snake answers at {self.url} ({type(error).__name__}: {error}). Is it running? Try: procsnake serve"
            ) from error

    def tell(self, event: str, body: Mapping[str, Any]) -> None:
        """Post /start or /end; the answer doesn't matter."""
        with suppress(*CALL_ERRORS):
            self._exchange("POST", event, body, self._timeout)

    def move(self, body: Mapping[str, Any]) -> tuple[int, float, str]:
        """(move, milliseconds, why the request failed or ""). A failure repeats the last good move."""
        began = time.monotonic()
        failure = ""
        try:
            answer = json.loads(self._exchange("POST", "move", body, self._timeout))
            self._last_move = MOVE_NAMES.index(answer["move"])
        except (*CALL_ERRORS, KeyError, TypeError, RecursionError) as error:
            failure = f"{type(error).__name__}: {error}"
        took = time.monotonic() - began
        if failure and took >= self._timeout:
            failure = f"no answer within {1000 * self._timeout:.0f} ms"
        return self._last_move, 1000 * took, failure

    def _exchange(self, method: str, path: str, body: Mapping[str, Any] | None, timeout: float) -> bytes:
        answer = self._connection.exchange(method, path, body, timeout)
        if answer.status != 200:
            self.close()
            raise ValueError(f"HTTP status {answer.status}")
        return answer.body

    def close(self) -> None:
        """Close the kept connection."""
        self._connection.close()


def _names(seats: Sequence[Agent | str]) -> list[str]:
    """A name for each seat; equal ones are numbered."""
    plain = [seat.removesuffix("/") if isinstance(seat, str) else seat.name for seat in seats]
    return [name if plain.count(name) == 1 else f"{name} {plain[:slot].count(name) + 1}" for slot, name in enumerate(plain)]


def _as_json(decision: Decision) -> dict[str, Any]:
    told: dict[str, Any] = {"move": MOVE_NAMES[decision.move]}
    if decision.probabilities is not None:
        told["probabilities"] = [round(float(p), 4) for p in decision.probabilities]
    if decision.value is not None:
        told["value"] = round(decision.value, 4)
    return told
