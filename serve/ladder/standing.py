"""Where the account's snakes stand: their places on the ladders, and whether Arena's health sweep
would be content.
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
    """What the health sweep's four calls gave when they were made from this machine. `fix` is "" if
    all passed.
    """

    passed: bool
    told: str
    fix: str = ""


@dataclass(frozen=True)
class SnakeStatus:
    """A snake, its places on the ladders, and a sweep of it, None if none was made.

    `unlisted` are the ladders of which Arena lists the first 100 without this snake: it may be
    further down, or not on them."""

    snake: Snake
    standings: list[Standing]
    sweep: Sweep | None = None
    unlisted: tuple[str, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """Return the status for programs, JSON-able."""
        return asdict(self)

    def as_lines(self) -> list[str]:
        """Return the status for people: the snake, its ladders, its health, and how to get back
        where it is missing.
        """
        seen = "public" if self.snake.is_public else "private"
        lines = [f"{self.snake.name}  {seen}  {self.snake.url}"]
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
            lines.append(f"  health: {self.sweep.told}")
            if self.sweep.fix:
                lines.append(
                    f"  → {self.sweep.fix}. Arena pulls a snake after 3 failed sweeps, and restores"
                    " it after 2 good ones"
                )
        return lines


def _place(standing: Standing) -> str:
    games = f"{standing.games} games"
    firsts = f"first in {standing.firsts}"
    if not standing.rank:
        return (
            f"{standing.ladder}: no rank yet, {standing.games} of {standing.min_games} games, score"
            f" {standing.score:.2f}"
        )
    return (
        f"{standing.ladder}: rank {standing.rank}, score {standing.score:.2f} (μ − 3σ), {games},"
        f" {firsts}"
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
    ladders = [ladder for ladder in client.ladders() if ladder.active] if mine else []
    rankings = {ladder.name: client.standings(ladder) for ladder in ladders}
    return [_status(snake, rankings, sweeping=sweeping) for snake in mine]


def _status(
    snake: Snake, rankings: Mapping[str, Sequence[Standing]], *, sweeping: bool
) -> SnakeStatus:
    own = {
        name: [one for one in listed if one.snake_id == snake.id]
        for name, listed in rankings.items()
    }
    return SnakeStatus(
        snake,
        [standing for standings in own.values() for standing in standings],
        sweep(snake.url) if sweeping else None,
        tuple(name for name, listed in rankings.items() if not own[name] and _is_cut(listed)),
    )


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
            return Sweep(False, f"GET / failed from here: {info.told}", FAULTS[info.fault].fix)
        if info.data.get("apiversion") != "1":
            return Sweep(
                False,
                f"GET / tells apiversion {info.data.get('apiversion')!r:.20}",
                FAULTS["no-apiversion"].fix,
            )
        for call in ("start", "move", "end"):
            reply = client.move(body) if call == "move" else client.post(call, body)
            if reply.fault and reply.fault not in ("slow-move", "long-shout"):
                return Sweep(
                    False, f"POST /{call} failed from here: {reply.told}", FAULTS[reply.fault].fix
                )
    return Sweep(True, f"all four calls answered from here within {PATIENCE_S:.0f} s")


def named(kind: str, name: str, known: Sequence[Snake] | Sequence[Ladder]) -> Any:
    """Return the snake or ladder of this name, in any case of letters, or of this id.

    Raises `UnknownNameError`, which offers the nearest names.
    """
    exact = [one for one in known if name in (one.id, one.name)]
    alike = [one for one in known if one.name.casefold() == name.strip().casefold()]
    if not exact and len(alike) != 1:
        raise UnknownNameError(
            kind,
            name,
            [one.name for one in known],
            hint=f"You have no {kind} yet." if not known else "",
        )
    return (exact or alike)[0]
