"""What the costliest body that a server accepts costs it: to read, to answer and to archive, for each of the three calls.

"death" is a small `/end` after a move with that body, on which the archive works out how the snake died.

    python -m tests.benchmarks.hostile_bodies                     the best of 9 runs, by the CPU time of the whole process
    python -m tests.benchmarks.hostile_bodies --steps 300         and so many steps of a search from the costliest of them

A body is a mixture of parts (hazards, food, bodies, texts, unknown fields …), each as large as the limits allow or smaller. The
search changes the size of one part at random and keeps what costs more. The agent plays at random, so that what is measured is
the server's own work. A body that is refused counts as well: refusing has a cost.
"""

from __future__ import annotations

import json
import math
import random
import tempfile
import time
from collections.abc import Callable
from typing import Any

import agents
from serve.archive.rows import rows_of
from serve.archive.store import GameStore
from serve.arena import create_app
from serve.transport.request_body import MAX_HAZARDS_BYTES, MAX_OTHER_BYTES, MAX_VALUES
from tests.benchmarks.arena_storage import opening
from tests.benchmarks.measure import arguments, machine

MAX_STEPS, SIDE, POINT_ITEMS, SNAKES = 5000, 25, 3, 16
CALLS = ("start", "move", "end", "death")
Parts = dict[str, float]


