"""The account's games, and how they ended for its snakes.

Arena's list leaves out ladder games. The archive of the account's own server has them, because
Arena sent it their ids."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timedelta, timezone
from typing import Any

from envs.common.errors import ConfigError
from serve.ladder.client import ArenaClient
from serve.ladder.download import is_game_id
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
    running, failed or was solo.

    `source` is `ARENA_LIST`, `ARCHIVE` or `BOTH`. Arena's list shows a draw as won or lost; the
    archive as a draw."""

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
        state = "over" if self.row.is_over else self.row.status
        return (
            self.row.created_at[:16],
            self.result or state,
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

    Arena lists a snake's last 100 games, without ladder games. `archived` are games of a server's
    archive (`GameArchive.games`), of which Arena's games with one of these snakes, by name, are
    added. A game counts as won if any of the snakes won it."""
    games = _games_in_list(client, snakes)
    for entry in archived:
        mine = tuple(snake.name for snake in snakes if snake.name in entry["snakes"])
        # Anybody can send a game that calls itself Arena's.
        is_arena = entry["is_arena"] and is_game_id(entry["id"])
        if is_arena and not entry["is_check"] and mine:
            games[entry["id"]] = _joined(games.get(entry["id"]), entry, mine)
    selected = list(games.values())
    if lost:
        selected = [game for game in selected if game.result == "lost"]
    if since is not None:
        selected = [game for game in selected if _when(game.row) >= since]
    return sorted(selected, key=lambda game: _when(game.row), reverse=True)


def _games_in_list(client: ArenaClient, snakes: Sequence[Snake]) -> dict[str, OwnGame]:
    """The games that Arena lists for these snakes, by id."""
    rows: dict[str, GameRow] = {}
    snakes_in: dict[str, list[Snake]] = {}
    for snake in snakes:
        for row in client.games(snake.id):
            rows.setdefault(row.id, row)
            snakes_in.setdefault(row.id, []).append(snake)
    return {game_id: _own_game(row, snakes_in[game_id]) for game_id, row in rows.items()}


def _own_game(row: GameRow, mine: Sequence[Snake]) -> OwnGame:
    result = _best({row.result_for(snake) for snake in mine})
    return OwnGame(row, tuple(snake.name for snake in mine), result)


def _joined(game: OwnGame | None, entry: Mapping[str, Any], mine: tuple[str, ...]) -> OwnGame:
    """A game that is in an archive, as `entry`; `game` is what is known of it already, if it is."""
    result = entry["result"] or ""
    if game is None:
        return OwnGame(_row_of(entry), mine, result, ARCHIVE)
    if game.source == ARENA_LIST:
        # The archive knows better than Arena's list, which calls a draw won or lost.
        return replace(game, result=result or game.result, source=BOTH)
    # Another body of ours in the same game: one may have won, or all have died at once.
    return replace(game, result=_best({result, game.result}))


def _row_of(entry: Mapping[str, Any]) -> GameRow:
    """A game of the archive as Arena's list would have it."""
    if entry["map"] == "snail_mode":
        game_type = "snail"
    else:
        game_type = kind_of(entry["ruleset"])
    began = datetime.fromtimestamp(entry["started"], timezone.utc)
    return GameRow(
        id=entry["id"],
        status="running" if entry["ended"] is None else "finished",
        winner="",
        snakes=tuple(("", name) for name in entry["snakes"]),
        board=f"{entry['width']}x{entry['height']}",
        game_type=game_type,
        created_at=began.strftime("%Y-%m-%dT%H:%M:%SZ"),
    )


def _best(results: Collection[str]) -> str:
    """The best of some results; "" if none of them is one."""
    return next((result for result in ("won", "draw", "lost") if result in results), "")


def _when(row: GameRow) -> datetime:
    """When a game was made; one whose time can't be read counts as new."""
    try:
        return _read(row.created_at)
    except ValueError:
        return datetime.max.replace(tzinfo=timezone.utc)


def _read(text: str) -> datetime:
    """A time in ISO 8601's form. Python 3.10 knows neither the letter Z nor nanoseconds."""
    time = datetime.fromisoformat(_FRACTION.sub("", text.strip().replace("Z", "+00:00")))
    if time.tzinfo:
        return time
    return time.replace(tzinfo=timezone.utc)


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
            f"{text!r} is not a time; write 2026-11-20, 2026-11-20T18:30, or 90m, 12h or 3d ago"
        ) from error
