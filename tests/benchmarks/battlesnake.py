"""How fast the Battlesnake engine is: `python -m tests.benchmarks.battlesnake [--quick] [--json]`.

11×11, 4 snakes, standard rules, safe-random moves, whole games with food, deaths and resets.
CPU-time rates count every thread. Only in "one game through the batch call" each snake takes its
first allowed move."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable

import numpy as np

from envs.battlesnake import BattlesnakeVectorEnv, EgocentricPlanes, State, maps
from envs.battlesnake.games import empty_board, start_games
from envs.battlesnake.jit import kernel
from envs.battlesnake.rng import MOVES, draw
from envs.battlesnake.rules import initialise_board, is_over, step_board
from envs.battlesnake.safety import write_safe_moves
from envs.battlesnake.state import is_alive
from tests.benchmarks.measure import Rate, arguments, machine, rate, tell

TURNS = 64
OLD_GYM_STEPS_PER_S = 3800
"""The SageMaker starter pack's gym with safe-random moves on two cores of this kind of machine."""
COLD = """
import sys, time
import numpy as np
from envs.battlesnake import BattlesnakeVectorEnv
began = time.perf_counter()
env = BattlesnakeVectorEnv(num_games=64)
env.restart(0)
env.advance(np.zeros(env.num_envs, np.int64))
print(time.perf_counter() - began)
"""


@kernel
def play(s, r, safe, moves, turns, first, last):
    """Play every board for some turns as a search or a tournament would: choose, step, map, and a
    new game at the end.
    """
    snakes = s.cause.shape[1]
    for b in range(first, last):
        for _ in range(turns):
            for i in range(snakes):
                if is_alive(s, b, i):
                    write_safe_moves(s, b, i, r, safe, b)
                    bits = draw(s.key[b], s.turn[b], MOVES, i)
                    moves[b, i] = choose(safe, b, bits)
            step_board(s, b, r, moves)
            maps.update_standard(s, b, r)
            s.turn[b] += 1
            if is_over(s, b, r):
                s.game[b] += 1
                empty_board(s, b)
                maps.set_up_standard(s, b, r)
                initialise_board(s, b, r)


@kernel
def choose(safe, row, bits):
    """A uniform one of the moves that are safe."""
    count = 0
    for move in range(4):
        count += safe[row, move]
    wanted = np.int64((bits >> np.uint64(32)) * np.uint64(count) >> np.uint64(32))
    for move in range(4):
        if safe[row, move]:
            if wanted == 0:
                return move
            wanted -= 1
    return 0


def turns(num_boards: int) -> Callable[[], int]:
    """Board turns without observations."""
    state = State(num_boards)
    state.seed(0)
    start_games(state)
    safe = np.empty((num_boards, 4), np.bool_)
    moves = np.zeros((num_boards, 4), np.int8)
    arrays = state.arrays
    rules = state.rules

    def work() -> int:
        play(arrays, rules, safe, moves, TURNS, 0, num_boards)
        return num_boards * TURNS

    return work


def safe_actions(env: BattlesnakeVectorEnv, rng: np.random.Generator) -> np.ndarray:
    """Random actions out of the mask, for every row."""
    return (rng.random(env.action_mask.shape, dtype=np.float32) * env.action_mask).argmax(axis=1)


def env_turns(env: BattlesnakeVectorEnv, steps: int = 16) -> tuple[Callable[[], int], list[int]]:
    """Whole steps of the environment with observations, masks, rewards and episodes; also counts
    the observations.

    Moves are safe and random. With fewer than 16 games they are the first allowed ones, but for the
    games' beginning."""
    env.restart(0)
    rng = np.random.default_rng(0)
    seen = [0]
    for _ in range(60):
        env.advance(safe_actions(env, rng))
    recorded = [safe_actions(env, rng)]

    def work() -> int:
        for _ in range(steps):
            env.advance(recorded[0])
            seen[0] += int(np.count_nonzero(env.valid))
            recorded[0] = (
                env.action_mask.argmax(axis=1) if env.num_games < 16 else safe_actions(env, rng)
            )
        env.drain_episodes()
        return steps * env.num_games

    return work, seen


