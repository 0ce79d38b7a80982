"""The faults of a snake, their fixes, and the report."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from envs.common.strangers.printable import printable

FINE = "✓"
WARNING = "!"
FAULT = "✗"


@dataclass(frozen=True)
class Fault:
    """A kind of fault: its severity and its fix."""

    verdict: str
    fix: str


FAULTS: Mapping[str, Fault] = {
    "unreachable": Fault(
        FAULT,
        "start the server, let it listen on 0.0.0.0, open its port, and check address and"
        " certificate",
    ),
    "timed-out": Fault(
        FAULT,
        "answer sooner: nearer to the platform, on a host that doesn't sleep, with less work a"
        " call",
    ),
    "hangs-up": Fault(
        FAULT, "the server closes the connection without an HTTP answer: check its log"
    ),
    "redirects": Fault(
        FAULT,
        "give the URL that it redirects to (https, no slash at the end): engines may not follow",
    ),
    "not-found": Fault(
        FAULT, "check the path in the URL: engines add /start, /move and /end to it"
    ),
    "not-allowed": Fault(
        FAULT,
        (
            "allow public requests, GET on / and POST on others, or give the URL with its secret"
            " path"
        ),
    ),
    "not-200": Fault(FAULT, "answer with HTTP status 200"),
    "server-error": Fault(
        FAULT, "the server failed on this request: send it the same one, and check its log"
    ),
    "too-large": Fault(
        FAULT, "answer with a few bytes of JSON: a move, and a shout of up to 256 characters"
    ),
    "not-json": Fault(
        FAULT,
        'answer with a JSON object in UTF-8 without a byte order mark, such as {"move": "up"}',
    ),
    "not-text": Fault(FAULT, "make it a string or leave it out: engines refuse the whole answer"),
    "no-apiversion": Fault(FAULT, 'GET / must answer with "apiversion": "1", a string'),
    "bad-color": Fault(
        WARNING, 'GET / should have "color" as "#RRGGBB"; otherwise the platform chooses one'
    ),
    "slow-info": Fault(
        FAULT, "answer GET / from memory within a second, or games begin without your snake's look"
    ),
    "cold-start": Fault(
        WARNING,
        "load and compile everything before listening, and choose a host that doesn't sleep",
    ),
    "far": Fault(
        WARNING,
        "host the snake nearer to the platform: network time is lost for thinking",
    ),
    "out-of-reach": Fault(
        FAULT,
        "even an immediate answer is late: host the snake nearer to the platform",
    ),
    "no-move": Fault(FAULT, 'answer /move with {"move": "up"}, "down", "left" or "right"'),
    "uppercase-move": Fault(FAULT, "write moves in lower case"),
    "invalid-move": Fault(
        FAULT, 'moves are "up", "down", "left" and "right"; an engine plays your last one again'
    ),
    "long-shout": Fault(WARNING, "keep the shout to 256 characters"),
    "slow-move": Fault(
        FAULT,
        "answer within the game's timeout, network time included (here: --timeout)",
    ),
    "close-to-timeout": Fault(WARNING, "leave a margin: one slow packet now costs a move"),
    "closes-connection": Fault(
        WARNING,
        "keep connections alive (HTTP/1.1): a new one for each move costs time, twice with TLS",
    ),
    "upside-down": Fault(FAULT, "y grows upwards and (0, 0) is the bottom left: flip your board"),
    "walks-into-death": Fault(
        WARNING, "only one move isn't certain death here: filter moves that hit a wall or a body"
    ),
    "mixes-games": Fault(
        FAULT,
        "don't keep a game's state in global variables: games run in parallel; key it by game.id",
    ),
    "fails-under-load": Fault(
        FAULT,
        "it answers one game but not several: look for locks, global state and too few workers",
    ),
    "slow-under-load": Fault(
        FAULT, "more workers or cores, or less thinking while several games run"
    ),
    "fails-on-garbage": Fault(
        WARNING, "answer invalid requests with status 400: a 5xx looks like an outage"
    ),
    "shows-its-trace": Fault(
        WARNING, "turn debug mode off: an error page that shows code helps attackers"
    ),
    "never-recovers": Fault(
        FAULT, "the request after an invalid one failed: catch errors per request"
    ),
    "not-tried": Fault(WARNING, "fix the faults above, or allow more --seconds, and run it again"),
}
"""Every kind of fault by name."""


@dataclass(frozen=True)
class Finding:
    """The result of one check. `fault` is a name in `FAULTS`, or "" if all is well."""

    check: str
    summary: str
    """What the check showed."""
    fault: str = ""

    @property
    def verdict(self) -> str:
        """`FINE`, `WARNING` or `FAULT`."""
        if self.fault:
            return FAULTS[self.fault].verdict
        return FINE

    @property
    def fix(self) -> str:
        """What to do about it."""
        if self.fault:
            return FAULTS[self.fault].fix
        return ""


@dataclass
class Report:
    """Everything that was found at a URL."""

    url: str
    timeout_ms: int
    findings: list[Finding] = field(default_factory=list)
    latency_ms: dict[str, float] = field(default_factory=dict)
    """p50, p95, p99 and the longest time of moves in concurrent games, in milliseconds; empty if
    none was played.
    """

    @property
    def passed(self) -> bool:
        """Whether a platform would accept the snake."""
        return bool(self.findings) and all(finding.verdict != FAULT for finding in self.findings)

    def as_json(self) -> dict[str, Any]:
        """Return the report for programs, JSON-able."""
        return {
            "url": self.url,
            "timeout_ms": self.timeout_ms,
            "passed": self.passed,
            "latency_ms": self.latency_ms,
            "findings": [
                {"verdict": finding.verdict, **asdict(finding), "fix": finding.fix}
                for finding in self.findings
            ],
        }

    def as_text(self) -> str:
        """Return the report as text for people."""
        width = max((len(finding.check) for finding in self.findings), default=0)
        lines = [f"{self.url}, {self.timeout_ms} ms per move"]
        for finding in self.findings:
            name = f"  [{finding.fault}]" if finding.fault else ""
            lines.append(
                f"{finding.verdict} {finding.check:<{width}}  {printable(finding.summary)}{name}"
            )
            if finding.fault:
                lines.append(f"  {'':<{width}}  → {finding.fix}")
        return "\n".join([*lines, self._summary()])

    def _summary(self) -> str:
        verdicts = [finding.verdict for finding in self.findings]
        faults = verdicts.count(FAULT)
        warnings = verdicts.count(WARNING)
        if not self.passed:
            return f"{FAULT} not ready: {faults} fault{'s' * (faults != 1)}, {warnings} to look at"
        if warnings:
            return f"{FINE} ready to play, {warnings} to look at"
        return f"{FINE} ready to play"
