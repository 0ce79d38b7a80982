"""The account's games: which there are, and how they ended for its snakes."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta, timezone
from typing import Any

from envs.common.errors import ConfigError
from serve.ladder.client import ArenaClient
from serve.ladder.records import GameRow, Snake

GAME_HEADS = ("began", "result", "type", "board", "game", "snakes")
_AGO = re.compile(r"(\d{1,4})([mhd])")
_FRACTION = re.compile(r"\.\d+")
_UNITS = {"m": "minutes", "h": "hours", "d": "days"}


@dataclass(frozen=True)
class OwnGame:
    """A game with snakes of the account. `result` is "won", "lost", "draw", or "" for one that is played or was solo."""

    row: GameRow
    mine: tuple[str, ...]
    result: str

    def as_json(self) -> dict[str, Any]:
        """Return the game for programs, JSON-able."""
        return {**asdict(self.row), "mine": list(self.mine), "result": self.result}

    def as_row(self) -> tuple[str, ...]:
        """Return the cells of the game below `GAME_HEADS`."""
        names = ", ".join(name or game_id for game_id, name in self.row.snakes)
        how = self.result or ("over" if self.row.is_over else self.row.status)
        return self.row.created_at[:16], how, self.row.game_type, self.row.board, self.row.id, names


def own_games(
    client: ArenaClient, snakes: Sequence[Snake], *, lost: bool = False, since: datetime | None = None
) -> list[OwnGame]:
    """Return the games of these snakes, newest first; with `lost` only lost ones, with `since` only those begun from then on.

    Arena tells a snake's last 100 games. A game that any of the snakes won is won.
    """
    rows: dict[str, tuple[GameRow, list[Snake]]] = {}
    for snake in snakes:
        for row in client.games(snake.id):
            rows.setdefault(row.id, (row, []))[1].append(snake)
    found = [OwnGame(row, tuple(one.name for one in mine), _result(row, mine)) for row, mine in rows.values()]
    wanted = [game for game in found if (not lost or game.result == "lost") and (since is None or _when(game.row) >= since)]
    return sorted(wanted, key=lambda game: game.row.created_at, reverse=True)


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
    return told if told.tzinfo else told.replace(tzinfo=timezone.utc)


def moment(text: str) -> datetime:
    """Read a time: a date such as 2026-11-20, a date and time, or a time ago such as 90m, 12h or 3d. UTC if it names no zone.

    Raises `ConfigError` for anything else.
    """
    if ago := _AGO.fullmatch(text.strip()):
        return datetime.now(timezone.utc) - timedelta(**{_UNITS[ago[2]]: int(ago[1])})
    try:
        return _read(text)
    except ValueError as error:
        raise ConfigError(f"{text!r} is no time; write 2026-11-20, 2026-11-20T18:30, or 90m, 12h or 3d ago") from error
