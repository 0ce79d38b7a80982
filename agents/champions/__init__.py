"""Trained snakes that come with procsnake: each folder here is a policy bundle, which `agents.make` knows by its name."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from agents.card import Card

_FOLDER = Path(__file__).parent


def names() -> list[str]:
    """Return the names of the champions, sorted."""
    return sorted(path.parent.name for path in _FOLDER.glob("*/card.json"))


def path(name: str) -> Path:
    """Return the path of a champion's bundle."""
    return _FOLDER / name


def table() -> str:
    """Return a paragraph on each champion: what it plays, how it was trained, how strong it is."""
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
    bundle, card = path(name), _card(name)
    options, metrics = card.environment["options"], card.metrics
    size = sum(file.stat().st_size for file in bundle.iterdir()) / 1e6
    board = f"{options.get('width', 11)}×{options.get('height', 11)}, {options.get('num_snakes', 4)} snakes"
    lines = [
        f"{name}: {board}, ruleset {options.get('ruleset', 'standard')}; {size:.1f} MB",
        f"  trained: {card.algorithm}, {card.steps.get('agent_steps', 0) / 1e6:.1f} million decisions"
        f" in {metrics.get('training_hours', 0):.2f} h, commit {card.git_commit[:9]}",
        *_wrapped("  command: ", card.command.split(" && ")),
    ]
    ratings = metrics.get("ratings", {})
    lines += [f"  {against}: {result}" for against, result in ratings.items()]
    return "\n".join(lines)


def _wrapped(head: str, commands: Sequence[str]) -> list[str]:
    return [f"{head if k == 0 else ' ' * len(head)}{command}" for k, command in enumerate(commands)]
