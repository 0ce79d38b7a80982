"""An agent's limit per move, as tournaments, sequential tests, evaluations and matches set it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from agents.agent import Agent
from agents.player import Player
from agents.registry import make, options_of
from envs.common.errors import ConfigError

ONE_LIMIT = "effort is limited in one way: by nodes, by processor time, or by wall time"
_LIMITS = {"nodes", "cpu_ms", "simulations"}
"""The options by which an agent's name limits its effort."""


@dataclass(frozen=True, kw_only=True)
class Effort:
    """An agent's limit per move. Set at most one; without a limit, an agent uses its own.

    Raises `ConfigError` if both limits are given.
    """

    nodes: int | None = None
    """Nodes per move, for agents that count them."""
    cpu_ms: float | None = None
    """Milliseconds of processor time per move, measured on the agent's thread, for agents that can
    be limited so.
    """

    def __post_init__(self) -> None:
        if len(self.options) > 1:
            raise ConfigError(ONE_LIMIT)

    @property
    def options(self) -> dict[str, Any]:
        """The options that give an agent this effort; empty without a limit."""
        limits = {"nodes": self.nodes, "cpu_ms": self.cpu_ms}
        return {name: value for name, value in limits.items() if value is not None}

    def reaches(self, spec: str) -> bool:
        """Return whether the limit applies to a player.

        It doesn't apply to URLs, to agents without such an option, and to players whose spec, or
        its file of options, sets a limit itself."""
        player = Player.of(spec)
        if player.is_remote:
            return False
        sets_a_limit = not _LIMITS.isdisjoint(player.options)
        return self.options.keys() <= options_of(spec) and not sets_a_limit

    def make(self, spec: str) -> Agent:
        """Make an agent, with this effort if the limit applies to it. Raises what `agents.make`
        raises.
        """
        if self.reaches(spec):
            return make(spec, **self.options)
        return make(spec)

    def own_efforts(self, players: Iterable[tuple[str, str]]) -> list[str]:
        """Return the names of those players, given as (name, spec), that the limit doesn't apply
        to; empty without a limit.
        """
        if self.options:
            return [name for name, spec in players if not self.reaches(spec)]
        return []

    def exceptions_in_words(self, players: Iterable[tuple[str, str]]) -> str:
        """Return a sentence on `own_efforts`, or "" if there are none."""
        own = self.own_efforts(players)
        if not own:
            return ""
        keep = "keeps its" if len(own) == 1 else "keep their"
        return f"{', '.join(own)} {keep} own effort, not {self}"

    def __str__(self) -> str:
        if self.nodes is not None:
            return f"{self.nodes} nodes per move"
        if self.cpu_ms is not None:
            return f"{self.cpu_ms:g} ms of processor time per move"
        return "each agent's own effort"
