"""Games of the official engine in the form of Arena's frames."""

from __future__ import annotations

from typing import Any

from tests.envs.battlesnake.recording.official import boards_of, official_games


def frames_of(boards: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The frames of a game: the dead stay in, ids are those of entries, latencies are texts or, as
    in old games, numbers.

    Hazards off the board are left out, and a bite into one's own body has another name than in the
    official engine."""
    return [_frame(board) for board in boards]


def long_game() -> list[dict[str, Any]]:
    """Boards of a standard game on 19x19 with more than 200 turns."""
    return next(
        boards_of(game)
        for game in official_games("standard", "standard")
        if len(game["turns"]) > 200
    )


def _points(cells: list[dict[str, int]]) -> list[dict[str, int]]:
    return [{"X": cell["x"], "Y": cell["y"]} for cell in cells]


def _frame(board: dict[str, Any]) -> dict[str, Any]:
    snakes = [_snake(snake, board["turn"]) for snake in board["snakes"]]
    hazards = [cell for cell in board["hazards"] if 0 <= cell["y"] < board["height"]]
    return {
        "Turn": board["turn"],
        "Snakes": snakes,
        "Food": _points(board["food"]),
        "Hazards": _points(hazards),
    }


def _snake(snake: dict[str, Any], turn: int) -> dict[str, Any]:
    cause, by, on = (snake[key] for key in ("eliminatedCause", "eliminatedBy", "eliminatedOnTurn"))
    cause = {"snake-self-collision": "self-collision"}.get(cause, cause)
    return {
        "ID": f"entry-{snake['id']}",
        "Name": f"Snake {snake['id']}",
        "Body": _points(snake["body"]),
        "Health": snake["health"],
        "Color": "#00aa11",
        "HeadType": "default",
        "TailType": "default",
        "Latency": 17 if turn % 2 else "17",
        "Shout": "",
        "Squad": "",
        "APIVersion": "1",
        "Author": "",
        "Death": (
            {"Cause": cause, "Turn": on, "EliminatedBy": f"entry-{by}" if by else ""}
            if cause
            else None
        ),
        "EliminatedCause": cause,
        "EliminatedBy": f"entry-{by}" if by else "",
    }
