"""The account's snakes: their places on the ladders, and whether they would pass Arena's health
sweep.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from typing import Any

from envs.common.errors import UnknownNameError
from envs.common.shell_command import shell_command
from serve.doctor import requests
from serve.doctor.client import PATIENCE_S, SnakeClient
from serve.doctor.findings import FAULTS
from serve.ladder.client import PAGE, ArenaClient
from serve.ladder.records import Ladder, Snake, Standing

SWEEP_TIMEOUT_MS = 500


@dataclass(frozen=True)
class Sweep:
    """The results of the health sweep's four calls from this machine. `fix` is "" if all passed."""

    passed: bool
    summary: str
    """What came of the calls, in a sentence."""
    fix: str = ""


@dataclass(frozen=True)
class SnakeStatus:
    """A snake, its places on the ladders, and a sweep of it, None if none was made.

    `unlisted` are the ladders whose first 100 snakes don't include this one: it may be further
    down, or not on them."""

    snake: Snake
    standings: list[Standing]
    sweep: Sweep | None = None
    unlisted: tuple[str, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """Return the status for programs, JSON-able."""
        return asdict(self)

    def as_lines(self) -> list[str]:
        """Return the status for people: the snake, its ladders, its health, and how to return to
        missing ladders.
        """
        visibility = "public" if self.snake.is_public else "private"
        lines = [f"{self.snake.name}  {visibility}  {self.snake.url}"]
        lines += [f"  {_place(standing)}" for standing in self.standings]
        lines += [
            f"  {name}: not among the first {PAGE}, which are all that Arena lists"
            for name in self.unlisted
        ]
        if not self.standings and not self.unlisted:
            lines.append(
                "  on no ladder. To enter it, or after it was pulled: " + way_back(self.snake)
            )
        if self.sweep is not None:
            lines.append(f"  health: {self.sweep.summary}")
            if self.sweep.fix:
                lines.append(
                    f"  → {self.sweep.fix}. Arena pulls a snake after 3 failed sweeps, and restores"
                    " it after 2 good ones"
                )
        return lines


def _place(standing: Standing) -> str:
    if not standing.rank:
        return (
            f"{standing.ladder}: no rank yet, {standing.games} of {standing.min_games} games, score"
            f" {standing.score:.2f}"
        )
    return (
        f"{standing.ladder}: rank {standing.rank}, score {standing.score:.2f} (μ − 3σ),"
        f" {standing.games} games, first in {standing.firsts}"
    )


def way_back(snake: Snake) -> str:
    """Return the command that enters a snake on a ladder again."""
    return shell_command(
        "arena", "enter", snake.url, f"--name={snake.name}", "--public", "--ladder", "LADDER"
    )


def status_of(client: ArenaClient, *, sweeping: bool = True) -> list[SnakeStatus]:
    """Return the status of each of the account's snakes. With `sweeping`, each is called as Arena's
    health sweep calls it.
    """
    mine = client.snakes()
    if not mine:
        return []
    ladders = [ladder for ladder in client.ladders() if ladder.active]
    rankings = {ladder.name: client.standings(ladder) for ladder in ladders}
    return [_status(snake, rankings, sweeping=sweeping) for snake in mine]


def _status(
    snake: Snake, rankings: Mapping[str, Sequence[Standing]], *, sweeping: bool
) -> SnakeStatus:
    standings: list[Standing] = []
    unlisted: list[str] = []
    for ladder, listed in rankings.items():
        own = [standing for standing in listed if standing.snake_id == snake.id]
        standings += own
        if not own and _is_cut(listed):
            unlisted.append(ladder)
    health = sweep(snake.url) if sweeping else None
    return SnakeStatus(snake, standings, health, tuple(unlisted))


def _is_cut(listed: Sequence[Standing]) -> bool:
    """Whether a ladder may have more snakes than Arena lists: 100 with a rank, and 100 without."""
    ranked = sum(standing.rank > 0 for standing in listed)
    return max(ranked, len(listed) - ranked) >= PAGE


def sweep(url: str) -> Sweep:
    """Call a snake's four endpoints as the health sweep does, 5 seconds each, from this machine.

    Arena's own sweeps aren't in its API. A snake that passes here can fail there if Arena can't
    reach its address."""
    body = requests.ordinary(SWEEP_TIMEOUT_MS)
    with closing(SnakeClient(url)) as client:
        info = client.info()
        if info.fault:
            return Sweep(False, f"GET / failed from here: {info.summary}", FAULTS[info.fault].fix)
        if info.data.get("apiversion") != "1":
            return Sweep(
                False,
                f"GET / tells apiversion {info.data.get('apiversion')!r:.20}",
                FAULTS["no-apiversion"].fix,
            )
        for call in ("start", "move", "end"):
            if call == "move":
                reply = client.move(body)
            else:
                reply = client.post(call, body)
            if reply.fault and reply.fault not in ("slow-move", "long-shout"):
                return Sweep(
                    False,
                    f"POST /{call} failed from here: {reply.summary}",
                    FAULTS[reply.fault].fix,
                )
    return Sweep(True, f"all four calls answered from here within {PATIENCE_S:.0f} s")


def named(kind: str, name: str, candidates: Sequence[Snake] | Sequence[Ladder]) -> Any:
    """Return the candidate of this name, in any case of letters, or of this id. `kind` is "snake"
    or "ladder".

    Raises `UnknownNameError`, which offers the nearest names.
    """
    exact = [one for one in candidates if name in (one.id, one.name)]
    if exact:
        return exact[0]
    alike = [one for one in candidates if one.name.casefold() == name.strip().casefold()]
    if len(alike) == 1:
        return alike[0]
    hint = "" if candidates else f"You have no {kind} yet."
    raise UnknownNameError(kind, name, [one.name for one in candidates], hint=hint)
