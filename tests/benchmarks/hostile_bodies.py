"""What the costliest bodies cost a server, accepted or refused: to read, answer and archive, for
each of the three calls.

"death" is a small `/end` after a move with that body, on which the archive works out how the snake
died.

    python -m tests.benchmarks.hostile_bodies
    python -m tests.benchmarks.hostile_bodies --steps 300
    python -m tests.benchmarks.hostile_bodies --mutations 300

Each figure is the best of 9 runs, by the CPU time of the whole process. --steps adds so many steps
of a search from the costliest bodies. --mutations instead tries so many changes of their text.

A body is a mixture of parts (hazards, food, bodies, texts, unknown fields …), each as large as the
limits allow or smaller. The search changes the size of one part at random and keeps what costs
more. The mutations repeat, stretch, cut and replace pieces of the text itself, of bodies that are
accepted and of those that are refused, and keep the costliest of each status: refusing has a cost.
The agent plays at random, so that what is measured is the server's own work."""

from __future__ import annotations

import json
import math
import random
import tempfile
import time
import tracemalloc
from collections.abc import Callable
from typing import Any, NamedTuple

import agents
from serve.archive.rows import rows_of
from serve.archive.store import GameStore
from serve.arena import create_app
from serve.transport.request_body import (
    MAX_BODY_BYTES,
    MAX_HAZARDS_BYTES,
    MAX_OTHER_BYTES,
    MAX_VALUES,
)
from tests.benchmarks.arena_storage import opening
from tests.benchmarks.measure import arguments, machine

MAX_STEPS = 5000
SIDE = 25
POINT_ITEMS = 3
SNAKES = 16
CALLS = ("start", "move", "end", "death")
Parts = dict[str, float]


class Row(NamedTuple):
    """What a body cost, with which call, and what became of it."""

    cpu_ms: float
    call: str
    status: int
    body: str


