"""The examination: a series of checks with few requests each. Checks that depend on a failed one
are skipped.
"""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

from envs.common.errors import ConfigError
from serve.doctor import load as company
from serve.doctor import requests
from serve.doctor.client import Reply, SnakeClient
from serve.doctor.findings import FAULT, FINE, Finding, Report
from serve.timing.margins import REACH_MS

MAX_GAMES = 20
MAX_MOVES = 2000
MAX_SECONDS = 600
_INFO_LIMIT_MS = 1000
"""The arena waits as long for `GET /` before each game."""
_CALLERS = 8
_ROUNDS = 32
_WAY_CALLS = 5
_FAR_SHARE = 0.4
"""The share of a timeout from which on the way to the snake is worth a warning."""


def examine(
    url: str,
    *,
    timeout_ms: int = 500,
    games: int = 4,
    moves: int = 200,
    seconds: float = 60.0,
    tell: Callable[[Finding], None] = lambda finding: None,
) -> Report:
    """Check the snake at `url` as a platform would, and return a report.

    It sends about 80 requests one by one and 32 at a time, then asks for up to `moves` moves in
    `games` games at a time. Nothing new is started after `seconds`. `tell` is called with each
    finding. Raises `ConfigError` for an invalid `url`, and for more than 20 games, 2000 moves or
    600 seconds, because this is a check and not a load test."""
    for name, value, most in (
        ("games", games, MAX_GAMES),
        ("moves", moves, MAX_MOVES),
        ("seconds", seconds, MAX_SECONDS),
    ):
        if not 1 <= value <= most:
            raise ConfigError(f"{name} is {value}; this is a check and no load test: 1 to {most}")
    if timeout_ms < 1:
        raise ConfigError(f"the timeout is {timeout_ms} ms; games have some 500")
    report = Report(url, timeout_ms)
    with closing(SnakeClient(url)) as client:
        until = time.monotonic() + seconds
        for finding in _all_findings(client, report, games=games, moves=moves, until=until):
            report.findings.append(finding)
            tell(finding)
    return report


def _all_findings(
    client: SnakeClient, report: Report, *, games: int, moves: int, until: float
) -> Iterator[Finding]:
    """Run the stages one after the other, until one shows that the rest would be in vain."""
    timeout_ms = report.timeout_ms
    stages: list[tuple[str, Callable[[], Iterator[Finding]]]] = [
        ("GET /", lambda: _check_info(client)),
        ("the way", lambda: _check_way(client, timeout_ms)),
        ("the four calls", lambda: _check_calls(client, timeout_ms)),
        ("orientation", lambda: _check_ways_out(client, timeout_ms)),
        ("odd requests", lambda: _check_odd_ones(client, timeout_ms, until)),
        ("invalid bodies", lambda: _check_garbage(client, timeout_ms)),
        ("games that mix", lambda: _check_mixing(report)),
        (
            "concurrent games",
            lambda: company.check_games(report, games=games, moves=moves, until=until),
        ),
    ]
    for number, (name, stage) in enumerate(stages):
        if time.monotonic() >= until:
            yield Finding(name, "the time is up", "not-tried")
            continue
        yield from stage()
        if _is_hopeless(report, after_calls=name == "the four calls"):
            rest = ", ".join(later for later, _ in stages[number + 1 :])
            yield Finding("the rest", f"skipped: {rest}", "not-tried")
            return


def _is_hopeless(report: Report, *, after_calls: bool) -> bool:
    """Whether all later stages would only show the same fault again."""
    if after_calls:
        return any(finding.verdict == FAULT for finding in report.findings)
    return len(report.findings) == 1 and report.findings[0].fault in (
        "unreachable",
        "timed-out",
        "redirects",
    )


def _check_info(client: SnakeClient) -> Iterator[Finding]:
    first = client.info()
    if first.fault:
        yield Finding("GET /", first.summary, first.fault)
        return
    yield from _check_look(first)
    second = client.info()
    if second.fault or second.ms > _INFO_LIMIT_MS:
        yield Finding("GET / again", second.summary, second.fault or "slow-info")
    elif first.ms > _INFO_LIMIT_MS:
        yield Finding("first answer", f"{first.ms:.0f} ms; later {second.ms:.0f} ms", "cold-start")
    else:
        yield Finding("first answer", f"{first.ms:.0f} ms; later {second.ms:.0f} ms")
    if second.answer is not None and second.answer.keeps_connection:
        yield Finding("connection", "stays open for the next request")
    else:
        yield Finding("connection", "is closed after each answer", "closes-connection")


def _check_way(client: SnakeClient, timeout_ms: int) -> Iterator[Finding]:
    """`GET /` is answered from memory, so nearly all of its time is the way there and back."""
    replies = [client.info() for _ in range(_WAY_CALLS)]
    failed = [reply for reply in replies if reply.fault]
    if failed:
        yield Finding("the way", failed[0].summary, failed[0].fault)
        return
    way_ms = max(reply.ms for reply in replies)
    share = way_ms / timeout_ms
    fault = ""
    if timeout_ms - way_ms < REACH_MS:
        fault = "out-of-reach"
    elif share >= _FAR_SHARE:
        fault = "far"
    summary = (
        f"the round trip takes up to {way_ms:.0f} of {timeout_ms} ms ({share:.0%}); the rest"
        " remains for thinking"
    )
    yield Finding("the way", summary, fault)


