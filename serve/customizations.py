"""How a snake appears on the board."""

from __future__ import annotations

import colorsys
import hashlib
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

from agents.agent import Agent
from envs.common.errors import ConfigError, UnknownNameError
from envs.common.palette import TEAL


@dataclass(frozen=True, kw_only=True)
class Look:
    """How a snake appears on the board. Raises `ConfigError` for an invalid colour or a text that
    is too long.
    """

    color: str = TEAL
    """The snake's colour, as "#RRGGBB"."""
    head: str = "bendr"
    """The name of a head that the platform knows."""
    tail: str = "freckled"
    """The name of a tail that the platform knows."""
    author: str = ""
    """The person who made the snake."""
    version: str = "procsnake"
    """The version, which platforms show beside the name."""

    def __post_init__(self) -> None:
        if not isinstance(self.color, str) or not re.fullmatch(r"#[0-9A-Fa-f]{6}", self.color):
            raise ConfigError(
                f"color is {self.color!r}; it must be #RRGGBB in hexadecimal, such as #128a7a"
            )
        for name, text in asdict(self).items():
            if not isinstance(text, str) or len(text) > 100:
                raise ConfigError(
                    f"{name} is {str(text)[:40]!r}; it must be a text of at most 100 characters"
                )

    @classmethod
    def of(cls, agent: Agent, own_parts: Mapping[str, str | None] | None = None) -> Look:
        """Return an agent's look. A part is taken from `own_parts` if it isn't None, or else from
        `look` in the configuration on its bundle's card. Without a colour there, the agent gets its
        own.

        Raises `UnknownNameError` for an unknown part.
        """
        card = getattr(agent, "card", None)
        parts: dict[str, Any] = {"color": own_color(agent)}
        if card is not None:
            parts["version"] = f"procsnake {card.algorithm} {card.git_commit[:7]}".strip()
            look_on_card = card.config.get("look")
            if isinstance(look_on_card, Mapping):
                parts |= _without_none(look_on_card)
        parts |= _without_none(own_parts or {})
        names = [field.name for field in fields(cls)]
        for part in parts:
            if part not in names:
                raise UnknownNameError("part of a look", part, names)
        return cls(**parts)


def _without_none(parts: Mapping[str, Any]) -> dict[str, Any]:
    return {part: value for part, value in parts.items() if value is not None}


def own_color(agent: Agent) -> str:
    """Return a colour derived from a policy's weights, or from another agent's name, to distinguish
    agents.
    """
    card = getattr(agent, "card", None)
    identity = agent.name
    if card is not None:
        identity = card.files.get("policy.onnx", identity)
    hue = hashlib.sha256(identity.encode()).digest()[0] / 256
    red, green, blue = colorsys.hls_to_rgb(hue, 0.42, 0.65)
    return f"#{round(255 * red):02x}{round(255 * green):02x}{round(255 * blue):02x}"
