"""Shows a game refereed in this process in the viewer: every board, every death, and all agents'
thoughts.
"""

from __future__ import annotations

import os
import threading
import time
from collections import Counter
from collections.abc import Generator
from dataclasses import dataclass
from typing import Any

from agents.agent import Decision
from agents.measure.evaluation.referee import Frame, Referee
from envs.battlesnake.plain import board_from_state, is_dead
from envs.battlesnake.plain.board import end_of
from envs.battlesnake.recording import Recording, unfinished
from envs.battlesnake.state import ALIVE, CAUSE_NAMES, MOVE_NAMES
from serve.archive.outcome import DRAW, LOST, WON, percentiles
from serve.archive.rows import json_able, numbers_by_move

SNAKE = "match"
"""The name under which the game is found. `you` says whose turns are shown."""


@dataclass(frozen=True)
class _Answer:
    """The answer of one slot on one board: its decision, its time, and why a request failed."""

    decision: Decision | None
    latency_ms: float | None
    failure: str | None


class HostedGame:
    """Has the viewer's interface to a `GameArchive`, for the one game of a `Referee` in this
    process.

    `play` plays the game; other threads may watch in the meantime. `recording` is the file to which
    the referee writes the game. A board is shown once its moves are known, and the last board at
    the end."""

    def __init__(self, referee: Referee, recording: str | os.PathLike[str]) -> None:
        self._referee = referee
        self._recording = recording
        self._lock = threading.Lock()
        self._boards: list[dict[str, Any]] = []
        self._answers: list[list[_Answer]] = []
        self._dead: set[str] = set()
        self._started = time.time()
        self._ended: float | None = None
        self._default = next(
            (slot for slot, seat in enumerate(referee.seats) if not isinstance(seat, str)), 0
        )

    @property
    def path(self) -> str:
        """The path of the game's page."""
        return f"/watch/{self._referee.game['id']}/{SNAKE}"

    def play(self) -> Generator[Frame, None, None]:
        """Play to the end. Yields what `Referee.play` yields."""
        for frame in self._referee.play():
            with self._lock:
                self._keep(frame)
            yield frame
        self._ended = time.time()

    def recall(self, earlier: HostedGame) -> None:
        """Copy the decisions from the same turns of another game, because an opening has moves but
        no thoughts.
        """
        with self._lock:
            self._answers[:] = earlier._answers[: len(self._answers)]

    def games(
        self, *, live: bool | None = None, limit: int = 50, offset: int = 0
    ) -> list[dict[str, Any]]:
        """Return the game, if it matches the filter (`GameArchive.games`)."""
        has_begun = bool(self._boards)
        is_live = self._ended is None
        if has_begun and live in (None, is_live):
            return [self._entry(self._default)][offset:limit]
        return []

    def bodies(self, game_id: str) -> list[dict[str, Any]]:
        """Return the game as each snake saw it (`GameArchive.bodies`)."""
        slots = sorted(range(len(self._referee.ids)), key=lambda slot: slot != self._default)
        if self._is_this_game(game_id, SNAKE):
            return [self._entry(slot) for slot in slots]
        return []

    def game(self, game_id: str, snake: str, you: str | None = None) -> dict[str, Any] | None:
        """Return the game (`GameArchive.game`), of which everything is known."""
        if self._is_this_game(game_id, snake) and you in (None, *self._referee.ids):
            return self._entry(self._slot(you))
        return None

    def turns(
        self,
        game_id: str,
        snake: str,
        *,
        since: int = 0,
        you: str | None = None,
        limit: int | None = None,
    ) -> list[dict[str, Any]]:
        """Return the turns so far (`GameArchive.turns`), each with `failure` (why the snake's
        request failed, or None).
        """
        if self.game(game_id, snake, you) is None:
            return []
        with self._lock:
            count = len(self._boards) if self._ended else len(self._answers)
            numbers = range(min(since, count), count)[:limit]
            return [self._turn(number, self._slot(you)) for number in numbers]

    def statistics(self) -> dict[str, Any]:
        """Return the figures of this one game (`GameArchive.statistics`)."""
        game = self._entry(self._default)
        counted = Counter([game["result"]])
        causes = {game["cause"]: 1} if game["cause"] else {}
        return {
            "games": 1,
            "live": int(game["ended"] is None),
            "checks": 0,
            **{result: counted[result] for result in (WON, LOST, DRAW)},
            "timeouts": game["timeouts"],
            "errors": game["errors"],
            "causes": causes,
            "snakes": {SNAKE: 1},
            **{percentile: game[percentile] for percentile in ("p50", "p95", "p99")},
        }

    def recording(self, game_id: str, snake: str, you: str | None = None) -> Recording | None:
        """Return what the referee has written so far, as a recording."""
        if self.game(game_id, snake, you) is None or not self._answers:
            return None
        # A file of that name may be an earlier game's while this one goes on.
        growing = unfinished(self._recording)
        if growing.is_file():
            return Recording.read(growing)
        return Recording.read(self._recording)

    def _is_this_game(self, game_id: str, snake: str) -> bool:
        return bool(self._boards) and (game_id, snake) == (self._referee.game["id"], SNAKE)

    def _slot(self, you: str | None) -> int:
        if you is None:
            return self._default
        return self._referee.ids.index(you)

    def _keep(self, frame: Frame) -> None:
        """A frame is a board, and what was decided on the one before."""
        if self._boards:
            slots = range(len(frame.decisions))
            answers = zip(
                frame.decisions, frame.latencies_ms, map(frame.failures.get, slots), strict=True
            )
            self._answers.append([_Answer(*answer) for answer in answers])
        snakes = board_from_state(frame.state, 0, self._referee.ids)["snakes"]
        dead = [snake for snake in snakes if is_dead(snake) and snake["id"] not in self._dead]
        self._dead.update(snake["id"] for snake in dead)
        request = self._referee.request(0)
        self._boards.append(
            {
                "turn": request["turn"],
                "board": request["board"],
                "eliminated": list(map(end_of, dead)),
            }
        )

    def _turn(self, number: int, slot: int) -> dict[str, Any]:
        answer = _Answer(None, None, None)
        if number < len(self._answers):
            answer = self._answers[number][slot]
        latency_ms = round(answer.latency_ms, 3) if answer.latency_ms is not None else None
        return {
            **self._boards[number],
            "you": self._referee.ids[slot],
            **_decision_in_json(answer.decision),
            "fallback": None,
            "failure": answer.failure,
            "latency_ms": latency_ms,
        }

    def _entry(self, slot: int) -> dict[str, Any]:
        referee = self._referee
        ended = self._ended
        latencies = [answers[slot].latency_ms for answers in list(self._answers)]
        timeouts = [ms for ms in latencies if ms is not None and ms >= referee.game["timeout"]]
        result = self._result(slot) if ended else None
        cause = None
        if ended and referee.result:
            cause = CAUSE_NAMES[referee.result.causes[slot]] or None
        return {
            "id": referee.game["id"],
            "snake": SNAKE,
            "you": referee.ids[slot],
            "ruleset": referee.game["ruleset"]["name"],
            "map": referee.game["map"],
            "width": referee.state.width,
            "height": referee.state.height,
            "snakes": referee.names,
            "started": self._started,
            "ended": ended,
            "is_check": False,
            "is_arena": False,
            "turns": len(self._boards) - 1,
            "result": result,
            "cause": cause,
            "timeouts": len(timeouts),
            "errors": len(referee.failures.get(slot, [])),
            **percentiles(latencies),
            "game": referee.game,
            "bodies": [{"snake": SNAKE, "you": you} for you in referee.ids],
            "is_end_known": ended is not None,
            "is_whole": True,
        }

    def _result(self, slot: int) -> str | None:
        """How the game ended for a slot; None for a solo game and for one that was broken off."""
        if self._referee.result is None:
            return None
        causes = self._referee.result.causes
        if len(causes) < 2:
            return None
        alive = causes.count(ALIVE)
        if causes[slot] == ALIVE and alive == 1:
            return WON
        if causes[slot] == ALIVE:
            return DRAW
        death_turns = self._referee.state.arrays.death_turn[0]
        if not alive and death_turns[slot] == death_turns.max():
            return DRAW
        return LOST


def _decision_in_json(decision: Decision | None) -> dict[str, Any]:
    """A decision as a turn shows it; all parts are empty for a snake that wasn't asked."""
    if decision is None:
        return {"move": None, "probabilities": None, "values": None, "value": None, "note": {}}
    return {
        "move": MOVE_NAMES[decision.move],
        "probabilities": numbers_by_move(decision.probabilities),
        "values": numbers_by_move(decision.note.get("values")),
        "value": json_able(decision.value),
        "note": json_able(decision.note),
    }
