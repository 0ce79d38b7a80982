"""The boards of a recording: the dead put back among the living, and the moves between boards."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from envs.battlesnake.plain import Board, Death, is_dead
from envs.battlesnake.plain.board import UNKNOWN_CAUSE, as_dead, as_living
from envs.battlesnake.recording.bounds import MAX_KNOWN_SNAKES
from envs.battlesnake.recording.recorder import EXTRAS

_MOVE_OF_STEP = {(0, 1): "up", (0, -1): "down", (-1, 0): "left", (1, 0): "right"}


class BoardHistory:
    """Makes the boards of one game from its requests, in their order.

    Requests list the living. A snake that is missing from one has died: as the recording says, or
    else of `UNKNOWN_CAUSE`. The dead stay on all later boards, as they were last seen."""

    def __init__(self) -> None:
        self._latest: dict[str, dict[str, Any]] = {}
        """Each snake as it was last seen, by id, in the order in which they first appeared."""

    def board_of(self, request: Mapping[str, Any]) -> Board:
        """Return the board of the game's next request.

        Raises `ValueError` for a snake that is recorded as dead without a cause, and for more
        snakes than take part in a game. Raises `KeyError` or `TypeError` for a malformed one."""
        board = request["board"]
        living = [as_living(snake) for snake in board["snakes"] or []]
        fallen = [as_living(snake) for snake in request.get(EXTRAS, {}).get("eliminated", [])]
        for snake in fallen:
            if not is_dead(snake):
                raise ValueError(
                    f"{snake['id']!r} is among the eliminated snakes without an eliminatedCause"
                )
        listed = {snake["id"] for snake in [*living, *fallen]}
        for snake in self._latest.values():
            if snake["id"] not in listed and not is_dead(snake):
                fallen.append(as_dead(snake, Death(UNKNOWN_CAUSE, turn=request["turn"])))
        for snake in [*living, *fallen]:
            self._latest[snake["id"]] = {**self._latest.get(snake["id"], {}), **snake}
        if len(self._latest) > MAX_KNOWN_SNAKES:
            raise ValueError(
                f"{len(self._latest)} snakes so far; at most {MAX_KNOWN_SNAKES} take part in a game"
            )
        return {
            "turn": request["turn"],
            "width": board["width"],
            "height": board["height"],
            "food": board.get("food") or [],
            "hazards": board.get("hazards") or [],
            "snakes": cast(Any, list(self._latest.values())),
        }


def decisions_in(request: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the snakes' decisions in an entry, by id. Malformed ones are left out."""
    decisions = request.get(EXTRAS, {}).get("decisions", {})
    if not isinstance(decisions, dict):
        return {}
    return {snake: one for snake, one in decisions.items() if isinstance(one, dict)}


def moves_between(before: Board, after: Board) -> dict[str, dict[str, Any]]:
    """Return the moves that the heads show as {id: {"move": name}}, for snakes that live on
    `before` and are on both boards.
    """
    heads = {snake["id"]: snake["body"][0] for snake in after["snakes"]}
    moves = {}
    for snake in before["snakes"]:
        if is_dead(snake) or snake["id"] not in heads:
            continue
        head_before = snake["body"][0]
        head_after = heads[snake["id"]]
        step = (
            _unwrapped(head_after["x"] - head_before["x"], before["width"]),
            _unwrapped(head_after["y"] - head_before["y"], before["height"]),
        )
        if step in _MOVE_OF_STEP:
            moves[snake["id"]] = {"move": _MOVE_OF_STEP[step]}
    return moves


def _unwrapped(difference: int, side: int) -> int:
    """Return the step of a head along one axis, where crossing an edge counts as one cell."""
    if difference == side - 1:
        return -1
    if difference == 1 - side:
        return 1
    return difference