def points(count: int, *, spread: bool) -> list[dict[str, int]]:
    """So many points of a board, on as many cells as can be or on few."""
    return [{"x": n % SIDE, "y": n // SIDE % (2 * SIDE)} if spread else {"x": 1, "y": 1} for n in range(count)]


def snail_trail(entries: int) -> list[dict[str, int]]:
    """The hazards behind a snake in snail_mode, as many as fit into so many entries, highest stack first."""
    longest = math.isqrt(2 * entries)
    return [point for n, point in enumerate(points(longest, spread=True)) for _ in range(longest - n)]


MAX_HAZARDS = MAX_HAZARDS_BYTES // 20
PARTS: dict[str, Callable[[dict[str, Any], int], None]] = {
    "hazards on one cell": lambda r, n: r["board"]["hazards"].extend(points(n // POINT_ITEMS, spread=False)),
    "hazards everywhere": lambda r, n: r["board"]["hazards"].extend(points(n // POINT_ITEMS, spread=True)),
    "a snail's trail": lambda r, n: r["board"]["hazards"].extend(snail_trail(n * MAX_HAZARDS // MAX_VALUES)),
    "hazards mixed": lambda r, n: r["board"]["hazards"].extend(points(n * MAX_HAZARDS // MAX_VALUES, spread=True)),
    "food": lambda r, n: r["board"]["food"].extend(points(min(SIDE * SIDE, n // POINT_ITEMS), spread=True)),
    "bodies": lambda r, n: _lengthen(r, n // POINT_ITEMS),
    "dead snakes": lambda r, n: r["board"]["snakes"].extend(
        {**r["you"], "id": f"dead-{k}", "health": 0} for k in range(min(48, n // 30))
    ),
    "empty lists": lambda r, n: r.setdefault("unknown", []).extend([] for _ in range(n // 2)),
    "nested lists": lambda r, n: r.setdefault("unknown", []).extend([[[[[[[]]]]]]] for _ in range(n // 8)),
    "deep lists": lambda r, n: r.setdefault("unknown", []).append(_deep(min(400, n))),
    "empty objects": lambda r, n: r["you"].setdefault("unknown", []).extend({} for _ in range(n // 2)),
    "keys": lambda r, n: r.setdefault("more", {}).update((f"key {k}", k) for k in range(n)),
    "floats": lambda r, n: r.setdefault("unknown", []).extend(1.5e-7 for _ in range(n)),
    "large integers": lambda r, n: r.setdefault("unknown", []).extend(10**4000 for _ in range(n * 40 // MAX_VALUES)),
    "texts": lambda r, n: r.setdefault("unknown", []).append("\U0001f40d" * (n * MAX_OTHER_BYTES // MAX_VALUES // 16)),
    "names and shouts": lambda r, n: _say(r, name="\U0001f40d" * (n // 128), shout="\x1b" * (n // 64), squad="é" * (n // 64)),
    "shouts that are lists": lambda r, n: _say(r, shout=[[]] * (n // 32), latency={"a": 1}),
}


def _say(request: dict[str, Any], **texts: Any) -> None:
    for snake in request["board"]["snakes"][:SNAKES]:
        snake.update(texts)


def _lengthen(request: dict[str, Any], count: int) -> None:
    each = min(SIDE * SIDE + 3, count // SNAKES)
    for snake in request["board"]["snakes"][:SNAKES]:
        snake["body"] = snake["body"] + [snake["body"][-1]] * each


def _deep(depth: int) -> list[Any]:
    nested: list[Any] = []
    for _ in range(depth):
        nested = [nested]
    return nested


def body_of(parts: Parts) -> bytes:
    """The body that has each part at its share (0..1) of what is allowed in all."""
    request = opening(SIDE, SIDE, SNAKES, game_id="hostile")
    request["board"]["snakes"] = [dict(snake) for snake in request["board"]["snakes"]]
    request["you"] = dict(request["you"])
    for name, share in parts.items():
        PARTS[name](request, int(share * MAX_VALUES))
    return json.dumps(request, separators=(",", ":")).encode()


def death() -> bytes:
    """The `/end` of a game on whose last board nobody lives, as small as can be."""
    request = opening(SIDE, SIDE, 1, game_id="hostile")
    return json.dumps({**request, "board": {**request["board"], "snakes": []}}, separators=(",", ":")).encode()


class Meter:
    """A server's application without its network and without its database's thread, whose work is done in line."""

    def __init__(self, store: GameStore) -> None:
        self._events: list[Any] = []
        self._database = store._database
        store.writer.close()
        store.writer.put = self._put  # type: ignore[method-assign]
        store.writer.wait = lambda number, timeout: True  # type: ignore[method-assign]
        self._client = create_app(agents.make("random"), store=store).test_client()

    def _put(self, event: Any, *, urgent: bool = False) -> int:
        self._events.append(event)
        return 0

    def cost_ms(self, call: str, body: bytes, *, runs: int = 1) -> tuple[float, int]:
        """(least CPU milliseconds over the runs, status). Each run is about a new game."""
        best, status = float("inf"), 0
        for _ in range(runs):
            self._database.forget(before=1e12, max_bytes=0)
            before = self._send("move", body) if call == "death" else 200
            began = time.process_time()
            status = max(before, self._send("end", death()) if call == "death" else self._send(call, body))
            best = min(best, 1000 * (time.process_time() - began))
        return best, status

    def _send(self, path: str, body: bytes) -> int:
        """Send a request, and write what the archive keeps of it."""
        self._events.clear()
        status = self._client.post(f"/{path}", data=body, content_type="application/json").status_code
        self._database.write([rows_of(event) for event in self._events])
        return status


def measure(*, runs: int = 9, steps: int = 0, seed: int = 0) -> list[tuple[float, str, int, str]]:
    """(CPU milliseconds, call, status, parts) of each part alone at its largest accepted size, and of what the search found."""
    chance = random.Random(seed)
    with tempfile.TemporaryDirectory() as folder:
        meter = Meter(GameStore(f"sqlite:///{folder}/games.db"))
        for call in CALLS:
            meter.cost_ms(call, body_of({}))

        def cost(parts: Parts, times: int) -> tuple[float, str, int, str]:
            body = body_of(parts)
            found = [(*meter.cost_ms(call, body, runs=times), call) for call in CALLS]
            spent, status, call = max(found)
            told = ", ".join(f"{name} {share:.0%}" for name, share in parts.items() if share) or "nothing"
            return spent, call, status, told

        rows = [cost({}, runs)]
        best: tuple[float, Parts] = (0.0, {})
        for name in PARTS:
            for share in (1.0, 0.95, 0.9, 0.8, 0.5, 0.1):
                row = cost({name: share}, runs)
                if row[2] == 200 or share == 1.0:
                    rows.append(row)
                if row[2] == 200:
                    best = max(best, (row[0], {name: share}), key=lambda found: found[0])
                    break
        for _ in range(steps):
            tried = {**best[1], chance.choice(list(PARTS)): chance.choice((0.0, chance.random()))}
            row = cost(tried, 3)
            if row[0] > best[0]:
                row = cost(tried, runs)
            if row[0] > best[0]:
                best = (row[0], tried)
                rows.append(row)
    return sorted(rows, reverse=True)


def main() -> None:
    parser = arguments(__doc__, with_json=False)
    parser.add_argument("--runs", type=int, default=9, help="runs of each body (default: %(default)s)")
    parser.add_argument("--steps", type=int, default=0, help="steps of the search (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="of the search (default: %(default)s)")
    options = parser.parse_args()
    print("a request's CPU time", machine(), flush=True)
    for spent, call, status, told in measure(runs=options.runs, steps=min(MAX_STEPS, options.steps), seed=options.seed):
        print(f"{spent:7.2f} ms  /{call:<6} {status}  {told}")


if __name__ == "__main__":
    main()
