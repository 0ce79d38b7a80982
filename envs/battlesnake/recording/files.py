"""Reads recordings."""

from __future__ import annotations

import codecs
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from envs.battlesnake.plain import Board, state_from_board
from envs.battlesnake.plain.board import has_known_fate
from envs.battlesnake.recording.arena_frames import game_and_requests, page_of
from envs.battlesnake.recording.arena_requests import LivingOnly
from envs.battlesnake.recording.boards import BoardHistory, decisions_in, moves_between
from envs.battlesnake.recording.bounds import check_request
from envs.battlesnake.recording.parsing import (
    game_requests_result,
    is_of_frames,
    once_per_turn,
    read_entries,
)
from envs.battlesnake.recording.recorder import Recorder
from envs.battlesnake.settings import Settings
from envs.battlesnake.state import MOVE_NAMES, State
from envs.battlesnake.webhook import WebhookError, read_settings
from envs.common.errors import ConfigError, ProcsnakeError, reason
from envs.common.strangers.bounded import read_bytes

MAX_BYTES = 1 << 27


class RecordingError(ProcsnakeError):
    """A recording is missing, malformed or empty, or does not hold the turn that was asked for."""


@dataclass
class Recording:
    """A recorded game: `game` (webhook form), `requests` (one per turn, in order) and `result`
    (None if it was cut off).
    """

    game: dict[str, Any]
    requests: list[dict[str, Any]]
    result: dict[str, Any] | None = None
    undecided: list[str] = field(default_factory=list, init=False, repr=False)
    """Ids of the snakes on the first board that may be dead: Arena lists the dead, and one request
    can't always tell.
    """
    _boards: list[Board] = field(default_factory=list, init=False, repr=False)

    def __post_init__(self) -> None:
        if not self.requests:
            raise RecordingError("the recording holds no turns; did the game end before it began?")
        if not isinstance(self.game, dict):
            raise RecordingError(
                f"the recorded game is {type(self.game).__name__}; expected an object"
            )
        history = BoardHistory()
        living = LivingOnly()
        for request in self.requests:
            try:
                check_request(request)
                self._boards.append(history.board_of(living.read(request)))
                if len(self._boards) == 1:
                    self.undecided = living.undecided
            except (KeyError, TypeError, AttributeError, ValueError) as error:
                what = f"{type(error).__name__} {error}"
                raise RecordingError(
                    f"entry {len(self._boards)} is not a move request: {what}"
                ) from error

    @classmethod
    def read(
        cls, path: str | os.PathLike[str], *, width: int | None = None, height: int | None = None
    ) -> Recording:
        """Read a game in any form of `envs.battlesnake.recording.parsing`.

        `width` and `height` are for frames without the board's size (see `from_frames`). A last
        line that a crash cut short is dropped. Raises `RecordingError` for any other file."""
        try:
            # A character that a crash cut in two is left out. Its line is dropped anyway.
            text, _ = codecs.utf_8_decode(read_bytes(Path(path), MAX_BYTES))
        except (OSError, ValueError) as error:
            raise RecordingError(f"cannot read recording {path}: {reason(error)}") from error
        return cls.parse(text, str(path), width=width, height=height)

    @classmethod
    def parse(
        cls, text: str, name: str, *, width: int | None = None, height: int | None = None
    ) -> Recording:
        """Read a recording's text as `read` does. Errors call it `name`."""
        try:
            entries = read_entries(text)
            if is_of_frames(entries):
                return cls.from_frames(page_of(entries), width=width, height=height)
            game, requests, result = game_requests_result(entries)
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            raise RecordingError(f"{name} is not a recording: {error}") from error
        return cls(game, requests, result)

    @classmethod
    def from_frames(
        cls, page: Mapping[str, Any], *, width: int | None = None, height: int | None = None
    ) -> Recording:
        """Import what the arena's `GET /api/games/{id}/frames` answers: {"Frames": [{"Turn",
        "Snakes", "Food", …}]}.

        Frames lack the board's size. Pass `width` and `height`, or merge the answer of `GET
        /games/{id}` into the page, so that `page["Game"]` has them. To join several pages, join
        their `Frames`."""
        try:
            game, requests = game_and_requests(page, width, height)
            return cls(game, list(once_per_turn(requests)))
        except (
            KeyError,
            TypeError,
            AttributeError,
            ValueError,
            IndexError,
            OverflowError,
        ) as error:
            raise RecordingError(
                f"malformed arena frames: {type(error).__name__} {error}"
            ) from error

    def write(self, path: str | os.PathLike[str]) -> Path:
        """Write the recording to `path`, which is returned. The file appears whole or not at all.
        `read` returns an equal recording; a game that was cut off has no result.
        """
        with Recorder(path, self.game) as recorder:
            for request in self.requests:
                recorder.turn(request)
            return recorder.close_with(self.result)

    @property
    def turns(self) -> list[int]:
        """Return the turn numbers that were recorded, in order."""
        return [int(board["turn"]) for board in self._boards]

    def boards(self) -> list[Board]:
        """Return one board dict per turn (`envs.battlesnake.plain`). Its snakes also have `name`
        and `customizations`.

        The snakes are always in the same order. Files of other programs don't say how a snake died;
        then a dead snake keeps its last living body, with the cause `UNKNOWN_CAUSE`."""
        return list(self._boards)

    def board(self, turn: int) -> Board:
        """Return the board dict of one turn. Raises `RecordingError` if it was not recorded."""
        turns = self.turns
        if turn not in turns:
            raise RecordingError(
                f"turn {turn} is not in this recording, which runs from {turns[0]} to {turns[-1]}"
            )
        return self._boards[turns.index(turn)]

    def state(self, turn: int) -> State:
        """Return the position of one turn as a `State` of one board, under the game's settings.

        Slots follow the order of `board(turn)["snakes"]`. Snakes whose cause of death isn't known
        are left out."""
        board = self.board(turn)
        snakes = [snake for snake in board["snakes"] if has_known_fate(snake)]
        return state_from_board({**board, "snakes": snakes}, settings=self.settings)

    @property
    def settings(self) -> Settings:
        """Return the game's rules (`webhook.read_settings`). Raises `RecordingError` for a setting
        that is not a number.
        """
        try:
            return replace(
                read_settings(self.game, strict=True), solo=len(self._boards[0]["snakes"]) < 2
            )
        except WebhookError as error:
            raise RecordingError(f"the recorded game is impossible: {error}") from error

    def decisions(self, turn: int) -> dict[str, dict[str, Any]]:
        """Return what the snakes decided on the board of a turn, by id.

        Where no decision was recorded, its `move` is read off the next board.
        """
        return self.decisions_at(self.turns.index(self.board(turn)["turn"]))

    def decisions_at(self, place: int) -> dict[str, dict[str, Any]]:
        """Return what `decisions` does, on `boards()[place]`."""
        return {**self._seen_moves(place), **decisions_in(self.requests[place])}

    def moves_played(self, place: int) -> dict[str, str]:
        """Return by id the names of the moves that the living snakes played on `boards()[place]`,
        as far as they are known.

        A decision wasn't played if the answer came too late, so the heads on the next board take
        precedence."""
        decisions = {**decisions_in(self.requests[place]), **self._seen_moves(place)}
        return {
            snake: decision["move"]
            for snake, decision in decisions.items()
            if decision.get("move") in MOVE_NAMES
        }

    def _seen_moves(self, place: int) -> dict[str, dict[str, Any]]:
        if place + 1 < len(self._boards):
            return moves_between(*self._boards[place : place + 2])
        return {}


def recording_files(names: Iterable[str | os.PathLike[str]]) -> list[Path]:
    """Return the named files, and the recordings (`*.jsonl`) in the named folders.

    Raises `ConfigError` if there is no such file or folder.
    """
    files: list[Path] = []
    for name in names:
        path = Path(name)
        if not os.path.exists(path):
            raise ConfigError(f"there is no {name}; name files or folders of recordings")
        if path.is_dir():
            files += sorted(path.glob("*.jsonl"))
        else:
            files.append(path)
    return files
