"""A game between local agents and snakes behind URLs, refereed as the official command line does
it.

All living snakes behind URLs are asked at the same time. A request fails if it takes longer than
the time-out, if it gets no answer, or if the answer is no move. Then the snake's last good answer
is played again, or `up` if there is none. (Facts: the official `battlesnake play`, December 2025.)
"""

from __future__ import annotations

import math
import os
import re
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import wait as wait_for
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any
from urllib.parse import urlsplit

import numpy as np

from agents.agent import Agent, Decision
from agents.measure.evaluation.busy import LoadMeter
from agents.measure.evaluation.connection import (
    CALL_ERRORS,
    BadAnswerError,
    Connection,
    in_words,
    read_move,
    read_object,
    without_secrets,
)
from envs.battlesnake.games import continue_games, play_turn, start_games
from envs.battlesnake.maps import check_game
from envs.battlesnake.plain import board_from_state
from envs.battlesnake.recording import Recorder
from envs.battlesnake.settings import Settings
from envs.battlesnake.state import ALIVE, MOVE_NAMES, UP, State
from envs.battlesnake.webhook import NO_LOOK, game_object, move_request
from envs.common.errors import ConfigError, ProcsnakeError
from envs.common.shell_command import shell_command

_INFO_TIMEOUT_S = 5.0
_MOST_REPEATS = 3
_COLOR = re.compile(r"#[0-9A-Fa-f]{6}")
_MAX_LOOK = 100


_Answer = tuple[int, float, str]
"""What `RemoteSnake.move` returns."""


class SnakeUnreachableError(ProcsnakeError):
    """No snake that speaks the Battlesnake API answers at a URL."""


@dataclass(frozen=True)
class Frame:
    """One board of a game, and the moves that led to it."""

    state: State
    """The game's own state. It changes with the next frame, so read it before."""
    moves: list[int | None]
    """The move that each slot made to get here; None for dead snakes and on the first board."""
    latencies_ms: list[float | None]
    """How long each snake that was asked took, in milliseconds."""
    failures: dict[int, str]
    """The slots whose request failed, and why."""
    decisions: list[Decision | None]
    """What each slot decided on the board before; None for dead snakes and on the first board."""
    cpu_ms: list[float | None]
    """The processor time that each agent's thread spent on its decision, in milliseconds; None for
    snakes behind URLs.
    """
    excused: dict[int, str] = field(default_factory=dict)
    """The slots that were asked again, since they were late in a burst of load, and how the burst
    was seen.
    """


@dataclass(frozen=True)
class Result:
    """How a game ended."""

    winner: str | None
    """The name of the last survivor; None after a draw or a solo game."""
    turns: int
    causes: list[int]
    """For each slot, ALIVE or the cause of death."""
    winner_slot: int | None
    """The slot of the last survivor."""


