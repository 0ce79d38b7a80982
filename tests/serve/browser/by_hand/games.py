"""Games that a person plays in tests."""

from __future__ import annotations

import numpy as np

import agents
from agents.agent import Agent
from agents.bundle import BundleError
from envs.battlesnake.settings import Settings
from serve.browser.by_hand.game import HumanGame
from serve.browser.by_hand.table import Setup

UP, DOWN, LEFT, RIGHT = range(4)
NO_NEW_FOOD = Settings(food_spawn_chance=0, minimum_food=0)


class Circles(Agent):
    """Goes round in a square of four cells, by the turn alone; `first` is its move on turn 0."""

    name = "circles"

    def __init__(self, first: int = 0) -> None:
        self.first = first

    def act_batch(self, state, boards, slots):
        circle = [UP, RIGHT, DOWN, LEFT]
        turns = state.arrays.turn[boards] + circle.index(self.first)
        return np.array([circle[turn % 4] for turn in turns], np.int8)


class Fails(Circles):
    """Fails on turn 2, as often as it is asked there."""

    name = "fails"

    def act_batch(self, state, boards, slots):
        if state.arrays.turn[boards[0]] == 2:
            raise RuntimeError("a bug of its own")
        return super().act_batch(state, boards, slots)


class Picky(Circles):
    """Knows boards of width 7 only, and on others fails as a bundle does (height 7), or as a bug
    does.
    """

    name = "picky"

    def act_batch(self, state, boards, slots):
        if state.width != 7:
            raise BundleError("it knows boards of 7×7") if state.height == 7 else IndexError("7")
        return super().act_batch(state, boards, slots)


OWN = {"circles": Circles, "fails": Fails, "picky": Picky}


def make(spec: str) -> Agent:
    return OWN[spec]() if spec in OWN else agents.make(spec)


def game_of(tmp_path, *opponents: str, hint_by: str = "alphabeta?nodes=500", **setup) -> HumanGame:
    """A game of a person, on 7×7 and without new food unless the setup says otherwise."""
    chosen = Setup(
        **{
            "width": 7,
            "height": 7,
            "seed": 1,
            "opponents": opponents,
            "settings": NO_NEW_FOOD,
            **setup,
        }
    )
    return HumanGame(chosen, make=make, recording=tmp_path / "game.jsonl", hint_by=hint_by)


def circle(game: HumanGame, turns: int) -> None:
    """Have the person go round in a square."""
    for _ in range(turns):
        game.move([UP, RIGHT, DOWN, LEFT][game.turn % 4], turn=game.turn)


def arrays(game: HumanGame) -> dict[str, np.ndarray]:
    """Copies of all arrays of the board."""
    return {name: array.copy() for name, array in game.referee.state.arrays._asdict().items()}


def same(one: dict[str, np.ndarray], other: dict[str, np.ndarray]) -> bool:
    return all((one[name] == other[name]).all() for name in one)
