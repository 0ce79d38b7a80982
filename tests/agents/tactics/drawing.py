"""Positions as drawings that a person can check and a test can play.

    name: The other food
    why: three health: the food above is beside B, which takes it; the one below is three moves away
    task: survive 4
    move: down
    settings: hazard_damage=14
    health: A=3 B=97

    . . . B * . .~
    . . . ^ . . .~
    . . . ^ . v .~
    . . . ^ A < .~
    . . . . * . .~

The top row is y = height - 1. A cell is two characters: what is there, and the number of hazard
layers (blank: none, ~: one). `A` is the snake to move, `B`, `C`, … are the others; each letter is a
head, and `^ v < >` are body entries that point to the one before them. `*` is food. A body of which
`length` says more than is drawn has the rest on its last cell. Health is 100 where nothing is said.

The task `survive N`: the move is the only one after which A can be sure to live for N turns,
whatever the others do. `win N`: the only one after which A is sure to be the last snake within N
turns. Nothing spawns meanwhile."""

from __future__ import annotations

from dataclasses import dataclass, fields

from envs.battlesnake.plain import state_from_board
from envs.battlesnake.settings import Settings
from envs.battlesnake.state import MOVE_NAMES, State
from tests.agents.tactics.brute_force import Point, Position, Snake, World

_ARROWS = {"^": (0, 1), "v": (0, -1), "<": (-1, 0), ">": (1, 0)}
_INTEGERS = {f.name for f in fields(Settings) if f.type == "int"}


@dataclass(frozen=True)
class Puzzle:
    """One position with its only right move."""

    theme: str
    name: str
    why: str
    task: str
    turns: int
    move: int
    settings: Settings
    world: World
    position: Position

    def state(self) -> State:
        """The position as a board of the engine; A is in slot 0."""
        board = {
            "turn": 50,
            "width": self.world.width,
            "height": self.world.height,
            "food": [_xy(p) for p in sorted(self.position.food)],
            "hazards": [_xy(p) for p, layers in sorted(self.world.hazards) for _ in range(layers)],
            "snakes": [
                {"id": chr(ord("A") + i), "health": s.health, "body": [_xy(p) for p in s.body]}
                for i, s in enumerate(self.position.snakes)
            ],
        }
        return state_from_board(board, settings=self.settings)


def _xy(point: Point) -> dict[str, int]:
    return {"x": point[0], "y": point[1]}


def read_puzzles(text: str, theme: str) -> list[Puzzle]:
    """All positions of a text, in which lines of dashes set them apart. Raises `ValueError` for a
    drawing that can't be.
    """
    return [_read(theme, part) for part in text.split("\n---\n") if part.strip()]


def _read(theme: str, text: str) -> Puzzle:
    head, _, drawing = text.strip("\n").partition("\n\n")
    said = dict(line.split(": ", 1) for line in head.splitlines())
    task, turns = said["task"].split()
    values = dict(pair.split("=") for pair in said.get("settings", "").split())
    settings = Settings(**{key: int(v) if key in _INTEGERS else v for key, v in values.items()})
    world, position = _read_drawing(
        drawing, settings, _numbers(said.get("health", "")), _numbers(said.get("length", ""))
    )
    return Puzzle(
        theme,
        said["name"],
        said["why"],
        task,
        int(turns),
        MOVE_NAMES.index(said["move"]),
        settings,
        world,
        position,
    )


def _numbers(text: str) -> dict[str, int]:
    return {name: int(value) for name, value in (pair.split("=") for pair in text.split())}


def _read_drawing(
    drawing: str, settings: Settings, health: dict[str, int], length: dict[str, int]
) -> tuple[World, Position]:
    rows = drawing.splitlines()[::-1]
    width = max(len(row) + 1 for row in rows) // 2
    cells = {
        (x, y): row.ljust(2 * width)[2 * x : 2 * x + 2]
        for y, row in enumerate(rows)
        for x in range(width)
    }
    rules = settings.rules(width, len(rows))
    hazards = frozenset(
        (p, 1 if c[1] == "~" else int(c[1])) for p, c in cells.items() if c[1] != " "
    )
    world = World(
        width,
        len(rows),
        hazards,
        settings.hazard_damage,
        rules.wrapped,
        rules.constrictor,
        rules.solo,
    )
    things = {p: c[0] for p, c in cells.items()}
    heads = {c: p for p, c in things.items() if c.isupper()}
    snakes = []
    for name in sorted(heads):
        body = _trace(things, heads[name], world)
        body += [body[-1]] * (length.get(name, len(body)) - len(body))
        snakes.append(Snake(tuple(body), health.get(name, 100)))
    entries = sum(len(set(s.body)) for s in snakes)
    if entries != sum(c.isupper() or c in _ARROWS for c in things.values()) or len(
        set(heads)
    ) != len(snakes):
        raise ValueError(f"some body entries lead to no head, or some to two:\n{drawing}")
    return world, Position(tuple(snakes), frozenset(p for p, c in things.items() if c == "*"))


def _trace(things: dict[Point, str], head: Point, world: World) -> list[Point]:
    """Follow the arrows back from a head."""
    body = [head]
    while True:
        behind = [p for p, c in things.items() if c in _ARROWS and _onward(p, c, world) == body[-1]]
        if len(behind) > 1:
            raise ValueError(f"two body entries lead to {body[-1]}")
        if not behind or behind[0] in body:
            return body
        body.append(behind[0])


def _onward(point: Point, arrow: str, world: World) -> Point:
    (x, y), (dx, dy) = point, _ARROWS[arrow]
    return ((x + dx) % world.width, (y + dy) % world.height) if world.wrapped else (x + dx, y + dy)


def draw(world: World, position: Position) -> str:
    """The drawing of a position whose bodies have repeats only at their tails."""
    things: dict[Point, str] = dict.fromkeys(position.food, "*")
    for slot, snake in enumerate(position.snakes):
        if snake is not None:
            for onward, point in zip(snake.body, snake.body[1:]):
                if point != onward:
                    things[point] = next(c for c in _ARROWS if _onward(point, c, world) == onward)
            things[snake.body[0]] = chr(ord("A") + slot)
    layers = {p: "~" if n == 1 else str(n) for p, n in world.hazards}
    rows = (
        "".join(
            things.get((x, y), ".") + layers.get((x, y), " ") for x in range(world.width)
        ).rstrip()
        for y in reversed(range(world.height))
    )
    return "\n".join(rows)
