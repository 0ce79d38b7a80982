"""Boards for the tests: made by hand, or picked out of random games."""

from __future__ import annotations

from typing import Any

import numpy as np

from agents.heuristics import RandomLegal
from agents.measure.evaluation import play_games
from envs.battlesnake.plain import state_from_board
from envs.battlesnake.settings import Settings
from envs.battlesnake.state import State

Point = tuple[int, int]


def board(
    *bodies: list[Point],
    size: tuple[int, int] = (7, 7),
    food: list[Point] = (),
    hazards: list[Point] = (),
    health: int | list[int] = 90,
    **settings: Any,
) -> State:
    """A state of one board: bodies head first; one health for all or one each; `settings` as
    `Settings` has them.
    """
    healths = [health] * len(bodies) if isinstance(health, int) else health
    snakes = [
        {"id": str(i), "health": h, "body": points(body)}
        for i, (h, body) in enumerate(zip(healths, bodies, strict=True))
    ]
    plain = {"turn": 10, "width": size[0], "height": size[1], "snakes": snakes}
    plain |= {"food": points(food), "hazards": points(hazards)}
    return state_from_board(plain, settings=Settings(**settings))


def points(pairs: list[Point]) -> list[dict[str, int]]:
    """Points in webhook form."""
    return [{"x": x, "y": y} for x, y in pairs]


class Recorder(RandomLegal):
    """Plays at random and keeps a copy of the boards on which it is to move."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[tuple[State, np.ndarray, np.ndarray]] = []

    def act_batch(self, state: State, boards: np.ndarray, slots: np.ndarray) -> np.ndarray:
        if state.arrays.turn[boards[0]] % 7 == 3:
            self.seen.append((state.copy(), boards, slots))
        return super().act_batch(state, boards, slots)


def played_boards(
    num_games: int, *, width: int = 11, height: int = 11, num_snakes: int = 4, **settings: Any
) -> list[tuple[State, np.ndarray, np.ndarray]]:
    """(state, boards, slots) of every seventh turn of random games: who is to move, and on which
    boards.
    """
    recorder = Recorder()
    agents = [recorder] * num_snakes
    play_games(
        agents,
        num_games=num_games,
        width=width,
        height=height,
        settings=Settings(**settings),
        seed=5,
    )
    return recorder.seen
