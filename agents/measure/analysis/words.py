"""Tells an analysis in words: the turns that mattered, the turn where the game was lost, and the
cause in one sentence.
"""

from __future__ import annotations

from collections.abc import Sequence

from agents.measure.analysis.causes import TOLD, cause_of
from agents.measure.analysis.game import Analysis, Turn
from agents.measure.analysis.lines import best_line
from agents.measure.analysis.move_classes import FAULTS
from agents.measure.analysis.opinions import MoveSearch
from agents.measure.analysis.rooms import room_after
from agents.search.evaluation.evaluate import SURE, WIN
from envs.battlesnake.state import MOVE_NAMES
from envs.common.columns import in_columns

ARROWS = "↑↓←→"
_MOST_SHOWN = 12


def word(move: int | None) -> str:
    """Return a move's name, "?" for one that isn't known."""
    return "?" if move is None else MOVE_NAMES[move]


def arrows(analysis: Analysis, place: int) -> str:
    """Return the snake's own moves in the best line from a turn."""
    position = analysis.played.positions[place]
    snake = analysis.played.snake["id"]
    line = best_line(position, analysis.turns[place].best)
    return " ".join(ARROWS[moves[snake]] for moves in line if snake in moves)


def in_words(analysis: Analysis, *, all_turns: bool = False) -> str:
    """Return the whole report: who, the result, the turns that mattered, the lost turn, the cause,
    and the evaluation.
    """
    played = analysis.played
    against = ", ".join(played.opponents)
    if len(analysis.turns) == 1 and analysis.turns[0].played is None:
        return _position_in_words(analysis, against)
    ended = {"won": "won", "lost": "lost", "draw": "drew"}.get(
        played.result, "played (the end isn't recorded)"
    )
    turns = f"turns {analysis.turns[0].turn} to {analysis.turns[-1].turn}"
    head = f"{played.name} {ended} against {against}; {turns}, {analysis.nodes} nodes per turn"
    if all_turns:
        shown = list(range(len(analysis.turns)))
    else:
        shown = turns_that_mattered(analysis)
    if shown:
        parts = [head, "", table(analysis, shown)]
    else:
        parts = [head, "", "no move cost 5 points or more"]
    told = [lost_sentence(analysis), cause_sentence(analysis), evaluation_sentence(analysis)]
    return "\n".join([*parts, "", counts(analysis), *filter(None, told)])


def _position_in_words(analysis: Analysis, against: str) -> str:
    """What is best in a position on which nothing was played, such as a single request."""
    (turn,) = analysis.turns
    head = (
        f"{analysis.played.name} to move against {against}; turn {turn.turn}, {analysis.nodes}"
        " nodes"
    )
    heads = ("best", "depth", *MOVE_NAMES)
    row = (word(turn.best), str(turn.depth), *(chance_text(turn, move) for move in range(4)))
    best = f"{word(turn.best)} is best ({turn.chance:.0%}); line {arrows(analysis, 0)}"
    told = [head, "", in_columns([row], heads), "", best]
    return "\n".join([*told, *filter(None, [evaluation_sentence(analysis)])])


def turns_that_mattered(analysis: Analysis) -> list[int]:
    """Return the places of the dearest faults, at most twelve, and of the lost turn, in order."""
    faulty = [n for n, turn in enumerate(analysis.turns) if turn.move_class in FAULTS]
    dearest = sorted(faulty, key=lambda n: -analysis.turns[n].points_lost)[:_MOST_SHOWN]
    decisive = {n for n in (analysis.lost, analysis.last_chance) if n is not None}
    return sorted({*dearest, *decisive})


def table(analysis: Analysis, shown: Sequence[int]) -> str:
    """Return a line per turn: the chance before, what was played, what was best, what it cost, and
    the chances of all moves.
    """
    heads = ("turn", "chance", "played", "best", "points", "class", *MOVE_NAMES, "")
    return in_columns((_row(analysis.turns[n], is_lost=n == analysis.lost) for n in shown), heads)


def _row(turn: Turn, *, is_lost: bool) -> tuple[str, ...]:
    return (
        str(turn.turn),
        f"{turn.chance:.0%}",
        word(turn.played),
        word(turn.best),
        f"{-turn.points_lost:.0f}" if turn.points_lost >= 0.5 else "0",
        turn.move_class,
        *(chance_text(turn, move) for move in range(4)),
        "← lost here" if is_lost else "",
    )