class Referee:
    """One game. `play` plays it, and `result` then tells how it ended.

    * `seats` are agents or URLs, in slot order. With one seat the game is played solo.
    * `names` has one name per slot. An empty name stands for the seat's own; equal names are
      numbered.
    * `game_id` is a new one by default. `recording` is a file to write the game to
      (`envs.battlesnake.recording`).
    * With `tell_deadline`, agents are told when their answer is due. Without it they take the time
      that they take by themselves, and a game among agents alone is a function of the agents and
      the seed.
    * With `must_answer`, `play` raises `SnakeUnreachableError` for a URL that doesn't answer before
      the game. Without it such a snake plays as one whose requests fail.
    * With `excuse_bursts`, a snake behind a URL that is late while this machine is busy
      (`agents.measure.evaluation.busy`) is asked again, up to three times per turn. The official engine
      doesn't do so: it is for comparisons in which time decides nothing.
    * `position`, a state of one board, is where the game begins: seat i plays its slot i, and its
      board and rules are the game's. Without it the map lays out a new game.
    * `opening`, int (turns, seats), has the moves of the first turns, on which nobody is asked.

    Raises `ConfigError` for settings or seats that no game can have, and for names or an opening of
    another number of seats."""

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
        game_id: str | None = None,
        opening: np.ndarray | None = None,
        excuse_bursts: bool = False,
        position: State | None = None,
    ) -> None:
        if position is not None:
            width = position.width
            height = position.height
            settings = position.settings
            if len(seats) != position.num_snakes:
                raise ConfigError(
                    f"{len(seats)} seats for a position of {position.num_snakes} snakes; name one"
                    " player for each"
                )
        chosen = settings or Settings()
        if len(seats) == 1:
            chosen = replace(chosen, solo=True)
        if not seats or timeout_ms < 1 or max_turns < 1:
            raise ConfigError(
                f"a game of {len(seats)} seats, {timeout_ms} ms and at most {max_turns} turns can't"
                " be played"
            )
        if names and len(names) != len(seats):
            raise ConfigError(
                f"{len(names)} names for {len(seats)} seats; give each one, which is empty for the"
                " seat's own"
            )
        if opening is not None and len(opening) and np.shape(opening)[1:] != (len(seats),):
            raise ConfigError(
                f"the opening has shape {np.shape(opening)}; it must be (turns, {len(seats)}), a"
                " move per seat"
            )
        check_game(chosen, width=width, height=height, num_snakes=len(seats))
        if position is None:
            self.state = State(
                1, width=width, height=height, num_snakes=len(seats), settings=chosen
            )
        else:
            self.state = position.copy()
        self._begin = start_games if position is None else continue_games
        self.state.seed(seed)
        self.names = _names(seats, names or [""] * len(seats))
        self.ids = [
            f"{slot}-{uuid.uuid5(uuid.NAMESPACE_URL, f'{seed}/{name}')}"
            for slot, name in enumerate(self.names)
        ]
        self.customizations: list[dict[str, str]] = [dict(NO_LOOK) for _ in seats]
        """The "color", "head" and "tail" of each slot. Snakes behind URLs tell theirs when `play`
        asks them.
        """
        self.failures: dict[int, list[str]] = {}
        """For each slot with failed moves, why they failed, in order."""
        self.result: Result | None = None
        self.seats = list(seats)
        self._timeout_ms = int(timeout_ms)
        self._max_turns = max_turns
        self._recording = recording
        self._tell_deadline = tell_deadline
        self._must_answer = must_answer
        self._most_repeats = _MOST_REPEATS if excuse_bursts else 0
        if opening is None:
            self._opening = np.zeros((0, len(seats)), np.int8)
        else:
            self._opening = opening
        self.game = game_object(chosen, game_id or str(uuid.uuid4()), timeout_ms=self._timeout_ms)
        """The webhook's `game` object."""
        self._remote = {
            slot: RemoteSnake(seat, timeout_ms)
            for slot, seat in enumerate(seats)
            if isinstance(seat, str)
        }
        self._latencies = ["0"] * len(seats)

    def first_board(self) -> State:
        """Return a copy of the board on which the game begins."""
        state = self.state.copy()
        self._begin(state)
        return state

    def play(self) -> Iterator[Frame]:
        """Play to the end. Yields the first board, and the board after every turn."""
        try:
            yield from self._play()
        finally:
            for snake in self._remote.values():
                snake.close()

    def _play(self) -> Iterator[Frame]:
        for slot, snake in self._remote.items():
            with nullcontext() if self._must_answer else suppress(SnakeUnreachableError):
                self.customizations[slot] = snake.check()
        running = self._begin(self.state)
        nothing: list[Any] = [None] * len(self.seats)
        recorder: AbstractContextManager[Recorder | None] = nullcontext()
        if self._recording:
            recorder = Recorder(self._recording, self.game)
        with ThreadPoolExecutor(max(1, len(self._remote))) as pool, recorder as record:
            self._tell(pool, "start")
            yield Frame(self.state, nothing, nothing, {}, nothing, nothing)
            while running[0] and self.state.arrays.turn[0] < self._max_turns:
                given = self.state.arrays.turn[0] < len(self._opening)
                decisions, frame = self._open() if given else self._ask_all(pool)
                if record:
                    self._record(record, decisions)
                moves = np.array([[UP if d is None else d.move for d in decisions]], np.int8)
                play_turn(self.state, moves, running)
                yield frame
            self.result = self._result()
            self._tell(pool, "end")
            if record:
                self._record(record, nothing)
                winner = self.result.winner_slot
                record.finish(
                    winner_id="" if winner is None else self.ids[winner],
                    winner_name=self.result.winner or "",
                    is_draw=self.result.winner is None and len(self.seats) > 1,
                )

    def _open(self) -> tuple[list[Decision | None], Frame]:
        """Return the moves of the opening as everyone's decisions."""
        alive = self.state.arrays.cause[0] == ALIVE
        nothing: list[float | None] = [None] * len(self.seats)
        moves = [
            int(move) if alive[slot] else None
            for slot, move in enumerate(self._opening[self.state.arrays.turn[0]])
        ]
        decisions = [None if move is None else Decision(move) for move in moves]
        return decisions, Frame(self.state, moves, nothing, {}, decisions, nothing)

    def _ask_all(self, pool: ThreadPoolExecutor) -> tuple[list[Decision | None], Frame]:
        """Everyone's decision at once: URLs in their threads, local agents meanwhile in this
        one.
        """
        slots = [
            slot for slot in range(len(self.seats)) if self.state.arrays.cause[0, slot] == ALIVE
        ]
        meter = LoadMeter()
        calls = {
            slot: pool.submit(self._remote[slot].move, self.request(slot))
            for slot in slots
            if slot in self._remote
        }
        decisions: list[Decision | None] = [None] * len(self.seats)
        latencies: list[float | None] = [None] * len(self.seats)
        cpu: list[float | None] = [None] * len(self.seats)
        failures: dict[int, str] = {}
        for slot in slots:
            seat = self.seats[slot]
            if not isinstance(seat, str):
                began = time.monotonic()
                cpu_began = time.thread_time()
                due = began + self._timeout_ms / 1000 if self._tell_deadline else None
                decisions[slot] = seat.act(self._own_board(), slot, due)
                latencies[slot] = 1000 * (time.monotonic() - began)
                cpu[slot] = 1000 * (time.thread_time() - cpu_began)
        waited = sum((latencies[slot] or 0.0) - (cpu[slot] or 0.0) for slot in slots)
        answers, excused = self._answers(pool, calls, meter, waited)
        for slot, (move, latency, failure) in answers.items():
            latencies[slot] = latency
            decisions[slot] = Decision(move)
            if failure:
                failures[slot] = failure
                self.failures.setdefault(slot, []).append(failure)
        self._latencies = [str(round(ms)) if ms is not None else "0" for ms in latencies]
        moves = [None if d is None else d.move for d in decisions]
        return decisions, Frame(self.state, moves, latencies, failures, decisions, cpu, excused)

    def _answers(
        self,
        pool: ThreadPoolExecutor,
        calls: Mapping[int, Future[_Answer]],
        meter: LoadMeter,
        waited_ms: float,
    ) -> tuple[dict[int, _Answer], dict[int, str]]:
        """The answers of all URLs by slot, and which were asked again because of a burst of
        load.
        """
        answers = {slot: call.result() for slot, call in calls.items()}
        excused = dict[int, str]()
        asked = list(answers)
        for _ in range(self._most_repeats):
            late = [
                slot for slot in asked if answers[slot][2] and answers[slot][1] >= self._timeout_ms
            ]
            # The quickest of a server's snakes: a server is late if all of them are.
            quickest = dict[str, float]()
            for slot in asked:
                server = urlsplit(self._remote[slot].url).netloc
                quickest[server] = min(answers[slot][1], quickest.get(server, math.inf))
            if late:
                why = meter.burst(
                    timeout_ms=self._timeout_ms, latencies_ms=quickest, waited_ms=waited_ms
                )
            else:
                why = ""
            if not why:
                break
            excused.update(dict.fromkeys(late, why))
            meter = LoadMeter()
            waited_ms = 0.0
            asked = late
            again = {
                slot: pool.submit(self._remote[slot].move, self.request(slot)) for slot in late
            }
            answers.update({slot: call.result() for slot, call in again.items()})
        return answers, excused

    def _own_board(self) -> State:
        """Agents may search on their state, so each gets its own."""
        return self.state.copy()

    def request(self, slot: int) -> dict[str, Any]:
        """Return the request that a slot gets for the current board. A dead snake is shown as it
        died.
        """
        return move_request(
            self.state,
            0,
            game=self.game,
            ids=self.ids,
            names=self.names,
            you=slot,
            latencies=self._latencies,
            customizations=self.customizations,
        )

    def _tell(self, pool: ThreadPoolExecutor, event: str) -> None:
        wait_for(
            [
                pool.submit(snake.tell, event, self.request(slot))
                for slot, snake in self._remote.items()
            ]
        )

    def _record(self, recorder: Recorder, decisions: Sequence[Decision | None]) -> None:
        board = board_from_state(self.state, 0, self.ids)
        recorder.turn(
            self.request(0),
            decisions={
                self.ids[slot]: _as_json(d) for slot, d in enumerate(decisions) if d is not None
            },
            dead=[snake for snake in board["snakes"] if snake["eliminatedCause"]],
        )

    def _result(self) -> Result:
        causes = self.state.arrays.cause[0].tolist()
        alive = [slot for slot, cause in enumerate(causes) if cause == ALIVE]
        winner = alive[0] if len(alive) == 1 and not self.state.rules.solo else None
        return Result(
            None if winner is None else self.names[winner],
            int(self.state.arrays.turn[0]),
            causes,
            winner,
        )


