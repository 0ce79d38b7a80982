"""The map snail_mode: a cell that a tail leaves gets as many hazard layers as the snake is long,
and loses one layer per turn.

The official map keeps the hazards of the next turn above the board, at y + height, where the
players see them. Here `trail` holds them, and `envs.battlesnake.plain` shows them in the same
place."""

from __future__ import annotations

from envs.battlesnake.jit import kernel
from envs.battlesnake.state import Boards, add_hazard, body_cell, head_cell, is_alive, tail_cell


@kernel
def update_trails(s: Boards, b: int) -> None:
    """Take one layer from all hazards, put last turn's trails on the board, and note this
    turn's.
    """
    if s.num_hazards[b]:
        for cell in range(s.hazards.shape[1]):
            if s.hazards[b, cell]:
                add_hazard(s, b, cell, -1)
    for i in range(s.cause.shape[1]):
        cell = s.trail[b, i, 0]
        layers = s.trail[b, i, 1]
        if layers and not _holds_head(s, b, cell):
            add_hazard(s, b, cell, layers)
        s.trail[b, i, 1] = 0
    for i in range(s.cause.shape[1]):
        length = s.length[b, i]
        if (
            is_alive(s, b, i)
            and length > 1
            and tail_cell(s, b, i) != body_cell(s, b, i, length - 2)
        ):
            s.trail[b, i, 0] = tail_cell(s, b, i)
            s.trail[b, i, 1] = length


@kernel
def _holds_head(s: Boards, b: int, cell: int) -> bool:
    """Whether a living head is on the cell; a trail that falls there is lost."""
    for i in range(s.cause.shape[1]):
        if is_alive(s, b, i) and head_cell(s, b, i) == cell:
            return True
    return False
