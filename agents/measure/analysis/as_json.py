"""An analysis for programs."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ProcessPoolExecutor
from typing import Any

from agents.measure.analysis.causes import cause_of, faults
from agents.measure.analysis.game import Analysis, Turn
from agents.measure.analysis.lines import best_line
from agents.measure.analysis.move_classes import FAULTS
from agents.measure.analysis.snake_game import Position
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
    game = analysis.game
    lines = _lines(analysis, pool)
    return {
        "game": game.game_id,
        "snake": {"id": game.snake["id"], "name": game.name},
        "opponents": game.opponents,
        "result": game.result or None,
        "nodes": analysis.nodes,
        "evaluation": evaluation_sentence(analysis),
        "cause": cause_of(analysis),
        "faults": faults(analysis),
        "lost_turn": _turn_number(analysis, analysis.lost),
        "last_chance_turn": _turn_number(analysis, analysis.last_chance),
        "lost_sentence": lost_sentence(analysis) or None,
        "cause_sentence": cause_sentence(analysis) or None,
        "best_line": lines.get(analysis.lost),
        "turns": [
            {**_turn(turn), "best_line": lines.get(place)}
            for place, turn in enumerate(analysis.turns)
        ],
    }


def _turn_number(analysis: Analysis, place: int | None) -> int | None:
    """The number of the turn at this place of the analysis, which may begin in mid-game."""
    return None if place is None else analysis.turns[place].turn


def _lines(analysis: Analysis, pool: ProcessPoolExecutor | None) -> Mapping[int | None, Line]:
    """Find the best lines of the turns that somebody may ask about: those with a fault, and those
    where the game was lost. Returns them by the turns' places.
    """
    decisive = (analysis.lost, analysis.last_chance)
    places = [
        n for n, turn in enumerate(analysis.turns) if turn.move_class in FAULTS or n in decisive
    ]
    starts = [(analysis.game.positions[n], analysis.turns[n].best) for n in places]
    return dict(zip(places, spread(pool, _line, starts, lambda *_: None), strict=True))


def _line(start: tuple[Position, int]) -> Line:
    """The best line from a position and its first move."""
    return [_with_names(moves) for moves in best_line(*start)]


def _with_names(moves: Mapping[str, int]) -> dict[str, str]:
    return {snake: MOVE_NAMES[move] for snake, move in moves.items()}


def _turn(turn: Turn) -> dict[str, Any]:
    return {
        "turn": turn.turn,
        "played": None if turn.move is None else MOVE_NAMES[turn.move],
        "best": MOVE_NAMES[turn.best],
        "class": turn.move_class,
        "points_lost": round(turn.points_lost, 2),
        "chance": round(turn.chance, 4),
        "depth": turn.depth,
        "curve": turn.group,
        "moves": {name: _move(turn, move) for move, name in enumerate(MOVE_NAMES)},
    }


def _move(turn: Turn, move: int) -> dict[str, Any]:
    score = turn.scores[move]
    is_proven_loss = score < -SURE
    return {
        "score": score,
        "probability": round(turn.probabilities[move], 4),
        "certain_death": not turn.safe[move],
        "loses_within": score + WIN if is_proven_loss else None,
    }
