"""Writes and reads recordings."""

from __future__ import annotations

import codecs
import errno
import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import TracebackType
from typing import Any

from envs.battlesnake.plain import Board, state_from_board
from envs.battlesnake.recording.arena_frames import game_and_requests, page_of
from envs.battlesnake.recording.arena_requests import LivingOnly
from envs.battlesnake.recording.bounds import MAX_KNOWN_SNAKES, check_request
from envs.battlesnake.recording.parsing import (
    game_requests_result,
    is_of_frames,
    once_per_turn,
    read_entries,
)
from envs.battlesnake.settings import Settings
from envs.battlesnake.state import CAUSE_NAMES, MOVE_NAMES, State
from envs.battlesnake.webhook import WebhookError, read_settings
from envs.common.errors import ConfigError, ProcsnakeError, reason
from envs.common.strangers.bounded import read_bytes
from envs.common.whole_files import not_through_links

EXTRAS = "procsnake"
UNKNOWN_CAUSE = "unknown"
MAX_BYTES = 1 << 27
_ALIVE = {"eliminatedCause": "", "eliminatedBy": "", "eliminatedOnTurn": 0}
_OFFSETS = {(0, 1): "up", (0, -1): "down", (-1, 0): "left", (1, 0): "right"}


class RecordingError(ProcsnakeError):
    """A recording is missing, malformed or empty, or does not hold the turn that was asked for."""


def unfinished(path: str | os.PathLike[str]) -> Path:
    """Return the path at which a recording for `path` lies while its game goes on."""
    return Path(path).with_name(Path(path).name + ".part")


@contextmanager
def _written(path: Path) -> Iterator[None]:
    """Turn missing rights, a full disk and the like into a `ConfigError` of one line."""
    try:
        yield
    except OSError as error:
        raise ConfigError(
            f"the recording {path} can't be written: {error.strerror or error}. Choose another"
            " place"
        ) from error


