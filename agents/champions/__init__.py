"""Trained policies that come with procsnake, for both worlds: each folder is a policy bundle, and
its name stands for its path.

`agents.make` knows the snakes among them by their names.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from agents.card import Card
from envs.common.columns import counted

_FOLDER = Path(__file__).parent


def names() -> list[str]:
    """Return the names of the champions, sorted."""
    return sorted(path.parent.name for path in _FOLDER.glob("*/card.json"))


def snakes() -> list[str]:
    """Return the names of those that play Battlesnake, sorted."""
    return [name for name in names() if _card(name).environment["name"] == "battlesnake"]


def path(name: str) -> Path:
    """Return the path of a champion's bundle."""
    return _FOLDER / name


def table() -> str:
    """Return a paragraph on each champion: its world, its training, and its measured results."""
    return "\n\n".join(_about(name) for name in names()) or "there are none in this installation"


def as_json() -> list[dict[str, Any]]:
    """Return the figures of `table`, with one dict per champion."""
    cards = {name: _card(name) for name in names()}
    return [
        {
            "name": name,
            "environment": card.environment,
            "algorithm": card.algorithm,
            "steps": card.steps,
            "metrics": card.metrics,
            "command": card.command,
            "git_commit": card.git_commit,
        }
        for name, card in cards.items()
    ]


def _card(name: str) -> Card:
    return Card.from_dict(json.loads((path(name) / "card.json").read_text(encoding="utf-8")))


def _about(name: str) -> str:
    bundle = path(name)
    card = _card(name)
    metrics = card.metrics
    size = sum(file.stat().st_size for file in bundle.iterdir()) / 1e6
    lines = [
        f"{name}: {_world(card)}; {size:.1f} MB",
        (
            f"  trained: {card.algorithm}, {card.steps.get('agent_steps', 0) / 1e6:.1f} million"
            f" decisions in {metrics.get('training_hours', 0):.2f} h, commit {card.git_commit[:9]}"
        ),
        *_wrapped("  command: ", card.command.split(" && ")),
    ]
    ratings = metrics.get("ratings", {})
    lines += [f"  {against}: {result}" for against, result in ratings.items()]
    return "\n".join(lines)


def _world(card: Card) -> str:
    """Return which game the policy plays, and how it is set up."""
    world = card.environment["name"]
    options = card.environment["options"]
    if world == "battlesnake":
        snakes = counted(options.get("num_snakes", 4), "snake")
        board = f"{options.get('width', 11)}×{options.get('height', 11)}, {snakes}"
        return f"{board}, ruleset {options.get('ruleset', 'standard')}"
    if world.startswith("procgen/"):
        return (
            f"{world}, {options.get('distribution_mode', 'hard')}, trained on levels"
            f" {options.get('levels', 'all')}"
        )
    return str(world)


def _wrapped(head: str, commands: Sequence[str]) -> list[str]:
    """Return one line per command, the first behind `head`, the others below it."""
    first, *others = commands
    indent = " " * len(head)
    return [f"{head}{first}", *(f"{indent}{command}" for command in others)]
