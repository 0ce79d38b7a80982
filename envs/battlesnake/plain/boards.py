"""The engine's steps on plain dicts, for tools, teaching and checking. They run on the same kernels
as the batch.

A board is a dict in webhook form. It has `turn`, `width` and `height`; `food` and `hazards`, which
are lists of {"x", "y"} in which repeats count; and `snakes`, each with `id`, `health`, `body` and
optionally `eliminatedCause`, `eliminatedBy` and `eliminatedOnTurn`. Dead snakes stay in the list.

Settings are a dict of integers, or of strings that hold integers: `foodSpawnChance`, `minimumFood`,
`damagePerTurn` (or `hazardDamagePerTurn`), `shrinkEveryNTurns`. A missing setting has the default
of the official rules package. Any integer is accepted; one that is out of range is read as the
nearest that `Settings` takes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from envs.battlesnake import maps, rng
from envs.battlesnake.plain.living import Life, Sighting, death_of, lives_in
from envs.battlesnake.rules import initialise_board, is_over, step_board
from envs.battlesnake.settings import Settings, within_limits
from envs.battlesnake.state import ABSENT, ALIVE, CAUSE_NAMES, MAX_LAYERS, MOVE_NAMES, State
from envs.common.errors import InvalidActionError, InvalidStateError, whole_seed

Board = dict[str, Any]
_NOT_A_MOVE = -1
_SPARE_ENTRIES = 4
_SOME_TURN = 2
_MAX_FOOD = 255
_MOST_ENTRIES = np.iinfo(np.int16).max


def ruleset_step(
    board: Board,
    moves: Sequence[str | None],
    *,
    ruleset: str = "standard",
    settings: Mapping[str, Any] | None = None,
    solo: bool = False,
    seed: int = 0,
) -> tuple[bool, Board]:
    """Play one step of the ruleset alone. The map isn't updated, and the turn number stays.

    `moves` has one entry per snake, in the order of the list: "up", "down", "left" or "right", and
    None for dead snakes. Any other string means straight on. An empty list on a board of turn 0 is
    the official initialisation step.

    Returns (over, board). `over` is True if the game was over before the step; the board is then
    unchanged. Raises `InvalidActionError` for a missing move, and `InvalidStateError` for a board
    that no game can have."""
    state = state_from_board(board, settings=_settings(settings, ruleset=ruleset, solo=solo))
    rules = state.rules
    if is_over(state.arrays, 0, rules):
        return True, _copy(board)
    _seed(state, seed)
    if not moves and state.arrays.turn[0] == 0:
        initialise_board(state.arrays, 0, rules)
    else:
        step_board(state.arrays, 0, rules, _move_numbers(board, moves))
    return False, _merge(board, board_from_state(state, 0, [s["id"] for s in board["snakes"]]))


def setup_board(
    *,
    map: str = "standard",
    width: int = 11,
    height: int = 11,
    snake_ids: Sequence[str] = ("a", "b"),
    settings: Mapping[str, Any] | None = None,
    seed: int = 0,
) -> Board:
    """Return the board that a map lays out for a new game. Raises `ConfigError` if the map has no
    room for so many snakes.
    """
    chosen = _settings(settings, map=map)
    state = State(1, width=width, height=height, num_snakes=len(snake_ids), settings=chosen)
    _seed(state, seed)
    maps.set_up(state, np.arange(1))
    return board_from_state(state, 0, list(snake_ids))


def map_update(
    board: Board, *, map: str = "standard", settings: Mapping[str, Any] | None = None, seed: int = 0
) -> Board:
    """Do only what the map does at the end of a turn: food and hazards may appear or vanish. The
    turn number stays.

    Raises `ConfigError` for a board that the map isn't made for.
    """
    state = state_from_board(board, settings=_settings(settings, map=map))
    maps.check_board(map, width=state.width, height=state.height, num_snakes=len(board["snakes"]))
    _seed(state, seed)
    maps.update(state, np.arange(1))
    return _merge(board, board_from_state(state, 0, [s["id"] for s in board["snakes"]]))


def state_from_board(
    board: Mapping[str, Any], *, settings: Settings | None = None, num_snakes: int | None = None
) -> State:
    """Make a state of one board from a dict. Snake i of the list plays in slot i.

    Snakes in webhook form (with a `latency`, without an `eliminatedCause`) may be dead: Arena
    leaves them in. Those that this board alone shows to be dead (`envs.battlesnake.plain.living`) are, of
    their likely cause. `read_move_request` reads a whole request, and so finds nearly all.

    Hazards above the board are snail_mode's memory; other hazards off the board are dropped.
    `num_snakes` asks for more slots than there are snakes. Raises `InvalidStateError`, naming the
    field, for a board that no game can have, and for food off the board."""
    try:
        width = int(board["width"])
        height = int(board["height"])
        snakes = board["snakes"]
        longest = (
            max((len(s["body"]) for s in snakes), default=1)
            + len(board.get("food", ()))
            + _SPARE_ENTRIES
        )
        if longest > _MOST_ENTRIES:
            raise InvalidStateError(
                f"the longest body and the food have {longest} entries; at most {_MOST_ENTRIES} are"
                " counted"
            )
        slots = max(1, len(snakes) if num_snakes is None else num_snakes)
        state = State(
            1,
            width=width,
            height=height,
            num_snakes=slots,
            settings=settings,
            max_length=max(longest, width * height + 3),
        )
        state.arrays.turn[0] = int(board.get("turn", 0))
        ids = [s["id"] for s in snakes]
        for slot, snake in enumerate(_with_deaths(board, snakes)):
            _place(state, slot, snake, ids)
        _place_food(state, board.get("food", ()))
        place_hazards(state, Counter((int(p["x"]), int(p["y"])) for p in board.get("hazards", ())))
    except (KeyError, TypeError, AttributeError, ValueError, OverflowError, IndexError) as error:
        raise InvalidStateError(
            f"the board is malformed: {type(error).__name__} {error}"
        ) from error
    return state


def _with_deaths(
    board: Mapping[str, Any], snakes: Sequence[Mapping[str, Any]]
) -> Sequence[Mapping[str, Any]]:
    """The snakes, with those marked that are dead though nothing says so."""
    if not all("latency" in snake and "eliminatedCause" not in snake for snake in snakes):
        return snakes
    has_moved = any(snake["body"][0] != snake["body"][-1] for snake in snakes if snake["body"])
    # The board of a request doesn't tell the turn.
    turn = int(board.get("turn", _SOME_TURN if has_moved else 0))
    sighting = Sighting.of(
        snakes, turn=turn, width=int(board["width"]), height=int(board["height"])
    )
    return [
        {**snake, "eliminatedCause": death_of(seen, sighting)} if life is Life.DEAD else snake
        for snake, seen, life in zip(snakes, sighting.snakes, lives_in(sighting), strict=True)
    ]


def _place(state: State, slot: int, snake: Mapping[str, Any], ids: list[str]) -> None:
    a = state.arrays
    cause_name = snake.get("eliminatedCause", "")
    if cause_name not in CAUSE_NAMES[:ABSENT]:
        raise InvalidStateError(
            f"snakes[{slot}].eliminatedCause is {cause_name!r}; known:"
            f" {', '.join(CAUSE_NAMES[1:ABSENT])}"
        )
    cause = CAUSE_NAMES.index(cause_name)
    body = [(int(p["x"]), int(p["y"])) for p in snake["body"]]
    state.place_snake(0, slot, body, health=int(snake["health"]), cause=cause)
    a.death_turn[0, slot] = int(snake.get("eliminatedOnTurn", 0))
    by = snake.get("eliminatedBy", "")
    if by in ids:
        a.killer[0, slot] = ids.index(by)


def _place_food(state: State, points: Iterable[Mapping[str, int]]) -> None:
    a = state.arrays
    for (x, y), count in Counter((int(p["x"]), int(p["y"])) for p in points).items():
        if not _on_board(state, x, y):
            raise InvalidStateError(
                f"food lies at ({x}, {y}), off the {state.width}x{state.height} board"
            )
        if count > _MAX_FOOD:
            raise InvalidStateError(
                f"food at ({x}, {y}) is repeated {count} times; at most {_MAX_FOOD} fit on a cell"
            )
        a.food[0, state.cell(x, y)] = count
        a.num_food[0] += count


def place_hazards(state: State, layers: Mapping[tuple[int, int], int]) -> None:
    """Put hazard layers, counted by point (x, y), on the board of a state of one board, which must
    have none yet.

    A point above the board (y in height..2 * height - 1) is snail_mode's memory of a tail; as many
    of these are kept as there are slots. Other points off the board are dropped. Raises
    `InvalidStateError` for more than `MAX_LAYERS` layers on a point."""
    a = state.arrays
    trail: list[tuple[int, int]] = []
    for (x, y), count in layers.items():
        above = state.height <= y < 2 * state.height
        if not _on_board(state, x, y - state.height if above else y):
            continue
        if count > MAX_LAYERS:
            raise InvalidStateError(
                f"the hazard at ({x}, {y}) has {count} layers; no official game stacks more than"
                f" {MAX_LAYERS} on a cell"
            )
        if above:
            trail.append((state.cell(x, y - state.height), count))
        else:
            a.hazards[0, state.cell(x, y)] = count
            a.num_hazards[0] += count
    for slot, memory in enumerate(trail[: state.num_snakes]):
        a.trail[0, slot] = memory


def hazard_layers(state: State) -> dict[tuple[int, int], int]:
    """What `place_hazards` takes, of a state's first board: layers by point, sorted by x then y,
    snail_mode's memory last.
    """
    a = state.arrays
    layers = Counter(
        dict(
            sorted(
                (state.point(cell), int(a.hazards[0, cell]))
                for cell in np.flatnonzero(a.hazards[0]).tolist()
            )
        )
    )
    for cell, times in a.trail[0]:
        if times:
            x, y = state.point(cell)
            layers[x, y + state.height] += int(times)
    return layers


def _on_board(state: State, x: int, y: int) -> bool:
    return 0 <= x < state.width and 0 <= y < state.height


def board_from_state(state: State, board: int, ids: Sequence[str]) -> Board:
    """Return the dict of one board of a state. `ids` gives the snakes' ids by slot.

    Slots in which nobody plays are left out.
    """
    a = state.arrays
    snakes = [
        _snake_dict(state, board, slot, ids)
        for slot in range(state.num_snakes)
        if a.cause[board, slot] != ABSENT
    ]
    hazards = state.points(a.hazards[board])
    for cell, layers in a.trail[board]:
        x, y = state.point(cell)
        hazards += [(x, y + state.height)] * int(layers)
    return {
        "turn": int(a.turn[board]),
        "width": state.width,
        "height": state.height,
        "food": _points(state.points(a.food[board])),
        "hazards": _points(hazards),
        "snakes": snakes,
    }


def _snake_dict(state: State, board: int, slot: int, ids: Sequence[str]) -> dict[str, Any]:
    a = state.arrays
    cause = int(a.cause[board, slot])
    killer = int(a.killer[board, slot])
    return {
        "id": ids[slot],
        "health": int(a.health[board, slot]),
        "body": _points(state.body(board, slot)),
        "eliminatedCause": CAUSE_NAMES[cause],
        "eliminatedBy": "" if cause == ALIVE or killer < 0 else ids[killer],
        "eliminatedOnTurn": int(a.death_turn[board, slot]),
    }


def _points(points: list[tuple[int, int]]) -> list[dict[str, int]]:
    return [{"x": x, "y": y} for x, y in points]


def _move_numbers(board: Board, moves: Sequence[str | None]) -> np.ndarray:
    if len(moves) != len(board["snakes"]):
        raise InvalidActionError(
            f"moves has {len(moves)} entries for {len(board['snakes'])} snakes; give one each"
        )
    for snake, move in zip(board["snakes"], moves, strict=True):
        if move is None and not snake.get("eliminatedCause"):
            raise InvalidActionError(
                f"no move for snake {snake['id']!r}, which is alive; None is for the dead"
            )
    numbers = [MOVE_NAMES.index(m) if m in MOVE_NAMES else _NOT_A_MOVE for m in moves]
    return np.array([numbers], np.int8)


def _settings(
    given: Mapping[str, Any] | None,
    *,
    ruleset: str = "standard",
    map: str = "standard",
    solo: bool = False,
) -> Settings:
    given = given or {}
    numbers = {
        "food_spawn_chance": _integer(given, "foodSpawnChance", 0),
        "minimum_food": _integer(given, "minimumFood", 0),
        "hazard_damage": _integer(
            given, "damagePerTurn", _integer(given, "hazardDamagePerTurn", 0)
        ),
        "shrink_every_n_turns": _integer(
            given, "shrinkEveryNTurns", 20 if "royale" in (ruleset, map) else 0
        ),
    }
    return Settings(
        ruleset=ruleset,
        map=map,
        solo=solo,
        **{name: within_limits(name, value) for name, value in numbers.items()},
    )


def _integer(settings: Mapping[str, Any], name: str, default: int) -> int:
    """The official engine's parse: what is absent or no integer counts as the default."""
    try:
        return int(settings[name])
    except (KeyError, TypeError, ValueError):
        return default


def _seed(state: State, seed: int) -> None:
    state.arrays.key[0] = rng.mix(np.uint64(whole_seed(seed) & 0xFFFFFFFFFFFFFFFF))


def _merge(before: Board, after: Board) -> Board:
    """The new board with whatever else the caller's dicts carried."""
    snakes = [{**old, **new} for old, new in zip(before["snakes"], after["snakes"], strict=True)]
    return {**before, **after, "snakes": snakes}


def _copy(board: Board) -> Board:
    return {**board, "snakes": [dict(s) for s in board["snakes"]]}
