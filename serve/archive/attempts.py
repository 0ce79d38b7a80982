"""What a batch adds to a game in the database.

A turn with another board than before starts a new attempt at the game: its runner crashed, and
plays it again. The new attempt replaces the crashed one."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

import sqlalchemy as sa

from serve.archive.rows import GameRows, unpack
from serve.archive.tables import TURNS


class News(NamedTuple):
    """The rows that a batch adds to a game, and from where on it begins the game anew."""

    turns: list[dict[str, Any]]
    """Rows of `turns` that aren't in the database yet."""
    ends: list[GameRows]
    cut: int | None
    """The turn from which on the database has an attempt that crashed; None if it has none."""


def news_of(connection: sa.Connection, number: int, batch: Sequence[GameRows]) -> News:
    """Return what a batch adds to the game with this number.

    A turn that comes again adds nothing. A turn with another board than before begins a new
    attempt."""
    stored = _stored_turns(
        connection, number, {rows.turn["turn"] for rows in batch if rows.turn is not None}
    )
    new: dict[int, dict[str, Any]] = {}
    ends: list[GameRows] = []
    cut: int | None = None
    for rows in batch:
        if rows.end is not None:
            ends.append(rows)
        if rows.turn is None:
            continue
        turn = rows.turn["turn"]
        before = new[turn]["data"] if turn in new else stored.get(turn)
        if before is not None and _is_another_board(before, rows.turn["data"]):
            cut = turn if cut is None else min(cut, turn)
            # The crashed attempt's turns from here on, and its end, count no more.
            new = {earlier: row for earlier, row in new.items() if earlier < turn}
            stored = {earlier: data for earlier, data in stored.items() if earlier < turn}
            ends = []
            before = None
        if before is None:
            new[turn] = {"number": number, **rows.turn}
    return News(list(new.values()), ends, cut)


def _stored_turns(
    connection: sa.Connection, number: int, turns: Collection[int]
) -> dict[int, bytes]:
    """The packed data of those of a game's `turns` that are in the database."""
    if not turns:
        return {}
    query = sa.select(TURNS.c.turn, TURNS.c.data).where(
        TURNS.c.number == number, TURNS.c.turn.in_(turns)
    )
    return {row.turn: row.data for row in connection.execute(query)}


def _is_another_board(one: bytes, other: bytes) -> bool:
    """Whether two boards of one turn differ in their food, or in a snake that is on both.

    Of one request read twice, one board may show a snake that the other knows to be dead.
    """
    if one == other:
        return False
    board = unpack(one, stacked=True)["board"]
    other_board = unpack(other, stacked=True)["board"]
    if board["food"] != other_board["food"]:
        return True
    bodies = _bodies(board)
    other_bodies = _bodies(other_board)
    return any(
        bodies[snake] != other_bodies[snake] for snake in bodies.keys() & other_bodies.keys()
    )


def _bodies(board: Mapping[str, Any]) -> dict[str, tuple[Any, Any]]:
    """The body and the health of each snake, by its id."""
    return {snake["id"]: (snake["body"], snake["health"]) for snake in board["snakes"]}
