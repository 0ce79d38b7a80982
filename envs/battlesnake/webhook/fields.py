"""Checks the fields of a request, whose sender may be hostile. Errors name the first field that is
wrong.
"""

from __future__ import annotations

import logging
import reprlib
from collections.abc import Mapping
from contextlib import suppress
from itertools import chain
from operator import itemgetter
from typing import Any

from envs.battlesnake.plain import Point
from envs.battlesnake.webhook.flat_rules import integer_of
from envs.common.errors import ProcsnakeError

log = logging.getLogger(__name__)

MOST_SIDE = 1 << 16
"""The longest side of a board that is read. The engine plays on shorter ones."""
MAX_TEXT = 256
MOST_SHOWN = 40
"""How many characters of a wrong value a message shows."""

xy_of = itemgetter("x", "y")

_already_logged: set[str] = set()


class WebhookError(ProcsnakeError):
    """A request body isn't a move request. The message names the field."""


def short(value: Any) -> str:
    """Return a value as messages show it."""
    return reprlib.repr(value)[:MOST_SHOWN]


def log_once(field_name: str, what: str) -> None:
    """Log that a field was read differently from how it was sent, once per field, because each turn
    repeats it.
    """
    if field_name not in _already_logged:
        _already_logged.add(field_name)
        log.warning("%s %s (said once)", field_name, what)


def mapping(value: Any, name: str) -> Mapping[str, Any]:
    """Return the value, which must be an object."""
    if not isinstance(value, Mapping):
        raise WebhookError(f"{name} is {type(value).__name__}; expected an object")
    return value


def integer(
    parent: Mapping[str, Any],
    name: str,
    key: str,
    low: int,
    high: int,
    *,
    default: int | None = None,
) -> int:
    """Return `parent[key]`, an integer in low..high; `default` if it is missing or null."""
    value = parent.get(key, default)
    if value is None and default is not None:
        return default
    if isinstance(value, float):
        value = integer_of(value)  # JSON knows but one kind of number, and 90.0 is 90.
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise WebhookError(
            f"{name}.{key} is {short(value)}; expected an integer from {low} to {high}"
        )
    return value


def text(parent: Mapping[str, Any], name: str, key: str) -> str:
    """Return `parent[key]`, a text of at most `MAX_TEXT` characters."""
    value = parent.get(key)
    if not isinstance(value, str) or len(value) > MAX_TEXT:
        raise WebhookError(
            f"{name}.{key} is {short(value)}; expected a text of at most {MAX_TEXT} characters"
        )
    return value


def points(parent: Mapping[str, Any], name: str, key: str, most: int) -> list[Point]:
    """Return `parent[key]`, a list of at most `most` points; an empty one if it is missing."""
    entries = parent.get(key) or []
    if not isinstance(entries, list) or len(entries) > most:
        raise WebhookError(f"{name}.{key} is not a list of at most {most} points")
    pairs = _pairs_if_valid(entries)
    if pairs is not None:
        return [{"x": x, "y": y} for x, y in pairs]
    # Some entry is wrong, or has floats: look at each of them.
    checked: list[Point] = []
    for n, entry in enumerate(entries):
        where = f"{name}.{key}[{n}]"
        point = mapping(entry, where)
        x = integer(point, where, "x", -MOST_SIDE, 2 * MOST_SIDE)
        y = integer(point, where, "y", -MOST_SIDE, 2 * MOST_SIDE)
        checked.append({"x": x, "y": y})
    return checked


def _pairs_if_valid(entries: list[Any]) -> list[tuple[int, int]] | None:
    """Return the coordinates of all entries if they are integers that a board can have, else None.

    It is the fast way for the thousands of points of a large request."""
    with suppress(KeyError, TypeError):
        pairs: list[tuple[int, int]] = list(map(xy_of, entries))
        if set(map(type, chain.from_iterable(pairs))) <= {int}:
            coordinates = chain.from_iterable(set(pairs))
            if all(-MOST_SIDE <= number <= 2 * MOST_SIDE for number in coordinates):
                return pairs
    return None


def is_on_board(point: Point, width: int, height: int) -> bool:
    """Whether a point lies on a board of that size."""
    return 0 <= point["x"] < width and 0 <= point["y"] < height