def points(count: int, *, spread: bool) -> list[dict[str, int]]:
    """So many points of a board, on as many cells as can be or on few."""
    return [
        {"x": n % SIDE, "y": n // SIDE % (2 * SIDE)} if spread else {"x": 1, "y": 1}
        for n in range(count)
    ]


def snail_trail(entries: int) -> list[dict[str, int]]:
    """The hazards behind a snake in snail_mode, as many as fit into so many entries, highest stack
    first.
    """
    longest = math.isqrt(2 * entries)
    return [
        point for n, point in enumerate(points(longest, spread=True)) for _ in range(longest - n)
    ]


MAX_HAZARDS = MAX_HAZARDS_BYTES // 20
PARTS: dict[str, Callable[[dict[str, Any], int], None]] = {
    "hazards on one cell": (
        lambda r, n: r["board"]["hazards"].extend(points(n // POINT_ITEMS, spread=False))
    ),
    "hazards everywhere": (
        lambda r, n: r["board"]["hazards"].extend(points(n // POINT_ITEMS, spread=True))
    ),
    "a snail's trail": (
        lambda r, n: r["board"]["hazards"].extend(snail_trail(n * MAX_HAZARDS // MAX_VALUES))
    ),
    "hazards mixed": (
        lambda r, n: r["board"]["hazards"].extend(
            points(n * MAX_HAZARDS // MAX_VALUES, spread=True)
        )
    ),
    "food": (
        lambda r, n: r["board"]["food"].extend(
            points(min(SIDE * SIDE, n // POINT_ITEMS), spread=True)
        )
    ),
    "bodies": lambda r, n: _lengthen(r, n // POINT_ITEMS),
    "dead snakes": (
        lambda r, n: r["board"]["snakes"].extend(
            {**r["you"], "id": f"dead-{k}", "health": 0} for k in range(min(48, n // 30))
        )
    ),
    "doubtful snakes": lambda r, n: _doubt(r, min(48, n // 30), n // POINT_ITEMS),
    "empty lists": lambda r, n: r.setdefault("unknown", []).extend([] for _ in range(n // 2)),
    "nested lists": (
        lambda r, n: r.setdefault("unknown", []).extend([[[[[[[]]]]]]] for _ in range(n // 8))
    ),
    "deep lists": lambda r, n: r.setdefault("unknown", []).append(_deep(min(400, n))),
    "empty objects": (
        lambda r, n: r["you"].setdefault("unknown", []).extend({} for _ in range(n // 2))
    ),
    "keys": lambda r, n: r.setdefault("more", {}).update((f"key {k}", k) for k in range(n)),
    "floats": lambda r, n: r.setdefault("unknown", []).extend(1.5e-7 for _ in range(n)),
    "large integers": (
        lambda r, n: r.setdefault("unknown", []).extend(
            10**4000 for _ in range(n * 40 // MAX_VALUES)
        )
    ),
    "texts": (
        lambda r, n: r.setdefault("unknown", []).append(
            "\U0001f40d" * (n * MAX_OTHER_BYTES // MAX_VALUES // 16)
        )
    ),
    "names and shouts": lambda r, n: _say(
        r, name="\U0001f40d" * (n // 128), shout="\x1b" * (n // 64), squad="é" * (n // 64)
    ),
    "shouts that are lists": lambda r, n: _say(r, shout=[[]] * (n // 32), latency={"a": 1}),
}


def _say(request: dict[str, Any], **texts: Any) -> None:
    for snake in request["board"]["snakes"][:SNAKES]:
        snake.update(texts)


def _lengthen(request: dict[str, Any], count: int) -> None:
    each = min(SIDE * SIDE + 3, count // SNAKES)
    for snake in request["board"]["snakes"][:SNAKES]:
        snake["body"] = snake["body"] + [snake["body"][-1]] * each


def _doubt(request: dict[str, Any], count: int, points_in_all: int) -> None:
    """Add snakes as Arena leaves them in, each with its head on the next one, of which nothing says
    whether they live.
    """
    request["turn"] = 30
    request["game"] = {**request["game"], "source": ""}
    request["game"]["ruleset"] = {**request["game"]["ruleset"], "version": "v1.0.0"}
    length = max(3, points_in_all // max(1, count))
    for number in range(count):
        row = [
            {"x": min(number // SIDE + column, SIDE - 1), "y": number % SIDE}
            for column in range(length)
        ]
        snake = {"id": f"doubtful-{number}", "health": 50, "body": row, "latency": "0", "shout": ""}
        request["board"]["snakes"].append({**request["you"], **snake})


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
    return json.dumps(
        {**request, "board": {**request["board"], "snakes": []}}, separators=(",", ":")
    ).encode()


class Meter:
    """A server's application without its network and without its database's thread, whose work is
    done in line.
    """

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
        best = float("inf")
        status = 0
        for _ in range(runs):
            self._database.forget(before=1e12, max_bytes=0)
            before = self._send("move", body) if call == "death" else 200
            began = time.process_time()
            status = max(
                before, self._send("end", death()) if call == "death" else self._send(call, body)
            )
            best = min(best, 1000 * (time.process_time() - began))
        return best, status

    def peak_mib(self, call: str, body: bytes) -> float:
        """The most memory that Python held while it answered, in MiB."""
        self._database.forget(before=1e12, max_bytes=0)
        tracemalloc.start()
        try:
            self._send("end" if call == "death" else call, body)
            return tracemalloc.get_traced_memory()[1] / 2**20
        finally:
            tracemalloc.stop()

    def _send(self, path: str, body: bytes) -> int:
        """Send a request, and write what the archive keeps of it."""
        self._events.clear()
        status = self._client.post(
            f"/{path}", data=body, content_type="application/json"
        ).status_code
        self._database.write([rows_of(event) for event in self._events])
        return status


TOKENS = [
    b"{",
    b"[",
    b'"',
    b"\\u0000",
    b"1e999",
    b"-",
    b" ",
    b"\n",
    b",",
    b'"hazards":[',
    b'{"x":1,"y":1},',
    b"\xff",
    b"9",
]


def mutated(body: bytes, chance: random.Random) -> bytes:
    """The text with a piece of it repeated, stretched by a token, cut out, or replaced by a
    token.
    """
    start = chance.randrange(len(body))
    if chance.random() < 0.5:
        # Where a value, an entry or a list begins.
        start = max(0, body.find(chance.choice((b"{", b"[", b":", b'"')), start))
    end = min(len(body), start + int(10 ** chance.uniform(0, 4)))
    room = MAX_BODY_BYTES - len(body) + end - start
    piece = chance.choice((body[start:end], chance.choice(TOKENS), b""))
    times = int(10 ** chance.uniform(0, math.log10(1 + max(1, room // max(1, len(piece))))))
    keeps = chance.random() < 0.5
    return (body[: end if keeps else start] + piece * times + body[end:])[:MAX_BODY_BYTES] or b"{}"


def mutate(meter: Meter, seeds: list[bytes], steps: int, chance: random.Random) -> list[Row]:
    """The costliest body of each status after so many mutations, each of one of them or of a
    seed.
    """
    costliest: dict[int, tuple[float, bytes, str]] = {}
    for number in range(len(seeds) + steps):
        parents = [body for _, body, _ in costliest.values()] + seeds
        body = seeds[number] if number < len(seeds) else mutated(chance.choice(parents), chance)
        call = chance.choice(CALLS[:3])
        spent, status = meter.cost_ms(call, body)
        if spent > costliest.get(status, (0.0,))[0]:
            spent = meter.cost_ms(call, body, runs=3)[0]
        if spent > costliest.get(status, (0.0,))[0]:
            costliest[status] = spent, body, call
    return [
        Row(
            spent,
            call,
            status,
            f"{len(body)} bytes, {meter.peak_mib(call, body):.1f} MiB at most, {body[:40]!r} …",
        )
        for status, (spent, body, call) in costliest.items()
    ]


def measure(*, runs: int = 9, steps: int = 0, mutations: int = 0, seed: int = 0) -> list[Row]:
    """Each part alone at its largest accepted size and what the search found; or what the mutations
    found.
    """
    chance = random.Random(seed)
    with tempfile.TemporaryDirectory() as folder:
        meter = Meter(GameStore(f"sqlite:///{folder}/games.db"))
        for call in CALLS:
            meter.cost_ms(call, body_of({}))
        if mutations:
            seeds = [body_of({name: share}) for name in PARTS for share in (1.0, 0.5)] + [
                body_of({}),
                death(),
            ]
            return sorted(mutate(meter, seeds, mutations, chance), reverse=True)

        def cost(parts: Parts, times: int) -> Row:
            body = body_of(parts)
            found = [(*meter.cost_ms(call, body, runs=times), call) for call in CALLS]
            spent, status, call = max(found)
            told = (
                ", ".join(f"{name} {share:.0%}" for name, share in parts.items() if share)
                or "nothing"
            )
            return Row(spent, call, status, told)

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
    parser.add_argument(
        "--runs", type=int, default=9, help="runs of each body (default: %(default)s)"
    )
    parser.add_argument(
        "--steps", type=int, default=0, help="steps of the search (default: %(default)s)"
    )
    parser.add_argument(
        "--mutations", type=int, default=0, help="changes of the text (default: %(default)s)"
    )
    parser.add_argument("--seed", type=int, default=0, help="of the search (default: %(default)s)")
    options = parser.parse_args()
    print("a request's CPU time", machine(), flush=True)
    steps, mutations = (min(MAX_STEPS, count) for count in (options.steps, options.mutations))
    for row in measure(runs=options.runs, steps=steps, mutations=mutations, seed=options.seed):
        print(f"{row.cpu_ms:7.2f} ms  /{row.call:<6} {row.status}  {row.body}")


if __name__ == "__main__":
    main()
