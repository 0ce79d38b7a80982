"""Starts and plays games on a `State`. The environment, evaluation, tournaments and search all use
these functions.
"""

from __future__ import annotations

import numpy as np

from envs.battlesnake import maps, rng
from envs.battlesnake.jit import kernel
from envs.battlesnake.rules import initialise_board, is_over, step_board
from envs.battlesnake.settings import STANDARD_MAP, Rules
from envs.battlesnake.state import Boards, State, clear_board


def start_games(state: State, boards: np.ndarray | None = None) -> np.ndarray:
    """Lay out the next game on each of `boards` (integers (n,); default: all boards).

    Board b's game is a function of the state's seed, of b, and of the number of games that were
    played on b before. Returns bool (n,), which is False where the game is over before its first
    turn. Raises `ConfigError` if the map can't be set up."""
    if boards is None:
        boards = np.arange(state.num_boards)
    boards = np.asarray(boards)
    running = np.empty(len(boards), np.bool_)
    _empty_boards(state.arrays, boards)
    maps.set_up(state, boards)
    _initialise_boards(state.arrays, state.rules, boards, running)
    state.arrays.game[boards] += 1
    return running


def continue_games(state: State) -> np.ndarray:
    """Begin games at the positions on all boards. The state's seed decides which food appears, as
    in new games.

    Returns bool (N,), which is False where the game is over already.
    """
    running = np.empty(state.num_boards, np.bool_)
    _continue_boards(state.arrays, state.rules, running)
    state.arrays.game[:] += 1
    return running


def play_turn(state: State, moves: np.ndarray, running: np.ndarray) -> None:
    """Play one turn on every board where `running`, bool (N,), is True, and set `running` to False
    where the game ends.

    `moves` is an integer array (N, S): 0 up, 1 down, 2 left, 3 right. Any other number is the
    official default, straight on."""
    if state.settings.map == STANDARD_MAP:
        _play_standard_boards(state.arrays, state.rules, moves, running)
        return
    boards = np.flatnonzero(running)
    _step_boards(state.arrays, state.rules, moves, boards)
    maps.update(state, boards)
    _close_turns(state.arrays, state.rules, boards, running)


@kernel
def empty_board(s: Boards, b: int) -> None:
    """Clear board b and give it the key of its next game."""
    clear_board(s, b)
    s.key[b] = rng.combine(s.stream[b], s.game[b])


@kernel
def _empty_boards(s: Boards, boards: np.ndarray) -> None:
    for b in boards:
        empty_board(s, b)


@kernel
def _initialise_boards(s: Boards, r: Rules, boards: np.ndarray, running: np.ndarray) -> None:
    for n in range(len(boards)):
        initialise_board(s, boards[n], r)
        running[n] = not is_over(s, boards[n], r)


@kernel
def _continue_boards(s: Boards, r: Rules, running: np.ndarray) -> None:
    for b in range(len(running)):
        s.key[b] = rng.combine(s.stream[b], s.game[b])
        running[b] = not is_over(s, b, r)


@kernel
def _play_standard_boards(s: Boards, r: Rules, moves: np.ndarray, running: np.ndarray) -> None:
    for b in range(len(running)):
        if running[b]:
            step_board(s, b, r, moves)
            maps.update_standard(s, b, r)
            s.turn[b] += 1
            running[b] = not is_over(s, b, r)


@kernel
def _step_boards(s: Boards, r: Rules, moves: np.ndarray, boards: np.ndarray) -> None:
    for b in boards:
        step_board(s, b, r, moves)


@kernel
def _close_turns(s: Boards, r: Rules, boards: np.ndarray, running: np.ndarray) -> None:
    for b in boards:
        s.turn[b] += 1
        running[b] = not is_over(s, b, r)
