"""The figures that a server counts, for Prometheus.

With several worker processes and `PROMETHEUS_MULTIPROC_DIR` set, `/metrics` sums over them.
"""

from __future__ import annotations

import os

from agents.agent import Decision

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
SHARED_FOLDER = "PROMETHEUS_MULTIPROC_DIR"
_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.35, 0.4, 0.45, 0.5, 1.0)


class Metrics:
    """The counters of one application.

    * `procsnake_move_seconds{snake}`: the time from a request's arrival to the decision.
    * `procsnake_moves_total{snake, by}`: decisions by the "agent" or, in its place, by the
      "watchdog".
    * `procsnake_games_total{snake, event}`: how often /start and /end were received.
    * `procsnake_requests_total{endpoint, status}`: all answers.
    * `procsnake_unsaved_turns`, `procsnake_lost_turns`: turns waiting for the database, and turns
      that couldn't be recorded.
    * `process_*`: memory, time and files, if there is only one process.
    """

    def __init__(self) -> None:
        # The library looks for the folder that processes share when it is imported.
        from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector

        self._registry = CollectorRegistry()
        self._seconds = Histogram(
            "procsnake_move_seconds",
            "Seconds from a request's arrival to our decision.",
            ["snake"],
            buckets=_BUCKETS,
            registry=self._registry,
        )
        self._moves = Counter(
            "procsnake_moves",
            "Decisions, by the agent or by the watchdog.",
            ["snake", "by"],
            registry=self._registry,
        )
        self._games = Counter(
            "procsnake_games",
            "Calls of /start and /end.",
            ["snake", "event"],
            registry=self._registry,
        )
        self._requests = Counter(
            "procsnake_requests",
            "Answers, by endpoint and HTTP status.",
            ["endpoint", "status"],
            registry=self._registry,
        )
        self._unsaved = Gauge(
            "procsnake_unsaved_turns",
            "Turns that wait for the database.",
            multiprocess_mode="livesum",
            registry=self._registry,
        )
        self._lost = Gauge(
            "procsnake_lost_turns",
            "Turns that could not be recorded.",
            multiprocess_mode="livesum",
            registry=self._registry,
        )
        if SHARED_FOLDER not in os.environ:
            ProcessCollector(registry=self._registry)

    def moved(self, snake: str, decision: Decision, seconds: float) -> None:
        """Count a decision that was made `seconds` after its request arrived."""
        who = "watchdog" if "fallback" in decision.note else "agent"
        self._seconds.labels(snake).observe(seconds)
        self._moves.labels(snake, who).inc()

    def game(self, snake: str, event: str) -> None:
        """Count a call of `/start` or `/end` (`event`)."""
        self._games.labels(snake, event).inc()

    def answered(self, endpoint: str, status: int) -> None:
        """Count a request that was answered."""
        self._requests.labels(endpoint, status).inc()

    def queue(self, waiting: int, lost: int) -> None:
        """Note how many turns wait for the database, and how many were lost."""
        self._unsaved.set(waiting)
        self._lost.set(lost)

    def exposition(self) -> bytes:
        """Return everything in Prometheus' text format."""
        from prometheus_client import CollectorRegistry, generate_latest
        from prometheus_client.multiprocess import MultiProcessCollector

        if SHARED_FOLDER not in os.environ:
            return generate_latest(self._registry)
        everybody = CollectorRegistry()
        MultiProcessCollector(everybody)
        return generate_latest(everybody)
