"""Which moves alpha-beta tries, and in which order: the sooner a good move is tried, the more of
the others can be cut.
"""

from __future__ import annotations

from agents.search.alphabeta.stack import Stack
from agents.search.alphabeta.transposition_table import NO_MOVE
from agents.search.make_unmake import drift
from envs.battlesnake.jit import kernel
from envs.battlesnake.safety import is_certain_death
from envs.battlesnake.settings import Rules
from envs.battlesnake.state import Boards, head_cell, step_offset

# The history of a cell stays far below these, so they decide first.
_KILLER_MERIT = 1 << 40
_TABLE_MERIT = 1 << 41


@kernel
def list_choices(s: Boards, r: Rules, x: Stack, ply: int) -> int:
    """Write the moves of the ply's snake that are not certain death into `x.choices`, the most
    promising first, and return how many there are.

    First comes the move that the table knows, then the killer move of this ply, then the rest by
    the history of the cell to which they lead. If every move is certain death, there is one choice:
    straight on."""
    i = x.players[x.player[ply]]
    head = head_cell(s, 0, i)
    # Positions are in the table as I see them, before anybody has chosen.
    table_move = x.best_move[ply] if x.player[ply] == 0 else NO_MOVE
    count = 0
    for move in range(4):
        target = head + step_offset(r.width, move)
        if is_certain_death(s, 0, i, r, target) or (ply == 0 and not x.allowed[move]):
            continue
        merit = x.history[i, target]
        if move == x.killer[ply]:
            merit += _KILLER_MERIT
        if move == table_move:
            merit += _TABLE_MERIT
        place = count
        while place > 0 and merit > x.merit[place - 1]:
            x.merit[place] = x.merit[place - 1]
            x.choices[ply, place] = x.choices[ply, place - 1]
            place -= 1
        x.merit[place] = merit
        x.choices[ply, place] = move
        count += 1
    if count == 0:
        x.choices[ply, 0] = drift(s, r, i)
        return 1
    return count


@kernel
def credit_cut(s: Boards, r: Rules, x: Stack, ply: int, move: int) -> None:
    """Remember that a move of the ply's snake caused a cut, so that it is tried earlier next
    time.
    """
    i = x.players[x.player[ply]]
    target = head_cell(s, 0, i) + step_offset(r.width, move)
    x.killer[ply] = move
    x.history[i, target] += max(1, x.depth[ply]) ** 2
