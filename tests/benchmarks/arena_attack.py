"""What honest games notice of an attack on `procsnake serve`: late moves, errors, memory and disk,
everything on loopback.

    python -m tests.benchmarks.arena_attack ATTACK

slow       500 sockets, of four kinds that never complete a request
idle       1100 connections that are kept open after an answer
starts     10 000 games that are begun and never played
thinkers   three requests at a time with ten seconds to think, beside a lone game
stalled    processes that keep all cores busy, beside a search
pipelined  packets of 13 000 requests, --count of them per second
upgrades   malformed requests for a WebSocket, --count per second
refused    bodies with one hazard of 3.9 MB, --count per second
heads      heads of 60 kB, --count per second
plain      harmless requests, --count per second, to compare with

`--before FOLDER` serves a checkout of another version, too; then the two take turns, block by
block, under the same load. The first block of each only warms up. A move is late when its answer
takes the official 500 ms or longer from when it was sent. The server, the attackers and the honest
games are processes of their own on one machine."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import http.client
import json
import os
import re
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import numpy as np

from envs.battlesnake.plain import setup_board, state_from_board
from envs.battlesnake.webhook import game_object, move_request
from tests.benchmarks.arena_load import (
    NUM_SNAKES,
    SIDE,
    TIMEOUT_MS,
    Memory,
    in_threads,
    positions,
    untrained_policy,
)
from tests.benchmarks.arena_packets import MAX_PER_SECOND, PACKETS, attack_with_packets
from tests.benchmarks.measure import arguments, machine

MAX_SECONDS = 600
MAX_SOCKETS = 4000
MAX_STARTS = 50_000
MAX_HOGS = 64
HERE = Path(__file__).parents[2]
_HEAD = b"POST /move HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
_RETRY_S = 0.05
_BYTE_S = 0.5
_ATTACKED_TURN = 100_000

Request = dict[str, Any]


def at_usual_priority() -> None:
    """For processes that aren't the clock."""
    os.setpriority(os.PRIO_PROCESS, 0, 0)


def middles() -> list[Request]:
    """Positions from the middle of games."""
    return [json.loads(body) for body in positions(64)]


def openings(prefix: str, count: int) -> list[Request]:
    """First moves of so many games: a search never comes to an end of them."""
    ids = [f"snake-{slot}" for slot in range(NUM_SNAKES)]
    state = state_from_board(setup_board(width=SIDE, height=SIDE, snake_ids=ids))
    games = [
        game_object(state.settings, f"{prefix}-{number}", timeout_ms=TIMEOUT_MS)
        for number in range(count)
    ]
    return [move_request(state, 0, game=game, ids=ids, names=ids, you=0) for game in games]


class Served(NamedTuple):
    """A version that is being served."""

    version: str
    url: str
    process: subprocess.Popen[str]
    folder: Path


@contextlib.contextmanager
def served(version: str, source: Path, agent: str, options: list[str]) -> Iterator[Served]:
    """`procsnake serve` of the sources in a folder, in a process of its own that keeps its games in
    a folder of its own.
    """
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        agent = agent or f"policy={untrained_policy(folder / 'bundle')}"
        command = [
            sys.executable,
            "-m",
            "procsnake",
            "serve",
            agent,
            "--port",
            "0",
            "--database",
            f"sqlite:///{folder}/games.db",
        ]
        with (folder / "log.txt").open("w") as log:
            process = subprocess.Popen(
                [*command, *options],
                cwd=source,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                preexec_fn=at_usual_priority,
            )
        try:
            assert process.stdout is not None
            url = next(
                found[0] for line in process.stdout if (found := re.search(r"http://\S+", line))
            )
            while True:
                with contextlib.suppress(OSError):
                    urllib.request.urlopen(f"{url}/health", timeout=5).close()
                    break
                time.sleep(0.1)
            yield Served(version, url, process, folder)
        finally:
            process.terminate()
            process.wait(60)


