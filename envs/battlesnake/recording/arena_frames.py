"""Turns the arena's form of a game, pages of frames, into move requests.

The form is that of the old engine. It was read from the arena's public source (server/src/engine/frame.rs and
routes/game/api.rs) and was not tried live. A page is {"Count", "Frames"}; a frame {"Turn", "Snakes", "Food", "Hazards"}; a
snake {"ID", "Name", "Body", "Health", "Color", "HeadType", "TailType", "Latency", "Shout", "Squad", "Death": null or {"Cause",
"Turn", "EliminatedBy"}}; a point {"X", "Y"}, y up. Dead snakes stay in `Snakes`. Frames don't hold the board's size and the
rules; those are in the answer of `GET /games/{id}`: {"Game": {"Width", …}}.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

Entry = dict[str, Any]


def is_frames(entry: Mapping[str, Any]) -> bool:
    """Whether a JSON object is a page of frames."""
    return "Frames" in entry or "frames" in entry


def game_and_requests(page: Mapping[str, Any], width: int | None, height: int | None) -> tuple[Entry, list[Entry]]:
    """Return the webhook's game object and one move request per frame.

    `width` and `height` are needed if the page doesn't tell the board's size. Raises `KeyError`, `TypeError` or `ValueError`
    for malformed frames.
    """
    about = page.get("Game") or {}
    size = {"width": about.get("Width") or width, "height": about.get("Height") or height}
    if not all(size.values()):
        told = 'frames don\'t tell the board\'s size; add "Game": {"Width": 11, "Height": 11} to them'
        raise ValueError(f"{told}, or pass --width and --height to procsnake replay (Python: width= and height=)")
    ruleset = about.get("Ruleset") or {"name": "standard"}
    game = {"id": about.get("ID", ""), "ruleset": ruleset, "map": about.get("Map", ""), "timeout": 500, "source": "arena"}
    frames = page["Frames"] if "Frames" in page else page["frames"]
    return game, [_request(frame, size, game) for frame in frames]


def _request(frame: Mapping[str, Any], size: Mapping[str, Any], game: Mapping[str, Any]) -> Entry:
    snakes = [_snake(snake, int(frame["Turn"])) for snake in frame["Snakes"]]
    dead = [snake for snake in snakes if snake["eliminatedCause"]]
    board = {
        **size,
        "food": _points(frame.get("Food")),
        "hazards": _points(frame.get("Hazards")),
        "snakes": [snake for snake in snakes if not snake["eliminatedCause"]],
    }
    you = snakes[0] if snakes else {}
    return {"game": game, "turn": int(frame["Turn"]), "board": board, "you": you, "procsnake": {"eliminated": dead}}


def _snake(snake: Mapping[str, Any], turn: int) -> Entry:
    death = snake.get("Death") or {}
    if not death and snake.get("EliminatedCause"):
        death = {"Cause": snake["EliminatedCause"], "EliminatedBy": snake.get("EliminatedBy") or "", "Turn": turn}
    if death.get("Turn", 0) > turn:
        death = {}
    body = _points(snake["Body"])
    return {
        "id": snake["ID"],
        "name": snake.get("Name", ""),
        "latency": str(snake.get("Latency") or "0"),
        "health": int(snake["Health"]),
        "body": body,
        "head": body[0],
        "length": len(body),
        "shout": snake.get("Shout", ""),
        "squad": snake.get("Squad", ""),
        "customizations": {
            "color": snake.get("Color", ""),
            "head": snake.get("HeadType", ""),
            "tail": snake.get("TailType", ""),
        },
        "eliminatedCause": death.get("Cause", ""),
        "eliminatedBy": death.get("EliminatedBy", ""),
        "eliminatedOnTurn": int(death.get("Turn", 0)),
    }


def _points(points: Sequence[Mapping[str, int]] | None) -> list[dict[str, int]]:
    return [{"x": int(p["X"]), "y": int(p["Y"])} for p in points or ()]
