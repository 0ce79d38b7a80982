"""Asks an agent what it would play on a recorded board, and tells its answer beside what a search
thinks of each move.
"""

from __future__ import annotations

import json
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
    """Return what the agent would play for the first snake of a position, JSON-able.

    `moves` has for each move its `chance` ("71%" of winning, "†" certain death, "-8" a loss that is
    proven for that many turns; "" where nobody else lives), the agent's `probability`, and what
    each of its `rules` says; `note` is whatever else it tells."""
    decision = agent.act(position.state.copy(), 0)
    note = dict(decision.note)
    rules = note.pop("rules", {})
    turn = _judged(position)
    moves: dict[str, dict[str, Any]] = {}
    for number, name in enumerate(MOVE_NAMES):
        moves[name] = {"chance": "" if turn is None else chance_text(turn, number)}
        if decision.probabilities is not None:
            moves[name]["probability"] = round(float(decision.probabilities[number]), 4)
        moves[name] |= (
            {"rules": {rule: opinions.get(name) for rule, opinions in rules.items()}}
            if rules
            else {}
        )
    return {
        "agent": agent.name,
        "snake": position.names[0],
        "turn": int(position.board["turn"]),
        "move": MOVE_NAMES[decision.move],
        "value": None if decision.value is None else float(decision.value),
        "evaluation": agent.evaluation_in_words(position.state),
        "moves": moves,
        "note": note,
    }


def _judged(position: Position) -> Turn | None:
    if len(position.names) < 2:
        return None
    own_id = position.board["snakes"][0]["id"]
    judged = JudgedPosition(position.board, position.state.settings, own_id, {})
    return judge(judged, nodes=_NODES, curves=WinProbability.shipped())


def in_words(answer: dict[str, Any]) -> str:
    """Return the answer as text for people."""
    first = next(iter(answer["moves"].values()))
    keys = [key for key in ("chance", "probability") if first.get(key) not in (None, "")]
    rules = list(first.get("rules", {}))
    rows = [
        [
            name,
            *(_shown(told[key]) for key in keys),
            *(_shown(told["rules"][rule]) for rule in rules),
        ]
        for name, told in answer["moves"].items()
    ]
    lines = [
        f"{answer['agent']} plays {answer['move']} for {answer['snake']} on turn {answer['turn']}",
        "",
    ]
    lines.append(in_columns(rows, ("move", *keys, *rules)))
    if answer["evaluation"]:
        lines.append(f"positions are evaluated by: {answer['evaluation']}")
    lines += [f"{name}: {_shown(told)}" for name, told in answer["note"].items()]
    return "\n".join(lines)


def _shown(told: Any) -> str:
    if told is None:
        return ""
    if isinstance(told, float):
        return f"{told:.3g}"
    if isinstance(told, str):
        return told
    return json.dumps(told, default=str)
