"""Derives a snake's result, cause of death and late answers from the requests that its server saw.

An engine reports none of this: `/end` brings the last board, but never a cause of death or a
timeout."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import pairwise, product
from typing import Any, NamedTuple

import numpy as np

from envs.battlesnake.plain import place_hazards, state_from_board
from envs.battlesnake.recording import UNKNOWN_CAUSE
from envs.battlesnake.rules import step_board
from envs.battlesnake.settings import Settings, within_limits
from envs.battlesnake.state import CAUSE_NAMES, MOVE_NAMES, MOVE_STEPS, State
from envs.common.errors import ProcsnakeError

_MOVING_MAP = "solo_maze"
WON = "won"
LOST = "lost"
DRAW = "draw"
_NEAR = 2
_MAX_NEAR = 3
_STRAIGHT_ON = -1


class AnswerRow(NamedTuple):
    """One answer, without its board."""

    turn: int
    move: int
    x: int
    y: int
    fallback: str | None
    latency_ms: float | None


def result(
    end: Mapping[str, Any] | None,
    lines: Sequence[AnswerRow],
    *,
    you: str,
    num_snakes: int,
    ruleset: str = "standard",
) -> str | None:
    """Return "won", "lost" or "draw" by the last board; None for a game that hasn't ended or had no
    rivals.

    Nobody wins under the ruleset solo, however many play: that game continues while one lives.

        It is a draw if several snakes are alive at the end, or if none is and our snake was asked
        until the end."""
    if end is None or num_snakes < 2 or ruleset == "solo":
        return None
    if you in end["alive"]:
        if len(end["alive"]) == 1:
            return WON
        return DRAW
    played_to_the_end = bool(lines) and end["turn"] - lines[-1].turn <= 2
    if not end["alive"] and played_to_the_end:
        return DRAW
    return LOST


def not_played(
    lines: Sequence[AnswerRow], *, width: int, height: int, timeout_ms: int, map_name: str = ""
) -> int:
    """Return the number of timeouts: turns after which the snake wasn't where our answer leads, or
    whose answer was late.

    The map solo_maze moves its snake to the next maze, so there only late answers count.
    """
    late = {
        line.turn for line in lines if line.latency_ms is not None and line.latency_ms >= timeout_ms
    }
    if map_name == _MOVING_MAP:
        return len(late)
    for line, after in pairwise(lines):
        dx, dy = MOVE_STEPS[line.move]
        target = (line.x + dx) % width, (line.y + dy) % height
        if after.turn == line.turn + 1 and (after.x, after.y) != target:
            late.add(line.turn)
    return len(late)


def percentiles(latencies_ms: Sequence[float | None]) -> dict[str, float | None]:
    """Return {"p50", "p95", "p99"} in milliseconds."""
    times = [latency for latency in latencies_ms if latency is not None]
    if not times:
        return dict.fromkeys(("p50", "p95", "p99"))
    return {f"p{share}": round(float(np.percentile(times, share)), 2) for share in (50, 95, 99)}


def cause_of_death(
    board: Mapping[str, Any], you: str, moves: Sequence[int], *, ruleset: str, hazard_damage: int
) -> str:
    """Return the likeliest cause of a snake's death after `board`, considering all possible moves
    of its neighbours.

    `moves` are those that the snake may have played, the likeliest first: its answer, then the
    answer before, which engines repeat after a timeout. The engine's rules decide the cause. It is
    `UNKNOWN_CAUSE` if none of the moves is deadly."""
    snakes = board["snakes"]
    ids = [snake["id"] for snake in snakes]
    if you not in ids:
        return UNKNOWN_CAUSE
    slot = ids.index(you)
    head = snakes[slot]["head"]
    distances = {n: _distance(snake["head"], head) for n, snake in enumerate(snakes) if n != slot}
    close = [n for n, distance in distances.items() if distance <= _NEAR]
    near = sorted(close, key=distances.__getitem__)[:_MAX_NEAR]
    try:
        # As a solo game, so that a board with one snake left isn't over.
        settings = Settings(
            ruleset=ruleset, hazard_damage=within_limits("hazard_damage", hazard_damage), solo=True
        )
        before = state_from_board({"turn": 1, **board, "hazards": ()}, settings=settings)
        place_hazards(before, _layers(board))
    except ProcsnakeError:
        return UNKNOWN_CAUSE
    # One joint move: ours, every combination of the near ones', and the others straight on.
    joint_move = np.full((1, len(ids)), _STRAIGHT_ON, np.int8)
    for own in moves:
        joint_move[0, slot] = own
        causes: Counter[str] = Counter()
        for theirs in product(range(len(MOVE_NAMES)), repeat=len(near)):
            joint_move[0, near] = theirs
            causes[_fate(before, slot, joint_move)] += 1
        del causes[""]
        if causes:
            return causes.most_common(1)[0][0]
    return UNKNOWN_CAUSE


def _distance(one: Mapping[str, int], other: Mapping[str, int]) -> int:
    """The number of steps between two points on a board without walls."""
    return abs(one["x"] - other["x"]) + abs(one["y"] - other["y"])


def _layers(board: Mapping[str, Any]) -> dict[tuple[int, int], int]:
    """Hazard layers by point, of a board in webhook form or of one whose hazards are stacked."""
    points = [(point["x"], point["y"]) for point in board["hazards"]]
    if "layers" in board:
        return dict(zip(points, board["layers"], strict=True))
    return Counter(points)


def _fate(before: State, slot: int, moves: np.ndarray) -> str:
    """The cause of the snake's death after these moves, "" if it lives. Strangers' boards are
    large: each is read once.
    """
    after = before.copy()
    step_board(after.arrays, 0, after.rules, moves)
    return CAUSE_NAMES[after.arrays.cause[0, slot]]
