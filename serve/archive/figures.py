"""A game's figures, worked out from its turns in the database."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import sqlalchemy as sa

from serve.archive.outcome import AnswerRow, cause_of_death, not_played, percentiles, result
from serve.archive.rows import unpack
from serve.archive.tables import TURNS


def summary(connection: sa.Connection, game: Mapping[str, Any]) -> dict[str, Any]:
    """Return a game's figures as columns of `games`, worked out from its turns."""
    about = json.loads(game["game"])
    end = unpack(game["end"], stacked=True) if game["end"] is not None else None
    lines = read_lines(connection, game["number"])
    num_snakes = len(json.loads(game["names"]))
    last_turns = [line.turn for line in lines[-1:]]
    cause = None
    if end is not None:
        last_turns.append(end["turn"])
        if lines and game["you"] not in end["alive"]:
            cause = _cause(connection, game, about, lines)
    timeouts = not_played(
        lines,
        width=game["width"],
        height=game["height"],
        timeout_ms=about["timeout"],
        map_name=about["map"],
    )
    return {
        "turns": max(last_turns, default=0),
        "result": result(
            end, lines, you=game["you"], num_snakes=num_snakes, ruleset=about["ruleset"]["name"]
        ),
        "cause": cause,
        "timeouts": timeouts,
        "errors": sum(line.fallback is not None for line in lines),
        **percentiles([line.latency_ms for line in lines]),
    }


def read_lines(connection: sa.Connection, number: int) -> list[AnswerRow]:
    """Return a game's answers in order, without their boards."""
    query = (
        sa.select(*(TURNS.c[name] for name in AnswerRow._fields))
        .where(TURNS.c.number == number)
        .order_by(TURNS.c.turn)
    )
    return [AnswerRow(*row) for row in connection.execute(query)]


def _cause(
    connection: sa.Connection,
    game: Mapping[str, Any],
    about: Mapping[str, Any],
    lines: Sequence[AnswerRow],
) -> str:
    last = sa.select(TURNS.c.data).where(
        TURNS.c.number == game["number"], TURNS.c.turn == lines[-1].turn
    )
    board = unpack(connection.execute(last).scalar_one(), stacked=True)["board"]
    rules = about["ruleset"]
    damage = rules["settings"]["hazardDamagePerTurn"]
    moves = [line.move for line in reversed(lines[-2:])]
    return cause_of_death(board, game["you"], moves, ruleset=rules["name"], hazard_damage=damage)
