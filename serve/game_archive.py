"""Reading the games that a server has kept: for the viewer, for people, for training."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from envs.battlesnake.recording import EXTRAS, Recording
from envs.battlesnake.state import MOVE_NAMES
from envs.errors import ProcsnakeError
from serve.game_outcome import DRAW, LOST, WON, percentiles
from serve.game_rows import unpack
from serve.game_tables import GAMES, TURNS, Database, summary

DEFAULT_URL = "sqlite:///games.db"
_RECENT_TURNS, _PAGE = 10_000, 100


class GamesUnavailableError(ProcsnakeError):
    """The database of games can't be read just now, or there is none."""


class GameArchive:
    """The games in a database: `sqlite:///FILE`, or `postgresql://…` as `DATABASE_URL` has it.

    A game is known by its id, the snake of ours that played it and, only where that one plays several bodies in one game, by
    `you`, the body's id. Raises `ConfigError` for a URL of another kind; what reads raises `GamesUnavailableError` if the
    database can't be read.
    """

    def __init__(self, url: str = DEFAULT_URL) -> None:
        self._database = Database(url)

    def close(self) -> None:
        """Close the database."""
        self._database.close()

    @property
    def exists(self) -> bool:
        """Whether there is such a database; True for one that isn't a file."""
        return self._database.file is None or self._database.file.is_file()

    def games(self, *, live: bool | None = None, limit: int = 50, offset: int = 0) -> list[dict[str, Any]]:
        """Games, the last seen first: all, those being played (`live=True`) or those over (`live=False`).

        Each: `id`, `snake`, `you`, `ruleset`, `map`, `width`, `height`, `snakes` (names at the start), `started`, `ended`
        (seconds since 1970; None while it is played), `turns` (the last turn's number), `result` ("won", "lost", "draw", None),
        `cause` (of our death, as far as the rules tell), `timeouts` (answers the engine didn't play), `errors` (answers the
        watchdog gave), `p50`, `p95`, `p99` (milliseconds).
        """
        query = sa.select(GAMES).order_by(GAMES.c.seen.desc(), GAMES.c.number.desc()).limit(limit).offset(offset)
        if live is not None:
            query = query.where(GAMES.c.ended.is_(None) if live else GAMES.c.ended.is_not(None))
        with self._reading() as connection:
            return [_shown(connection, row._mapping) for row in connection.execute(query).all()]

    def every_game(self, *, live: bool | None = None) -> Iterator[dict[str, Any]]:
        """All of `games`, page by page."""
        offset = 0
        while page := self.games(live=live, limit=_PAGE, offset=offset):
            yield from page
            offset += len(page)

    def game(self, game_id: str, snake: str, you: str | None = None) -> dict[str, Any] | None:
        """One game as `games` has it, with the webhook's `game` object as `game`; None if it isn't known."""
        with self._reading() as connection:
            row = self._find(connection, game_id, snake, you)
            return None if row is None else {**_shown(connection, row), "game": json.loads(row["game"])}

    def turns(self, game_id: str, snake: str, *, since: int = 0, you: str | None = None) -> list[dict[str, Any]]:
        """The turns from number `since` on, in order; none for a game that isn't known.

        Each: `turn`, `board` (webhook form: width, height, food, hazards, snakes; the living alone), `you` (id), `move` ("up",
        "down", "left", "right"), `probabilities` and `values` (4, in that order, or None), `value` (or None), `note`,
        `fallback` (why the watchdog answered, or None), `latency_ms`. The board of `/end` comes last, with `move` None.
        """
        with self._reading() as connection:
            game = self._find(connection, game_id, snake, you)
            if game is None:
                return []
            query = sa.select(TURNS).where(TURNS.c.number == game["number"], TURNS.c.turn >= since).order_by(TURNS.c.turn)
            turns = [_shown_turn(row._mapping, game["you"]) for row in connection.execute(query)]
            return turns + _last_board(game, max(since, turns[-1]["turn"] + 1 if turns else 0))

    def statistics(self) -> dict[str, Any]:
        """Of all games kept: `games`, `live`, `won`, `lost`, `draw`, `timeouts`, `errors`, `causes` ({cause: deaths}), `snakes`
        ({snake: games}) and `p50`, `p95`, `p99` in milliseconds over the last 10 000 turns written."""
        count = sa.func.count()
        with self._reading() as connection:

            def counted(column: sa.ColumnElement[Any]) -> dict[str, int]:
                found = connection.execute(sa.select(column, count).where(column.is_not(None)).group_by(column))
                return dict(map(tuple, found))

            sums = (sa.func.coalesce(sa.func.sum(GAMES.c[name]), 0) for name in ("timeouts", "errors"))
            games, over, timeouts, errors = connection.execute(sa.select(count, sa.func.count(GAMES.c.ended), *sums)).one()
            recent = sa.select(TURNS.c.latency_ms).order_by(TURNS.c.number.desc(), TURNS.c.turn.desc()).limit(_RECENT_TURNS)
            results = counted(GAMES.c.result)
            return {
                "games": games,
                "live": games - over,
                **{result: results.get(result, 0) for result in (WON, LOST, DRAW)},
                "timeouts": timeouts,
                "errors": errors,
                "causes": counted(GAMES.c.cause),
                "snakes": counted(GAMES.c.snake),
                **percentiles(list(connection.scalars(recent))),
            }

    def recording(self, game_id: str, snake: str, you: str | None = None) -> Recording | None:
        """A game as a recording (`envs.battlesnake.recording`); None if it isn't known or has no turns."""
        game, turns = self.game(game_id, snake, you), self.turns(game_id, snake, you=you)
        if game is None or not turns:
            return None
        requests = [_request(game, turn, turns[0]) for turn in turns]
        return Recording(game["game"], requests, _ending(game, turns[-1]))

    def export(self, directory: str | os.PathLike[str], *, snake: str | None = None) -> Iterator[Path]:
        """Write every game that is over to `directory`, one recording each; gives the paths as it goes."""
        for game in self.every_game(live=False):
            if snake in (None, game["snake"]):
                recording = self.recording(game["id"], game["snake"], game["you"])
                if recording is not None:
                    yield recording.write(Path(directory, _file_name(game)))

    @contextmanager
    def _reading(self) -> Iterator[sa.Connection]:
        try:
            with self._database.reading() as connection:
                yield connection
        except (sa.exc.SQLAlchemyError, OSError) as error:
            raise GamesUnavailableError(f"the games can't be read: {str(error).splitlines()[0]}") from error

    @staticmethod
    def _find(connection: sa.Connection, game_id: str, snake: str, you: str | None) -> Mapping[str, Any] | None:
        query = sa.select(GAMES).where(GAMES.c.game_id == game_id, GAMES.c.snake == snake).order_by(GAMES.c.you).limit(1)
        row = connection.execute(query if you is None else query.where(GAMES.c.you == you)).first()
        return None if row is None else row._mapping


