"""Which moves of a snake are late if the engine is far away, and what is left of its time to think.

    python -m tests.benchmarks.distant_engine
    python -m tests.benchmarks.distant_engine --agent alphabeta --way 300 440 --telling zero

The first command tries alpha-beta and MCTS, on four networks, with three ways of telling.

An engine of ours plays games of four against `procsnake serve` through a proxy on loopback, which
keeps each packet for half of a round trip that is drawn anew for each request (`--way` LEAST MOST,
in milliseconds). A move is late when its answer takes the official 500 ms or longer. The engine
then plays the last answered move again and tells the timeout as 0 (as Arena does), as the
timeout, or as a larger number; latencies are texts in one turn and numbers in the next. A new
connection costs nothing."""

from __future__ import annotations

import asyncio
import http.client
import json
import random
import threading
import time
from typing import Any
from urllib.parse import urlsplit

import numpy as np

import agents
from envs.battlesnake.games import play_turn, start_games
from envs.battlesnake.state import ALIVE, MOVE_NAMES, UP, State
from envs.battlesnake.webhook import game_object, move_request
from serve.background import Background
from tests.benchmarks.measure import arguments, machine

TIMEOUT_MS = 500
CLIENT_WAITS_MS = 600
SIDE = 11
SNAKES = 4
TURNS = 30
FIRST_MOVES = 12
WAYS = ((0, 0), (200, 200), (300, 440), (460, 490))
TELLINGS = {"zero": 0, "timeout": TIMEOUT_MS, "more": CLIENT_WAITS_MS}
IDS = [f"snake-{slot}" for slot in range(SNAKES)]


class Network:
    """A proxy to `url` on a port of its own that keeps what it passes on. It runs in a thread until
    `close`.
    """

    def __init__(self, url: str, way_ms: tuple[float, float], seed: int) -> None:
        self._target = urlsplit(url)
        self._way_ms = way_ms
        self._chance = random.Random(seed)
        self._loop = asyncio.new_event_loop()
        is_ready = threading.Event()
        self._thread = threading.Thread(target=self._run, args=(is_ready,), daemon=True)
        self._thread.start()
        is_ready.wait()

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()

    def _run(self, is_ready: threading.Event) -> None:
        asyncio.set_event_loop(self._loop)
        server = self._loop.run_until_complete(
            asyncio.start_server(self._connected, "127.0.0.1", 0)
        )
        self.address = f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
        is_ready.set()
        self._loop.run_forever()
        server.close()
        ends = [task for task in asyncio.all_tasks(self._loop) if task.cancel()]
        self._loop.run_until_complete(asyncio.gather(*ends, return_exceptions=True))
        self._loop.close()

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        far_reader, far_writer = await asyncio.open_connection(
            self._target.hostname, self._target.port
        )
        await asyncio.gather(self._pass_on(reader, far_writer), self._pass_on(far_reader, writer))

    async def _pass_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        due = 0.0
        while data := await reader.read(1 << 16):
            # The parts of one message arrive together.
            due = max(due, self._loop.time() + self._chance.uniform(*self._way_ms) / 2000)
            self._loop.call_at(due, writer.write, data)
        self._loop.call_at(max(due, self._loop.time()), writer.close)


class Seat:
    """Our snake's seat at the engine: it asks, and plays the last answered move again if the answer
    is late.
    """

    def __init__(self, address: str, telling: int) -> None:
        self._address = address
        self._telling = telling
        self._connection: http.client.HTTPConnection | None = None
        self.late: list[bool] = []
        self._move = UP
        self._latency = 0

    def move(self, request: dict[str, Any]) -> int:
        """Ask for a move, and return the one that is played."""
        latency = self._latency if len(self.late) % 2 else str(self._latency)
        request["you"]["latency"] = latency
        began = time.monotonic()
        answer = self._ask(json.dumps(request).encode())
        took_ms = 1000 * (time.monotonic() - began)
        self.late.append(answer is None or took_ms >= TIMEOUT_MS)
        self._latency = self._telling if self.late[-1] else int(took_ms)
        if not self.late[-1] and answer is not None:
            self._move = MOVE_NAMES.index(answer["move"])
        return self._move

    def _ask(self, body: bytes) -> dict[str, Any] | None:
        if self._connection is None:
            self._connection = http.client.HTTPConnection(
                self._address, timeout=CLIENT_WAITS_MS / 1000
            )
        try:
            self._connection.request("POST", "/move", body, {"Content-Type": "application/json"})
            return dict(json.loads(self._connection.getresponse().read()))
        except OSError:
            self._connection.close()
            self._connection = None
            return None


def play(address: str, telling: int, seed: int) -> list[bool]:
    """Which moves of a game were late, until our snake is dead or for `TURNS` turns."""
    state = State(1, width=SIDE, height=SIDE, num_snakes=SNAKES)
    state.seed(seed)
    running = start_games(state)
    seat = Seat(address, telling)
    others = agents.make("flood")
    game = game_object(state.settings, f"distant-{time.time_ns()}", timeout_ms=TIMEOUT_MS)
    while running[0] and state.arrays.cause[0, 0] == ALIVE and len(seat.late) < TURNS:
        moves = np.zeros((1, SNAKES), np.int8)
        for slot in np.flatnonzero(state.arrays.cause[0, 1:] == ALIVE) + 1:
            moves[0, slot] = others.act(state.copy(), int(slot)).move
        moves[0, 0] = seat.move(move_request(state, 0, game=game, ids=IDS, names=IDS, you=0))
        play_turn(state, moves, running)
    return seat.late


def measure(agent: str, way_ms: tuple[float, float], telling: str, seed: int) -> dict[str, Any]:
    """Play one game of at least `FIRST_MOVES` moves."""
    with Background(agent, "--no-games") as server:
        network = Network(server.url, way_ms, seed)
        try:
            late: list[bool] = []
            while len(late) <= FIRST_MOVES:
                late = play(network.address, TELLINGS[telling], seed)
                seed = seed + 1
        finally:
            network.close()
        log = [
            line.partition("game=")[2].partition(" ")[2]
            for line in server.log.read_text().splitlines()
            if "the way" in line
        ]
    return {
        "agent": agent,
        "way_ms": way_ms,
        "telling": telling,
        "late_of_first_12": sum(late[:FIRST_MOVES]),
        "late_after": sum(late[FIRST_MOVES:]),
        "moves": len(late),
        "log": log,
    }


def main() -> None:
    parser = arguments(__doc__, with_json=False)
    parser.add_argument(
        "--agent",
        nargs="+",
        default=["alphabeta", "mcts"],
        help="agents to serve (default: %(default)s)",
    )
    parser.add_argument(
        "--way", nargs=2, type=float, metavar=("LEAST", "MOST"), help="round trips of one network"
    )
    parser.add_argument(
        "--telling",
        nargs="+",
        choices=TELLINGS,
        default=list(TELLINGS),
        help="how a timeout is told",
    )
    parser.add_argument(
        "--seed", type=int, default=0, help="of games and jitter (default: %(default)s)"
    )
    options = parser.parse_args()
    for way_ms in WAYS if options.way is None else [tuple(options.way)]:
        for agent in options.agent:
            for telling in options.telling:
                print(json.dumps(measure(agent, way_ms, telling, options.seed)), flush=True)
    print(json.dumps({"machine": machine(), "time": time.strftime("%Y-%m-%d")}))


if __name__ == "__main__":
    main()
