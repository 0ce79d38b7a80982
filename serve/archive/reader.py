"""Reads the games that a server has kept, for the viewer, for people and for training."""

from __future__ import annotations

import heapq
import json
import logging
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import islice
from operator import itemgetter
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from envs.battlesnake.plain.living import LifeRules
from envs.battlesnake.recording import EXTRAS, Recording, RecordingError
from envs.battlesnake.state import MOVE_NAMES
from envs.common.errors import ConfigError, ProcsnakeError
from envs.common.migrations import NewerDatabaseError
from envs.common.strangers.printable import file_name, printable
from envs.common.strangers.sqlite_files import UnsafeDatabaseError
from serve.archive.database import Database
from serve.archive.figures import summary
from serve.archive.outcome import DRAW, LOST, WON, percentiles
from serve.archive.rows import unpack
from serve.archive.story import (
    Row,
    boards_of_others,
    bodies_of,
    dead_on,
    deaths,
    in_order,
    with_bodies,
)
from serve.archive.tables import GAMES, TURNS
from serve.doctor import CHECK_PREFIX

log = logging.getLogger(__name__)

_RECENT_TURNS = 10_000
_PAGE = 100
_PASSES = re.compile(r"locked|full|No space left")
_FIGURES = ("turns", "result", "cause", "timeouts", "errors", "p50", "p95", "p99")
_PLACE = (GAMES.c.seen, GAMES.c.number)
_PAGE_POINTS = 1 << 18
"""With how many points on its boards a page of turns ends. A stranger's turn may bring 198 000
hazards, which are little as long as they are packed."""


class GamesUnavailableError(ProcsnakeError):
    """The database of games can't be read at the moment, or there is none."""


