"""How strong is today's alphabeta against an old one, at equal effort? `python -m
tests.benchmarks.yardstick [--snakes 4]`.

The old version (commit 9be3ed9 unless told otherwise) is unpacked into `outputs/yardstick` and
thinks in a process of its own. Both versions first think about the same 64 mid-game positions in
turns, which tells what a node costs each of them in processor time. Then they play a sequential
test as `procsnake sprt` does: the old one with `--nodes` nodes per move, today's with as many as
cost the same. With four snakes, today's has one seat and the old one three. The same command with
`--new-nodes` continues a test that was stopped. With `--fixed` all `--games` are played, because
the Elo of a test that stops early errs towards its verdict."""

from __future__ import annotations

import io
import pickle
import subprocess
import sys
import tarfile
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path

import numpy as np

import agents
from agents.agent import Agent, Decision
from agents.heuristics import FloodFill
from agents.measure.sprt.page import verdict_in_words
from agents.measure.sprt.play import play_sprt
from agents.measure.sprt.settings import Sprt
from agents.measure.sprt.statistics import Hypotheses
from agents.measure.tournament.settings import Player
from agents.measure.tournament.store import Store
from envs.battlesnake.games import play_turn, start_games
from envs.battlesnake.state import State
from procsnake.cli.live import Live
from procsnake.cli.measure.sprt import line
from tests.benchmarks import one_version
from tests.benchmarks.measure import arguments, machine, tell

TODAY = Path(__file__).parents[2]
YARDSTICK = "9be3ed9"
NEVER = 1e-300
"""With such risks not even a thousand games decide a test, be they all won."""


class Elsewhere(Agent):
    """The alphabeta of the version whose files lie in `tree`, in a process of its own. One thread
    at a time may ask it.
    """

    def __init__(self, tree: Path, nodes: int) -> None:
        self.name = f"alphabeta-{tree.name}"
        self.nodes = nodes
        self.cpu_ms = 0.0
        """`cpu_ms` is the processor time of the last answer."""
        # As text, because a script's own folder would be searched for modules before `tree` is.
        command = [sys.executable, "-c", Path(one_version.__file__).read_text()]
        self.process = subprocess.Popen(
            command, cwd=tree, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )

    def act_batch(self, state: State, boards: np.ndarray, slots: np.ndarray) -> np.ndarray:
        return np.array(
            [
                self.act(state.select(np.array([b])), i).move
                for b, i in zip(boards, slots, strict=True)
            ],
            np.int8,
        )

    def act(self, state: State, you: int, deadline: float | None = None) -> Decision:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        question = (
            self.nodes,
            state.width,
            state.height,
            asdict(state.settings),
            state.arrays._asdict(),
            int(you),
        )
        pickle.dump(question, self.process.stdin)
        self.process.stdin.flush()
        move, seconds = pickle.load(self.process.stdout)
        self.cpu_ms = 1000 * seconds
        return Decision(move)

    def close(self) -> None:
        """End the process."""
        self.process.communicate()


def unpack(commit: str, folder: Path) -> Path:
    """Write a commit's files into a folder of its name inside `folder`, unless they are there, and
    return it.
    """
    place = folder / commit
    if not place.is_dir():
        packed = subprocess.run(
            ["git", "archive", commit], cwd=TODAY, check=True, capture_output=True
        ).stdout
        begun = folder / f"{commit}.begun"
        with tarfile.open(fileobj=io.BytesIO(packed)) as files:
            files.extractall(begun, filter="data")
        begun.rename(place)
    return place


def positions(snakes: int, *, count: int = 64, turn: int = 40) -> list[State]:
    """Boards of turn `turn` of the first games between flood-fill snakes in which all still live,
    one state each.
    """
    state = State(16 * count, num_snakes=snakes)
    state.seed(0)
    running = start_games(state)
    player = FloodFill()
    moves = np.zeros((state.num_boards, snakes), np.int8)
    for _ in range(turn):
        for slot in range(snakes):
            boards = np.flatnonzero(running & (state.arrays.cause[:, slot] == 0))
            moves[boards, slot] = player.act_batch(state, boards, np.full(len(boards), slot))
        play_turn(state, moves, running)
    chosen = np.flatnonzero(state.arrays.num_alive == snakes)[:count]
    assert len(chosen) == count, (
        f"only {len(chosen)} games have all their {snakes} snakes on turn {turn}"
    )
    return [state.select(np.array([board])) for board in chosen]


