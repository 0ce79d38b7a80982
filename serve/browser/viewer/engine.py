"""Serves recorded games in the official engine's protocol, so that the official board can show
them.

Facts, from the public sources of the board and of the command line's `board` package (commit
57cf398): the board asks `GET {engine}/games/{id}` for `{"Game": {"ID", "Status", "Width", "Height",
…}}` and reads WebSocket text messages `{"Type": "frame", "Data": {"Turn", "Snakes", "Food",
"Hazards"}}` at `{engine}/games/{id}/events`, the last of them `{"Type": "game_end", "Data":
{"game": …}}`. Points are `{"X", "Y"}`, y up. Dead snakes stay in `Snakes`, with a `Death`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from envs.battlesnake.plain import Board, Death, dead_snakes, living_snakes
from envs.battlesnake.recording import EXTRAS, Recording
from serve.archive.story import with_bodies

Entry = dict[str, Any]

POLL_SECONDS = 0.25
PATIENCE_SECONDS = 60.0


def game_object(game: Mapping[str, Any]) -> Entry:
    """Return the protocol's `Game` for an entry of `GameArchive.game`."""
    return {
        "ID": game["id"],
        "Status": "complete" if game["ended"] else "running",
        "Width": game["width"],
        "Height": game["height"],
        "Ruleset": {"name": game["ruleset"]},
        "RulesetName": game["ruleset"],
        "RulesStages": [],
        "SnakeTimeout": game["game"]["timeout"],
        "Source": game["game"]["source"],
        "Map": game["map"],
    }


def events(
    game: Callable[[], Mapping[str, Any] | None],
    turns: Callable[..., Sequence[Mapping[str, Any]]],
    wait: Callable[[float], object],
) -> Iterator[Entry]:
    """Yield the events of a game: one frame per turn, live if the game is running, then `game_end`.

    `game()` returns the store's current entry, `turns(since=…)` the turns from that number on, and
    `wait(seconds)` sleeps. The events end without `game_end` if the game is deleted, or if nothing
    happens for `PATIENCE_SECONDS`."""
    since = 0
    quiet = 0.0
    last = None
    while quiet < PATIENCE_SECONDS and (about := game()) is not None:
        new = turns(since=since)
        for board in _boards(new, last):
            last = board
            quiet = 0.0
            yield {"Type": "frame", "Data": frame(board)}
        if new:
            since = new[-1]["turn"] + 1
        elif about["ended"]:
            yield {"Type": "game_end", "Data": {"game": game_object(about)}}
            return
        else:
            wait(POLL_SECONDS)
            quiet += POLL_SECONDS


def _boards(turns: Sequence[Mapping[str, Any]], last: Board | None) -> list[Board]:
    """Boards with the dead among the living. `last`: the board before, if there was one."""
    if not turns:
        return []
    snakes_before = last["snakes"] if last is not None else []
    eliminated = with_bodies(turns, snakes_before)
    requests = [
        {"turn": turn["turn"], "board": turn["board"], EXTRAS: {"eliminated": dead}}
        for turn, dead in zip(turns, eliminated, strict=True)
    ]
    if last is not None:
        before = {
            "turn": last["turn"],
            "board": {**last, "snakes": living_snakes(last)},
            EXTRAS: {"eliminated": dead_snakes(last)},
        }
        rank = {snake["id"]: n for n, snake in enumerate(last["snakes"])}
        boards = Recording({}, [before, *requests]).boards()[1:]
        for board in boards:
            board["snakes"].sort(key=lambda snake: rank.get(snake["id"], len(rank)))
        return boards
    return Recording({}, requests).boards()


def frame(board: Board) -> Entry:
    """Return the protocol's frame for a board dict."""
    return {
        "Turn": board["turn"],
        "Snakes": [_snake(snake) for snake in board["snakes"]],
        "Food": _points(board["food"]),
        "Hazards": _points(board["hazards"]),
    }


def _snake(snake: Mapping[str, Any]) -> Entry:
    look = snake.get("customizations") or {}
    death = Death.of(snake)
    fate = None
    if death is not None:
        fate = {"Cause": death.cause, "Turn": death.turn, "EliminatedBy": death.killer}
    return {
        "ID": snake["id"],
        "Name": snake.get("name", ""),
        "Body": _points(snake["body"]),
        "Health": snake["health"],
        "Death": fate,
        "Color": look.get("color") or "#888888",
        "HeadType": look.get("head") or "default",
        "TailType": look.get("tail") or "default",
        "Latency": str(snake.get("latency", "")),
        "Shout": snake.get("shout", ""),
        "Squad": snake.get("squad", ""),
        "Author": snake.get("author", ""),
        "StatusCode": 200,
        "Error": "",
        "IsBot": False,
        "IsEnvironment": False,
    }


def _points(points: Sequence[Mapping[str, Any]]) -> list[dict[str, int]]:
    return [{"X": point["x"], "Y": point["y"]} for point in points]