class GameArchive:
    """The games in a database, `sqlite:///FILE` or `postgresql://…` as in `DATABASE_URL`.

    A game is identified by its id and the snake of ours that played it. If that snake plays several
    bodies in one game, `you`, the body's id, says which. Raises `ConfigError` for a URL of another
    kind. Methods that read raise `GamesUnavailableError` if the database can't be read."""

    def __init__(self, url: str) -> None:
        self._database = Database(url)

    def close(self) -> None:
        """Close the database."""
        self._database.close()

    def check(self) -> None:
        """Create the file if there is none, to make sure that games can be stored in it.

        Raises `NewerDatabaseError` if this procsnake doesn't know the schema, and `ConfigError` if
        the file is not a database or can't be made. A database that is away, locked or full at the
        moment passes."""
        try:
            with self._database.reading():
                pass
        except (sa.exc.SQLAlchemyError, OSError) as error:
            cause = getattr(error, "orig", None) or getattr(error, "strerror", None) or error
            if self._database.file is not None and not _PASSES.search(str(cause)):
                raise ConfigError(
                    f"no games can be kept in {self._database.file}: {cause}. Choose another"
                    " --database, or --no-games"
                ) from error

    @property
    def exists(self) -> bool:
        """Whether there is such a database. It is True for a database that isn't a file."""
        return self._database.file is None or os.path.isfile(self._database.file)

    def games(
        self, *, live: bool | None = None, limit: int = 50, offset: int = 0
    ) -> list[dict[str, Any]]:
        """Return games, those seen last first: all, those being played (`live=True`), or those that
        are over (`live=False`).

        Each game has `id`, `is_check` (`procsnake doctor` played it), `is_arena` (its engine is
        Arena's), `snake`, `you`, `ruleset`, `map`, `width`, `height`, `snakes` (names at the
        start), `started` and `ended` (seconds since 1970; None while it is played), `turns` (number
        of the last), `result` ("won", "lost", "draw", None), `cause` (of our death, as far as the
        rules tell), `timeouts` (answers that the engine didn't play), `errors` (answers by the
        watchdog), and `p50`, `p95`, `p99` (milliseconds)."""
        return [game for _, game in self._placed(_last_first(live).limit(limit).offset(offset))]

    def every_game(self, *, live: bool | None = None) -> Iterator[dict[str, Any]]:
        """Yield all of `games`, page by page. Concurrent writes make no game appear twice."""
        query = _last_first(live).limit(_PAGE)
        page = self._placed(query)
        while page:
            yield from (game for _, game in page)
            page = self._placed(query.where(sa.tuple_(*_PLACE) < sa.tuple_(*page[-1][0])))

    def _placed(self, query: sa.Select[Any]) -> list[tuple[tuple[float, int], dict[str, Any]]]:
        """The games that a query finds, each with its place in the order of `_last_first`."""
        with self._reading() as connection:
            rows = [row._asdict() for row in connection.execute(query)]
            return [((row["seen"], row["number"]), _shown(connection, row)) for row in rows]

    def game(self, game_id: str, snake: str, you: str | None = None) -> dict[str, Any] | None:
        """Return one game in the form of `games`; None if it isn't known.

        It also has `game` (the webhook's object), `bodies` ([{"snake", "you"}], all of ours that
        play in it), `is_end_known` (whether `/end` came), and `is_whole`. That is False, because
        others' deaths, and turns on which none of our snakes was asked, are unknown."""
        with self._reading() as connection:
            bodies = bodies_of(connection, game_id)
            row = _own(bodies, snake, you)
            if row is None:
                return None
            return _shown_whole(connection, row, bodies)

    def bodies(self, game_id: str) -> list[dict[str, Any]]:
        """Return a game as each body of ours saw it, in the form of `game`. The body that was asked
        last comes first.
        """
        with self._reading() as connection:
            bodies = bodies_of(connection, game_id)
            return [_shown_whole(connection, body, bodies) for body in bodies]

    def turns(
        self,
        game_id: str,
        snake: str,
        *,
        since: int = 0,
        you: str | None = None,
        limit: int | None = None,
    ) -> list[dict[str, Any]]:
        """Return the turns from number `since` on, in order; none for a game that isn't known.

        Each turn has `turn`, `board` (webhook form: width, height, food, hazards, and the living
        snakes), `you` (id), `move` ("up", "down", "left", "right"), `probabilities` and `values`
        (4, in that order, or None), `value` (or None), `note`, `fallback` (why the watchdog
        answered, or None), `latency_ms`, and `eliminated` (for each body of ours that is gone from
        the board: its `id`, and its death as fields of a `plain.Snake`). If this body is dead and
        only another body of ours was asked, the turn has that body's board, and `move` is
        None. The board of `/end` comes last, in the same form.

        With a `limit`, at most that many turns are returned; fewer if their boards are very large,
        but at least one if there is any."""
        with self._reading() as connection:
            bodies = bodies_of(connection, game_id)
            game = _own(bodies, snake, you)
            if game is None:
                return []
            others = [body for body in bodies if body["number"] != game["number"]]
            turns = list(_page(_all_turns(connection, game, others, since), limit))
            death_by_id = deaths(connection, bodies)
            return [{**turn, "eliminated": dead_on(turn, death_by_id)} for turn in turns]

    def statistics(self) -> dict[str, Any]:
        """Return the figures of all games that are kept.

        They are `games`, `live`, `won`, `lost`, `draw`, `timeouts`, `errors`, `causes` ({cause:
        deaths}), `snakes` ({snake: games}), and `p50`, `p95`, `p99` in milliseconds over the last
        10 000 turns written. The checks of `procsnake doctor` count in none of these; `checks` is
        their number."""
        count = sa.func.count()
        is_check = GAMES.c.game_id.startswith(CHECK_PREFIX, autoescape=True)
        with self._reading() as connection:

            def counted(column: sa.ColumnElement[Any]) -> dict[str, int]:
                query = sa.select(column, count).where(column.is_not(None), ~is_check)
                return dict(map(tuple, connection.execute(query.group_by(column))))

            sums = (
                sa.func.coalesce(sa.func.sum(GAMES.c[name]), 0) for name in ("timeouts", "errors")
            )
            figures = sa.select(count, sa.func.count(GAMES.c.ended), *sums).where(~is_check)
            games, over, timeouts, errors = connection.execute(figures).one()
            recent = sa.select(TURNS.c.latency_ms).join(GAMES).where(~is_check)
            recent = recent.order_by(TURNS.c.number.desc(), TURNS.c.turn.desc()).limit(
                _RECENT_TURNS
            )
            results = counted(GAMES.c.result)
            return {
                "games": games,
                "live": games - over,
                "checks": connection.scalar(sa.select(count).select_from(GAMES).where(is_check)),
                **{result: results.get(result, 0) for result in (WON, LOST, DRAW)},
                "timeouts": timeouts,
                "errors": errors,
                "causes": counted(GAMES.c.cause),
                "snakes": counted(GAMES.c.snake),
                **percentiles(list(connection.scalars(recent))),
            }

    def recording(self, game_id: str, snake: str, you: str | None = None) -> Recording | None:
        """Return a game as a recording (`envs.battlesnake.recording`); None if it isn't known or
        has no turns.

        Raises `RecordingError` for a game that recordings can't hold, because untrusted requests
        may have any number of snakes."""
        game = self.game(game_id, snake, you)
        turns = self.turns(game_id, snake, you=you)
        if game is None or not turns:
            return None
        with _named_damage():
            eliminated = with_bodies(turns)
            requests = [
                _request(game, turn, turns[0], dead)
                for turn, dead in zip(turns, eliminated, strict=True)
            ]
            return Recording(game["game"], requests, _ending(game, turns[-1]))

    def export(
        self,
        directory: str | os.PathLike[str],
        *,
        snake: str | None = None,
        leave_out: Callable[[str], object] = log.warning,
    ) -> Iterator[Path]:
        """Write every game that is over to `directory` as a recording, and yield the paths. Checks
        are left out.

        A game that can't be read or recorded is skipped: `leave_out` is called with a sentence
        about it."""
        for game in self.every_game(live=False):
            if snake not in (None, game["snake"]) or game["is_check"]:
                continue
            try:
                recording = self.recording(game["id"], game["snake"], game["you"])
            except (GamesUnavailableError, RecordingError) as error:
                leave_out(printable(f"left out the game {game['id']} of {game['snake']}: {error}"))
                continue
            if recording is not None:
                yield recording.write(
                    Path(directory, f"{file_name(game['id'], game['snake'], game['you'])}.jsonl")
                )

    @contextmanager
    def _reading(self) -> Iterator[sa.Connection]:
        try:
            with _named_damage(), self._database.reading() as connection:
                yield connection
        except (sa.exc.SQLAlchemyError, OSError, NewerDatabaseError, UnsafeDatabaseError) as error:
            raise GamesUnavailableError(
                f"the games can't be read: {str(error).splitlines()[0]}"
            ) from error


