"""A recording in the viewer's form: its boards, the decisions on them, and how it ended for each
snake.

A recording may be untrusted. Of the data that `Recording` doesn't check, only known entries of
known types are passed on."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Iterable, Mapping
from typing import Any

from agents.measure.analysis.snake_game import name_of, result_of
from agents.opened_recording import doubts_of
from envs.battlesnake.plain import Board, Death, dead_snakes, living_snakes
from envs.battlesnake.plain.board import end_of
from envs.battlesnake.recording import Recording
from envs.battlesnake.state import MOVE_NAMES
from envs.battlesnake.webhook import DEFAULT_TIMEOUT_MS, game_object
from envs.common.errors import ConfigError
from serve.archive.outcome import percentiles
from serve.archive.rows import MAX_NOTE_BYTES, clean, json_able, numbers_by_move

SNAKE = "recording"
"""The name under which every opened game is found. `you` says whose turns are shown."""
MAX_TURNS = 5000
"""The most turns of a game that is opened. Arena ends games there, and official ones end long
before.
"""
_LARGEST = 1e15
"""Numbers from here on aren't shown."""
_NOTHING = dict.fromkeys(
    ("move", "probabilities", "values", "value", "fallback", "failure", "latency_ms")
)


class OpenedGame:
    """A recording that the viewer shows. `id` is a hash of its content, so the same file twice is
    one game.

    Raises `ConfigError` for games without snakes or of more than `MAX_TURNS` turns, and
    `RecordingError` for settings that can't be read."""

    def __init__(self, recording: Recording, name: str) -> None:
        self.recording = recording
        self.name = name
        self._boards = recording.boards()
        self._settings = recording.settings
        turns = len(self._boards) - 1
        if turns > MAX_TURNS:
            raise ConfigError(f"the game has {turns} turns; at most {MAX_TURNS} are shown")
        if not self._boards[0]["snakes"]:
            raise ConfigError("the game has no snakes on its first board")
        content = json.dumps([recording.game, recording.requests, recording.result])
        self.id = hashlib.sha256(content.encode()).hexdigest()[:16]
        self.snakes = [
            (str(snake["id"]), clean(name_of(snake))) for snake in self._boards[0]["snakes"]
        ]
        self._opened = time.time()
        you = recording.requests[0].get("you")
        self.default = next(
            (one for one, _ in self.snakes if isinstance(you, dict) and one == you.get("id")),
            self.snakes[0][0],
        )
        self._decisions = [recording.decisions_at(n) for n in range(len(self._boards))]
        self._doubts = doubts_of(recording)

    @property
    def path(self) -> str:
        """The path of the game's page."""
        return f"/watch/{self.id}/{SNAKE}"

    @property
    def last_turn(self) -> int:
        """The number of the last turn."""
        return int(self._boards[-1]["turn"])

    def entry(self, you: str | None = None) -> dict[str, Any] | None:
        """Return the game as one snake saw it (`GameArchive.game`), with the address of its
        analysis and reasons to doubt its file.

        None for an unknown snake.
        """
        if you is None:
            you = self.default
        if you not in dict(self.snakes):
            return None
        board = self._boards[-1]
        settings = self._settings
        death = Death.of(next(snake for snake in board["snakes"] if snake["id"] == you))
        result = result_of(self.recording, you)
        timeout = self.recording.game.get("timeout")
        if type(timeout) is not int:
            timeout = DEFAULT_TIMEOUT_MS
        latencies = [decisions.get(you, {}).get("latency_ms") for decisions in self._decisions]
        return {
            "id": self.id,
            "snake": SNAKE,
            "you": you,
            "ruleset": settings.ruleset,
            "map": settings.map,
            "width": board["width"],
            "height": board["height"],
            "snakes": [name for _, name in self.snakes],
            "started": self._opened,
            "ended": self._opened,
            "is_check": False,
            "is_arena": False,
            "turns": self.last_turn,
            "result": result or None,
            "cause": clean(death.cause) if death is not None else None,
            "timeouts": 0,
            "errors": 0,
            **percentiles(list(map(_number, latencies))),
            "game": game_object(settings, self.id, timeout_ms=timeout),
            "bodies": [{"snake": SNAKE, "you": one} for one, _ in self.snakes],
            "is_end_known": bool(result) or death is not None,
            "is_whole": True,
            "doubts": self._doubts,
            "analysis": f"/api/analyses/{self.id}",
        }

    def turns(self, you: str, since: int, limit: int | None = None) -> list[dict[str, Any]]:
        """Return the turns from number `since` on, as one snake saw them (`GameArchive.turns`)."""
        places = [n for n, board in enumerate(self._boards) if board["turn"] >= since]
        return [self._turn(n, you) for n in places[:limit]]

    def _turn(self, place: int, you: str) -> dict[str, Any]:
        board = self._boards[place]
        fallen = dead_snakes(board)
        if place:
            were_alive = {snake["id"] for snake in living_snakes(self._boards[place - 1])}
            fallen = [snake for snake in fallen if snake["id"] in were_alive]
        return {
            "turn": board["turn"],
            "board": _board_in_json(board),
            "eliminated": list(map(_fate, fallen)),
            "you": you,
            **_decision_in_json(self._decisions[place].get(you, {})),
        }


def _fate(snake: Mapping[str, Any]) -> dict[str, Any]:
    """How a snake died."""
    return {**json_able(end_of(snake)), "id": snake["id"]}


def _board_in_json(board: Board) -> dict[str, Any]:
    """A board in the webhook's form: the living snakes only, with what the pages show of them."""
    return {
        "width": board["width"],
        "height": board["height"],
        "food": _points(board["food"]),
        "hazards": _points(board["hazards"]),
        "snakes": list(map(_snake, living_snakes(board))),
    }


def _points(points: Iterable[Mapping[str, Any]]) -> list[dict[str, int]]:
    return [{"x": point["x"], "y": point["y"]} for point in points]


def _snake(snake: Mapping[str, Any]) -> dict[str, Any]:
    body = _points(snake["body"])
    look = snake.get("customizations")
    parts = {}
    if isinstance(look, dict):
        parts = {part: clean(look.get(part)) for part in ("color", "head", "tail")}
    health = snake.get("health")
    if type(health) is not int or not 0 <= health <= 100:
        health = 0
    return {
        "id": snake["id"],
        "name": clean(snake.get("name")),
        "health": health,
        "latency": clean(snake.get("latency")),
        "body": body,
        "head": body[0],
        "customizations": parts,
    }


def _decision_in_json(decision: Mapping[str, Any]) -> dict[str, Any]:
    """What the page shows of a decision. A stranger's file may have no known move there, or values
    that can't be shown.
    """
    move = decision.get("move")
    if move not in MOVE_NAMES:
        return {**_NOTHING, "note": {}}
    try:
        note = json_able(decision.get("note"))
        if not isinstance(note, dict) or len(json.dumps(note)) > MAX_NOTE_BYTES:
            note = {}
        probabilities = numbers_by_move(decision.get("probabilities"))
        values = numbers_by_move(decision.get("values")) or numbers_by_move(note.get("values"))
    except (RecursionError, OverflowError):
        return {**_NOTHING, "move": move, "note": {}}
    return {
        **_NOTHING,
        "move": move,
        "probabilities": probabilities,
        "values": values,
        "value": _number(decision.get("value")),
        "latency_ms": _number(decision.get("latency_ms")),
        "note": note,
    }


def _number(value: Any) -> float | None:
    """The value if it is a number of a size that pages can show; otherwise None, NaN included."""
    if isinstance(value, int | float) and abs(value) < _LARGEST:
        return float(value)
    return None