class Recorder:
    """Writes a recording while the game is played. It writes `<path>.part`, which `finish` renames
    to `path`.

    Use it as a context manager. If the game breaks off, the `.part` file stays, and
    `Recording.read` can still read it. Raises `ConfigError` where nothing can be written, and once
    the disk is full."""

    def __init__(self, path: str | os.PathLike[str], game: Mapping[str, Any]) -> None:
        self.path = Path(path)
        self._part = unfinished(self.path)
        with _written(self.path):
            self.path.parent.mkdir(parents=True, exist_ok=True)
            if self.path.is_dir():
                raise IsADirectoryError(errno.EISDIR, "it is a folder")
            # Without a buffer, which a full disk would keep from being closed.
            self._file = open(self._part, "wb", buffering=0, opener=not_through_links)  # noqa: SIM115
        self._buried: set[str] = set()
        try:
            self._write(game)
        except ConfigError:
            self._file.close()
            raise

    def turn(
        self,
        request: Mapping[str, Any],
        *,
        decisions: Mapping[str, Mapping[str, Any]] | None = None,
        dead: Sequence[Mapping[str, Any]] = (),
    ) -> None:
        """Add one board.

        `request` is the move request (`webhook.move_request`), `decisions` what each snake decided
        on this board, by id. `dead` are all dead snakes of this board in the form of
        `plain.board_from_state`, whenever they died; each is written only once."""
        extras: dict[str, Any] = {"decisions": dict(decisions)} if decisions else {}
        new = [snake for snake in dead if snake["id"] not in self._buried]
        if new:
            extras["eliminated"] = new
            self._buried.update(snake["id"] for snake in new)
        self._write({**request, EXTRAS: extras} if extras else request)

    def finish(self, *, winner_id: str = "", winner_name: str = "", is_draw: bool = False) -> Path:
        """Add the result and give the file its final name, which is returned."""
        return self.close_with(
            {"winnerId": winner_id, "winnerName": winner_name, "isDraw": is_draw}
        )

    def close_with(self, result: Mapping[str, Any] | None) -> Path:
        """Do what `finish` does, for a result in the file's form; None leaves it out, as in a game
        that was cut off.
        """
        if result is not None:
            self._write(result)
        with _written(self.path):
            self._file.close()
            os.replace(self._part, self.path)
        return self.path

    def _write(self, line: Mapping[str, Any]) -> None:
        text = json.dumps(line, separators=(",", ":")).encode() + b"\n"
        with _written(self.path):
            while text:
                text = text[self._file.write(text) :]

    def __enter__(self) -> Recorder:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._file.close()


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
            raise RecordingError(
                "the recording holds no turns; was the game ended before it began?"
            )
        if not isinstance(self.game, dict):
            raise RecordingError(
                f"the recorded game is {type(self.game).__name__}; expected an object"
            )
        seen: dict[str, dict[str, Any]] = {}
        living = LivingOnly()
        for request in self.requests:
            try:
                check_request(request)
                self._boards.append(_board(living.read(request), seen))
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
        """Read a game in any of the forms in which people keep them
        (`envs.battlesnake.recording.parsing`).

        `width` and `height` are for frames that don't tell the board's size (see `from_frames`). A
        last line that a crash cut short is dropped. Raises `RecordingError` if the file is none of
        these."""
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
            raise RecordingError(f"{name} is no recording: {error}") from error
        return cls(game, requests, result)

    @classmethod
    def from_frames(
        cls, page: Mapping[str, Any], *, width: int | None = None, height: int | None = None
    ) -> Recording:
        """Import what the arena's `GET /api/games/{id}/frames` answers: {"Frames": [{"Turn",
        "Snakes", "Food", …}]}.

        Frames don't tell the board's size. Pass `width` and `height`, or merge the answer of `GET
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

        Read again, it is the same, and a game that was cut off has no result there, either.
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

        The snakes are always in the same order. Files of other programs don't tell how a snake
        died; there a dead snake keeps the last body that it had alive, and its cause is
        `UNKNOWN_CAUSE`."""
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
        snakes = [snake for snake in board["snakes"] if snake["eliminatedCause"] in CAUSE_NAMES]
        return state_from_board({**board, "snakes": snakes}, settings=self.settings)

    @property
    def settings(self) -> Settings:
        """Return the game's rules (`webhook.read_settings`). Raises `RecordingError` for a setting
        that is no number.
        """
        try:
            return replace(
                read_settings(self.game, strict=True), solo=len(self._boards[0]["snakes"]) < 2
            )
        except WebhookError as error:
            raise RecordingError(f"the recorded game can't be: {error}") from error

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

        What a snake decided isn't what it played if its answer came too late, so the heads on the
        next board count first."""
        told = {**decisions_in(self.requests[place]), **self._seen_moves(place)}
        return {
            snake: move["move"] for snake, move in told.items() if move.get("move") in MOVE_NAMES
        }

    def _seen_moves(self, place: int) -> dict[str, dict[str, Any]]:
        if place + 1 < len(self._boards):
            return moves_between(*self._boards[place : place + 2])
        return {}


def recording_files(names: Iterable[str | os.PathLike[str]]) -> list[Path]:
    """Return the files that are named, and the recordings (`*.jsonl`) in the folders that are
    named.

    Raises `ConfigError` if there is no such file or folder.
    """
    found: list[Path] = []
    for name in names:
        path = Path(name)
        if not os.path.exists(path):
            raise ConfigError(f"there is no {name}; name files or folders of recordings")
        found += sorted(path.glob("*.jsonl")) if path.is_dir() else [path]
    return found


def _board(request: Mapping[str, Any], seen: dict[str, dict[str, Any]]) -> Board:
    """The board of a request with the dead among the living. `seen`: the latest of each snake so
    far, kept up here.
    """
    board = request["board"]
    living = [_without_gaps(snake) for snake in board["snakes"] or []]
    fallen = [_without_gaps(snake) for snake in request.get(EXTRAS, {}).get("eliminated", [])]
    if alive := [snake["id"] for snake in fallen if not snake["eliminatedCause"]]:
        raise ValueError(f"{alive[0]!r} is among the eliminated snakes without an eliminatedCause")
    known = {snake["id"] for snake in [*living, *fallen]}
    for snake in seen.values():
        if snake["id"] not in known and not snake["eliminatedCause"]:
            fallen = [
                *fallen,
                {**snake, "eliminatedCause": UNKNOWN_CAUSE, "eliminatedOnTurn": request["turn"]},
            ]
    for snake in [*living, *fallen]:
        seen[snake["id"]] = {**seen.get(snake["id"], {}), **snake}
    if len(seen) > MAX_KNOWN_SNAKES:
        raise ValueError(
            f"{len(seen)} snakes so far; at most {MAX_KNOWN_SNAKES} take part in a game"
        )
    return {
        "turn": request["turn"],
        "width": board["width"],
        "height": board["height"],
        "food": board.get("food") or [],
        "hazards": board.get("hazards") or [],
        "snakes": list(seen.values()),
    }


def _without_gaps(snake: Mapping[str, Any]) -> dict[str, Any]:
    """A snake of a request without its null fields. If it tells nothing of its end, it lives."""
    return {**_ALIVE, **{name: value for name, value in snake.items() if value is not None}}


def decisions_in(request: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return what was recorded of the snakes' decisions in an entry, by id. What has another form
    is left out.
    """
    told = request.get(EXTRAS, {}).get("decisions", {})
    if isinstance(told, dict):
        return {snake: one for snake, one in told.items() if isinstance(one, dict)}
    return {}


def moves_between(before: Board, after: Board) -> dict[str, dict[str, Any]]:
    """Return the moves that the heads show as {id: {"move": name}}, for snakes that live on
    `before` and are on both boards.
    """
    heads = {snake["id"]: snake["body"][0] for snake in after["snakes"]}
    width = before["width"]
    height = before["height"]
    moves = {}
    for snake in before["snakes"]:
        if snake["eliminatedCause"] or snake["id"] not in heads:
            continue
        dx, dy = (heads[snake["id"]][axis] - snake["body"][0][axis] for axis in "xy")
        dx = _unwrap(dx, width)
        dy = _unwrap(dy, height)
        if (dx, dy) in _OFFSETS:
            moves[snake["id"]] = {"move": _OFFSETS[dx, dy]}
    return moves


def _unwrap(delta: int, side: int) -> int:
    return {side - 1: -1, 1 - side: 1}.get(delta, delta)