def _last_first(live: bool | None) -> sa.Select[Any]:
    query = sa.select(GAMES).order_by(*(column.desc() for column in _PLACE))
    if live is None:
        return query
    if live:
        return query.where(GAMES.c.ended.is_(None))
    return query.where(GAMES.c.ended.is_not(None))


def _own(bodies: Sequence[Row], snake: str, you: str | None) -> Row | None:
    """The row that is asked for; of several bodies of one snake the first by id, unless `you` says
    which.
    """
    mine = [body for body in bodies if body["snake"] == snake and you in (None, body["you"])]
    return min(mine, key=lambda body: body["you"], default=None)


def _shown_whole(connection: sa.Connection, row: Row, bodies: Sequence[Row]) -> dict[str, Any]:
    is_end_known = any(body["end"] is not None for body in bodies)
    # One that is asked no more because it is dead falls silent while the others play on.
    goes_on = not is_end_known and any(body["ended"] is None for body in bodies)
    entry = _shown(connection, row)
    if goes_on:
        entry["ended"] = None
    return {
        **entry,
        "game": json.loads(row["game"]),
        "bodies": [{"snake": body["snake"], "you": body["you"]} for body in bodies],
        "is_end_known": is_end_known,
        "is_whole": False,
    }


@contextmanager
def _named_damage() -> Iterator[None]:
    """Rows that no server has written: cut off, damaged, or made to harm."""
    try:
        yield
    except (ValueError, LookupError, TypeError, AttributeError, OverflowError) as error:
        what = f"{type(error).__name__}: {error}"
        raise GamesUnavailableError(
            f"the games can't be read, because the database is damaged ({what})"
        ) from error


def _shown(connection: sa.Connection, row: Mapping[str, Any]) -> dict[str, Any]:
    game = json.loads(row["game"])
    # The row of a game that is over has its figures already.
    figures = row if row["ended"] is not None else summary(connection, row)
    return {
        "id": row["game_id"],
        "is_check": row["game_id"].startswith(CHECK_PREFIX),
        "is_arena": LifeRules.of(game).is_arena,
        "snake": row["snake"],
        "you": row["you"],
        "ruleset": game["ruleset"]["name"],
        "map": game["map"],
        "width": row["width"],
        "height": row["height"],
        "snakes": json.loads(row["names"]),
        "started": row["started"],
        "ended": row["ended"],
        **{name: figures[name] for name in _FIGURES},
    }


