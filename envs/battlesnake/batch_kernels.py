"""One turn of many boards in compiled code: moves, rules, rewards, endings, new games, and what the
snakes see then.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from envs.battlesnake import maps
from envs.battlesnake.games import empty_board
from envs.battlesnake.jit import kernel
from envs.battlesnake.observations import heading_in, to_move
from envs.battlesnake.observing.painting import (
    Scene,
    View,
    clear_picture,
    list_scene,
    paint_observation,
)
from envs.battlesnake.rewards import pay_board
from envs.battlesnake.rules import initialise_board, is_over, step_board
from envs.battlesnake.safety import is_certain_death, move_tails, write_safe_moves
from envs.battlesnake.settings import Rules
from envs.battlesnake.state import ALIVE, Boards, head_cell, is_alive, step_offset

EPISODE_COLUMNS = (
    "game",
    "length",
    "won",
    "cause",
    "killer",
    "snake_length",
    "food_eaten",
    "hazard_turns",
    "game_over",
)
"""What is kept of an ended episode, int32 each."""
GAME, LENGTH, WON, CAUSE, KILLER, SNAKE_LENGTH, FOOD_EATEN, HAZARD_TURNS, GAME_OVER = range(
    len(EPISODE_COLUMNS)
)


class BatchArrays(NamedTuple):
    """The arrays of a `BatchEnv` with R rows, in the form that the kernels take."""

    moves: np.ndarray
    """int8 (N, S): the move of each snake in this turn."""
    ate: np.ndarray
    """int16 (N, S): pieces of food that each snake had eaten before the turn."""
    pictures: np.ndarray
    """uint8 (R, …): the observations, and room behind each."""
    final_pictures: np.ndarray
    """The same for the last observations of episodes that end."""
    scene: Scene
    """Scratch memory, with one place per thread."""
    mask: np.ndarray
    """bool (R, A): False where an action is certain death."""
    valid: np.ndarray
    """bool (R,): whose snake plays."""
    rewards: np.ndarray
    """float32 (R,): the rewards of this turn."""
    events: np.ndarray
    """uint8 (R, events): counts of this turn's events; (0, events) if no reward function asks."""
    terminated: np.ndarray
    """bool (R,): whose snake died or won with this turn."""
    truncated: np.ndarray
    """bool (R,): whose game was cut off at `max_turns`."""
    restart: np.ndarray
    """bool (N,): the game ended with this turn, or was cut off."""
    returns: np.ndarray
    """float64 (R,): the return of the running episode."""
    ended_returns: np.ndarray
    """float64 (R,): the return of the episode that ended last."""
    ended: np.ndarray
    """int32 (R, len(EPISODE_COLUMNS)): the columns of the episode that ended last."""


@kernel
def advance_boards(
    s: Boards,
    r: Rules,
    view: View,
    rows: BatchArrays,
    weights: np.ndarray,
    actions: np.ndarray,
    max_turns: int,
    first: int,
    last: int,
    place: int,
) -> int:
    """One turn of boards first..last - 1 on the standard map: moves, rules, pay, endings, new
    games, and what all see then.

    Returns how many rows' episodes ended.
    """
    num_ended = 0
    for b in range(first, last):
        _play_board(s, b, r, view, rows, weights, actions)
        maps.update_standard(s, b, r)
        num_ended += _close_board(s, b, r, rows, max_turns)
        _show_endings(s, b, r, view, rows, place)
        if rows.restart[b]:
            empty_board(s, b)
            maps.set_up_standard(s, b, r)
            initialise_board(s, b, r)
            s.game[b] += 1
        _show_board(s, b, r, view, rows, place, True)
    return num_ended


@kernel
def _show_endings(s: Boards, b: int, r: Rules, view: View, rows: BatchArrays, place: int) -> None:
    """Paint the last observations of the rows whose episodes ended with this turn."""
    items = -1
    for i in range(s.cause.shape[1]):
        row = b * s.cause.shape[1] + i
        if rows.terminated[row] or rows.truncated[row]:
            if items < 0:
                items = list_scene(s, b, r, view, rows.scene, place)
            paint_observation(
                s,
                b,
                i,
                r,
                view,
                heading_in(s, b, i, r, view),
                rows.scene,
                items,
                place,
                rows.final_pictures,
                row,
            )


@kernel
def play_boards(
    s: Boards, r: Rules, view: View, rows: BatchArrays, weights: np.ndarray, actions: np.ndarray
) -> None:
    """Play the ruleset's step on all boards, and pay for it."""
    for b in range(len(s.turn)):
        _play_board(s, b, r, view, rows, weights, actions)