def _check_look(reply: Reply) -> Iterator[Finding]:
    version = reply.data.get("apiversion")
    color = reply.data.get("color")
    if version != "1":
        yield Finding("GET /", f"apiversion is {version!r}", "no-apiversion")
    else:
        yield Finding("GET /", 'apiversion "1"')
    for name in ("author", "color", "head", "tail", "version"):
        if not isinstance(reply.data.get(name), str | None):
            yield Finding(name, f"{str(reply.data[name])[:40]!r} is not text", "not-text")
            return
    if color not in (None, "") and not (
        isinstance(color, str) and re.fullmatch(r"#[0-9A-Fa-f]{6}", color)
    ):
        yield Finding("color", f"{str(color)[:40]!r}", "bad-color")


def _check_calls(client: SnakeClient, timeout_ms: int) -> Iterator[Finding]:
    body = requests.ordinary(timeout_ms)
    start = client.post("start", body)
    yield Finding("POST /start", start.summary, start.fault)
    first = client.move(body)
    if first.fault == "slow-move":
        # The second one tells a cold snake from a slow one.
        second = client.move(body)
        if not second.fault:
            summary = f"{first.summary}; the next one after {second.ms:.0f} ms"
            first = Reply(first.ms, summary, "cold-start")
    yield Finding("POST /move", first.summary, first.fault)
    for what, last in (
        ("POST /end", body),
        ("POST /end, you dead", requests.last_call(timeout_ms)),
    ):
        end = client.post("end", last)
        yield Finding(what, end.summary, end.fault)


def _check_ways_out(client: SnakeClient, timeout_ms: int) -> Iterator[Finding]:
    replies = {way: client.play_one(body) for way, body in requests.one_way_out(timeout_ms).items()}
    failed = [reply for reply in replies.values() if not reply.move]
    if failed:
        yield Finding("orientation", failed[0].summary, failed[0].fault)
        return
    went = {way: reply.move for way, reply in replies.items()}
    wrong = {way: move for way, move in went.items() if way != move}
    if not wrong:
        yield Finding("orientation", "takes the only way out, whichever it is")
    elif went["up"] == "down" and went["down"] == "up":
        yield Finding(
            "orientation",
            "goes up where only down is open, and down where only up is",
            "upside-down",
        )
    else:
        deaths = ", ".join(f"{move} where only {way} is open" for way, move in wrong.items())
        yield Finding("orientation", deaths, "walks-into-death")


def _check_odd_ones(client: SnakeClient, timeout_ms: int, until: float) -> Iterator[Finding]:
    for what, body in requests.odd_ones(timeout_ms).items():
        if time.monotonic() >= until:
            yield Finding(f"move: {what}", "the time is up", "not-tried")
            return
        reply = client.play_one(body)
        yield Finding(f"move: {what}", reply.summary, reply.fault)


def _check_garbage(client: SnakeClient, timeout_ms: int) -> Iterator[Finding]:
    for what, body in requests.INVALID_BODIES.items():
        reply = client.post("move", body)
        if reply.answer is None:
            yield Finding(f"invalid: {what}", reply.summary, "fails-on-garbage")
        elif (
            b"Traceback (most recent" in reply.answer.body
            or b"Werkzeug Debugger" in reply.answer.body
        ):
            yield Finding(
                f"invalid: {what}",
                f"HTTP status {reply.answer.status}, with a trace",
                "shows-its-trace",
            )
        else:
            fault = "fails-on-garbage" if reply.answer.status >= 500 else ""
            yield Finding(f"invalid: {what}", f"HTTP status {reply.answer.status}", fault)
    after = client.move(requests.ordinary(timeout_ms))
    fault = "" if after.move else "never-recovers"
    yield Finding("and a move after those", after.summary, fault)


def _check_mixing(report: Report) -> Iterator[Finding]:
    """Ask for moves of four games at once. A snake that found the only way out when it was asked
    alone, but doesn't now, mixes the games up.
    """
    if any(
        finding.check == "orientation" and finding.verdict != FINE for finding in report.findings
    ):
        return
    boards = list(requests.one_way_out(report.timeout_ms).items())
    mine = threading.local()
    opened: list[SnakeClient] = []

    def ask(number: int) -> tuple[str, Reply]:
        way, body = boards[number % len(boards)]
        if not hasattr(mine, "client"):
            mine.client = SnakeClient(report.url)
            opened.append(mine.client)
        return way, mine.client.move(body)

    with ThreadPoolExecutor(_CALLERS) as pool:
        replies = list(pool.map(ask, range(_ROUNDS)))
    for client in opened:
        client.close()
    check = f"{_CALLERS} requests at a time"
    mixed = sum(bool(reply.move) and reply.move != way for way, reply in replies)
    if mixed:
        summary = f"{mixed} of {len(replies)} moves were for another game"
        yield Finding(check, summary, "mixes-games")
    else:
        yield Finding(check, "each gets the answer to its own")
