"""Writes an analysis in words: the turns that mattered, the turn where the game was lost, and the
cause in one sentence.
"""

from __future__ import annotations

from collections.abc import Sequence

from agents.measure.analysis.causes import CAUSE_TEXTS, cause_of
from agents.measure.analysis.game import Analysis, Turn
from agents.measure.analysis.lines import best_line
from agents.measure.analysis.move_classes import FAULTS
from agents.measure.analysis.opinions import MoveSearch
from agents.measure.analysis.rooms import room_after
from agents.search.evaluation.evaluate import SURE, WIN
from envs.battlesnake.state import MOVE_NAMES
from envs.common.columns import in_columns

ARROWS = "↑↓←→"
_MOST_FAULTS = 12
"""At most so many faults are listed, unless all turns are."""
_ENDS = {"won": "won", "lost": "lost", "draw": "drew"}


def word(move: int | None) -> str:
    """Return a move's name, "?" for one that isn't known."""
    return "?" if move is None else MOVE_NAMES[move]


def arrows(analysis: Analysis, place: int) -> str:
    """Return the snake's own moves in the best line from a turn."""
    position = analysis.game.positions[place]
    snake = analysis.game.snake["id"]
    line = best_line(position, analysis.turns[place].best)
    return " ".join(ARROWS[moves[snake]] for moves in line if snake in moves)


def in_words(analysis: Analysis, *, all_turns: bool = False) -> str:
    """Return the whole report: the players, the result, the turns that mattered, the lost turn, the
    cause, and the evaluation.
    """
    game = analysis.game
    against = ", ".join(game.opponents)
    if len(analysis.turns) == 1 and analysis.turns[0].move is None:
        return _position_in_words(analysis, against)
    ended = _ENDS.get(game.result, "played (the end isn't recorded)")
    turns = f"turns {analysis.turns[0].turn} to {analysis.turns[-1].turn}"
    head = f"{game.name} {ended} against {against}; {turns}, {analysis.nodes} nodes per turn"
    places: Sequence[int] = range(len(analysis.turns))
    if not all_turns:
        places = turns_that_mattered(analysis)
    turn_table = "no move cost 5 points or more"
    if places:
        turn_table = table(analysis, places)
    lines = [head, "", turn_table, "", counts(analysis)]
    lines += filter(None, [lost_sentence(analysis), cause_sentence(analysis)])
    return "\n".join([*lines, evaluation_sentence(analysis)])


def _position_in_words(analysis: Analysis, against: str) -> str:
    """What is best in a position on which nothing was played, such as a single request."""
    (turn,) = analysis.turns
    head = (
        f"{analysis.game.name} to move against {against}; turn {turn.turn}, {analysis.nodes} nodes"
    )
    heads = ("best", "depth", *MOVE_NAMES)
    row = (word(turn.best), str(turn.depth), *(chance_text(turn, move) for move in range(4)))
    best = f"{word(turn.best)} is best ({turn.chance:.0%}); line {arrows(analysis, 0)}"
    return "\n".join([head, "", in_columns([row], heads), "", best, evaluation_sentence(analysis)])


def turns_that_mattered(analysis: Analysis) -> list[int]:
    """Return the places of the costliest faults, at most twelve, and of the lost turn, in order."""
    faulty = [n for n, turn in enumerate(analysis.turns) if turn.move_class in FAULTS]
    dearest = sorted(faulty, key=lambda n: -analysis.turns[n].points_lost)[:_MOST_FAULTS]
    decisive = {n for n in (analysis.lost, analysis.last_chance) if n is not None}
    return sorted({*dearest, *decisive})


def table(analysis: Analysis, places: Sequence[int]) -> str:
    """Return a line per turn at these places: the chance before, what was played, what was best,
    what it cost, and the chances of all moves.
    """
    heads = ("turn", "chance", "played", "best", "points", "class", *MOVE_NAMES, "")
    rows = [_row(analysis.turns[place], is_lost=place == analysis.lost) for place in places]
    return in_columns(rows, heads)


def _row(turn: Turn, *, is_lost: bool) -> tuple[str, ...]:
    # Rounded before it is negated, so that nothing is shown as "-0".
    points = -round(turn.points_lost)
    return (
        str(turn.turn),
        f"{turn.chance:.0%}",
        word(turn.move),
        word(turn.best),
        str(points),
        turn.move_class,
        *(chance_text(turn, move) for move in range(4)),
        "← lost here" if is_lost else "",
    )


