"""A game between local agents and snakes behind URLs, refereed as the official command line does
it.

All living snakes behind URLs (`agents.measure.evaluation.remote_snake`) are asked at the same time.
"""

from __future__ import annotations

import math
import os
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import wait as wait_for
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any
from urllib.parse import urlsplit

import numpy as np

from agents.agent import Agent, Decision
from agents.measure.evaluation.busy import LoadMeter
from agents.measure.evaluation.remote_snake import RemoteSnake, Reply, SnakeUnreachableError
from agents.player import without_secrets
from envs.battlesnake.games import continue_games, play_turn, start_games
from envs.battlesnake.maps import check_game
from envs.battlesnake.plain import board_from_state, dead_snakes
from envs.battlesnake.recording import Recorder
from envs.battlesnake.settings import Settings
from envs.battlesnake.state import ALIVE, MOVE_NAMES, UP, State
from envs.battlesnake.webhook import NO_LOOK, game_object, move_request
from envs.common.errors import ConfigError

_MOST_REPEATS = 3


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
    """The slots that were asked again because they were late in a burst of load, and what showed
    the burst.
    """

    def set_decision(self, slot: int, decision: Decision) -> None:
        """Set a slot's decision, with its move."""
        self.decisions[slot] = decision
        self.moves[slot] = decision.move


@dataclass(frozen=True)
class Result:
    """The end of a game: its winner, its turns, and the causes of death."""

    winner: str | None
    """The name of the last survivor; None after a draw or a solo game."""
    turns: int
    causes: list[int]
    """For each slot, ALIVE or the cause of death."""
    winner_slot: int | None
    """The slot of the last survivor."""


