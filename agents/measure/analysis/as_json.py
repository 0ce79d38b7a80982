"""An analysis for programs."""

from __future__ import annotations

from concurrent.futures import ProcessPoolExecutor
from typing import Any

from agents.measure.analysis.causes import cause_of, faults
from agents.measure.analysis.game import Analysis, Turn
from agents.measure.analysis.lines import best_line
from agents.measure.analysis.move_classes import FAULTS
from agents.measure.analysis.played import Position
from agents.measure.analysis.words import cause_sentence, evaluation_sentence, lost_sentence
from agents.parallel import spread
from agents.search.evaluation.evaluate import SURE, WIN
from envs.battlesnake.state import MOVE_NAMES

Line = list[dict[str, str]]
"""A best line: for each turn the moves by snake's id."""


def as_json(analysis: Analysis, *, pool: ProcessPoolExecutor | None = None) -> dict[str, Any]:
    """Return all of an analysis, JSON-able, with the keys that docs/analysing.md lists.
    Probabilities lie between 0 and 1.

    The best lines are searched for in the processes of `pool`.
    """
    played = analysis.played
    lost = analysis.lost
    lines = _lines(analysis, pool)
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
        "last_chance_turn": (
            None if analysis.last_chance is None else analysis.turns[analysis.last_chance].turn
        ),
        "lost_sentence": lost_sentence(analysis) or None,
        "cause_sentence": cause_sentence(analysis) or None,
        "best_line": None if lost is None else lines[lost],
        "turns": [
            {**_turn(turn), "best_line": lines.get(place)}
            for place, turn in enumerate(analysis.turns)
        ],
    }


def _lines(analysis: Analysis, pool: ProcessPoolExecutor | None) -> dict[int, Line]:
    """The best lines of the turns that somebody may ask about, by their places: the faults, and
    where the game was lost.
    """
    decisive = (analysis.lost, analysis.last_chance)
    places = [
        n for n, turn in enumerate(analysis.turns) if turn.move_class in FAULTS or n in decisive
    ]
    asked = [(analysis.played.positions[n], analysis.turns[n].best) for n in places]
    return dict(zip(places, spread(pool, _line, asked, lambda *_: None), strict=True))


def _line(asked: tuple[Position, int]) -> Line:
    return [
        {snake: MOVE_NAMES[move] for snake, move in moves.items()} for moves in best_line(*asked)
    ]


def _turn(turn: Turn) -> dict[str, Any]:
    moves = {
        name: {
            "score": turn.scores[move],
            "probability": round(turn.probabilities[move], 4),
            "certain_death": not turn.safe[move],
            "loses_within": turn.scores[move] + WIN if turn.scores[move] < -SURE else None,
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
        "curve": turn.group,
        "moves": moves,
    }