def _shown(connection: sa.Connection, row: Mapping[str, Any]) -> dict[str, Any]:
    game = json.loads(row["game"])
    figures = ("turns", "result", "cause", "timeouts", "errors", "p50", "p95", "p99")
    known = row if row["ended"] is not None else summary(connection, row)
    return {
        "id": row["game_id"],
        "snake": row["snake"],
        "you": row["you"],
        "ruleset": game["ruleset"]["name"],
        "map": game["map"],
        "width": row["width"],
        "height": row["height"],
        "snakes": json.loads(row["names"]),
        "started": row["started"],
        "ended": row["ended"],
        **{figure: known[figure] for figure in figures},
    }


def _shown_turn(row: Mapping[str, Any], you: str) -> dict[str, Any]:
    told = {"turn": row["turn"], "you": you, "move": MOVE_NAMES[row["move"]], **unpack(row["data"])}
    return {**told, "fallback": row["fallback"], "latency_ms": row["latency_ms"]}


def _last_board(game: Mapping[str, Any], since: int) -> list[dict[str, Any]]:
    end = None if game["end"] is None else unpack(game["end"])
    if end is None or end["board"] is None or end["turn"] < since:
        return []
    nothing = dict.fromkeys(("move", "probabilities", "values", "value", "fallback", "latency_ms"))
    return [{"turn": end["turn"], "board": end["board"], "you": game["you"], **nothing, "note": {}}]


def _request(game: Mapping[str, Any], turn: Mapping[str, Any], first: Mapping[str, Any]) -> dict[str, Any]:
    """A turn as the move request it was, with what was decided. Once dead, `you` is shown as on the first board."""
    bodies = {snake["id"]: snake for board in (first, turn) for snake in board["board"]["snakes"]}
    request = {"game": game["game"], "turn": turn["turn"], "board": turn["board"], "you": bodies.get(turn["you"], {})}
    if turn["move"] is None:
        return request
    told = {key: turn[key] for key in ("move", "probabilities", "values", "value", "latency_ms") if turn[key] is not None}
    return {**request, EXTRAS: {"decisions": {turn["you"]: {**told, **({"note": turn["note"]} if turn["note"] else {})}}}}


def _ending(game: Mapping[str, Any], last: Mapping[str, Any]) -> dict[str, Any] | None:
    """The last line of a recording, None for a game that was broken off."""
    if game["result"] is None:
        return None
    alive = last["board"]["snakes"] if last["move"] is None and game["result"] != DRAW else []
    winner = alive[0] if len(alive) == 1 else {"id": "", "name": ""}
    return {"winnerId": winner["id"], "winnerName": winner["name"], "isDraw": game["result"] == DRAW}


def _file_name(game: Mapping[str, Any]) -> str:
    """A name from strangers' texts that is a file name and nothing else."""
    parts = (re.sub(r"[^A-Za-z0-9_-]", "_", game[part])[:80] for part in ("id", "snake", "you"))
    return "--".join(parts) + ".jsonl"
