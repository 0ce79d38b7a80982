"""Plays many games at once, as a platform does, and measures how long the snake takes."""

from __future__ import annotations

import time
from collections.abc import Generator, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, field
from typing import cast

import numpy as np

from agents.measure.evaluation.referee import Frame, Referee
from agents.measure.evaluation.remote_snake import SnakeUnreachableError
from serve.doctor.findings import Finding, Report
from serve.doctor.requests import new_game_id

_OPPONENT = "flood"
CLOSE_MS = 30
"""How many milliseconds of its time a move should leave, because networks are often late by as
much.
"""


@dataclass
class _Measured:
    """How long the snake took for its moves, and what went wrong."""

    latencies: list[float] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    """Why moves failed that weren't late."""
    late: int = 0

    @classmethod
    def together(cls, parts: Iterable[_Measured]) -> _Measured:
        """Join what several threads have measured."""
        whole = cls()
        for part in parts:
            whole.latencies += part.latencies
            whole.failures += part.failures
            whole.late += part.late
        return whole


def check_games(report: Report, *, games: int, moves: int, until: float) -> Iterator[Finding]:
    """Play `games` games at a time, each a duel with an agent of ours, until `moves` moves are
    asked for or time is up.
    """
    _warm_up()
    shares = [moves // games + (number < moves % games) for number in range(games)]

    def play(number: int) -> _Measured:
        return _play_on(report, shares[number], 1000 * number, until)

    with ThreadPoolExecutor(games) as pool:
        measured = _Measured.together(pool.map(play, range(games)))
    check = f"{games} games at a time"
    num_moves = len(measured.latencies)
    if not num_moves:
        if measured.failures:
            yield Finding(check, measured.failures[0], "fails-under-load")
        else:
            yield Finding(check, "the time is up", "not-tried")
        return
    p50, p95, p99 = np.percentile(measured.latencies, (50, 95, 99))
    report.latency_ms = {
        "p50": round(float(p50), 1),
        "p95": round(float(p95), 1),
        "p99": round(float(p99), 1),
        "max": round(max(measured.latencies), 1),
    }
    summary = (
        f"{num_moves} moves: p50 {p50:.0f}, p95 {p95:.0f}, p99 {p99:.0f}, longest"
        f" {max(measured.latencies):.0f} ms"
    )
    if measured.failures:
        failures = f"{len(measured.failures)} of {num_moves} moves failed"
        yield Finding(check, f"{failures}, the first: {measured.failures[0]}", "fails-under-load")
    if measured.late:
        yield Finding(check, f"{measured.late} late; {summary}", "slow-under-load")
    elif not measured.failures:
        fault = "close-to-timeout" if p99 > report.timeout_ms - CLOSE_MS else ""
        yield Finding(check, summary, fault)


def _warm_up() -> None:
    """Compile what the games need: while a game runs, it would count as the snake's time."""
    import agents

    opponent = agents.make(_OPPONENT)
    for _ in Referee([opponent, opponent], max_turns=2).play():
        pass


def _play_on(report: Report, moves: int, seed: int, until: float) -> _Measured:
    """One game after the other, until as many moves are asked for or time is up."""
    import agents

    opponent = agents.make(_OPPONENT)
    measured = _Measured()
    num_won = 0
    while time.monotonic() < until:
        # A winner is asked once more, for a move that isn't played.
        moves_left = moves - len(measured.latencies) - num_won
        if moves_left < 1:
            break
        seed += 1
        game_id = new_game_id()
        referee = Referee(
            [report.url, opponent],
            seed=seed,
            timeout_ms=report.timeout_ms,
            max_turns=moves_left,
            game_id=game_id,
        )
        with closing(cast("Generator[Frame]", referee.play())) as frames:
            try:
                _watch(frames, measured, report.timeout_ms, until)
            except SnakeUnreachableError as error:
                measured.failures.append(str(error))
                break
        if referee.result and referee.result.winner_slot == 0:
            num_won += 1
    return measured


def _watch(frames: Iterator[Frame], measured: _Measured, timeout_ms: int, until: float) -> None:
    for frame in frames:
        latency = frame.latencies_ms[0]
        if latency is None:
            continue
        measured.latencies.append(latency)
        if latency >= timeout_ms:
            measured.late += 1
        elif 0 in frame.failures:
            measured.failures.append(frame.failures[0])
        if time.monotonic() >= until:
            return
