"""Turns frames, the form of Arena and of the engine before it, into move requests.

A page is {"Count", "Frames"}; a frame {"Turn", "Snakes", "Food", "Hazards"}; a snake {"ID", "Name",
"Body", "Health", "Color", "HeadType", "TailType", "Latency", "Shout", "Squad", "Death": null or
{"Cause", "Turn", "EliminatedBy"}}; a point {"X", "Y"}, y up. Dead snakes stay in `Snakes`. Frames
don't hold the board's size and the rules; those are in the answer of `GET /games/{id}`: {"Game":
{"Width", "Height", "Ruleset", "RulesetName", "Map", "SnakeTimeout", …}, "LastFrame"}. Downloads
join the two, and some of them write keys in lower case, so a key's case plays no part here.

(Read from the arena's public source, server/src/engine/frame.rs and routes/game/api.rs, and from
programs that download games. Not tried live.)"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from envs.battlesnake.plain import Death, is_dead
from envs.battlesnake.recording.recorder import EXTRAS
from envs.battlesnake.webhook.flat_rules import game_in_webhook_form, integer_of

Entry = dict[str, Any]
_MILLISECONDS = 500
_OFFICIAL_CAUSES = {"self-collision": "snake-self-collision"}
"""The official engine's name of a cause that the arena spells otherwise."""


def is_frames(entry: Mapping[str, Any]) -> bool:
    """Whether a JSON object is a page of frames, a frame, a WebSocket's message with one, or a game
    with its last frame.
    """
    keys = {key.lower() for key in entry}
    return bool({"frames", "lastframe"} & keys) or {"turn", "snakes"} <= keys or _is_message(entry)


def page_of(entries: Sequence[Mapping[str, Any]]) -> Entry:
    """Return one page with all frames in a file's entries, and the game's data if any entry has
    it.
    """
    about: Mapping[str, Any] = {}
    frames: list[Any] = []
    last: list[Any] = []
    for entry in map(_lower, entries):
        about = entry.get("game") or about
        if "frames" in entry:
            frames += entry["frames"] or []
        elif "lastframe" in entry:
            last = [entry["lastframe"]]
        elif "snakes" in entry:
            frames.append(entry)
        elif str(entry.get("type")) == "frame":
            frames.append(entry["data"])
        elif "width" in entry:
            about = entry
    return {"Game": about, "Frames": frames or last}


def game_and_requests(
    page: Mapping[str, Any], width: int | None, height: int | None
) -> tuple[Entry, list[Entry]]:
    """Return the webhook's game object and one move request per frame.

    `width` and `height` are needed if the page lacks the board's size. Raises `KeyError`,
    `TypeError` or `ValueError` for malformed frames."""
    page = _lower(page)
    about = _lower(page.get("game") or {})
    size = {"width": about.get("width") or width, "height": about.get("height") or height}
    if not all(size.values()):
        raise ValueError(
            'the frames lack the board\'s size; add "Game": {"Width": 11, "Height": 11} to'
            " them, or pass --width and --height to procsnake replay (Python: width= and"
            " height=)"
        )
    game = _game(about)
    return game, [_request(_lower(frame), size, game) for frame in page["frames"]]


def _game(about: Mapping[str, Any]) -> Entry:
    named = about.get("rulesetname") or "standard"
    ruleset = about.get("ruleset") or {}
    if isinstance(ruleset, Mapping):
        ruleset = {"name": named, **{key: value for key, value in ruleset.items() if value != ""}}
    game = {
        "id": about.get("id") or "",
        "ruleset": ruleset,
        "map": about.get("map") or "",
        "timeout": integer_of(about.get("snaketimeout")) or _MILLISECONDS,
        "source": about.get("source") or "arena",
    }
    return game_in_webhook_form(game)


def _request(frame: Mapping[str, Any], size: Mapping[str, Any], game: Mapping[str, Any]) -> Entry:
    turn = int(frame["turn"])
    snakes = [_snake(_lower(snake), turn) for snake in frame["snakes"] or []]
    board = {
        **size,
        "food": _points(frame.get("food")),
        "hazards": _points(frame.get("hazards")),
        "snakes": [snake for snake in snakes if not is_dead(snake)],
    }
    you = next(iter(snakes), {})
    dead = [snake for snake in snakes if is_dead(snake)]
    return {
        "game": game,
        "turn": turn,
        "board": board,
        "you": you,
        EXTRAS: {"eliminated": dead},
    }


def _snake(snake: Mapping[str, Any], turn: int) -> Entry:
    death = _lower(snake.get("death") or {})
    if not death and snake.get("eliminatedcause"):
        death = {
            "cause": snake["eliminatedcause"],
            "eliminatedby": snake.get("eliminatedby") or "",
            "turn": turn,
        }
    if death.get("turn", 0) > turn:
        death = {}
    body = _points(snake["body"])
    cause: str = death.get("cause", "")
    fate = Death(
        cause=_OFFICIAL_CAUSES.get(cause, cause),
        killer=death.get("eliminatedby") or "",
        turn=int(death.get("turn", 0)),
    )
    return {
        "id": snake["id"],
        "name": snake.get("name", ""),
        "latency": str(snake.get("latency") or "0"),
        "health": int(snake["health"]),
        "body": body,
        "head": body[0],
        "length": len(body),
        "shout": snake.get("shout", ""),
        "squad": snake.get("squad", ""),
        "customizations": {
            "color": snake.get("color", ""),
            "head": snake.get("headtype", ""),
            "tail": snake.get("tailtype", ""),
        },
        **fate.fields(),
    }


def _points(points: Sequence[Mapping[str, int]] | None) -> list[dict[str, int]]:
    return [{"x": int(p["x"]), "y": int(p["y"])} for p in map(_lower, points or ())]


def _is_message(entry: Mapping[str, Any]) -> bool:
    lower = _lower(entry)
    return lower.get("type") == "frame" and isinstance(lower.get("data"), Mapping)


def _lower(entry: Mapping[str, Any]) -> Entry:
    """Return an object with its keys in lower case; the keys of inner objects stay."""
    return {key.lower(): value for key, value in entry.items()}
