"""An analysis for programs."""

from __future__ import annotations

from typing import Any

from agents.analysis.causes import cause_of, faults
from agents.analysis.game import Analysis, Turn
from agents.analysis.lines import best_line
from agents.analysis.words import cause_sentence, evaluation_sentence, lost_sentence
from envs.battlesnake.state import MOVE_NAMES


def as_json(analysis: Analysis) -> dict[str, Any]:
    """Return all of an analysis, JSON-able, with the keys that docs/analysing.md lists. Probabilities lie between 0 and 1."""
    played, lost = analysis.played, analysis.lost
    return {
        "game": played.game_id,
        "snake": {"id": played.snake["id"], "name": played.name},
        "opponents": played.opponents,
        "result": played.result or None,
        "nodes": analysis.nodes,
        "evaluation": evaluation_sentence(analysis),
        "cause": cause_of(analysis),
        "faults": faults(analysis),
        "lost_turn": None if lost is None else analysis.turns[lost].turn,
        "last_chance_turn": None if analysis.last_chance is None else analysis.turns[analysis.last_chance].turn,
        "lost_sentence": lost_sentence(analysis) or None,
        "cause_sentence": cause_sentence(analysis) or None,
        "best_line": None if lost is None else _line(analysis, lost),
        "turns": [_turn(turn) for turn in analysis.turns],
    }


def _line(analysis: Analysis, place: int) -> list[dict[str, str]]:
    line = best_line(analysis.played.positions[place], analysis.turns[place].best)
    return [{snake: MOVE_NAMES[move] for snake, move in moves.items()} for moves in line]


def _turn(turn: Turn) -> dict[str, Any]:
    moves = {
        name: {
            "score": turn.scores[move],
            "probability": round(turn.probabilities[move], 4),
            "certain_death": not turn.safe[move],
        }
        for move, name in enumerate(MOVE_NAMES)
    }
    return {
        "turn": turn.turn,
        "played": None if turn.played is None else MOVE_NAMES[turn.played],
        "best": MOVE_NAMES[turn.best],
        "class": turn.move_class,
        "points_lost": round(turn.points_lost, 2),
        "chance": round(turn.chance, 4),
        "depth": turn.depth,
        "moves": moves,
    }