class Honest:
    """Games that ask for moves at a steady pace, and what they noticed."""

    def __init__(self) -> None:
        self.latencies_ms: list[float] = []
        self.failures: list[str] = []

    def play(
        self,
        url: str,
        *,
        games: int,
        pace_s: float,
        seconds: float,
        requests: list[Request],
        turn: int = 0,
    ) -> None:
        """Each game on a connection of its own, kept open; `pace_s` from one request to the next,
        turns from `turn` on.
        """
        until = time.monotonic() + seconds
        chosen = [requests[number % len(requests)] for number in range(games)]
        in_threads(
            [
                lambda asked=asked: self._one_game(url, asked, pace_s, until, turn)
                for asked in chosen
            ]
        )

    def _one_game(self, url: str, asked: Request, pace_s: float, until: float, turn: int) -> None:
        connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=10)
        while time.monotonic() < until:
            body = json.dumps({**asked, "turn": turn}).encode()
            turn = turn + 1
            sent = time.monotonic()
            try:
                connection.request("POST", "/move", body, {"Content-Type": "application/json"})
                answer = connection.getresponse()
                answer.read()
                problem = "" if answer.status == 200 else f"HTTP status {answer.status}"
            except (OSError, http.client.HTTPException) as error:
                problem = repr(error)
                connection.close()
            self.latencies_ms.append(1000 * (time.monotonic() - sent))
            self.failures += [problem] if problem else []
            time.sleep(max(0.0, sent + pace_s - time.monotonic()))
        connection.close()

    def figures(self) -> dict[str, Any]:
        p50, p95, p99, most = (
            np.percentile(self.latencies_ms or [0], (50, 95, 99, 100)).round(1).tolist()
        )
        return {
            "moves": len(self.latencies_ms),
            "late": sum(latency >= TIMEOUT_MS for latency in self.latencies_ms),
            "failed": len(self.failures),
            "5xx": sum("status 5" in failure for failure in self.failures),
            "p50_ms": p50,
            "p95_ms": p95,
            "p99_ms": p99,
            "max_ms": most,
            "first_failures": sorted(set(self.failures))[:3],
        }


async def hold(url: str, kind: str, until: float, counts: dict[str, int]) -> None:
    """Keep one slow socket of a kind open, and make another when it is closed."""
    host = urlsplit(url).hostname
    port = urlsplit(url).port
    while time.monotonic() < until:
        try:
            reader, writer = await asyncio.open_connection(host, port)
            counts["opened"] += 1
            try:
                await asyncio.wait_for(
                    _be_slow(kind, reader, writer), max(0.1, until - time.monotonic())
                )
            finally:
                writer.close()
            counts["closed by server"] += 1
        except asyncio.TimeoutError:
            return
        except OSError:
            counts["refused or reset"] += 1
        await asyncio.sleep(_RETRY_S)


