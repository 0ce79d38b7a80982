"""How `procsnake serve` does under load, with the client on the same machine: latencies, timeouts,
errors, memory.

    python -m tests.benchmarks.arena_load --rate 50 --seconds 60
    python -m tests.benchmarks.arena_load --games 20 --seconds 600
    python -m tests.benchmarks.arena_load --agent alphabeta --games 20 …

--rate asks /move at a steady rate, whatever the answers take. --games plays whole games side by
side, refereed over HTTP. --agent serves another agent or bundle.

Without --agent it serves an untrained policy of the shipped architecture
(experiments/battlesnake-ppo.yaml), which costs what a trained one does. At a steady rate, latencies
count from the moment a request was due to be sent, so that an answer that is slow also counts for
those that queue behind it. `games_per_core` is how many games of this pace keep one core busy, by
the processor time that the server took; agents that think until the timeout take whatever there
is. Memory is the resident size of all worker processes; its drift is the last tenth of the run
against the second one."""

from __future__ import annotations

import contextlib
import http.client
import itertools
import json
import re
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np

import agents
from agents.measure.evaluation.referee import Referee
from envs.battlesnake.games import play_turn, start_games
from envs.battlesnake.observations import EgocentricPlanes
from envs.battlesnake.plain import board_from_state
from envs.battlesnake.state import ALIVE, State
from envs.battlesnake.webhook import game_object, move_request
from tests.benchmarks.measure import arguments, machine, tell

TIMEOUT_MS = 500
SIDE = 11
NUM_SNAKES = 4
MAX_SECONDS = 3600
MAX_REQUESTS = 1_000_000
CLIENTS = 32


def untrained_policy(folder: Path) -> Path:
    """A bundle of the architecture that `procsnake train battlesnake-ppo` trains."""
    from agents import bundle, networks
    from tests.agents.bundles import make_card
    from train.config import Experiment

    experiment = Experiment.load("battlesnake-ppo")
    observation = EgocentricPlanes(**experiment.env.options["observation"])
    wanted = {"name": experiment.network.name, "options": experiment.network.options}
    card = {**make_card(observation, size=SIDE), "network": wanted}
    network = networks.build(
        wanted["name"],
        tuple(card["observation_shape"]),
        observation.num_actions,
        **wanted["options"],
    )
    return bundle.export(folder, network=network, card=card)