def chance_text(turn: Turn, move: int) -> str:
    """Return a move's chance: † for certain death, -N for a loss that is proven for N turns from
    then.
    """
    if not turn.safe[move]:
        return "†"
    score = turn.scores[move]
    if score < -SURE:
        return f"-{score + WIN}"
    return f"{turn.probabilities[move]:.0%}"


def counts(analysis: Analysis) -> str:
    """Return how many moves of each class there were."""
    classes = [turn.move_class for turn in analysis.turns]
    told = [_counted(classes.count(name), name) for name in reversed(FAULTS) if name in classes]
    return f"{len(classes)} moves: " + (", ".join(told) or "no faults")


def _counted(count: int, name: str) -> str:
    if count == 1:
        return f"{count} {name}"
    return f"{count} {name.replace('accuracy', 'accuracie')}s"


def lost_sentence(analysis: Analysis) -> str:
    """Return where the game was lost and what would have kept it; "" if the snake didn't lose."""
    if analysis.lost is None:
        if analysis.played.result == "lost":
            return "every move is proven to lose from the first recorded turn on"
        return ""
    turn = analysis.turns[analysis.lost]
    if turn.played is None:
        return (
            f"turn {turn.turn}: the recording doesn't tell what was played; {word(turn.best)} was"
            f" best ({turn.chance:.0%})"
        )
    if turn.played == turn.best or turn.move_class == "best":
        if turn.played == turn.best:
            worth = "the best move"
        else:
            worth = f"as good as {word(turn.best)}"
        told = (
            f"turn {turn.turn}: {word(turn.played)} was {worth} ({turn.chance:.0%}), and yet the"
            " game was lost from here"
        )
    else:
        line = arrows(analysis, analysis.lost)
        told = (
            f"turn {turn.turn}: {_led(analysis, analysis.lost)}; {_kept(analysis, analysis.lost)};"
            f" line {line}"
        )
    if analysis.last_chance is not None and analysis.last_chance != analysis.lost:
        last = analysis.turns[analysis.last_chance]
        told += (
            f"\nturn {last.turn}: the last move that wasn't proven to lose was {word(last.best)}"
            f" ({last.chance:.0%})"
        )
    return told


def _led(analysis: Analysis, place: int) -> str:
    """What the played move led to."""
    turn = analysis.turns[place]
    position = analysis.played.positions[place]
    assert turn.played is not None
    move = word(turn.played)
    score = turn.scores[turn.played]
    if not turn.safe[turn.played]:
        return f"{move} was certain death"
    room = room_after(position, turn.played)
    if room is None:
        return f"{move} met its death at once"
    if room.cells < room.length:
        return f"{move} led into {room.cells} cells for a body of {room.length}"
    if score < -SURE:
        within = score + WIN
        return f"{move} lost by force within {within} turn{'s' * (within > 1)}"
    return f"{move} took the chance from {turn.chance:.0%} to {turn.probabilities[turn.played]:.0%}"


def _kept(analysis: Analysis, place: int) -> str:
    """What the best move would have kept."""
    turn = analysis.turns[place]
    position = analysis.played.positions[place]
    best = room_after(position, turn.best)
    led = room_after(position, turn.played if turn.played is not None else turn.best)
    if best is not None and (led is None or led.cells < led.length) and best.cells >= best.length:
        return f"{word(turn.best)} kept {best.cells} ({turn.chance:.0%})"
    return f"{word(turn.best)} kept a chance of {turn.chance:.0%}"


def cause_sentence(analysis: Analysis) -> str:
    """Return the cause of the loss in one sentence; "" if the snake lives."""
    cause = cause_of(analysis)
    if cause is None:
        return ""
    ending = analysis.played.ending
    began = None if analysis.lost is None else analysis.turns[analysis.lost].turn
    died = ending["eliminatedOnTurn"]
    by = ending["eliminatedBy"]
    if by not in ("", analysis.played.snake["id"]):
        killer = f" ({analysis.played.name_by_id(by)})"
    else:
        killer = ""
    if began is not None and began < died - 1:
        since = f"; it began on turn {began}"
    else:
        since = ""
    return f"cause: {analysis.played.name} died on turn {died}: {TOLD[cause]}{killer}{since}"


def evaluation_sentence(analysis: Analysis) -> str:
    """Return by which evaluation the positions were searched, and from which turn on by another
    one.
    """
    search = MoveSearch(analysis.nodes)
    told = list[str]()
    before = ""
    for position in analysis.played.positions:
        state, _ = position.state()
        if (evaluation := search.evaluation_in_words(state)) != before:
            told.append(evaluation if not before else f"from turn {position.turn} on {evaluation}")
        before = evaluation
    return f"positions are evaluated by: {'; '.join(told)}"