async def _be_slow(kind: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Returns when the server hangs up."""
    whole = _HEAD + b"Content-Length: 1000\r\n\r\n" + b" " * 1000
    if kind == "idle":
        writer.write(b"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
    elif kind == "byte by byte":
        for place in range(len(whole)):
            writer.write(whole[place : place + 1])
            with contextlib.suppress(asyncio.TimeoutError):
                if not await asyncio.wait_for(reader.read(1000), _BYTE_S):
                    return
    else:
        writer.write({"silent": b"", "half a header": _HEAD, "half a body": whole[:-500]}[kind])
    while await reader.read(1000):
        pass


SLOW_KINDS = ("silent", "half a header", "half a body", "byte by byte")


def attack_with_sockets(
    url: str, kinds: tuple[str, ...], count: int, seconds: float
) -> dict[str, Any]:
    """Hold so many sockets, the kinds by turns. Runs in a process of its own."""
    counts = {"opened": 0, "closed by server": 0, "refused or reset": 0}

    async def all_of_them() -> None:
        until = time.monotonic() + seconds
        await asyncio.gather(
            *(hold(url, kinds[number % len(kinds)], until, counts) for number in range(count))
        )

    asyncio.run(all_of_them())
    return counts


def attack_with_starts(url: str, count: int, seconds: float) -> dict[str, Any]:
    """Begin so many games, each with names of its own, as fast as the server takes them."""
    (request,), until = openings("hostile", 1), time.monotonic() + seconds
    counts = {"started": 0, "refused": 0}
    connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=10)
    for number in range(count):
        if time.monotonic() > until:
            break
        request["game"]["id"] = f"hostile-{time.time_ns()}-{number}"
        connection.request(
            "POST", "/start", json.dumps(request).encode(), {"Content-Type": "application/json"}
        )
        answer = connection.getresponse()
        answer.read()
        counts["started" if answer.status == 200 else "refused"] += 1
    return counts


def attack_with_thinkers(url: str, count: int, seconds: float) -> dict[str, Any]:
    """So many requests at a time that give the snake ten seconds, each of a game of its own."""
    until = time.monotonic() + seconds
    counts = {"asked": 0}

    def ask(body: Request) -> None:
        connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=20)
        body["game"]["timeout"] = 10_000
        while time.monotonic() < until:
            connection.request(
                "POST", "/move", json.dumps(body).encode(), {"Content-Type": "application/json"}
            )
            connection.getresponse().read()
            counts["asked"] += 1

    in_threads([lambda body=body: ask(body) for body in openings("thinker", count)])
    return counts


def hogs(count: int) -> list[subprocess.Popen[bytes]]:
    """Processes that compute all the time."""
    return [
        subprocess.Popen([sys.executable, "-c", "while True: pass"], preexec_fn=at_usual_priority)
        for _ in range(count)
    ]


@contextlib.contextmanager
def attackers(options: argparse.Namespace, url: str, seconds: float) -> Iterator[dict[str, Any]]:
    """The attack, in a process of its own; what it counted is in the dictionary at the end."""
    counted: dict[str, Any] = {}
    command = [
        sys.executable,
        "-m",
        "tests.benchmarks.arena_attack",
        options.attack,
        "--attack-only",
        url,
    ]
    count = ["--count", str(options.count), "--seconds", str(seconds)]
    attack = subprocess.Popen(
        [*command, *count],
        cwd=HERE,
        stdout=subprocess.PIPE,
        text=True,
        preexec_fn=at_usual_priority,
    )
    try:
        yield counted
        counted.update(json.loads(attack.communicate(timeout=60)[0]))
    finally:
        attack.kill()
        attack.wait()


def attack_only(options: argparse.Namespace) -> dict[str, Any]:
    if options.attack == "starts":
        return attack_with_starts(options.attack_only, options.count, options.seconds)
    if options.attack == "thinkers":
        return attack_with_thinkers(options.attack_only, options.count, options.seconds)
    if options.attack in PACKETS:
        return attack_with_packets(
            options.attack_only, options.attack, options.count, options.seconds
        )
    kinds = SLOW_KINDS if options.attack == "slow" else ("idle",)
    return attack_with_sockets(options.attack_only, kinds, options.count, options.seconds)


def depths(url: str) -> dict[str, list[int]]:
    """How deep a search looked in the lone game, while it was alone and while the server was
    attacked.
    """
    (request,) = openings("honest", 1)
    with urllib.request.urlopen(f"{url}/api/games?limit=100", timeout=10) as answer:
        snake = json.load(answer)["games"][0]["snake"]
    found: dict[str, list[int]] = {}
    for name, since in (("alone", 0), ("attacked", _ATTACKED_TURN)):
        game = f"{url}/api/games/{request['game']['id']}/{snake}"
        place = f"{game}/turns?you={request['you']['id']}&since={since}"
        with urllib.request.urlopen(place, timeout=10) as answer:
            turns = json.load(answer)["turns"]
        inside = [turn for turn in turns if (turn["turn"] >= _ATTACKED_TURN) == (since > 0)]
        found[name] = [turn["note"].get("depth", 0) for turn in inside if turn["note"]]
    return found


def block(
    server: Served, honest: Honest, options: argparse.Namespace, number: int
) -> dict[str, Any]:
    """One turn of a version: honest games, and the attack beside them."""
    requests = (
        openings("honest", options.games)
        if options.attack in ("thinkers", "stalled")
        else middles()
    )
    games = {"games": options.games, "pace_s": options.pace_ms / 1000, "requests": requests}
    if options.attack == "stalled":
        honest.play(server.url, seconds=options.seconds, turn=1000 * number, **games)
        return {}
    if options.attack == "thinkers":
        Honest().play(server.url, seconds=options.seconds, turn=1000 * number, **games)
    with attackers(options, server.url, options.seconds + 2) as counted:
        time.sleep(1)
        honest.play(
            server.url, seconds=options.seconds, turn=_ATTACKED_TURN + 1000 * number, **games
        )
    return counted


def measure(options: argparse.Namespace) -> list[dict[str, Any]]:
    """What honest games noticed of each version."""
    sources = {"now": HERE, **({"before": Path(options.before)} if options.before else {})}
    burning: list[subprocess.Popen[bytes]] = []
    with contextlib.ExitStack() as stack:
        servers = [
            stack.enter_context(served(name, source, options.agent, []))
            for name, source in sources.items()
        ]
        for server in servers:
            Honest().play(server.url, games=2, pace_s=0.05, seconds=2, requests=middles())
        noticed = {server.version: Honest() for server in servers}
        memories = {server.version: Memory(server.process.pid) for server in servers}
        counted: dict[str, dict[str, int]] = {server.version: {} for server in servers}
        for memory in memories.values():
            memory.start()
        try:
            burning += hogs(min(options.count, MAX_HOGS)) if options.attack == "stalled" else []
            for number in range(options.blocks):
                for server in servers if number % 2 == 0 else servers[::-1]:
                    got = block(server, noticed[server.version], options, number)
                    for name, value in got.items():
                        counted[server.version][name] = counted[server.version].get(name, 0) + value
        finally:
            for process in burning:
                process.kill()
                process.wait()
        return [
            figures(
                server,
                noticed[server.version],
                memories[server.version],
                counted[server.version],
                options,
            )
            for server in servers
        ]


def figures(
    server: Served,
    honest: Honest,
    memory: Memory,
    counted: dict[str, int],
    options: argparse.Namespace,
) -> dict[str, Any]:
    seen = {"version": server.version, **honest.figures(), **counted}
    if options.attack in ("thinkers", "stalled"):
        with contextlib.suppress(OSError, KeyError, IndexError):
            seen["watchdog"] = _watchdog(server.url)
    if options.attack == "thinkers":
        seen["depth"] = {
            name: {"median": float(np.median(found)), "lowest": min(found), "turns": len(found)}
            for name, found in depths(server.url).items()
            if found
        }
    used = memory.stop()
    seen["rss_mib"], seen["most_rss_mib"] = used["rss_mib_by_tenth"][-1], round(max(memory.mib), 1)
    seen["cpu_s"] = used["cpu_s"]
    seen["log_kib"] = round((server.folder / "log.txt").stat().st_size / 1024, 1)
    seen["disk_mib"] = round(
        sum(file.stat().st_size for file in server.folder.glob("games.db*")) / 2**20, 2
    )
    return seen


def _watchdog(url: str) -> int:
    with urllib.request.urlopen(f"{url}/metrics", timeout=10) as answer:
        lines = answer.read().decode().splitlines()
    return int(
        sum(
            float(line.split()[-1])
            for line in lines
            if line.startswith("procsnake_moves_total") and 'by="watchdog"' in line
        )
    )


DEFAULTS = {
    "slow": {"count": 500, "seconds": 60, "games": 10, "pace_ms": 100, "agent": "", "blocks": 1},
    "idle": {"count": 1100, "seconds": 60, "games": 10, "pace_ms": 100, "agent": "", "blocks": 1},
    "starts": {
        "count": 10_000,
        "seconds": 30,
        "games": 10,
        "pace_ms": 100,
        "agent": "",
        "blocks": 1,
    },
    "thinkers": {
        "count": 3,
        "seconds": 20,
        "games": 1,
        "pace_ms": 500,
        "agent": "alphabeta",
        "blocks": 2,
    },
    "stalled": {
        "count": 12,
        "seconds": 15,
        "games": 4,
        "pace_ms": 500,
        "agent": "alphabeta",
        "blocks": 6,
    },
    "pipelined": {
        "count": 6,
        "seconds": 12,
        "games": 10,
        "pace_ms": 500,
        "agent": "flood",
        "blocks": 1,
    },
    "upgrades": {
        "count": 950,
        "seconds": 12,
        "games": 10,
        "pace_ms": 500,
        "agent": "flood",
        "blocks": 1,
    },
    "plain": {
        "count": 950,
        "seconds": 12,
        "games": 10,
        "pace_ms": 500,
        "agent": "flood",
        "blocks": 1,
    },
    "refused": {
        "count": 8,
        "seconds": 12,
        "games": 10,
        "pace_ms": 500,
        "agent": "flood",
        "blocks": 1,
    },
    "heads": {
        "count": 18,
        "seconds": 12,
        "games": 10,
        "pace_ms": 500,
        "agent": "flood",
        "blocks": 1,
    },
}


def main() -> None:
    parser = arguments(__doc__, with_json=False)
    parser.add_argument("attack", choices=DEFAULTS, help="what is done to the server")
    parser.add_argument(
        "--count",
        type=int,
        help="sockets, starts, requests at a time, packets per second, or busy processes",
    )
    parser.add_argument("--seconds", type=float, help="how long a block takes")
    parser.add_argument("--blocks", type=int, help="blocks of each version")
    parser.add_argument("--games", type=int, help="honest games")
    parser.add_argument(
        "--pace-ms", type=float, help="milliseconds between two moves of an honest game"
    )
    parser.add_argument(
        "--agent",
        help="agent or bundle to serve (default: an untrained policy, or alphabeta for searches)",
    )
    parser.add_argument(
        "--before", metavar="FOLDER", help="a checkout of the version to compare with"
    )
    parser.add_argument("--attack-only", metavar="URL", help=argparse.SUPPRESS)
    options = parser.parse_args()
    for name, value in DEFAULTS[options.attack].items():
        if getattr(options, name) is None:
            setattr(options, name, value)
    options.seconds = min(MAX_SECONDS, options.seconds)
    bounds = {"starts": MAX_STARTS, "stalled": MAX_HOGS, **dict.fromkeys(PACKETS, MAX_PER_SECOND)}
    options.count = min(bounds.get(options.attack, MAX_SOCKETS), options.count)
    if options.attack_only:
        print(json.dumps(attack_only(options)))
        return
    with contextlib.suppress(OSError, AttributeError):
        os.setpriority(
            os.PRIO_PROCESS, 0, -10
        )  # what is measured is the server's delay, not the clients'
    before = machine()
    for seen in measure(options):
        print(
            json.dumps(
                {"attack": options.attack, **seen, "load": [before["load"], machine()["load"]]}
            )
        )
    print(json.dumps({"machine": before, "time": time.strftime("%Y-%m-%d"), **vars(options)}))


if __name__ == "__main__":
    main()