def _all_turns(
    connection: sa.Connection, game: Row, others: Sequence[Row], since: int
) -> Iterator[dict[str, Any]]:
    """A game's turns in order, as one body knows them, each unpacked when it is taken."""
    query = sa.select(TURNS).where(TURNS.c.number == game["number"], TURNS.c.turn >= since)
    own = (_shown_turn(row, game["you"]) for row in in_order(connection, query))
    theirs = (
        _only_board(game, number, board)
        for number, board in boards_of_others(connection, game, others, since)
    )
    for turn in heapq.merge(own, theirs, key=itemgetter("turn")):
        since = turn["turn"] + 1
        yield turn
    yield from _last_board([game, *others], since)


def _page(turns: Iterable[dict[str, Any]], limit: int | None) -> Iterator[dict[str, Any]]:
    """The first `limit` turns, or fewer if their boards hold very many points; None: all."""
    if limit is None:
        yield from turns
        return
    points = 0
    for turn in islice(turns, limit):
        yield turn
        points += _points_of(turn["board"])
        if points >= _PAGE_POINTS:
            return


def _points_of(board: Mapping[str, Any]) -> int:
    return (
        len(board["hazards"])
        + len(board["food"])
        + sum(len(snake["body"]) for snake in board["snakes"])
    )


def _shown_turn(row: Mapping[str, Any], you: str) -> dict[str, Any]:
    return {
        "turn": row["turn"],
        "you": you,
        "move": MOVE_NAMES[row["move"]],
        **unpack(row["data"]),
        "fallback": row["fallback"],
        "latency_ms": row["latency_ms"],
    }


def _last_board(bodies: Sequence[Row], since: int) -> list[dict[str, Any]]:
    """The board that `/end` told to the first of these bodies, or else to any."""
    ends = (unpack(body["end"]) for body in bodies if body["end"] is not None)
    end = next((end for end in ends if end["board"] is not None), None)
    if end is None or end["turn"] < since:
        return []
    return [_only_board(bodies[0], end["turn"], end["board"])]


def _only_board(game: Row, turn: int, board: dict[str, Any]) -> dict[str, Any]:
    """A turn on which this body of ours wasn't asked."""
    nothing = dict.fromkeys(("move", "probabilities", "values", "value", "fallback", "latency_ms"))
    return {"turn": turn, "board": board, "you": game["you"], **nothing, "note": {}}


def _request(
    game: Mapping[str, Any],
    turn: Mapping[str, Any],
    first: Mapping[str, Any],
    dead: Sequence[Mapping[str, Any]],
) -> dict[str, Any]:
    """A turn as the move request it was, with what was decided. Once dead, `you` is shown as on the
    first board.
    """
    snakes = (*first["board"]["snakes"], *turn["board"]["snakes"])
    request = {
        "game": game["game"],
        "turn": turn["turn"],
        "board": turn["board"],
        "you": {snake["id"]: snake for snake in snakes}.get(turn["you"], {}),
    }
    extras: dict[str, Any] = {}
    if dead:
        extras["eliminated"] = dead
    if turn["move"] is not None:
        extras["decisions"] = {turn["you"]: _decision(turn)}
    if extras:
        request[EXTRAS] = extras
    return request


def _decision(turn: Mapping[str, Any]) -> dict[str, Any]:
    """The decision on a turn in the form of recordings, without the parts that are None."""
    parts = ("move", "probabilities", "values", "value", "latency_ms")
    decision = {part: turn[part] for part in parts if turn[part] is not None}
    if turn["note"]:
        decision["note"] = turn["note"]
    return decision


def _ending(game: Mapping[str, Any], last: Mapping[str, Any]) -> dict[str, Any] | None:
    """The last line of a recording, None for a game that was broken off."""
    if game["result"] is None:
        return None
    is_draw = game["result"] == DRAW
    is_end = last["move"] is None and last["turn"] == game["turns"]
    alive = last["board"]["snakes"]
    winner = {"id": "", "name": ""}
    if is_end and not is_draw and len(alive) == 1:
        winner = alive[0]
    return {"winnerId": winner["id"], "winnerName": winner["name"], "isDraw": is_draw}