def compare(old: Elsewhere, new: Elsewhere, boards: list[State], runs: int) -> float:
    """Print what a move costs the two, and return the median of the runs' ratios, the new one's
    cost by the old one's.

    A run is all boards, by one and then by the other.
    """
    taken = []
    for board in [boards[0]] * 2:
        old.act(board, 0), new.act(board, 0)
    for _ in range(runs):
        for version in (old, new):
            spent = []
            for board in boards:
                version.act(board, 0)
                spent.append(version.cpu_ms)
            taken.append(np.mean(spent))
    times = np.array(taken).reshape(runs, 2)
    for version, each in zip((old, new), times.T, strict=True):
        spread = f"{each.min():.3f} to {each.max():.3f}, {runs} runs"
        print(
            f"{version.name:<18} {version.nodes:>6} nodes: {np.median(each):.3f} ms per move"
            f" ({spread})"
        )
    ratios = times[:, 1] / times[:, 0]
    print(f"ratio {np.median(ratios):.3f} ({ratios.min():.3f} to {ratios.max():.3f})", flush=True)
    return float(np.median(ratios))


def equal_nodes(old: Elsewhere, snakes: int, runs: int) -> int:
    """Return with how many nodes today's version costs as much per move as the old one with its
    own.
    """
    boards = positions(snakes)
    new = Elsewhere(TODAY, old.nodes)
    # A move costs something beside its nodes, so one step isn't enough.
    for _ in range(2):
        new.nodes = round(new.nodes / compare(old, new, boards, runs))
    compare(old, new, boards, runs)
    new.close()
    return new.nodes


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument(
        "--commit", default=YARDSTICK, help="the old version (default: %(default)s)"
    )
    parser.add_argument(
        "--nodes",
        type=int,
        default=2000,
        help="the old version's nodes per move (default: %(default)s)",
    )
    parser.add_argument(
        "--new-nodes", type=int, help="today's nodes per move (default: as many as cost the same)"
    )
    parser.add_argument(
        "--snakes", type=int, default=2, help="2 to 4 per game (default: %(default)s)"
    )
    parser.add_argument(
        "--games", type=int, default=400, help="games after which it ends (default: %(default)s)"
    )
    parser.add_argument(
        "--elo1", type=float, default=50.0, help="H1 of the test; H0 is 0 (default: %(default)s)"
    )
    parser.add_argument(
        "--fixed", action="store_true", help="play all games; the time to go is wrong then"
    )
    parser.add_argument(
        "--runs",
        type=int,
        default=7,
        help="runs of each version for the cost (default: %(default)s)",
    )
    parser.add_argument("--seed", type=int, default=0, help="of the games (default: 0)")
    options = parser.parse_args()
    folder = TODAY / "outputs" / "yardstick"
    folder.mkdir(parents=True, exist_ok=True)
    print("procsnake yardstick", options.commit, machine(), flush=True)
    with ExitStack() as processes:
        old = Elsewhere(unpack(options.commit, folder), options.nodes)
        processes.callback(old.close)
        nodes = options.new_nodes or equal_nodes(old, options.snakes, options.runs)
        agents.register(old.name, lambda: old)
        today = Player("today", f"alphabeta?nodes={nodes}")
        before = Player(options.commit, old.name)
        risks = {"alpha": NEVER, "beta": NEVER} if options.fixed else {}
        hypotheses = Hypotheses(elo1=options.elo1, **risks)
        test = Sprt(
            players=(today, before), hypotheses=hypotheses, seats=options.snakes, seed=options.seed
        )
        effort = f"{old.nodes}-against-{nodes}-nodes"
        name = f"{options.commit}-{options.snakes}-snakes-{effort}-{options.seed}.db"
        with Store(folder / name, Sprt) as store, Live(line) as live:
            progress = play_sprt(test, store, max_games=options.games, on_game=live)
    print(f"{line(progress)}\n{verdict_in_words(progress)}")
    tell(options, progress.to_dict())


if __name__ == "__main__":
    main()
