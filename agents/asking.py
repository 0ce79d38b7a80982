"""Asks an agent for its move on a recorded board, and compares it with a search's opinion of each
move.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from agents.agent import Agent
from agents.measure.analysis.game import Turn, judge
from agents.measure.analysis.snake_game import Position as JudgedPosition
from agents.measure.analysis.win_probability import WinProbability
from agents.measure.analysis.words import chance_text
from agents.opened_recording import Position
from envs.battlesnake.state import MOVE_NAMES
from envs.common.columns import in_columns

_NODES = 20_000


def ask(agent: Agent, position: Position) -> dict[str, Any]:
    """Return the agent's move for the first snake of a position, JSON-able. `moves` has for each
    move its `chance` ("71%" of winning, "†" certain death, "-8" a proven loss in 8 turns; "" where
    nobody else lives), the agent's `probability`, and what each of its `rules` says; `note` holds
    everything else that it reports.
    """
    decision = agent.act(position.state.copy(), 0)
    note = dict(decision.note)
    rules = note.pop("rules", {})
    turn = _judged(position)
    moves: dict[str, dict[str, Any]] = {}
    for number, name in enumerate(MOVE_NAMES):
        moves[name] = {"chance": ""}
        if turn is not None:
            moves[name]["chance"] = chance_text(turn, number)
        if decision.probabilities is not None:
            moves[name]["probability"] = round(float(decision.probabilities[number]), 4)
        if rules:
            moves[name]["rules"] = {rule: opinions.get(name) for rule, opinions in rules.items()}
    value = None
    if decision.value is not None:
        value = float(decision.value)
    return {
        "agent": agent.name,
        "snake": position.names[0],
        "turn": int(position.board["turn"]),
        "move": MOVE_NAMES[decision.move],
        "value": value,
        "evaluation": agent.evaluation_in_words(position.state),
        "moves": moves,
        "note": note,
    }


def _judged(position: Position) -> Turn | None:
    """Return what a search thinks of the first snake's moves; None if it is alone."""
    if len(position.names) < 2:
        return None
    own_id = position.board["snakes"][0]["id"]
    recorded = JudgedPosition(position.board, position.state.settings, own_id, {})
    return judge(recorded, nodes=_NODES, curves=WinProbability.shipped())


def in_words(answer: dict[str, Any]) -> str:
    """Return the answer as text for people."""
    first = next(iter(answer["moves"].values()))
    keys = [key for key in ("chance", "probability") if first.get(key) not in (None, "")]
    rules = list(first.get("rules", {}))
    rows = [_row(name, opinions, keys, rules) for name, opinions in answer["moves"].items()]
    lines = [
        f"{answer['agent']} plays {answer['move']} for {answer['snake']} on turn {answer['turn']}",
        "",
    ]
    lines.append(in_columns(rows, ("move", *keys, *rules)))
    if answer["evaluation"]:
        lines.append(f"positions are evaluated by: {answer['evaluation']}")
    lines += [f"{name}: {_as_text(value)}" for name, value in answer["note"].items()]
    return "\n".join(lines)


def _row(
    move: str, opinions: Mapping[str, Any], keys: Sequence[str], rules: Sequence[str]
) -> list[str]:
    """Return a move's line of the table: its name, what `keys` say of it, and each of its rules."""
    values = [opinions[key] for key in keys]
    values += [opinions["rules"][rule] for rule in rules]
    return [move, *map(_as_text, values)]


def _as_text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.3g}"
    if isinstance(value, str):
        return value
    return json.dumps(value, default=str)