class Referee:
    """One game. `play` plays it, and `result` then has its result.

        * `seats` are agents or URLs, in slot order. With one seat the game is played solo.
        * `names` has one name per slot. An empty name stands for the seat's own name. Equal names
          are numbered.
        * `game_id` is a new one by default. `recording` is a file to write the game to
          (`envs.battlesnake.recording`).
        * With `tell_deadline`, agents are told when their answer is due. Without it they take their
          own time, and a game without URLs depends only on the agents and the seed.
        * With `must_answer`, `play` raises `SnakeUnreachableError` for a URL that doesn't answer
          before the game. Without it such a snake plays as one whose requests fail.
        * With `excuse_bursts`, a snake behind a URL that is late while this machine is busy
          (`agents.measure.evaluation.busy`) is asked again, up to three times per turn. The
          official engine doesn't do so. Use it for comparisons that load mustn't decide.
        * `position`, a state of one board, is where the game begins: seat i plays its slot i, and
          its board and rules are the game's. Without it the map lays out a new game.
        * `opening`, int (turns, seats), has the moves of the first turns, for which nobody is
          asked.

    Raises `ConfigError` for impossible settings or seats, and for names or an opening for
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
        settings = settings or Settings()
        if len(seats) == 1:
            settings = replace(settings, solo=True)
        if not seats or timeout_ms < 1 or max_turns < 1:
            raise ConfigError(
                f"a game of {len(seats)} seats, {timeout_ms} ms and at most {max_turns} turns can't"
                " be played"
            )
        _refuse_misfits(len(seats), names, opening)
        check_game(settings, width=width, height=height, num_snakes=len(seats))
        self._begin: Callable[[State], np.ndarray] = start_games
        if position is None:
            self.state = State(
                1, width=width, height=height, num_snakes=len(seats), settings=settings
            )
        else:
            self.state = position.copy()
            self._begin = continue_games
        self.state.seed(seed)
        self.names = _names(seats, names or [""] * len(seats))
        self.ids = [
            f"{slot}-{uuid.uuid5(uuid.NAMESPACE_URL, f'{seed}/{name}')}"
            for slot, name in enumerate(self.names)
        ]
        self.customizations: list[dict[str, str]] = [dict(NO_LOOK) for _ in seats]
        """The "color", "head" and "tail" of each slot. `play` fetches those of snakes behind
        URLs.
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
        self._opening = np.zeros((0, len(seats)), np.int8)
        if opening is not None:
            self._opening = opening
        self.game = game_object(settings, game_id or str(uuid.uuid4()), timeout_ms=self._timeout_ms)
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
            try:
                self.customizations[slot] = snake.check()
            except SnakeUnreachableError:
                if self._must_answer:
                    raise
        running = self._begin(self.state)
        nothing: list[Any] = [None] * len(self.seats)
        recorder: AbstractContextManager[Recorder | None] = nullcontext()
        if self._recording:
            recorder = Recorder(self._recording, self.game)
        with ThreadPoolExecutor(max(1, len(self._remote))) as pool, recorder as record:
            self._tell(pool, "start", turn=0)
            yield Frame(self.state, nothing, nothing, {}, nothing, nothing)
            while running[0] and self.state.arrays.turn[0] < self._max_turns:
                if self.state.arrays.turn[0] < len(self._opening):
                    frame = self._open()
                else:
                    frame = self._ask_all(pool)
                if record:
                    self._record(record, frame.decisions)
                moves = [UP if move is None else move for move in frame.moves]
                play_turn(self.state, np.array([moves], np.int8), running)
                yield frame
            self.result = self._result()
            # The official program finds the game over only after it has asked the survivors once
            # more and counted one turn on. A server learns from the end's turn whether its snake
            # died together with the last ones.
            if self.result.turns < self._max_turns:
                wait_for(self._ask_remote(pool, self._living()).values())
            self._tell(pool, "end", turn=self.result.turns + 1)
            if record:
                self._record(record, nothing)
                self._finish(record, self.result)

    def _finish(self, record: Recorder, result: Result) -> None:
        winner_id = "" if result.winner_slot is None else self.ids[result.winner_slot]
        is_draw = result.winner is None and len(self.seats) > 1
        record.finish(winner_id=winner_id, winner_name=result.winner or "", is_draw=is_draw)

    def _living(self) -> list[int]:
        """The slots of the living snakes."""
        return np.flatnonzero(self.state.arrays.cause[0] == ALIVE).tolist()

    def _open(self) -> Frame:
        """Take a turn of the opening, whose moves count as everyone's decisions."""
        frame = self._new_frame()
        moves = self._opening[self.state.arrays.turn[0]]
        for slot in self._living():
            frame.set_decision(slot, Decision(int(moves[slot])))
        return frame

    def _new_frame(self) -> Frame:
        """A frame of this turn in which nobody has decided yet."""
        num = len(self.seats)
        return Frame(
            state=self.state,
            moves=[None] * num,
            latencies_ms=[None] * num,
            failures={},
            decisions=[None] * num,
            cpu_ms=[None] * num,
        )

    def _ask_all(self, pool: ThreadPoolExecutor) -> Frame:
        """Ask everybody at once: snakes behind URLs in their threads, and local agents meanwhile in
        this one.
        """
        frame = self._new_frame()
        living = self._living()
        meter = LoadMeter()
        calls = self._ask_remote(pool, living)
        waited_ms = 0.0
        for slot in living:
            seat = self.seats[slot]
            if not isinstance(seat, str):
                waited_ms += self._ask_local(seat, slot, frame)

        answers = self._answers(pool, calls, meter, waited_ms, frame.excused)
        for slot, (move, latency_ms, failure) in answers.items():
            frame.latencies_ms[slot] = latency_ms
            frame.set_decision(slot, Decision(move))
            if failure:
                frame.failures[slot] = failure
                self.failures.setdefault(slot, []).append(failure)
        self._latencies = [str(round(latency or 0.0)) for latency in frame.latencies_ms]
        return frame

    def _ask_remote(
        self, pool: ThreadPoolExecutor, slots: Sequence[int]
    ) -> dict[int, Future[Reply]]:
        """Begin to ask those in these slots that are behind URLs."""
        return {
            slot: pool.submit(self._remote[slot].move, self.request(slot))
            for slot in slots
            if slot in self._remote
        }

    def _ask_local(self, agent: Agent, slot: int, frame: Frame) -> float:
        """Ask a local agent. Returns for how many milliseconds it waited for a processor."""
        began = time.monotonic()
        cpu_began = time.thread_time()
        deadline = began + self._timeout_ms / 1000 if self._tell_deadline else None
        # Agents may search on their state, so each gets its own.
        frame.set_decision(slot, agent.act(self.state.copy(), slot, deadline))
        latency_ms = 1000 * (time.monotonic() - began)
        cpu_ms = 1000 * (time.thread_time() - cpu_began)
        frame.latencies_ms[slot] = latency_ms
        frame.cpu_ms[slot] = cpu_ms
        return latency_ms - cpu_ms

    def _answers(
        self,
        pool: ThreadPoolExecutor,
        calls: Mapping[int, Future[Reply]],
        meter: LoadMeter,
        waited_ms: float,
        excused: dict[int, str],
    ) -> dict[int, Reply]:
        """Return the answers of all URLs by slot.

        Slots that are asked again because of a burst of load are noted in `excused`."""
        answers = {slot: call.result() for slot, call in calls.items()}
        last_asked = list(answers)
        for _ in range(self._most_repeats):
            late = [slot for slot in last_asked if answers[slot].is_late(self._timeout_ms)]
            if not late:
                break
            burst = meter.burst(
                timeout_ms=self._timeout_ms,
                latencies_ms=self._quickest(last_asked, answers),
                waited_ms=waited_ms,
            )
            if not burst:
                break
            excused.update(dict.fromkeys(late, burst))
            meter = LoadMeter()
            waited_ms = 0.0
            last_asked = late
            calls = self._ask_remote(pool, late)
            answers.update({slot: call.result() for slot, call in calls.items()})
        return answers

    def _quickest(self, slots: Sequence[int], answers: Mapping[int, Reply]) -> dict[str, float]:
        """The latency of each server's quickest snake, because a server is late if all of its
        snakes are.
        """
        latencies = dict[str, float]()
        for slot in slots:
            server = urlsplit(self._remote[slot].url).netloc
            latencies[server] = min(answers[slot].latency_ms, latencies.get(server, math.inf))
        return latencies

    def request(self, slot: int) -> dict[str, Any]:
        """Return the request that a slot gets for the current board. A dead snake appears as it was
        when it died.
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

    def _tell(self, pool: ThreadPoolExecutor, event: str, *, turn: int) -> None:
        calls = [
            pool.submit(snake.tell, event, {**self.request(slot), "turn": turn})
            for slot, snake in self._remote.items()
        ]
        wait_for(calls)

    def _record(self, recorder: Recorder, decisions: Sequence[Decision | None]) -> None:
        board = board_from_state(self.state, 0, self.ids)
        by_id = {
            snake_id: _as_json(decision)
            for snake_id, decision in zip(self.ids, decisions, strict=True)
            if decision is not None
        }
        recorder.turn(self.request(0), decisions=by_id, dead=dead_snakes(board))

    def _result(self) -> Result:
        causes = self.state.arrays.cause[0].tolist()
        alive = [slot for slot, cause in enumerate(causes) if cause == ALIVE]
        turns = int(self.state.arrays.turn[0])
        if len(alive) != 1 or self.state.rules.solo:
            return Result(None, turns, causes, None)
        (winner,) = alive
        return Result(self.names[winner], turns, causes, winner)


def _refuse_misfits(
    num_seats: int, names: Sequence[str] | None, opening: np.ndarray | None
) -> None:
    """Raise `ConfigError` for names or an opening of another number of seats."""
    if names and len(names) != num_seats:
        raise ConfigError(
            f"{len(names)} names for {num_seats} seats; give each one, which is empty for the"
            " seat's own"
        )
    if opening is not None and len(opening) and np.shape(opening)[1:] != (num_seats,):
        raise ConfigError(
            f"the opening has shape {np.shape(opening)}; it must be (turns, {num_seats}), a move"
            " per seat"
        )


def _names(seats: Sequence[Agent | str], names: Sequence[str]) -> list[str]:
    """A name for each seat, its own where `names` has an empty one. Equal names are numbered.

    A number is left out if another seat is called so anyway."""
    plain = []
    for seat, name in zip(seats, names, strict=True):
        if isinstance(seat, str):
            # All snakes of a game read the names, and a recording keeps them.
            plain.append(name or without_secrets(seat))
        else:
            plain.append(name or seat.name)
    taken = {name for name in plain if plain.count(name) == 1}
    unique = []
    for name in plain:
        if plain.count(name) > 1:
            candidates = (f"{name} {number}" for number in count(1))
            name = next(candidate for candidate in candidates if candidate not in taken)
            taken.add(name)
        unique.append(name)
    return unique


def _as_json(decision: Decision) -> dict[str, Any]:
    data: dict[str, Any] = {"move": MOVE_NAMES[decision.move]}
    # Agents of a user's own may answer with NumPy's numbers, or with NaN, which JSON doesn't have.
    if decision.probabilities is not None and np.isfinite(decision.probabilities).all():
        data["probabilities"] = [round(float(p), 4) for p in decision.probabilities]
    if decision.value is not None and math.isfinite(decision.value):
        data["value"] = round(float(decision.value), 4)
    return data
