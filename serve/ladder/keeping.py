"""Puts a downloaded game into a server's archive, as if its own snake had answered each move."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Mapping
from contextlib import closing
from itertools import chain
from typing import Any

import sqlalchemy as sa

from agents.agent import Decision
from envs.battlesnake.recording import Recording
from envs.battlesnake.state import MOVE_NAMES
from envs.battlesnake.webhook import read_end_request, read_move_request
from envs.common.errors import ConfigError
from serve.archive.database import Database
from serve.archive.rows import Event, clean, rows_of

_TURN_S = 0.5


def keep(recording: Recording, database: str, names: frozenset[str]) -> list[str]:
    """Write a game to the archive at `database`, once per snake of these names, or once as its
    first snake saw it.

    Returns the archive's names of those snakes. A game that is already there stays unchanged, also
    if a server has recorded it under another name of its snake. The times are those of this call,
    because frames have none. Raises `ConfigError` if the database can't be written, and what
    `Database` and `read_move_request` raise."""
    snakes = recording.boards()[0]["snakes"]
    viewers = [snake for snake in snakes if snake.get("name") in names] or snakes[:1]
    events = chain.from_iterable(_events(recording, snake) for snake in viewers)
    try:
        with closing(Database(database)) as archive:
            archive.write([rows_of(event) for event in events], new_games_only=True)
    except (sa.exc.SQLAlchemyError, OSError) as error:
        raise ConfigError(
            f"the archive can't be written: {str(error).splitlines()[0]}. Is --database right?"
        ) from error
    return [_name(snake) for snake in viewers]


def _name(snake: Mapping[str, Any]) -> str:
    """A snake's name, or its id, so that it can be a part of the path of its game's page in the
    viewer.
    """
    return re.sub(r"/|^\.{1,2}$", "_", clean(snake.get("name") or snake["id"]))


def _events(recording: Recording, snake: Mapping[str, Any]) -> Iterator[Event]:
    """The requests that a snake got while it lived, and `/end`."""
    name = _name(snake)
    you = dict(snake)
    last = recording.requests[-1]
    began = time.time() - _TURN_S * len(recording.requests)
    for number, request in enumerate(recording.requests):
        entry = next((one for one in request["board"]["snakes"] if one["id"] == snake["id"]), None)
        if entry is None:  # It has died.
            break
        you = entry
        move = recording.decisions(request["turn"]).get(snake["id"], {}).get("move")
        if move is not None:
            body = {**request, "you": you}
            decision = Decision(MOVE_NAMES.index(move))
            yield Event(name, body, began + _TURN_S * number, read_move_request(body), decision)
    body = {**last, "you": you}
    yield Event(name, body, began + _TURN_S * len(recording.requests), final=read_end_request(body))
