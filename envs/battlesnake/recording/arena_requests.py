"""Removes eliminated snakes from recorded requests of Arena, which leaves them in `board.snakes`
unmarked.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from envs.battlesnake.plain import is_dead
from envs.battlesnake.plain.living import Life, LifeHistory, LifeRules, Sighting

Entry = dict[str, Any]


class LivingOnly:
    """Reads the requests of one game in order. Other engines list no dead snakes, or mark them.

    A log that leaves out the `game` may be Arena's.
    """

    def __init__(self) -> None:
        self.undecided: list[str] = []
        """Ids of the snakes that may be dead, as far as the latest request tells."""
        self._history = LifeHistory()
        self._turn = -1

    def read(self, request: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return a well-formed request with only its living snakes. A snake that may be alive
        stays.
        """
        game = request.get("game")
        board = request["board"]
        rules = LifeRules()
        if isinstance(game, Mapping):
            rules = LifeRules.of(game)
        snakes = board["snakes"] or []
        if any(map(is_dead, snakes)):
            return request
        if game and not rules.is_arena:
            # Who has no health or has left the board is dead, whoever lists it.
            on_board = [snake for snake in snakes if _is_on_board(snake, board)]
            if len(on_board) == len(snakes):
                return request
            return {**request, "board": {**board, "snakes": on_board}}
        sighting = Sighting.of(
            snakes,
            turn=request["turn"],
            width=board["width"],
            height=board["height"],
            rules=rules,
            you=self._asked(request),
        )
        self._turn = sighting.turn
        lives = self._history.see(sighting)
        self.undecided = [
            snake["id"] for snake, life in zip(snakes, lives, strict=True) if life is Life.UNDECIDED
        ]
        living = [snake for snake, life in zip(snakes, lives, strict=True) if life is not Life.DEAD]
        return {**request, "board": {**board, "snakes": living}}

    def _asked(self, request: Mapping[str, Any]) -> int | None:
        """Return the place of `you` in the list of the first request; None for later ones, because
        `you` may be dead in that of `/end`.
        """
        if self._turn >= 0:
            return None
        you = request.get("you")
        ids = [snake["id"] for snake in request["board"]["snakes"]]
        if isinstance(you, Mapping) and you.get("id") in ids:
            return ids.index(you["id"])
        return None


def _is_on_board(snake: Mapping[str, Any], board: Mapping[str, Any]) -> bool:
    points = [(point["x"], point["y"]) for point in snake["body"]]
    return snake["health"] > 0 and all(
        0 <= x < board["width"] and 0 <= y < board["height"] for x, y in points
    )
