"""Reads a request's bytes as a JSON object, with its cost limited in advance.

The cost of JSON grows with the number of values. A game has few values, except hazards: snail_mode
stacks so many that a snake which fills 25 x 25 leaves 198 000 behind it. So runs of equal hazards
are counted in the text, and only one of each is parsed."""

from __future__ import annotations

import json
import re
from typing import Any

import orjson

from envs.battlesnake.state import MAX_SIDE
from envs.battlesnake.webhook import StackedHazards, WebhookError, most_hazards
from envs.common.errors import ProcsnakeError

_LONGEST_POINT = '{"x": 24, "y": 24}, '
"""A point of the largest board as a spaced writer writes it. The official program leaves the blanks
out.
"""
MAX_HAZARDS_BYTES = most_hazards(MAX_SIDE, MAX_SIDE) * len(_LONGEST_POINT)
MAX_OTHER_BYTES = 1 << 18
MAX_VALUES = 10_240
"""The most bytes of hazards, the most bytes of everything else with each hazard once, and the most
values in the latter.
"""
MAX_BODY_BYTES = MAX_HAZARDS_BYTES + MAX_OTHER_BYTES
_MAX_RUNS = 2048
"""The most runs of equal hazards. Each of 25 x 25 stacks is one run, and few stacks are split into
two.
"""
_MAX_BLANKS = 256
"""How many blanks may stand before the list's end."""
_LONGEST_ENTRY = 128
"""How long the text of one hazard may be with the comma before it. The program compares with copies
of 64 of them.
"""
_HAZARDS = re.compile(rb'(?<!\\)"hazards"\s*:\s*\[')
_POINT = re.compile(rb'\s*,\s*\{\s*"x"\s*:\s*-?\d{1,9}\s*,\s*"y"\s*:\s*-?\d{1,9}\s*\}')


class TooLargeError(ProcsnakeError):
    """A body has more bytes or values than any game needs."""


def read_body(data: bytes) -> tuple[dict[str, Any], int]:
    """Return the object, and its size in bytes without equal hazards (see `StackedHazards`).

    Raises `TooLargeError`, and `WebhookError` if the body is not a JSON object.
    """
    layers: dict[bytes, int] = {}
    # What is long is not even counted before.
    if len(data) > MAX_OTHER_BYTES or _has_many_values(data):
        data, layers = _with_each_hazard_once(data)
    if len(data) > MAX_OTHER_BYTES:
        raise TooLargeError(
            f"the body has {len(data)} bytes beside hazards; no game's has more than"
            f" {MAX_OTHER_BYTES}"
        )
    if _has_many_values(data):
        raise TooLargeError(
            f"the body has more than {MAX_VALUES} values; no game's board holds so many"
        )
    body = _parsed(data)
    if not isinstance(body, dict):
        raise WebhookError(
            "the body is not a JSON object; an engine sends one with game, turn, board and you"
        )
    board = body.get("board")
    if layers and isinstance(board, dict) and isinstance(board.get("hazards"), list):
        board["hazards"] = StackedHazards(board["hazards"], list(layers.values()))
    return body, len(data)


def _has_many_values(data: bytes) -> bool:
    return sum(map(data.count, (b"{", b"[", b","))) > MAX_VALUES


def _with_each_hazard_once(data: bytes) -> tuple[bytes, dict[bytes, int]]:
    """The text with each hazard once, and how often each was there, in order.

    The text is unchanged, and the counts are empty, where it isn't sure that these are hazards.
    """
    opening = _HAZARDS.search(data, max(0, data.find(b'"hazards"') - 1))
    if opening is None:
        return data, {}
    start = opening.end()
    end = data.find(b"]", start)
    if not 0 < end - start <= MAX_HAZARDS_BYTES:
        return data, {}
    if data.count(b'"hazards"', 0, start) + data.count(b'"hazards"', end) > 1:
        return data, {}
    layers = _count_runs(data, start, end)
    if not layers or not all(map(_POINT.fullmatch, layers)):
        return data, {}
    # Without the first comma, which was put there to have all alike.
    return b"%b%b%b" % (data[:start], b"".join(layers)[1:], data[end:]), layers


def _count_runs(data: bytes, start: int, end: int) -> dict[bytes, int]:
    """Count equal elements of the JSON array in `data[start:end]`, which is without its brackets.

    Each element is counted with the comma before it; the first is given one. Returns {} above
    `_MAX_RUNS` runs of equal elements, or if one is longer than `_LONGEST_ENTRY`. The text, which
    may be long, is not copied."""
    layers: dict[bytes, int] = {}
    tail = data[max(start, end - _MAX_BLANKS) : end]
    place = start
    end = end - len(tail) + len(tail.rstrip())
    for _ in range(_MAX_RUNS):
        after = data.find(b"}", place, min(end, place + _LONGEST_ENTRY)) + 1 or end
        if after - place >= _LONGEST_ENTRY:
            return {}
        entry = data[place:after]
        if not layers:
            entry = b"," + entry
        times = 1
        for count in (64, 8, 1):
            block = entry * count
            while data.startswith(block, after):
                after = after + len(block)
                times = times + count
        layers[entry] = layers.get(entry, 0) + times
        place = after
        if place >= end:
            return layers
    return {}


def _parsed(data: bytes) -> Any:
    try:
        return orjson.loads(data)
    except orjson.JSONDecodeError:
        pass
    try:
        # It takes more: NaN, half a surrogate pair, UTF-16.
        return json.loads(data)
    except (ValueError, RecursionError):
        return None
