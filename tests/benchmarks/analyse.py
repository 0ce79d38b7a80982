"""Does `procsnake analyse` flag the right turn, and how long does it take? `python -m
tests.benchmarks.analyse [--nodes N]`.

The games are those of `tests.agents.measure.analysis.throw_aways`: each has a move that loses by
force, proven by trying everything, where another one doesn't. Right is an analysis of the loser's
game that names that turn as the one where the game was lost. With `--time` it also analyses a duel
of 300 turns by the command line, with its own number of nodes and on all cores."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from functools import partial
from pathlib import Path

from agents.measure.analysis.game import NODES, analyse
from agents.measure.analysis.snake_game import game_of
from agents.measure.analysis.win_probability import WinProbability
from agents.measure.evaluation.referee import Referee
from agents.parallel import processes, spread
from agents.registry import make
from envs.common.cores import usable_cores
from tests.agents.measure.analysis.throw_aways import Proof, kept
from tests.benchmarks.measure import arguments, machine, tell

_TURNS = 300


def flagged(number: int, nodes: int) -> tuple[Proof, int, int | None, int | None]:
    """A game's proof, the side of its board, and the turn that the analysis names, with that of the
    last chance.
    """
    recording, proof = kept()[number]
    analysis = analyse(
        game_of(recording, proof.victim), nodes=nodes, curves=WinProbability.shipped()
    )
    lost, last = (
        None if n is None else analysis.turns[n].turn for n in (analysis.lost, analysis.last_chance)
    )
    return proof, int(recording.boards()[0]["width"]), lost, last


def long_duel(folder: Path) -> Path:
    """The recording of a duel of at least 300 turns, cut off there."""
    for seed in range(1000):
        path = folder / f"{seed}.jsonl"
        player = make("alphabeta", nodes=300)
        referee = Referee([player, player], seed=seed, max_turns=_TURNS, recording=path)
        for _ in referee.play():
            pass
        if referee.result.turns >= _TURNS:
            return path
    raise AssertionError("of 1000 duels none lasts 300 turns")


def tell_time() -> dict[str, float]:
    with tempfile.TemporaryDirectory() as scratch:
        path = long_duel(Path(scratch))
        command = [sys.executable, "-m", "procsnake", "analyse", str(path), "--json"]
        began = time.perf_counter()
        before = os.times()
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        wall = time.perf_counter() - began
        after = os.times()
    cpu = sum(after[2:4]) - sum(before[2:4])
    took = f"{wall:.1f} s, {cpu:.1f} s of processor time"
    load = os.getloadavg()[0]
    print(f"a duel of {_TURNS} turns, {NODES} nodes per turn: {took}; load {load:.1f}")
    return {"wall_s": wall, "cpu_s": cpu}


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument(
        "--nodes", type=int, default=NODES, help="nodes per turn (default: %(default)s)"
    )
    parser.add_argument(
        "--games", type=int, default=len(kept()), help="how many of the games (default: all)"
    )
    parser.add_argument(
        "--time", action="store_true", help="also measure how long a duel of 300 turns takes"
    )
    options = parser.parse_args()
    print("procsnake analyse", machine())
    with processes(usable_cores()) as pool:
        found = spread(
            pool, partial(flagged, nodes=options.nodes), range(options.games), lambda done, of: None
        )
    kinds: dict[str, list[bool]] = defaultdict(list)
    for number, (proof, side, lost, last) in enumerate(found):
        is_right = lost == proof.turn
        for kind in ("all", f"{side}×{side}", f"loses in {proof.loses_in} turns"):
            kinds[kind].append(is_right)
        if not is_right:
            print(
                f"game {number}: thrown away on turn {proof.turn}, flagged on {lost}, last chance"
                f" on {last}"
            )
    for kind, right in kinds.items():
        print(f"{kind:<18} {sum(right):>3} of {len(right):<3} flagged at the right turn")
    figures = {kind: [sum(right), len(right)] for kind, right in kinds.items()}
    times = tell_time() if options.time else {}
    tell(options, {**figures, **times, "nodes": options.nodes})


if __name__ == "__main__":
    main()