class RemoteSnake:
    """A snake behind a URL, with one connection that is kept open. It takes one request at a
    time.
    """

    def __init__(self, url: str, timeout_ms: int) -> None:
        self.url = url
        self._timeout = timeout_ms / 1000
        self._connection = Connection(url)
        self._last_move = UP

    def check(self) -> dict[str, str]:
        """Fetch the snake's info, as engines do before a game, and return how it looks. Raises
        `SnakeUnreachableError`.
        """
        try:
            return _look(read_object(self._exchange("GET", "", None, _INFO_TIMEOUT_S)))
        except CALL_ERRORS as error:
            serve = shell_command("serve", "flood")
            raise SnakeUnreachableError(
                f"no snake answers at {without_secrets(self.url)} ({in_words(error)}). Is it"
                f" running? To start one: {serve}"
            ) from error

    def tell(self, event: str, body: Mapping[str, Any]) -> None:
        """Post /start or /end. The answer is ignored."""
        with suppress(*CALL_ERRORS):
            self._exchange("POST", event, body, self._timeout)

    def move(self, body: Mapping[str, Any]) -> tuple[int, float, str]:
        """Ask for a move. Returns (move, milliseconds, why the request failed or ""). A failure
        repeats the last good move.
        """
        began = time.monotonic()
        move = self._last_move
        failure = ""
        try:
            move = read_move(read_object(self._exchange("POST", "move", body, self._timeout)))
        except CALL_ERRORS as error:
            failure = in_words(error)
        took = time.monotonic() - began
        if took >= self._timeout:
            failure = f"no answer within {1000 * self._timeout:.0f} ms"
        if not failure:
            self._last_move = move
        return self._last_move, 1000 * took, failure

    def _exchange(
        self, method: str, path: str, body: Mapping[str, Any] | None, timeout: float
    ) -> bytes:
        answer = self._connection.exchange(method, path, body, timeout)
        if answer.status != 200:
            self.close()
            raise BadAnswerError(f"it answers with HTTP status {answer.status}")
        return answer.body

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()