@kernel
def close_boards(s: Boards, r: Rules, rows: BatchArrays, max_turns: int) -> None:
    """End the turn on all boards, after the map's update."""
    for b in range(len(s.turn)):
        _close_board(s, b, r, rows, max_turns)


@kernel
def show_boards(s: Boards, r: Rules, view: View, rows: BatchArrays, paint: bool) -> None:
    """Write validity and masks of all boards, and what snakes see if `paint`."""
    for b in range(len(s.turn)):
        _show_board(s, b, r, view, rows, 0, paint)


@kernel
def _play_board(
    s: Boards,
    b: int,
    r: Rules,
    view: View,
    rows: BatchArrays,
    weights: np.ndarray,
    actions: np.ndarray,
) -> None:
    """Play the ruleset's step on board b and pay for it."""
    snakes = s.cause.shape[1]
    for i in range(snakes):
        rows.ate[b, i] = s.food_eaten[b, i]
        if rows.valid[b * snakes + i]:
            rows.moves[b, i] = to_move(view, heading_in(s, b, i, r, view), actions[b * snakes + i])
    step_board(s, b, r, rows.moves)
    pay_board(s, b, r, weights, rows.ate, rows.valid, rows.rewards, rows.events)


@kernel
def _close_board(s: Boards, b: int, r: Rules, rows: BatchArrays, max_turns: int) -> int:
    """End the turn, after the map's update: who is done, how it went for them, and whether the game
    starts anew.

    Returns how many rows' episodes ended.
    """
    num_ended = 0
    s.turn[b] += 1
    over = is_over(s, b, r)
    cut = not over and s.turn[b] >= max_turns
    rows.restart[b] = over or cut
    for i in range(s.cause.shape[1]):
        row = b * s.cause.shape[1] + i
        acted = rows.valid[row]
        rows.terminated[row] = acted and (over or not is_alive(s, b, i))
        rows.truncated[row] = acted and cut and is_alive(s, b, i)
        if acted:
            rows.returns[row] += rows.rewards[row]
        if rows.terminated[row] or rows.truncated[row]:
            _note_episode(s, b, i, r, rows, over, cut)
            num_ended += 1
    return num_ended


@kernel
def _note_episode(
    s: Boards, b: int, i: int, r: Rules, rows: BatchArrays, over: bool, cut: bool
) -> None:
    row = b * s.cause.shape[1] + i
    rows.ended_returns[row] = rows.returns[row]
    rows.returns[row] = 0.0
    rows.ended[row, GAME] = s.game[b] - 1
    rows.ended[row, LENGTH] = s.turn[b]
    rows.ended[row, WON] = over and not r.solo and s.cause[b, i] == ALIVE
    rows.ended[row, CAUSE] = s.cause[b, i]
    rows.ended[row, KILLER] = s.killer[b, i]
    rows.ended[row, SNAKE_LENGTH] = s.length[b, i]
    rows.ended[row, FOOD_EATEN] = s.food_eaten[b, i]
    rows.ended[row, HAZARD_TURNS] = s.hazard_turns[b, i]
    rows.ended[row, GAME_OVER] = over or cut


@kernel
def _show_board(
    s: Boards, b: int, r: Rules, view: View, rows: BatchArrays, place: int, paint: bool
) -> None:
    """Write validity and mask of all rows of a board, and what they see if `paint`."""
    snakes = s.cause.shape[1]
    items = 0
    if paint:
        items = list_scene(s, b, r, view, rows.scene, place)
    move_tails(s, b, -1)
    for i in range(snakes):
        row = b * snakes + i
        if is_alive(s, b, i):
            heading = heading_in(s, b, i, r, view)
            if paint:
                paint_observation(
                    s, b, i, r, view, heading, rows.scene, items, place, rows.pictures, row
                )
            _write_mask(s, b, i, r, view, heading, rows.mask, row)
        elif rows.valid[row]:
            if paint:
                clear_picture(view, rows.pictures, row)
            rows.mask[row] = True
        rows.valid[row] = is_alive(s, b, i)
    move_tails(s, b, 1)


@kernel
def _write_mask(
    s: Boards, b: int, i: int, r: Rules, view: View, heading: int, mask: np.ndarray, row: int
) -> None:
    """Write the mask of one row, while the tails are off the board (`move_tails`)."""
    if mask.shape[1] == 4:
        write_safe_moves(s, b, i, r, mask, row, True)
        return
    head = head_cell(s, b, i)
    any_safe = False
    for action in range(3):
        target = head + step_offset(r.width, to_move(view, heading, action))
        mask[row, action] = not is_certain_death(s, b, i, r, target, True)
        any_safe = any_safe or mask[row, action]
    if not any_safe:
        mask[row] = True