def observations(kind: EgocentricPlanes, num_boards: int) -> Callable[[], int]:
    """Observations written for boards in mid-game, into an array that is there already."""
    env = BattlesnakeVectorEnv(num_games=num_boards, observation=kind)
    env.restart(0)
    rng = np.random.default_rng(0)
    for _ in range(25):
        env.advance(safe_actions(env, rng))
    living = int(np.count_nonzero(env.valid))

    def work() -> int:
        env.show()
        return living

    return work


def two_threads(runs: int) -> float:
    """How many times faster 4096 games advance on two threads: median over pairs of the same games
    with the same moves.
    """
    one, two = (
        BattlesnakeVectorEnv(
            num_games=4096, observation=EgocentricPlanes(view="board"), num_threads=n
        )
        for n in (1, 2)
    )
    one.restart(0)
    rng = np.random.default_rng(0)
    moves = []
    for _ in range(100):
        moves.append(safe_actions(one, rng))
        one.advance(moves[-1])

    def seconds(env: BattlesnakeVectorEnv) -> float:
        env.restart(0)
        began = time.perf_counter()
        for actions in moves:
            env.advance(actions)
        return time.perf_counter() - began

    seconds(two)
    return statistics.median(seconds(one) / seconds(two) for _ in range(runs))


def first_call(cache: str) -> float:
    """Seconds from nothing to the first step, in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-c", COLD],
        env={**os.environ, "PROCSNAKE_CACHE": cache},
        capture_output=True,
        text=True,
        check=True,
    )
    return float(done.stdout)


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument(
        "--quick",
        action="store_true",
        help="shorter runs, and without the compile times; under 40 s",
    )
    parser.add_argument("--seconds", type=float, help="of a run (default: 1, or 0.3 with --quick)")
    options = parser.parse_args()
    spent = {"runs": 5, "seconds": options.seconds or (0.3 if options.quick else 1.0)}
    figures: dict[str, float] = {}
    print("procsnake battlesnake", machine())

    def show(name: str, key: str, measured: Rate) -> None:
        print(f"{name:<52} {measured}", flush=True)
        figures[key] = measured.per_cpu_s

    for num_boards in (1024, 4096):
        show(
            f"board turns, {num_boards} boards",
            f"turns_{num_boards}",
            rate(turns(num_boards), **spent),
        )
    figures["turns_per_cpu_s"] = figures["turns_1024"]
    kinds = {
        "board": EgocentricPlanes(view="board"),
        "window_11": EgocentricPlanes(radius=5, rotate=True),
        "window_11_reach": EgocentricPlanes(radius=5, rotate=True, reach=True),
        "window_21": EgocentricPlanes(rotate=True),
    }
    for name, kind in kinds.items():
        show(
            f"observations and masks written, {name}",
            f"observations_{name}",
            rate(observations(kind, 1024), **spent),
        )
    figures["observations_per_cpu_s"] = figures["observations_board"]
    for name, kind in kinds.items():
        work, _ = env_turns(BattlesnakeVectorEnv(num_games=1024, observation=kind))
        show(
            f"whole env steps incl. choosing actions, {name}",
            f"env_turns_{name}",
            rate(work, **spent),
        )
    work, _ = env_turns(BattlesnakeVectorEnv(num_games=1), steps=2000)
    show("one game through the batch call", "turns_single", rate(work, **spent))
    print(
        f"{'… times the old gym (3 800 steps/s)':<52}"
        f" {figures['turns_single'] / OLD_GYM_STEPS_PER_S:9.1f} ×"
    )
    figures["two_threads_ratio"] = two_threads(5)
    print(f"{'two threads, wall time, 4096 games':<52} {figures['two_threads_ratio']:9.2f} ×")
    if not options.quick:
        with tempfile.TemporaryDirectory() as cache:
            figures["first_call_cold_s"], figures["first_call_cached_s"] = (
                first_call(cache),
                first_call(cache),
            )
        print(
            f"first call: {figures['first_call_cold_s']:.1f} s compiling,"
            f" {figures['first_call_cached_s']:.2f} s from the cache"
        )
    tell(options, figures)


if __name__ == "__main__":
    main()
