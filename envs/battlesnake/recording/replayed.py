"""Plays a recording again by our rules, turn by turn, and reports deviations."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise, product

from envs.battlesnake.plain import (
    Board,
    Death,
    Point,
    Snake,
    is_dead,
    living_snakes,
    map_update,
    ruleset_step,
)
from envs.battlesnake.plain.board import UNKNOWN_CAUSE
from envs.battlesnake.recording.boards import moves_between
from envs.battlesnake.recording.files import Recording
from envs.battlesnake.settings import Settings
from envs.battlesnake.state import MOVE_NAMES
from envs.common.columns import counted
from envs.common.errors import ProcsnakeError

SIDES = ("left", "right", "bottom", "top")
"""The sides of royale's rectangle by the number that is drawn for each."""
_STILL = ("standard", "empty")
"""Maps that have no hazards of their own."""
_MOST_UNSEEN = 3
"""Of more snakes that vanish at once, not all ways to die are tried."""


@dataclass(frozen=True)
class Deviation:
    """A turn whose board doesn't follow from the board before it. `what` says in words what was
    expected.
    """

    turn: int
    what: str

    def __str__(self) -> str:
        return f"turn {self.turn}: {self.what}"


def deviations(recording: Recording) -> Iterator[Deviation]:
    """Yield where a recorded game deviates from our rules, in order.

    The moves are read off the heads, and the rules are applied to each recorded board, so one
    deviation doesn't cause others. Where a file doesn't tell how a snake moved into its death, one
    of its four moves must explain the board that follows. New food is random: it may appear on any
    cell without a living snake, and food may vanish only where a snake ate it. The sides of
    royale's walls are random, too; only their number is checked. On maps other than standard,
    empty, royale and snail_mode, hazards aren't checked. On solo_maze, which moves snakes by
    itself, nothing is.

    Raises `RecordingError` for settings that are not numbers.
    """
    settings = recording.settings
    if settings.map == "solo_maze":
        return
    trails: list[Point] = []
    for before, after in pairwise(recording.boards()):
        if settings.map == "snail_mode":
            before = {**before, "hazards": [*_within(before), *(_above(before) or trails)]}
            trails = _trails_after(before, after, settings)
        for what in _differences(before, after, settings):
            yield Deviation(int(after["turn"]), what)


def _within(board: Board) -> list[Point]:
    """Return the hazards that lie on the board."""
    return [point for point in board["hazards"] if point["y"] < board["height"]]


def _above(board: Board) -> list[Point]:
    """Return what snail_mode keeps above the board: where a trail comes next."""
    return [point for point in board["hazards"] if point["y"] >= board["height"]]


def _trails_after(before: Board, after: Board, settings: Settings) -> list[Point]:
    """Return what snail_mode keeps above the board after a turn. Arena's frames leave it out."""
    moves = _moves_by_id(before, after)
    moves_in_order = _in_order_of(before, {**dict.fromkeys(_ids(before), ""), **moves})
    damage = {"hazardDamagePerTurn": settings.hazard_damage}
    try:
        _, stepped = ruleset_step(before, moves_in_order, settings=damage, solo=settings.solo)
        return _above(_after_snails(stepped))
    except ProcsnakeError:
        return []


def _after_snails(stepped: Board) -> Board:
    """Return the board after snail_mode's update, without new food."""
    return map_update(stepped, map="snail_mode", settings={"foodSpawnChance": 0, "minimumFood": 0})


def _ids(board: Board) -> list[str]:
    return [snake["id"] for snake in board["snakes"]]


def _moves_by_id(before: Board, after: Board) -> dict[str, str]:
    return {snake: move["move"] for snake, move in moves_between(before, after).items()}


def _in_order_of(board: Board, moves: Mapping[str, str]) -> list[str | None]:
    """Return the moves in the order of the board's snakes, as `ruleset_step` takes them."""
    return [None if is_dead(snake) else moves.get(snake["id"]) for snake in board["snakes"]]


def contradiction(recording: Recording) -> str:
    """Return a sentence about the first turn that contradicts the recording's own rules, or "" if
    none does. Show it to users: the rules may differ, or the file may have been misread or edited.
    """
    first = next(deviations(recording), None)
    if first is None:
        return ""
    settings = recording.settings
    rules = (
        f"ruleset {settings.ruleset}, map {settings.map}, hazard damage {settings.hazard_damage}"
    )
    return f"turn {first.turn} contradicts the rules ({rules}): {first.what}"


def _differences(before: Board, after: Board, settings: Settings) -> Iterator[str]:
    if after["turn"] == before["turn"]:
        yield "this turn is there twice, with two boards"
        return
    if after["turn"] != before["turn"] + 1:
        yield f"it follows turn {before['turn']}; the turns between are missing"
        return
    moves = _moves_by_id(before, after)
    alive = [snake["id"] for snake in living_snakes(before)]
    vanished = [
        snake["id"] for snake in after["snakes"] if snake["id"] in alive and _is_unknown(snake)
    ]
    unread = [snake for snake in alive if snake not in moves and snake not in vanished]
    if unread:
        yield f"snake {unread[0]} is not one step from where it was"
        return
    unseen = [snake for snake in vanished if snake not in moves]
    if len(unseen) > _MOST_UNSEEN:
        return
    fewest: list[str] | None = None
    for guess in product(MOVE_NAMES, repeat=len(unseen)):
        guessed_moves = dict(zip(unseen, guess, strict=True))
        differences = list(_by_the_rules(before, after, settings, moves | guessed_moves))
        if not differences:
            return
        if fewest is None or len(differences) < len(fewest):
            fewest = differences
    yield from fewest or ()


def _is_unknown(snake: Snake) -> bool:
    return _cause(snake) == UNKNOWN_CAUSE


