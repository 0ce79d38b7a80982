"""What strangers can make a server keep, on disk and in memory.

    python -m tests.benchmarks.arena_storage starts --count 10000 --keep-mib 1
    python -m tests.benchmarks.arena_storage shapes --count 2000

With "starts", games only begin, each as large as may be. With "shapes", a search plays on boards of
as many shapes.

The server runs in processes of its own; its workers' resident memory and its database (with
SQLite's log) are measured before and after, and the disk's highest point on the way."""

from __future__ import annotations

import http.client
import itertools
import json
import tempfile
import time
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import agents
from envs.battlesnake.plain import setup_board, state_from_board
from envs.battlesnake.webhook import game_object, move_request
from serve.background import Background
from serve.server import warm_up
from tests.benchmarks.measure import arguments, machine

MAX_COUNT = 100_000
CLIENTS_BATCH = 500
LONG_TEXT = "\U0001f40d" * 256


def opening(
    width: int, height: int, num_snakes: int, *, game_id: str, text: str = ""
) -> dict[str, Any]:
    """The first request of a game."""
    ids = [f"snake-{n}" for n in range(num_snakes)]
    state = state_from_board(setup_board(width=7, height=7, snake_ids=ids[:1]))
    game = game_object(state.settings, game_id, timeout_ms=200)
    request = move_request(state, 0, game=game, ids=ids[:1], names=[text or ids[0]], you=0)
    one = request["board"]["snakes"][0]
    cells = itertools.product(range(width), range(height))
    snakes = [
        {**one, "id": name, "body": [{"x": x, "y": y}], "head": {"x": x, "y": y}, "length": 1}
        for name, (x, y) in zip(ids, cells, strict=False)
    ]
    board = {
        **request["board"],
        "width": width,
        "height": height,
        "food": [],
        "hazards": [],
        "snakes": snakes,
    }
    return {**request, "board": board, "you": snakes[0]}


def shapes(count: int) -> list[tuple[int, int, int]]:
    """So many (width, height, number of snakes), each another."""
    every = ((w, h, n) for n in range(2, 9) for w in range(5, 26) for h in range(5, 26))
    return list(itertools.islice(every, count))


def resident_mib(server: Background) -> float:
    """Resident memory of all of a server's processes."""
    return round(sum(_resident_kib(pid) for pid in server.pids()) / 1024, 1)


def _resident_kib(pid: int) -> int:
    status = Path(f"/proc/{pid}/status").read_text()
    return next(
        (int(line.split()[1]) for line in status.splitlines() if line.startswith("VmRSS")), 0
    )  # none: it has ended


def disk_mib(folder: Path) -> float:
    """All that lies there."""
    return round(sum(file.stat().st_size for file in folder.glob("*")) / 2**20, 2)


def post_all(url: str, call: str, requests: list[dict[str, Any]] | Any) -> dict[int, int]:
    """Post each to `/call`; answers by status."""
    connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=60)
    statuses = dict[int, int]()
    for request in requests:
        connection.request(
            "POST", f"/{call}", json.dumps(request), {"Content-Type": "application/json"}
        )
        answer = connection.getresponse()
        answer.read()
        statuses[answer.status] = statuses.get(answer.status, 0) + 1
    connection.close()
    return statuses


def starts(count: int, *, keep_mib: int) -> dict[str, Any]:
    """Games that only begin, each with 16 names of 256 snakes (the animal's sign takes four
    bytes).
    """
    folder = Path(tempfile.mkdtemp(prefix="arena-storage-"))
    names = opening(11, 11, 16, game_id="", text=LONG_TEXT)
    options = ("--database", f"sqlite:///{folder}/games.db", "--keep-mib", str(keep_mib))
    with Background("random", *options) as server:
        post_all(server.url, "start", [opening(11, 11, 2, game_id="first")])
        before = resident_mib(server)
        highest = 0.0
        statuses = dict[int, int]()
        began = time.monotonic()
        for first in range(0, count, CLIENTS_BATCH):
            numbers = range(first, min(count, first + CLIENTS_BATCH))
            made = ({**names, "game": {**names["game"], "id": f"hostile-{n}"}} for n in numbers)
            for status, times in post_all(server.url, "start", made).items():
                statuses[status] = statuses.get(status, 0) + times
            highest = max(highest, disk_mib(folder))
        seconds = time.monotonic() - began
        time.sleep(1)
        after = resident_mib(server)
        disk = disk_mib(folder)
    return {
        "starts": count,
        "keep_mib": keep_mib,
        "seconds": round(seconds, 1),
        "statuses": statuses,
        "disk_mib": disk,
        "highest_disk_mib": highest,
        "rss_mib_before": before,
        "rss_mib": after,
    }


def searches(count: int, *, agent: str) -> dict[str, Any]:
    """A move on a board of each of so many shapes."""
    warm_up({agent: agents.make(agent)})
    with Background(agent, "--no-games") as server:
        for width, height, snakes in shapes(8):
            post_all(server.url, "move", [opening(width, height, snakes, game_id="first")])
        before = resident_mib(server)
        requests = (opening(w, h, n, game_id=f"{w}-{h}-{n}") for w, h, n in shapes(count))
        statuses = post_all(server.url, "move", requests)
        after = resident_mib(server)
    return {
        "shapes": count,
        "agent": agent,
        "statuses": statuses,
        "rss_mib_before": before,
        "rss_mib": after,
    }


def main() -> None:
    parser = arguments(__doc__, with_json=False)
    parser.add_argument("what", choices=("starts", "shapes"))
    parser.add_argument("--count", type=int, help="how many (default: 10000 starts, 2000 shapes)")
    parser.add_argument(
        "--keep-mib",
        type=int,
        default=1,
        help="of the server whose games begin (default: %(default)s)",
    )
    parser.add_argument("--agent", default="alphabeta", help="who searches (default: %(default)s)")
    options = parser.parse_args()
    print("procsnake serve", machine(), flush=True)
    if options.what == "starts":
        figures = starts(min(MAX_COUNT, options.count or 10_000), keep_mib=options.keep_mib)
    else:
        figures = searches(min(MAX_COUNT, options.count or 2000), agent=options.agent)
    for name, value in figures.items():
        print(f"{name:<18} {value}")


if __name__ == "__main__":
    main()
