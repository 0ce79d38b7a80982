"""Games of the official engine in the shapes in which other programs keep them."""

from __future__ import annotations

from typing import Any

Board = dict[str, Any]


def requests(game: dict[str, Any], boards: list[Board], *, you: int = 0) -> list[dict[str, Any]]:
    """What one snake's server was sent, as far as logs keep it: living snakes, and nothing of the
    dead.
    """
    return [_request(game, board, you) for board in boards]


def _request(game: dict[str, Any], board: Board, you: int) -> dict[str, Any]:
    living = [
        {
            "id": s["id"],
            "name": s["id"],
            "health": s["health"],
            "body": s["body"],
            "head": s["body"][0],
            "length": len(s["body"]),
        }
        for s in board["snakes"]
        if not s["eliminatedCause"]
    ]
    shown = {kind: board[kind] for kind in ("width", "height", "food", "hazards")}
    own = {"id": board["snakes"][you]["id"]}
    return {"game": game, "turn": board["turn"], "board": {**shown, "snakes": living}, "you": own}


def frames(boards: list[Board]) -> list[dict[str, Any]]:
    """What the engine before Arena keeps of each turn: capitals, and the dead where they died."""
    return [
        {
            "Turn": board["turn"],
            "Snakes": [_framed(snake) for snake in board["snakes"]],
            "Food": _points(board["food"]),
            "Hazards": _points(board["hazards"]),
        }
        for board in boards
    ]


def _framed(snake: dict[str, Any]) -> dict[str, Any]:
    death = None
    if snake["eliminatedCause"]:
        death = {
            "Cause": snake["eliminatedCause"],
            "Turn": snake["eliminatedOnTurn"],
            "EliminatedBy": snake["eliminatedBy"],
        }
    looks = {"Color": "#ff0000", "HeadType": "default", "TailType": "default"}
    answer = {"Latency": 42, "Shout": "", "Squad": "", "APIVersion": "1", "Author": "", "URL": ""}
    state = {"Body": _points(snake["body"]), "Health": snake["health"], "Death": death}
    return {"ID": snake["id"], "Name": snake["id"], **state, **looks, **answer}


def _points(points: list[dict[str, int]]) -> list[dict[str, int]]:
    return [{"X": point["x"], "Y": point["y"]} for point in points]


def in_lower_case(value: Any) -> Any:
    """The same with all keys in lower case."""
    if isinstance(value, dict):
        return {key.lower(): in_lower_case(one) for key, one in value.items()}
    return [in_lower_case(one) for one in value] if isinstance(value, list) else value
