"""Plays games of four in which each request is read twice: as the official engine sends it, and as
Arena does, which leaves the dead in. Counts the turns on which the moves differ: in a game without
such a turn, the two shapes are one game.

    python -m tests.benchmarks.arena_shapes --games 400 champion-standard flood
'alphabeta?nodes=300'

The other seats play greedily, a tenth of their moves are careless and a twelfth late.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from typing import Any

import numpy as np

import agents
from agents.agent import Agent
from envs.battlesnake.games import play_turn, start_games
from envs.battlesnake.plain import board_from_state
from envs.battlesnake.state import ALIVE, State
from envs.battlesnake.webhook import move_request, read_move_request
from serve.timing.game_memory import GameMemory
from tests.envs.battlesnake.arena_shape import PlayedTurn, arena_game, shown_turns

IDS = ("s0", "s1", "s2", "s3")
_STRAIGHT_ON = -1
_CARELESS = 0.1
_LATE = 0.08


class Game:
    """One game, played on while its turns are taken: `move` is what seat 0 plays on the board that
    was taken last.
    """

    def __init__(self, state: State, rng: np.random.Generator) -> None:
        self.state = state
        self.move = 0
        self._rng = rng
        self._greedy = agents.make("greedy")

    def turns(self) -> Iterator[PlayedTurn]:
        """Yield the boards on which seat 0 lives and the game goes on."""
        answered: frozenset[str] = frozenset()
        running = np.ones(1, bool)
        while running.all() and self.state.arrays.cause[0, 0] == ALIVE:
            yield PlayedTurn(board_from_state(self.state, 0, IDS), answered)
            living = np.flatnonzero(self.state.arrays.cause[0] == ALIVE)
            moves = np.zeros((1, len(IDS)), np.int8)
            moves[0, living] = self._greedy.act_batch(self.state, np.zeros_like(living), living)
            careless = self._rng.random(len(IDS)) < _CARELESS
            moves[0, careless] = self._rng.integers(0, 4, careless.sum())
            late = self._rng.random(len(IDS)) < _LATE
            moves[0, late] = _STRAIGHT_ON
            moves[0, 0] = self.move
            late[0] = False
            answered = frozenset(IDS[slot] for slot in living if not late[slot])
            play_turn(self.state, moves, running)


def compared(agent: Agent, games: int, *, seed: int = 0) -> dict[str, int]:
    """Return what the two shapes gave in so many games."""
    state = State(1, num_snakes=len(IDS))
    state.seed(seed)
    rng = np.random.default_rng(seed)
    counts = dict.fromkeys(
        ("games", "turns", "turns with corpses", "turns that differ", "games that differ", "won"), 0
    )
    for number in range(games):
        start_games(state)
        differing = _play(agent, Game(state, rng), f"game-{number}", counts)
        counts["games"] += 1
        counts["turns that differ"] += differing
        counts["games that differ"] += differing > 0
        counts["won"] += bool(state.arrays.cause[0, 0] == ALIVE)
    return counts


def _play(agent: Agent, game: Game, game_id: str, counts: dict[str, int]) -> int:
    memory = GameMemory()
    about = arena_game(game_id)
    officials = {**about, "ruleset": {**about["ruleset"], "version": "cli"}}
    differing = 0
    for turn, snakes, alive, board in shown_turns(game.turns()):
        official = move_request(game.state, 0, game=officials, ids=IDS, names=IDS, you=0)
        sent: dict[str, Any] = {
            "game": about,
            "turn": turn,
            "board": {**board, "snakes": snakes},
            "you": snakes[0],
        }
        game.move = _move(agent, read_move_request(official))
        differing += _move(agent, memory.read_move(sent)) != game.move
        counts["turns"] += 1
        counts["turns with corpses"] += len(alive) < len(snakes)
    return differing


def _move(agent: Agent, turn: Any) -> int:
    return int(agent.act(turn.state, turn.you).move)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("agents", nargs="+")
    parser.add_argument("--games", type=int, default=400)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    for name in options.agents:
        print(
            json.dumps(
                {"agent": name, **compared(agents.make(name), options.games, seed=options.seed)}
            ),
            flush=True,
        )


if __name__ == "__main__":
    main()
