"""Trained snakes that come with procsnake: each folder here is a policy bundle, which `agents.make` knows by its name."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from agents.card import Card

_FOLDER = Path(__file__).parent


def names() -> list[str]:
    """Their names, sorted."""
    return sorted(path.parent.name for path in _FOLDER.glob("*/card.json"))


def path(name: str) -> Path:
    """The bundle of a champion."""
    return _FOLDER / name


def table() -> str:
    """A paragraph each: what it plays, how it was trained, how strong it is."""
    return "\n\n".join(_about(name) for name in names()) or "there are none in this installation"


def _about(name: str) -> str:
    bundle = path(name)
    card = Card.from_dict(json.loads((bundle / "card.json").read_text(encoding="utf-8")))
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
