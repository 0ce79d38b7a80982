"""Plays a recording again by our rules, turn by turn, and says where the recorded game deviates
from them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise, product
from typing import Any

from envs.battlesnake.plain import Board, map_update, ruleset_step
from envs.battlesnake.recording.files import UNKNOWN_CAUSE, Recording, moves_between
from envs.battlesnake.settings import Settings
from envs.battlesnake.state import MOVE_NAMES
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
    royale's walls are random, too; that each turn has as many as it should is checked. On maps
    other than standard, empty, royale and snail_mode, hazards aren't checked. On solo_maze, which
    moves snakes by itself, nothing is.

    Raises `RecordingError` for settings that are no numbers.
    """
    settings = recording.settings
    if settings.map == "solo_maze":
        return
    trails: list[dict[str, int]] = []
    for before, after in pairwise(recording.boards()):
        if settings.map == "snail_mode":
            before = {**before, "hazards": [*_within(before), *(_above(before) or trails)]}
            trails = _trails_after(before, after, settings)
        for what in _differences(before, after, settings):
            yield Deviation(int(after["turn"]), what)


def _within(board: Board) -> list[dict[str, int]]:
    return [point for point in board["hazards"] if point["y"] < board["height"]]


def _above(board: Board) -> list[dict[str, int]]:
    """What snail_mode keeps above the board: where a trail comes next."""
    return [point for point in board["hazards"] if point["y"] >= board["height"]]


def _trails_after(before: Board, after: Board, settings: Settings) -> list[dict[str, int]]:
    """What snail_mode keeps above the board after a turn. Arena's frames leave it out."""
    moves = {snake: move["move"] for snake, move in moves_between(before, after).items()}
    order = [
        None if snake["eliminatedCause"] else moves.get(snake["id"], "")
        for snake in before["snakes"]
    ]
    try:
        _, stepped = ruleset_step(
            before,
            order,
            settings={"hazardDamagePerTurn": settings.hazard_damage},
            solo=settings.solo,
        )
        return _above(
            map_update(stepped, map="snail_mode", settings={"foodSpawnChance": 0, "minimumFood": 0})
        )
    except ProcsnakeError:
        return []


def contradiction(recording: Recording) -> str:
    """Return a sentence about the first turn that contradicts the rules that the recording tells,
    or "" if none does.

    Whoever reads a game should say it: the rules may be others, the file misread, or edited.
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
    moves = {snake: move["move"] for snake, move in moves_between(before, after).items()}
    alive = [snake["id"] for snake in before["snakes"] if not snake["eliminatedCause"]]
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
        found = list(
            _by_the_rules(before, after, settings, moves | dict(zip(unseen, guess, strict=True)))
        )
        if fewest is None or len(found) < len(fewest):
            fewest = found
        if not found:
            return
    yield from fewest or ()


def _is_unknown(snake: Mapping[str, Any]) -> bool:
    return snake["eliminatedCause"] == UNKNOWN_CAUSE


def _by_the_rules(
    before: Board, after: Board, settings: Settings, moves: Mapping[str, str]
) -> Iterator[str]:
    settled = _settled(before)
    order = [
        moves.get(snake["id"]) if not snake["eliminatedCause"] else None
        for snake in settled["snakes"]
    ]
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
    """The board without the snakes whose cause of death isn't known, which are in nobody's way."""
    return {**board, "snakes": [snake for snake in board["snakes"] if not _is_unknown(snake)]}


def _snakes(stepped: Board, after: Board) -> Iterator[str]:
    ours = {snake["id"]: snake for snake in stepped["snakes"]}
    for snake in after["snakes"]:
        expected = ours.get(snake["id"])
        if _is_unknown(snake):
            if expected is not None and not expected["eliminatedCause"]:
                yield f"{snake.get('name') or snake['id']} is gone; by the rules it lives"
            continue
        if expected is None:
            yield f"snake {snake['id']} joined the game"
            continue
        name = snake.get("name") or snake["id"]
        cause = snake["eliminatedCause"]
        wanted = expected["eliminatedCause"]
        if cause != wanted:
            yield f"{name} {_fate(cause)}; by the rules it {_fate(wanted)}"
        elif not cause and snake["health"] != expected["health"]:
            yield f"{name} has health {snake['health']}; the rules give {expected['health']}"
        if _cells(snake["body"]) != _cells(expected["body"]):
            yield (
                f"{name}'s body of {len(snake['body'])} is not what its move leaves,"
                f" {len(expected['body'])} cells"
            )


def _fate(cause: str) -> str:
    return f"dies ({cause})" if cause else "lives"


def _food(stepped: Board, after: Board) -> Iterator[str]:
    ours = Counter(_cells(stepped["food"]))
    theirs = Counter(_cells(after["food"]))
    bodies = {
        cell
        for snake in after["snakes"]
        if not snake["eliminatedCause"]
        for cell in _cells(snake["body"])
    }
    for cell in ours - theirs:
        yield f"the food at {cell} is gone, and no snake ate it"
    for cell in theirs - ours:
        on_board = 0 <= cell[0] < after["width"] and 0 <= cell[1] < after["height"]
        if cell in bodies or not on_board:
            yield f"new food lies at {cell}, {'under a snake' if on_board else 'off the board'}"


def _hazards(stepped: Board, after: Board, settings: Settings) -> Iterator[str]:
    theirs = _on_board(after)
    if settings.map == "royale" or (settings.ruleset == "royale" and settings.map in _STILL):
        yield from _walls(stepped, after, settings.shrink_every_n_turns)
    elif settings.ruleset == "royale":
        return
    elif settings.map == "snail_mode":
        expected = map_update(
            stepped, map="snail_mode", settings={"foodSpawnChance": 0, "minimumFood": 0}
        )
        if _on_board(expected) != theirs:
            yield (
                f"{sum(theirs.values())} hazards lie on the board; the trails give"
                f" {sum(_on_board(expected).values())}"
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
        moved = (
            ", ".join(f"{name} {by:+d}" for name, by in zip(SIDES, came, strict=True) if by)
            or "none"
        )
        yield f"royale's walls moved in by: {moved}; {due} side{'s' * (due != 1)} should have"


def walls(board: Mapping[str, Any]) -> tuple[int, int, int, int] | None:
    """Return by how many cells royale's walls have moved in from left, right, bottom and top.

    None if the hazards don't lie outside a rectangle. A board that is full of hazards counts as
    (width, 0, 0, 0)."""
    width = board["width"]
    height = board["height"]
    wet = set(_cells(board["hazards"]))
    dry = [(x, y) for x in range(width) for y in range(height) if (x, y) not in wet]
    if not dry:
        return width, 0, 0, 0
    xs = [x for x, _ in dry]
    ys = [y for _, y in dry]
    left = min(xs)
    right = width - 1 - max(xs)
    bottom = min(ys)
    top = height - 1 - max(ys)
    is_rectangle = len(dry) == (width - left - right) * (height - bottom - top)
    return (left, right, bottom, top) if is_rectangle else None


def _cells(points: list[dict[str, int]]) -> list[tuple[int, int]]:
    return [(point["x"], point["y"]) for point in points]


def _on_board(board: Board) -> Counter[tuple[int, int]]:
    """Hazard layers by cell. What lies above the board is snail_mode's memory."""
    return Counter(cell for cell in _cells(board["hazards"]) if cell[1] < board["height"])