def _cause(snake: Snake) -> str:
    """Return the cause of a snake's death; "" if it lives."""
    death = Death.of(snake)
    return death.cause if death is not None else ""


def _by_the_rules(
    before: Board, after: Board, settings: Settings, moves: Mapping[str, str]
) -> Iterator[str]:
    """Yield what differs on `after` from the board that the rules make of `before` by the moves."""
    settled = _settled(before)
    order = _in_order_of(settled, moves)
    # Royale's walls are random, so the ruleset's own would never be the recorded ones.
    ruleset = "standard" if settings.ruleset == "royale" else settings.ruleset
    numbers = {"hazardDamagePerTurn": settings.hazard_damage}
    try:
        over, stepped = ruleset_step(
            settled, order, ruleset=ruleset, settings=numbers, solo=settings.solo
        )
        if over:
            yield "the game went on, although it was over"
            return
        yield from _snakes(stepped, after)
        yield from _food(stepped, after)
        yield from _hazards(stepped, after, settings)
    except ProcsnakeError as error:
        yield f"no game can have this board: {error}"


def _settled(board: Board) -> Board:
    """Return the board without the snakes whose cause of death isn't known, because they are in
    nobody's way.
    """
    return {**board, "snakes": [snake for snake in board["snakes"] if not _is_unknown(snake)]}


def _snakes(stepped: Board, after: Board) -> Iterator[str]:
    ours = {snake["id"]: snake for snake in stepped["snakes"]}
    for snake in after["snakes"]:
        expected = ours.get(snake["id"])
        if _is_unknown(snake):
            if expected is not None and not is_dead(expected):
                yield f"{snake.get('name') or snake['id']} is gone; by the rules it lives"
            continue
        if expected is None:
            yield f"snake {snake['id']} joined the game"
            continue
        name = snake.get("name") or snake["id"]
        cause = _cause(snake)
        expected_cause = _cause(expected)
        if cause != expected_cause:
            yield f"{name} {_fate(cause)}; by the rules it {_fate(expected_cause)}"
        elif not cause and snake["health"] != expected["health"]:
            yield f"{name} has health {snake['health']}; the rules give {expected['health']}"
        if _cells(snake["body"]) != _cells(expected["body"]):
            yield (
                f"{name}'s body of {len(snake['body'])} is not what its move leaves,"
                f" {len(expected['body'])} cells"
            )


def _fate(cause: str) -> str:
    if cause:
        return f"dies ({cause})"
    return "lives"


def _food(stepped: Board, after: Board) -> Iterator[str]:
    ours = Counter(_cells(stepped["food"]))
    theirs = Counter(_cells(after["food"]))
    bodies: set[tuple[int, int]] = set()
    for snake in living_snakes(after):
        bodies.update(_cells(snake["body"]))
    for cell in ours - theirs:
        yield f"the food at {cell} is gone, and no snake ate it"
    for x, y in theirs - ours:
        if not (0 <= x < after["width"] and 0 <= y < after["height"]):
            yield f"new food lies at {(x, y)}, off the board"
        elif (x, y) in bodies:
            yield f"new food lies at {(x, y)}, under a snake"


def _hazards(stepped: Board, after: Board, settings: Settings) -> Iterator[str]:
    theirs = _on_board(after)
    if settings.map == "royale" or (settings.ruleset == "royale" and settings.map in _STILL):
        yield from _walls(stepped, after, settings.shrink_every_n_turns)
    elif settings.ruleset == "royale":
        return
    elif settings.map == "snail_mode":
        expected = _on_board(_after_snails(stepped))
        if expected != theirs:
            yield (
                f"{sum(theirs.values())} hazards lie on the board; the trails give"
                f" {sum(expected.values())}"
            )
    elif settings.map in _STILL and _on_board(stepped) != theirs:
        yield f"hazards have changed, from {len(stepped['hazards'])} to {len(after['hazards'])}"


def _walls(stepped: Board, after: Board, every: int) -> Iterator[str]:
    sides = walls(after)
    before = walls(stepped)
    if sides is None:
        yield "the hazards aren't what lies outside a rectangle"
        return
    if before is None or not every:
        return
    due = after["turn"] // every - stepped["turn"] // every
    is_empty = sum(sides[:2]) >= after["width"]  # No rectangle is left, so its sides can't be told.
    came = [now - then for now, then in zip(sides, before, strict=True)]
    if not is_empty and (min(came) < 0 or sum(came) != due):
        steps = [f"{name} {by:+d}" for name, by in zip(SIDES, came, strict=True) if by]
        steps_text = ", ".join(steps) or "none"
        yield f"royale's walls moved in by: {steps_text}; {counted(due, 'side')} should have"


def walls(board: Board) -> tuple[int, int, int, int] | None:
    """Return by how many cells royale's walls have moved in from left, right, bottom and top.

    None if the hazards don't lie outside a rectangle. A board that is full of hazards counts as
    (width, 0, 0, 0)."""
    width = board["width"]
    height = board["height"]
    dry = set(product(range(width), range(height))) - set(_cells(board["hazards"]))
    if not dry:
        return width, 0, 0, 0
    xs = [x for x, _ in dry]
    ys = [y for _, y in dry]
    left = min(xs)
    right = width - 1 - max(xs)
    bottom = min(ys)
    top = height - 1 - max(ys)
    if len(dry) != (width - left - right) * (height - bottom - top):
        return None
    return left, right, bottom, top


def _cells(points: list[Point]) -> list[tuple[int, int]]:
    return [(point["x"], point["y"]) for point in points]


def _on_board(board: Board) -> Counter[tuple[int, int]]:
    """Return the hazard layers by cell, without snail_mode's memory, which lies above the board."""
    return Counter(cell for cell in _cells(board["hazards"]) if cell[1] < board["height"])
