"""Adds to one snake's turns the boards that our other bodies in the same game saw.

An engine sends a dead snake only the end. If another of our snakes lives on, its boards show how
the game continued."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import sqlalchemy as sa

from envs.battlesnake.plain import Death
from envs.battlesnake.recording import UNKNOWN_CAUSE
from serve.archive.rows import unpack
from serve.archive.tables import GAMES, TURNS

Row = Mapping[str, Any]
_CHUNK = 50


def bodies_of(connection: sa.Connection, game_id: str) -> list[Row]:
    """Return the rows of `games` with this id, one for each body of ours. The body that was asked
    last comes first.
    """
    query = (
        sa.select(GAMES)
        .where(GAMES.c.game_id == game_id)
        .order_by(GAMES.c.seen.desc(), GAMES.c.number.desc())
    )
    return [row._asdict() for row in connection.execute(query)]


def boards_of_others(
    connection: sa.Connection, own: Row, others: Sequence[Row], since: int
) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield (turn, board) of the turns from `since` on, in order, on which only other bodies were
    asked.

    A board after this body's last turn on which it still lives is left out, because its own turn
    is about to be written."""
    if not others:
        return
    own_turns = sa.select(TURNS.c.turn).where(TURNS.c.number == own["number"])
    query = sa.select(TURNS).where(
        TURNS.c.number.in_([other["number"] for other in others]),
        TURNS.c.turn >= since,
        TURNS.c.turn.not_in(own_turns),
    )
    last = last_turn(connection, own)
    latest = -1
    for row in in_order(connection, query):
        if row["turn"] == latest:  # Another body was asked on the same turn.
            continue
        # Of very many turns that there may be few are yielded, and hazards are what takes time and
        # memory to unpack.
        if row["turn"] < last or own["you"] not in _ids(unpack(row["data"], stacked=True)["board"]):
            latest = row["turn"]
            yield latest, unpack(row["data"])["board"]


def in_order(connection: sa.Connection, turns: sa.Select[Any]) -> Iterator[Row]:
    """Yield rows of `turns` by turn. Few are loaded at a time, because the caller may stop
    early.
    """
    place = (TURNS.c.turn, TURNS.c.number)
    after = (-1, -1)
    query = turns.order_by(*place).limit(_CHUNK)
    while rows := connection.execute(query.where(sa.tuple_(*place) > sa.tuple_(*after))).all():
        yield from (row._asdict() for row in rows)
        after = rows[-1].turn, rows[-1].number


def last_turn(connection: sa.Connection, game: Row) -> int:
    """Return the number of the last turn at which a body was asked; -1 if it never was."""
    highest = sa.select(sa.func.coalesce(sa.func.max(TURNS.c.turn), -1))
    return connection.execute(highest.where(TURNS.c.number == game["number"])).scalar_one()


def deaths(connection: sa.Connection, bodies: Sequence[Row]) -> dict[str, Death]:
    """Return a death for each body of ours, by the body's id.

    Engines ask a snake every turn while it lives, so it died on the turn after the last one. The
    boards say whether it died at all."""
    return {
        body["you"]: Death(body["cause"] or UNKNOWN_CAUSE, turn=last_turn(connection, body) + 1)
        for body in bodies
    }


def dead_on(turn: Mapping[str, Any], death_by_id: Mapping[str, Death]) -> list[dict[str, Any]]:
    """Return the id and the death, as fields of a `Snake`, of those that are no longer on a turn's
    board.
    """
    living = _ids(turn["board"])
    return [
        {"id": body, **death.fields()}
        for body, death in death_by_id.items()
        if death.turn <= turn["turn"] and body not in living
    ]


def with_bodies(
    turns: Sequence[Mapping[str, Any]], snakes_before: Iterable[Mapping[str, Any]] = ()
) -> list[list[dict[str, Any]]]:
    """Return the `eliminated` of each turn in the form of recordings: each dead snake as it was on
    the last board that shows it.

    `snakes_before` are the snakes on the board before these turns.
    """
    latest = {snake["id"]: snake for snake in snakes_before}
    eliminated: list[list[dict[str, Any]]] = []
    for turn in turns:
        latest |= {snake["id"]: snake for snake in turn["board"]["snakes"]}
        fates = [fate for fate in turn["eliminated"] if fate["id"] in latest]
        eliminated.append([{**latest[fate["id"]], **fate} for fate in fates])
    return eliminated


def _ids(board: Mapping[str, Any]) -> set[str]:
    return {snake["id"] for snake in board["snakes"]}