@contextlib.contextmanager
def served(agent: str, workers: int) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """(URL, process) of a server in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        if not agent:
            agent = f"policy={untrained_policy(Path(folder) / 'bundle')}"
        options = [
            "--port",
            "0",
            "--workers",
            str(workers),
            "--database",
            f"sqlite:///{folder}/games.db",
        ]
        command = [sys.executable, "-m", "procsnake", "serve", agent, *options]
        server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        try:
            assert server.stdout is not None
            yield (
                next(
                    found[0] for line in server.stdout if (found := re.search(r"http://\S+", line))
                ),
                server,
            )
        finally:
            server.terminate()
            server.wait(60)


def positions(count: int) -> list[bytes]:
    """Requests from the middle of games among greedy snakes, each of a game of its own."""
    state = State(count, width=SIDE, height=SIDE, num_snakes=NUM_SNAKES)
    state.seed(1)
    running = start_games(state)
    greedy = agents.make("greedy")
    boards, slots = np.divmod(np.arange(count * NUM_SNAKES), NUM_SNAKES)
    for _ in range(30):
        alive = state.arrays.cause[boards, slots] == ALIVE
        moves = np.zeros(len(boards), np.int8)
        moves[alive] = greedy.act_batch(state, boards[alive], slots[alive])
        play_turn(state, moves.reshape(count, NUM_SNAKES), running)
    ids = [f"snake-{slot}" for slot in range(NUM_SNAKES)]
    requests = []
    for board in range(count):
        living = np.flatnonzero(state.arrays.cause[board] == ALIVE)
        if len(living):
            game = game_object(state.settings, f"load-{board}", timeout_ms=TIMEOUT_MS)
            latencies = ["41"] * len(ids)
            you = int(living[0])
            request = move_request(
                state, board, game=game, ids=ids, names=ids, you=you, latencies=latencies
            )
            requests.append(_with_corpses(request, state, board, ids))
    return [json.dumps(request).encode() for request in requests]


def _with_corpses(
    request: dict[str, Any], state: State, board: int, ids: list[str]
) -> dict[str, Any]:
    """The request as Arena sends it, with the dead as they died."""
    snakes = board_from_state(state, board, ids)["snakes"]
    shown = {"name": "gone", "latency": "0", "shout": ""}
    dead = [
        {**snake, **shown, "head": snake["body"][0]} for snake in snakes if snake["eliminatedCause"]
    ]
    corpses = [
        {key: value for key, value in snake.items() if not key.startswith("eliminated")}
        for snake in dead
    ]
    ruleset = {**request["game"]["ruleset"], "version": "v1.0.0"}
    whole = {**request["board"], "snakes": [*request["board"]["snakes"], *corpses]}
    return {**request, "game": {**request["game"], "ruleset": ruleset}, "board": whole}


class Load:
    """What the clients saw."""

    def __init__(self) -> None:
        self.latencies_ms: list[float] = []
        self.failures: list[str] = []
        self.games = 0

    def figures(self, seconds: float) -> dict[str, Any]:
        shares = dict(
            zip(
                ("p50_ms", "p95_ms", "p99_ms", "max_ms"),
                np.percentile(self.latencies_ms or [0], (50, 95, 99, 100)),
            )
        )
        return {
            "moves": len(self.latencies_ms),
            "moves_per_s": round(len(self.latencies_ms) / seconds, 1),
            "games_played": self.games,
            **{name: round(float(value), 2) for name, value in shares.items()},
            "timeouts": sum(latency >= TIMEOUT_MS for latency in self.latencies_ms),
            "failures": len(self.failures),
            "server_errors": sum("status 5" in failure for failure in self.failures),
            "first_failures": self.failures[:3],
        }


def steady(url: str, rate: float, seconds: float) -> Load:
    """Ask for moves at a steady rate, each from the moment that it is due."""
    load = Load()
    bodies = positions(64)
    lock = threading.Lock()
    ticks = itertools.count()
    began = time.monotonic() + 0.5

    def client() -> None:
        connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=10)
        while (number := next(ticks)) < min(rate * seconds, MAX_REQUESTS):
            due = began + number / rate
            time.sleep(max(0.0, due - time.monotonic()))
            try:
                connection.request(
                    "POST",
                    "/move",
                    bodies[number % len(bodies)],
                    {"Content-Type": "application/json"},
                )
                answer = connection.getresponse()
                answer.read()
                problem = "" if answer.status == 200 else f"HTTP status {answer.status}"
            except (OSError, http.client.HTTPException) as error:
                problem = repr(error)
                connection.close()
            with lock:
                load.latencies_ms.append(1000 * (time.monotonic() - due))
                load.failures += [problem] if problem else []
        connection.close()

    in_threads([client] * CLIENTS)
    return load


def whole_games(url: str, count: int, pace_ms: float, seconds: float) -> Load:
    """Play so many games side by side, again and again; a turn takes at least `pace_ms`, as others
    think, too.
    """
    load = Load()
    lock = threading.Lock()
    seeds = itertools.count()
    until = time.monotonic() + seconds

    def play() -> None:
        while time.monotonic() < until:
            others = [agents.make("random") for _ in range(NUM_SNAKES - 1)]
            referee = Referee(
                [url, *others], width=SIDE, height=SIDE, seed=next(seeds), timeout_ms=TIMEOUT_MS
            )
            began = time.monotonic()
            for frame in referee.play():
                with lock:
                    load.latencies_ms += (
                        [frame.latencies_ms[0]] if frame.latencies_ms[0] is not None else []
                    )
                    load.failures += frame.failures.values()
                if frame.latencies_ms[0] is not None:
                    time.sleep(max(0.0, pace_ms / 1000 - (time.monotonic() - began)))
                began = time.monotonic()
                if began > until:
                    break
            with lock:
                load.games += 1

    in_threads([play] * count)
    return load


def in_threads(jobs: list[Any]) -> None:
    threads = [threading.Thread(target=job) for job in jobs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


class Memory(threading.Thread):
    """Samples the resident memory of a server's workers, and the processor time they use, twice a
    second.
    """

    def __init__(self, server: int) -> None:
        super().__init__(daemon=True)
        self._server = server
        self._done = threading.Event()
        self.mib: list[float] = []
        self.cpu_s = 0.0

    def run(self) -> None:
        first = None
        while not self._done.wait(0.5):
            workers = Path(f"/proc/{self._server}/task/{self._server}/children").read_text().split()
            self.mib.append(sum(_resident_mib(worker) for worker in workers))
            used = sum(_cpu_s(worker) for worker in workers)
            first = used if first is None else first
            self.cpu_s = used - first

    def stop(self) -> dict[str, Any]:
        self._done.set()
        self.join()
        tenths = [
            round(float(np.median(part)), 1) for part in np.array_split(self.mib, 10) if len(part)
        ]
        drift = 100 * (tenths[-1] / tenths[min(1, len(tenths) - 1)] - 1)
        return {
            "rss_mib_by_tenth": tenths,
            "rss_drift_percent": round(drift, 2),
            "cpu_s": round(self.cpu_s, 1),
        }


def _resident_mib(pid: str) -> float:
    with contextlib.suppress(OSError):
        return next(
            int(line.split()[1]) / 1024
            for line in open(f"/proc/{pid}/status")
            if line.startswith("VmRSS")
        )
    return 0.0


def _cpu_s(pid: str) -> float:
    with contextlib.suppress(OSError):
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / 100
    return 0.0


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument(
        "--agent", default="", help="agent or bundle to serve (default: an untrained policy)"
    )
    parser.add_argument("--rate", type=float, help="requests a second")
    parser.add_argument(
        "--games",
        type=int,
        default=20,
        help="games side by side, without --rate (default: %(default)s)",
    )
    parser.add_argument(
        "--pace-ms",
        type=float,
        default=100,
        help="milliseconds a turn takes at least (default: %(default)s)",
    )
    parser.add_argument(
        "--seconds", type=float, help="how long (default: 60 at a rate, 600 for games)"
    )
    parser.add_argument(
        "--workers", type=int, default=1, help="worker processes (default: %(default)s)"
    )
    parser.add_argument("--quick", action="store_true", help="ten seconds")
    options = parser.parse_args()
    seconds = min(
        MAX_SECONDS, 10 if options.quick else options.seconds or (60 if options.rate else 600)
    )
    print("procsnake serve", machine(), flush=True)
    with served(options.agent, options.workers) as (url, server):
        memory = Memory(server.pid)
        memory.start()
        if options.rate:
            load = steady(url, options.rate, seconds)
        else:
            load = whole_games(url, min(options.games, 200), options.pace_ms, seconds)
        figures = {**load.figures(seconds), **memory.stop(), "load_after": machine()["load"]}
        figures["cpu_ms_per_move"] = round(1000 * figures["cpu_s"] / max(1, figures["moves"]), 2)
        if not options.rate:
            figures["games_per_core"] = int(options.pace_ms / max(0.01, figures["cpu_ms_per_move"]))
    for name, value in figures.items():
        print(f"{name:<20} {value}")
    asked = {name: value for name, value in vars(options).items() if name not in ("json", "quick")}
    tell(options, {**asked, **figures, "seconds": seconds})


if __name__ == "__main__":
    main()