def _look(info: Mapping[str, Any]) -> dict[str, str]:
    """What a stranger says of its snake's looks, as far as it can be shown."""
    color = info.get("color")
    parts = {part: info.get(part) for part in ("head", "tail")}
    shown = {
        part: text
        for part, text in parts.items()
        if isinstance(text, str) and text and text.isprintable()
    }
    if isinstance(color, str) and _COLOR.fullmatch(color):
        colors = {"color": color}
    else:
        colors = {}
    return NO_LOOK | colors | {part: text[:_MAX_LOOK] for part, text in shown.items()}


def _names(seats: Sequence[Agent | str], given: Sequence[str]) -> list[str]:
    """A name for each seat; equal ones are numbered, past the numbers that others bear by
    themselves.
    """
    # All snakes of a game read the names, and a recording keeps them.
    own = [without_secrets(seat) if isinstance(seat, str) else seat.name for seat in seats]
    plain = [name or other for name, other in zip(given, own, strict=True)]
    taken = {name for name in plain if plain.count(name) == 1}
    names = []
    for name in plain:
        if plain.count(name) > 1:
            name = next(numbered for k in count(1) if (numbered := f"{name} {k}") not in taken)
            taken.add(name)
        names.append(name)
    return names


def _as_json(decision: Decision) -> dict[str, Any]:
    told: dict[str, Any] = {"move": MOVE_NAMES[decision.move]}
    # Agents of a user's own may answer with NumPy's numbers, or with NaN, which JSON doesn't have.
    if decision.probabilities is not None and np.isfinite(decision.probabilities).all():
        told["probabilities"] = [round(float(p), 4) for p in decision.probabilities]
    if decision.value is not None and math.isfinite(decision.value):
        told["value"] = round(float(decision.value), 4)
    return told
