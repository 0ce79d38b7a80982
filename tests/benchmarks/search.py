"""How fast the search is: `python -m tests.benchmarks.search [--quick] [--json]`.

11×11 duels in mid-game, 64 positions of seeded games between flood-fill snakes; one thread unless
said. A node of alpha-beta is a position in which a snake chooses or that is judged; a simulation
step of MCTS is a turn of all snakes played in the tree."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from itertools import cycle, product

import numpy as np

from agents.agent import Agent
from agents.heuristics import FloodFill
from agents.search import MCTS, AlphaBeta
from agents.search.alphabeta.agent import DEFAULT_EVALUATION, DEFAULT_NODES
from agents.search.evaluation.learned import HAND_WRITTEN
from envs.battlesnake.games import play_turn, start_games
from envs.battlesnake.state import State
from tests.benchmarks.measure import Rate, arguments, machine, rate, tell

NODES = 50_000
SIMULATIONS = 10_000
THINKING_MS = (50, 450)
"""Wall time for a move: a short one, and about what is left of an arena's 500 ms."""


def duels(count: int = 64, *, turn: int = 60) -> list[State]:
    """Boards of turn `turn` of the first duels between flood-fill snakes that last so long, one
    state each.
    """
    state = State(4 * count, num_snakes=2)
    state.seed(0)
    running = start_games(state)
    player = FloodFill()
    moves = np.zeros((state.num_boards, 2), np.int8)
    for _ in range(turn):
        for slot in range(2):
            boards = np.flatnonzero(running)
            moves[boards, slot] = player.act_batch(state, boards, np.full(len(boards), slot))
        play_turn(state, moves, running)
    chosen = np.flatnonzero(running)[:count]
    assert len(chosen) == count, f"only {len(chosen)} games lasted {turn} turns"
    return [state.select(np.array([board])) for board in chosen]


def thinking(agent: Agent, positions: Iterator[State], key: str) -> Callable[[], int]:
    """Have the agent think about the next position; counts what it notes under `key`."""
    return lambda: agent.act(next(positions), 0).note[key]


def in_time(positions: list[State], milliseconds: int, threads: int) -> tuple[float, float]:
    """Turns that alpha-beta looks ahead in this wall time, and nodes that it sees: means over the
    positions.
    """
    agent = AlphaBeta(margin_ms=0.0, threads=threads)
    agent.act(positions[0], 0)
    notes = [
        agent.act(position, 0, time.monotonic() + milliseconds / 1000).note
        for position in positions
    ]
    return float(np.mean([note["depth"] for note in notes])), float(
        np.mean([note["nodes"] for note in notes])
    )


def share_of_speed(positions: list[State], runs: int) -> list[float]:
    """Nodes per CPU second with the learned evaluation by those with the hand-written one. They
    take turns on each position.
    """
    players = [
        AlphaBeta(nodes=DEFAULT_NODES, evaluation=evaluation)
        for evaluation in (HAND_WRITTEN, DEFAULT_EVALUATION)
    ]
    shares = []
    for run in range(1 + runs):
        nodes = np.zeros(2)
        seconds = np.zeros(2)
        for position in positions[:1] if run == 0 else positions:
            for place, player in enumerate(players):
                began = time.thread_time()
                nodes[place] += player.act(position, 0).note["nodes"]
                seconds[place] += time.thread_time() - began
        by_hand, learned = nodes / seconds
        shares.append(float(learned / by_hand))
    return shares[1:]


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument(
        "--quick",
        action="store_true",
        help="shorter runs; under 30 s once the kernels are compiled",
    )
    parser.add_argument("--seconds", type=float, help="of a run (default: 4, or 1.5 with --quick)")
    options = parser.parse_args()
    # A run goes through all 64 positions about once.
    spent = {
        "runs": 3 if options.quick else 7,
        "seconds": options.seconds or (1.5 if options.quick else 4.0),
    }
    positions = duels()
    figures: dict[str, float] = {}
    print("procsnake search", machine())

    def show(name: str, key: str, measured: Rate) -> None:
        print(f"{name:<44} {measured}", flush=True)
        figures[key] = measured.per_cpu_s

    alphabeta = AlphaBeta(nodes=NODES)
    mcts = MCTS(simulations=SIMULATIONS)
    show(
        "alpha-beta, nodes",
        "alphabeta_nodes_per_cpu_s",
        rate(thinking(alphabeta, cycle(positions), "nodes"), **spent),
    )
    show(
        "alpha-beta, turns played",
        "alphabeta_turns_per_cpu_s",
        rate(thinking(alphabeta, cycle(positions), "turns"), **spent),
    )
    show(
        "MCTS, simulation steps",
        "mcts_steps_per_cpu_s",
        rate(thinking(mcts, cycle(positions), "turns"), **spent),
    )
    show(
        "MCTS, simulations",
        "mcts_simulations_per_cpu_s",
        rate(thinking(mcts, cycle(positions), "simulations"), **spent),
    )
    shares = share_of_speed(positions, spent["runs"])
    figures["alphabeta_learned_share_of_nodes"] = float(np.median(shares))
    spread = f"{min(shares):.2f} to {max(shares):.2f}, {len(shares)} runs"
    print(
        f"nodes per CPU-s, learned evaluation by hand-written one: {np.median(shares):.2f}"
        f" ({spread})",
        flush=True,
    )
    for milliseconds, threads in product(THINKING_MS, (1, 2)):
        depth, nodes = in_time(
            positions[::4] if options.quick else positions, milliseconds, threads
        )
        figures |= {
            f"alphabeta_depth_{milliseconds}_ms_{threads}_threads": depth,
            f"alphabeta_nodes_{milliseconds}_ms_{threads}_threads": nodes,
        }
        print(
            f"alpha-beta in {milliseconds} ms of wall time, threads={threads}: {depth:.2f} turns"
            f" ahead, {nodes:,.0f} nodes",
            flush=True,
        )
    tell(options, figures)


if __name__ == "__main__":
    main()
