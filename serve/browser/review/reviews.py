"""The games that are open for review, and the one thread that analyses them, snake by snake."""

from __future__ import annotations

import logging
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal

from agents.parallel import Tell
from envs.battlesnake.recording import Recording
from envs.common.errors import ProcsnakeError
from serve.archive.outcome import DRAW, LOST, WON
from serve.archive.rows import clean
from serve.browser.review.opened_game import SNAKE, OpenedGame

log = logging.getLogger(__name__)

MAX_OPEN = 8
"""How many games are open at a time. One more closes the one that was opened first."""
Judge = Callable[[Recording, str, Tell], dict[str, Any]]
"""Analyses the part of the snake with this id in a recording, and tells how far it is. It may raise
`ProcsnakeError`.
"""


class ClosedError(Exception):
    """The game was closed during its analysis."""


@dataclass
class Side:
    """One snake's part in an open game, and how far its analysis is."""

    snake: str
    """The snake's id."""
    name: str
    state: Literal["waiting", "running", "done", "refused"] = "waiting"
    done: float = 0.0
    """The share of the work that is done, from 0 to 1."""
    reason: str = ""
    """Why the part can't be analysed, if it is refused."""
    analysis: dict[str, Any] | None = None

    def progress(self) -> dict[str, Any]:
        """Return what the page shows while it waits."""
        return {
            "id": self.snake,
            "name": self.name,
            "state": self.state,
            "done": round(self.done, 3),
            "reason": self.reason,
        }


class Reviews:
    """At most `MAX_OPEN` open games, with the viewer's interface
    (`serve.browser.viewer.routes.Games`).

    `judge` is called in one thread during `working()`, for one snake at a time, starting with
    those of the game opened last."""

    def __init__(self, judge: Judge) -> None:
        self._judge = judge
        self._open: OrderedDict[str, tuple[OpenedGame, list[Side]]] = OrderedDict()
        self._changed = threading.Condition()
        self._is_over = False

    def open(self, recording: Recording, name: str, *, first: str | None = None) -> OpenedGame:
        """Open a game, or keep it open; the snake with the id `first` is analysed before the
        others.

        Raises what `OpenedGame` raises.
        """
        game = OpenedGame(recording, clean(name))
        first = first or game.default
        with self._changed:
            if game.id not in self._open:
                order = sorted(game.snakes, key=lambda snake: snake[0] != first)
                self._open[game.id] = game, [Side(*snake) for snake in order]
                while len(self._open) > MAX_OPEN:
                    self._open.popitem(last=False)
                self._changed.notify()
            return self._open[game.id][0]

    def listed(self) -> list[dict[str, Any]]:
        """Return the open games for the page that lists them, the last opened first."""
        return [_list_entry(game, sides) for game, sides in reversed(list(self._open.values()))]

    def sides(self, game_id: str) -> list[Side] | None:
        """Return the snakes of a game in the order of analysis; None if the game isn't open."""
        # Another thread may close the game meanwhile, so it is looked up once.
        entry = self._open.get(game_id)
        return entry and entry[1]

    @contextmanager
    def working(self) -> Iterator[None]:
        """Analyse open games in a thread that ends with the context."""
        thread = threading.Thread(target=self._work, name="analysis", daemon=True)
        thread.start()
        try:
            yield
        finally:
            with self._changed:
                self._is_over = True
                self._changed.notify()
            thread.join()

    def _work(self) -> None:
        while (work := self._next()) is not None:
            game, side = work
            side.state = "running"
            try:
                side.analysis = self._judge(game.recording, side.snake, self._teller(game, side))
                side.state = "done"
            except ClosedError:
                continue
            except ProcsnakeError as error:
                side.reason = clean(str(error))
                side.state = "refused"
            except Exception as error:
                # The next game is to be analysed all the same.
                log.exception("the analysis of %s failed", game.id)
                side.reason = clean(f"the analysis failed: {type(error).__name__}")
                side.state = "refused"

    def _next(self) -> tuple[OpenedGame, Side] | None:
        """Wait for a snake whose analysis is due; None at the end."""
        with self._changed:
            while not self._is_over:
                for game, sides in reversed(self._open.values()):
                    for side in sides:
                        if side.state == "waiting":
                            return game, side
                self._changed.wait()
        return None

    def _teller(self, game: OpenedGame, side: Side) -> Tell:
        def tell(done: int, of: int) -> None:
            if self._is_over or game.id not in self._open:
                raise ClosedError
            side.done = done / max(1, of)

        return tell

    def games(
        self, *, live: bool | None = None, limit: int = 50, offset: int = 0
    ) -> list[dict[str, Any]]:
        """Return the open games, the last opened first (`GameArchive.games`); none is live."""
        if live:
            return []
        entries = [game.entry() for game, _ in reversed(list(self._open.values()))]
        return [entry for entry in entries if entry is not None][offset : offset + limit]

    def bodies(self, game_id: str) -> list[dict[str, Any]]:
        """Return a game as each of its snakes saw it (`GameArchive.bodies`)."""
        if game_id not in self._open:
            return []
        game, sides = self._open[game_id]
        return [entry for side in sides if (entry := game.entry(side.snake)) is not None]

    def game(self, game_id: str, snake: str, you: str | None = None) -> dict[str, Any] | None:
        """Return a game as one snake saw it (`GameArchive.game`); `analysis` is the address of what
        `sides` tells.
        """
        game = self._opened(game_id, snake)
        if game is None:
            return None
        return game.entry(you)

    def turns(
        self,
        game_id: str,
        snake: str,
        *,
        since: int = 0,
        you: str | None = None,
        limit: int | None = None,
    ) -> list[dict[str, Any]]:
        """Return a game's turns (`GameArchive.turns`)."""
        game = self._opened(game_id, snake)
        if game is None:
            return []
        entry = game.entry(you)
        if entry is None:
            return []
        return game.turns(entry["you"], since, limit)

    def recording(self, game_id: str, snake: str, you: str | None = None) -> Recording | None:
        """Return a game as a recording."""
        game = self._opened(game_id, snake)
        if game is None or game.entry(you) is None:
            return None
        return game.recording

    def _opened(self, game_id: str, snake: str) -> OpenedGame | None:
        entry = self._open.get(game_id)
        if entry is None or snake != SNAKE:
            return None
        return entry[0]

    def statistics(self) -> dict[str, Any]:
        """Return figures in the form of `GameArchive.statistics`; here only the number of games is
        meaningful.
        """
        nothing = dict.fromkeys(("live", "checks", WON, LOST, DRAW, "timeouts", "errors"), 0)
        return {
            "games": len(self._open),
            **nothing,
            "causes": {},
            "snakes": {},
            **dict.fromkeys(("p50", "p95", "p99")),
        }


def _list_entry(game: OpenedGame, sides: Sequence[Side]) -> dict[str, Any]:
    """A game in the list of open games, with the share of its analyses that is done."""
    shares = [1.0 if side.state in ("done", "refused") else side.done for side in sides]
    return {
        "name": game.name,
        "path": game.path,
        "turns": game.last_turn,
        "snakes": [name for _, name in game.snakes],
        "done": sum(shares) / len(shares),
    }
