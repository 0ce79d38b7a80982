"""The account's games: which there are, and how they ended for its snakes.

Arena's list leaves out the games of its ladders. The archive of the account's own server knows
them: Arena sent it their ids."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timedelta, timezone
from typing import Any

from envs.common.errors import ConfigError
from serve.ladder.client import ArenaClient
from serve.ladder.records import GameRow, Snake, kind_of

GAME_HEADS = ("began", "result", "type", "board", "game", "known from", "snakes")
ARENA_LIST = "Arena"
ARCHIVE = "archive"
BOTH = "both"
_AGO = re.compile(r"(\d{1,4})([mhd])")
_FRACTION = re.compile(r"\.\d+")
_UNITS = {"m": "minutes", "h": "hours", "d": "days"}


@dataclass(frozen=True)
class OwnGame:
    """A game with snakes of the account. `result` is "won", "lost", "draw", or "" for one that is
    played, failed or was solo.

    `source` is `ARENA_LIST`, `ARCHIVE` or `BOTH`. Arena's list calls a draw won or lost; the
    archive knows it as one."""

    row: GameRow
    mine: tuple[str, ...]
    result: str
    source: str = ARENA_LIST

    def as_json(self) -> dict[str, Any]:
        """Return the game for programs, JSON-able."""
        return {
            **asdict(self.row),
            "mine": list(self.mine),
            "result": self.result,
            "source": self.source,
        }

    def as_row(self) -> tuple[str, ...]:
        """Return the cells of the game below `GAME_HEADS`."""
        names = ", ".join(name or game_id for game_id, name in self.row.snakes)
        how = self.result or ("over" if self.row.is_over else self.row.status)
        return (
            self.row.created_at[:16],
            how,
            self.row.game_type,
            self.row.board,
            self.row.id,
            self.source,
            names,
        )


def own_games(
    client: ArenaClient,
    snakes: Sequence[Snake],
    *,
    archived: Iterable[Mapping[str, Any]] = (),
    lost: bool = False,
    since: datetime | None = None,
) -> list[OwnGame]:
    """Return the games of these snakes, newest first; with `lost` only lost ones, with `since` only
    those begun from then on.

    Arena tells a snake's last 100 games, and none of its ladders'. `archived` are games of a
    server's archive (`GameArchive.games`); Arena's among them in which one of these snakes played,
    by its name, are added. A game that any of the snakes won is won."""
    rows: dict[str, tuple[GameRow, list[Snake]]] = {}
    for snake in snakes:
        for row in client.games(snake.id):
            rows.setdefault(row.id, (row, []))[1].append(snake)
    found = {
        row.id: OwnGame(row, tuple(one.name for one in mine), _result(row, mine))
        for row, mine in rows.values()
    }
    for kept in archived:
        mine = tuple(snake.name for snake in snakes if snake.name in kept["snakes"])
        if kept["is_arena"] and not kept["is_check"] and mine:
            found[kept["id"]] = _joined(found.get(kept["id"]), kept, mine)
    wanted = [
        game
        for game in found.values()
        if (not lost or game.result == "lost") and (since is None or _when(game.row) >= since)
    ]
    return sorted(wanted, key=lambda game: _when(game.row), reverse=True)


def _joined(known: OwnGame | None, kept: Mapping[str, Any], mine: tuple[str, ...]) -> OwnGame:
    """The game of Arena's list, if it is there, with what the archive knows of it."""
    result = kept["result"] or ""
    if known is None:
        return OwnGame(_row_of(kept), mine, result, ARCHIVE)
    # Of several bodies of ours one may have won, or all have died at once.
    best = next(
        (
            one
            for one in ("won", "draw", "lost")
            if one in (result, known.result if known.source != ARENA_LIST else "")
        ),
        "",
    )
    source = ARCHIVE if known.source == ARCHIVE else BOTH
    return replace(known, result=best or known.result, source=source)


def _row_of(kept: Mapping[str, Any]) -> GameRow:
    """A game of the archive as Arena's list would tell it."""
    return GameRow(
        id=kept["id"],
        status="running" if kept["ended"] is None else "finished",
        winner="",
        snakes=tuple(("", name) for name in kept["snakes"]),
        board=f"{kept['width']}x{kept['height']}",
        game_type="snail" if kept["map"] == "snail_mode" else kind_of(kept["ruleset"]),
        created_at=datetime.fromtimestamp(kept["started"], timezone.utc).strftime(
            "%Y-%m-%dT%H:%M:%SZ"
        ),
    )


def _result(row: GameRow, mine: Sequence[Snake]) -> str:
    results = {row.result_for(snake) for snake in mine}
    return next((result for result in ("won", "draw", "lost") if result in results), "")


def _when(row: GameRow) -> datetime:
    """When a game was made; one whose time can't be read counts as new."""
    try:
        return _read(row.created_at)
    except ValueError:
        return datetime.max.replace(tzinfo=timezone.utc)


def _read(text: str) -> datetime:
    """A time in ISO 8601's form. Python 3.10 knows neither the letter Z nor nanoseconds."""
    told = datetime.fromisoformat(_FRACTION.sub("", text.strip().replace("Z", "+00:00")))
    if told.tzinfo:
        return told
    return told.replace(tzinfo=timezone.utc)


def moment(text: str) -> datetime:
    """Read a time: a date such as 2026-11-20, a date and time, or a time ago such as 90m, 12h or
    3d. UTC if it names no zone.

    Raises `ConfigError` for anything else.
    """
    if ago := _AGO.fullmatch(text.strip()):
        return datetime.now(timezone.utc) - timedelta(**{_UNITS[ago[2]]: int(ago[1])})
    try:
        return _read(text)
    except ValueError as error:
        raise ConfigError(
            f"{text!r} is no time; write 2026-11-20, 2026-11-20T18:30, or 90m, 12h or 3d ago"
        ) from error