def chance_text(turn: Turn, move: int) -> str:
    """Return a move's chance: † for certain death, -N for a proven loss in N turns."""
    if not turn.safe[move]:
        return "†"
    score = turn.scores[move]
    if score < -SURE:
        return f"-{score + WIN}"
    return f"{turn.probabilities[move]:.0%}"


def counts(analysis: Analysis) -> str:
    """Return how many moves of each class there were."""
    classes = [turn.move_class for turn in analysis.turns]
    faults = [_counted(classes.count(name), name) for name in reversed(FAULTS) if name in classes]
    return f"{len(classes)} moves: " + (", ".join(faults) or "no faults")


def _counted(count: int, name: str) -> str:
    if count == 1:
        return f"{count} {name}"
    return f"{count} {name.replace('accuracy', 'accuracie')}s"


def lost_sentence(analysis: Analysis) -> str:
    """Return where the game was lost and which move would have saved it; "" if the snake didn't
    lose.
    """
    if analysis.lost is None:
        if analysis.game.result == "lost":
            return "every move is proven to lose from the first recorded turn on"
        return ""
    turn = analysis.turns[analysis.lost]
    if turn.move is None:
        return (
            f"turn {turn.turn}: the recording doesn't show the move; {word(turn.best)} was best"
            f" ({turn.chance:.0%})"
        )
    if turn.move == turn.best or turn.move_class == "best":
        worth = "the best move" if turn.move == turn.best else f"as good as {word(turn.best)}"
        sentence = (
            f"turn {turn.turn}: {word(turn.move)} was {worth} ({turn.chance:.0%}), and yet the"
            " game was lost from here"
        )
    else:
        consequence = _led(analysis, analysis.lost)
        alternative = _kept(analysis, analysis.lost)
        line = arrows(analysis, analysis.lost)
        sentence = f"turn {turn.turn}: {consequence}; {alternative}; line {line}"
    if analysis.last_chance in (None, analysis.lost):
        return sentence
    last = analysis.turns[analysis.last_chance]
    return (
        f"{sentence}\nturn {last.turn}: the last move that wasn't proven to lose was"
        f" {word(last.best)} ({last.chance:.0%})"
    )


def _led(analysis: Analysis, place: int) -> str:
    """What the snake's move led to."""
    turn = analysis.turns[place]
    position = analysis.game.positions[place]
    assert turn.move is not None
    move = word(turn.move)
    score = turn.scores[turn.move]
    if not turn.safe[turn.move]:
        return f"{move} was certain death"
    room = room_after(position, turn.move)
    if room is None:
        return f"{move} met its death at once"
    if room.cells < room.length:
        return f"{move} led into {room.cells} cells for a body of {room.length}"
    if score < -SURE:
        within = score + WIN
        return f"{move} lost by force within {within} turn{'s' * (within > 1)}"
    return f"{move} took the chance from {turn.chance:.0%} to {turn.probabilities[turn.move]:.0%}"


def _kept(analysis: Analysis, place: int) -> str:
    """What the best move would have kept."""
    turn = analysis.turns[place]
    position = analysis.game.positions[place]
    assert turn.move is not None
    best = room_after(position, turn.best)
    actual = room_after(position, turn.move)
    was_cramped = actual is None or actual.cells < actual.length
    if was_cramped and best is not None and best.cells >= best.length:
        return f"{word(turn.best)} kept {best.cells} ({turn.chance:.0%})"
    return f"{word(turn.best)} kept a chance of {turn.chance:.0%}"


def cause_sentence(analysis: Analysis) -> str:
    """Return the cause of the loss in one sentence; "" if the snake lives."""
    cause = cause_of(analysis)
    death = analysis.game.death
    if cause is None or death is None:
        return ""
    killer = ""
    if death.killer not in ("", analysis.game.snake["id"]):
        killer = f" ({analysis.game.name_by_id(death.killer)})"
    since = ""
    if analysis.lost is not None:
        began = analysis.turns[analysis.lost].turn
        if began < death.turn - 1:
            since = f"; it began on turn {began}"
    died = f"{analysis.game.name} died on turn {death.turn}"
    return f"cause: {died}: {CAUSE_TEXTS[cause]}{killer}{since}"


def evaluation_sentence(analysis: Analysis) -> str:
    """Return which evaluation the search used, and from which turn on another one."""
    search = MoveSearch(analysis.nodes)
    parts = list[str]()
    before = ""
    for position in analysis.game.positions:
        state, _ = position.state()
        evaluation = search.evaluation_in_words(state)
        if not before:
            parts.append(evaluation)
        elif evaluation != before:
            parts.append(f"from turn {position.turn} on {evaluation}")
        before = evaluation
    return f"positions are evaluated by: {'; '.join(parts)}"
