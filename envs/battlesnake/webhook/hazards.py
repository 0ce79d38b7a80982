"""Reads the hazards of a request."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from operator import length_hint
from typing import Any

from envs.battlesnake.state import MAX_LAYERS
from envs.battlesnake.webhook.fields import WebhookError, log_once, short, xy_of


class StackedHazards(list[Any]):
    """`board.hazards` without repeats: `layers[n]` counts how often entry n was in the request."""

    def __init__(self, entries: Sequence[Any], layers: Sequence[int]) -> None:
        super().__init__(entries)
        self.layers = layers


def read_hazards(board: Mapping[str, Any], width: int, height: int) -> dict[tuple[int, int], int]:
    """Return the number of hazard layers by point.

    Entries beyond `most_hazards`, or beyond `MAX_LAYERS` on a point, are left out, because no game
    has them. Raises `WebhookError` for anything but a list of points."""
    entries = board.get("hazards") or []
    if not isinstance(entries, list):
        raise WebhookError(f"board.hazards is {type(entries).__name__}; expected a list")
    most = most_hazards(width, height)
    room = most
    layers_by_point: Counter[tuple[int, int]] = Counter()
    for point, layers in _stacks(entries):
        counted_layers = min(layers, room)
        layers_by_point[point] += counted_layers
        room -= counted_layers
    if not room:
        log_once("board.hazards", f"has more than {most - 1} entries; the first {most} are read")
    return {point: min(layers, MAX_LAYERS) for point, layers in layers_by_point.items()}


def _stacks(entries: list[Any]) -> Iterable[tuple[tuple[int, int], int]]:
    """Return pairs of a point and a number of layers. A point may be in several pairs."""
    points = _checked_points(entries)
    if isinstance(entries, StackedHazards):
        return zip(points, entries.layers, strict=True)
    return Counter(points).items()


def _checked_points(entries: list[Any]) -> list[tuple[int, int]]:
    """Return all points as (x, y). Each distinct point is looked at once, because there may be
    hundreds of thousands of entries.
    """
    rest = iter(entries)
    try:
        points = list(map(xy_of, rest))
    except (TypeError, KeyError):
        raise _no_point(entries, len(entries) - length_hint(rest) - 1) from None
    try:
        distinct = set(points)
    except TypeError:
        raise _no_point(
            entries, next(n for n, xy in enumerate(points) if not _is_pair(xy))
        ) from None
    for xy in distinct:
        if not _is_pair(xy):
            raise WebhookError(f"board.hazards holds a point {short(xy)}; expected integers")
    return points


def _is_pair(xy: Sequence[Any]) -> bool:
    return all(type(number) is int for number in xy)


def _no_point(entries: Sequence[Any], place: int) -> WebhookError:
    return WebhookError(
        f"board.hazards[{place}] is {short(entries[place])}; expected integers x and y"
    )


def most_hazards(width: int, height: int) -> int:
    """Return the most hazard entries that an official game can show, including those above the
    board.

    Only snail_mode stacks many layers: in each turn a tail leaves one stack as high as its snake is
    long (n at most), and each stack melts by one layer per turn. So at worst the stacks on the
    board are n, n - 1, ... 1 layers high, and the memory above the board adds the lengths of the
    living snakes. Several snakes share the cells that one would have, so their sum of squares is
    smaller."""
    longest = width * height + 3
    return longest * (longest + 1) // 2 + longest
