"""How often does a player throw a duel away in one move? `python -m tests.benchmarks.blunders
[AGENT…] [--against flood]`.

A blunder is a move after which trying everything proves death within `--turns` turns, this one
counted, although another move was left after which it proves none. The proof is that of the tactics
suite (`tests.agents.tactics.brute_force`): the opponent answers knowing the move, and no food
appears. Duels of the standard game on 11×11; openings differ by the seed alone."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

import agents
from agents.agent import Agent
from agents.measure.evaluation.battlesnake import wilson_interval
from envs.battlesnake.games import play_turn, start_games
from envs.battlesnake.state import State
from tests.agents.tactics.brute_force import Solver, World, position_of
from tests.benchmarks.measure import arguments, machine, tell

DEFAULT = (
    "champion-standard",
    "champion-duel",
    "champion-royale",
    "flood",
    "classics",
    "alphabeta?nodes=2000",
)
_MAX_TURNS = 500
_PLAYER = 0
_OPPONENT = 1


def decisions(player: Agent, opponent: Agent, games: int, seed: int) -> Iterator[tuple[State, int]]:
    """Play duels one after the other, and yield each board on which the player chose, with its
    move.
    """
    for game in range(games):
        state = State(1, num_snakes=2)
        state.seed(seed + game)
        running = start_games(state)
        moves = np.zeros((1, 2), np.int8)
        for _ in range(_MAX_TURNS):
            if not running[0]:
                break
            moves[0] = [player.act(state, _PLAYER).move, opponent.act(state, _OPPONENT).move]
            yield state.select(np.array([0])), int(moves[0, _PLAYER])
            play_turn(state, moves, running)


def is_blunder(state: State, move: int, turns: int) -> bool:
    """Whether slot 0's move is proven to lose although another one isn't."""
    surviving = Solver(World(state.width, state.height)).surviving_moves(position_of(state), turns)
    return bool(surviving) and move not in surviving


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument(
        "agents",
        nargs="*",
        default=DEFAULT,
        help="as `agents.make` takes them (default: the champions and others)",
    )
    parser.add_argument("--against", default="flood", help="the opponent (default: %(default)s)")
    parser.add_argument(
        "--games", type=int, default=50, help="duels per agent (default: %(default)s)"
    )
    parser.add_argument(
        "--turns", type=int, default=4, help="turns that are tried out (default: %(default)s)"
    )
    parser.add_argument(
        "--seed", type=int, default=0, help="of the first game (default: %(default)s)"
    )
    options = parser.parse_args()
    print(
        f"one-move blunders against {options.against}, {options.games} duels each, {options.turns}"
        " turns;",
        machine(),
    )
    figures = {}
    for name in options.agents:
        played = decisions(
            agents.make(name), agents.make(options.against), options.games, options.seed
        )
        blunders = [is_blunder(state, move, options.turns) for state, move in played]
        share, (low, high) = np.mean(blunders), wilson_interval(sum(blunders), len(blunders))
        figures[name] = {"blunders": sum(blunders), "decisions": len(blunders)}
        print(
            f"{name:<24} {sum(blunders):>5} of {len(blunders):>6} {share:>7.2%}  ({low:.2%} to"
            f" {high:.2%})",
            flush=True,
        )
    tell(options, figures)


if __name__ == "__main__":
    main()
