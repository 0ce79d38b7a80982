"""`ArenaClient`: Arena's API, one method per call, with polite retries.

It makes one request at a time with a time limit, and has an exception per kind of refusal. Source:
facts about Arena's public API, read in its source at commit 7d33768; not tried live.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any
from urllib.parse import quote, urlencode
from urllib.request import getproxies

from agents.card import library_versions
from agents.measure.evaluation.connection import CALL_ERRORS, Answer, Connection, in_words
from envs.common.strangers.bounded import parse_json
from envs.common.strangers.printable import printable
from serve.ladder.errors import (
    BY_STATUS,
    ArenaDownError,
    ArenaError,
    ArenaUnreachableError,
    StrangeAnswerError,
    TooManyRequestsError,
)
from serve.ladder.records import GameRow, Ladder, Snake, Standing, listed, mapping

TIMEOUT_S = 20.0
PATIENCE_S = 900.0
MAX_ANSWER_BYTES = 64 << 20
PAGE = 100
_RETRIES = 3
_FIRST_PAUSE_S = 1.0
_BUSY_PAUSE_S = 30.0
_MAX_STATUS_IDS = 500
_MAX_SHOWN = 200
_MAX_DIGITS = 9
_OK = 200
_REDIRECTED = 300
_FAILED = 500
_BUSY = 429


class ArenaClient:
    """The API of the Arena at `arena` (without `/api`), for the account of `token`. Use it as a
    context manager.

    After status 429 a request is repeated after the time in `Retry-After`, for at most `patience_s`
    seconds in total. After a status of 500 or more, a reading request is repeated up to three times
    within that time. A writing one isn't, because Arena may have executed it. Before each pause,
    made by `sleep`, `tell` is called with a line for people.

    Every method raises an `ArenaError`: `ArenaUnreachableError`, `ArenaDownError`,
    `StrangeAnswerError`, or what `BY_STATUS` has for the status."""

    def __init__(
        self,
        arena: str,
        token: str = "",
        *,
        patience_s: float = PATIENCE_S,
        tell: Callable[[str], None] = lambda line: None,
        sleep: Callable[[float], None] | None = None,
    ) -> None:
        version = library_versions().get("procsnake", "unknown")
        headers = {"User-Agent": f"procsnake/{version}", "Accept": "application/json"}
        if token:
            headers["Authorization"] = f"Bearer {token}"
        self._token = token.encode()
        self.arena = arena
        self._patience_s = patience_s
        self._tell = tell
        self._sleep = sleep or time.sleep
        self._connection = Connection(
            f"{arena}/api", headers=headers, max_answer_bytes=MAX_ANSWER_BYTES
        )

    def __enter__(self) -> ArenaClient:
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()

    def snakes(self) -> list[Snake]:
        """Return the account's snakes, by name."""
        return [Snake.of(entry) for entry in listed(self._ask("GET", "snakes"), "snakes")]

    def create_snake(self, *, name: str, url: str, is_public: bool) -> Snake:
        """Register a snake. Raises `NameTakenError` if the account has one of this name."""
        return Snake.of(
            self._ask("POST", "snakes", {"name": name, "url": url, "is_public": is_public})
        )

    def update_snake(self, snake_id: str, **changes: str | bool) -> Snake:
        """Change any of a snake's `name`, `url` and `is_public`."""
        return Snake.of(self._ask("PUT", f"snakes/{_part(snake_id)}", changes))

    def ladders(self) -> list[Ladder]:
        """Return all leaderboards."""
        entries = listed(self._ask("GET", "leaderboards"), "leaderboards")
        return [Ladder.of(entry) for entry in entries]

    def standings(self, ladder: Ladder) -> list[Standing]:
        """Return the snakes on a ladder: first the ranked ones, then those with too few games for a
        rank.

        Arena lists at most `PAGE` of each kind, without further pages.
        """
        path = f"leaderboards/{_part(ladder.id)}/rankings"
        rankings = mapping(self._ask("GET", path), "a ladder's rankings")
        ranked = listed(rankings.get("ranked"), "rankings")
        placement = listed(rankings.get("placement"), "rankings")
        min_games = rankings.get("min_games", 0)
        if not isinstance(min_games, int):
            min_games = 0
        return [
            Standing.of(entry, ladder=ladder.name, min_games=min_games)
            for entry in (*ranked, *placement)
        ]

    def join(self, ladder: Ladder, snake: Snake) -> None:
        """Enter a public snake on a ladder, or resume a paused one. Raises `NotAllowedError` for a
        private one.
        """
        self._ask("POST", f"leaderboards/{_part(ladder.id)}/entries", {"battlesnake_id": snake.id})

    def leave(self, ladder: Ladder, snake: Snake) -> None:
        """Pause a snake's entry. Raises `NotFoundError` if it has none."""
        self._ask("DELETE", f"leaderboards/{_part(ladder.id)}/entries/{_part(snake.id)}")

    def create_game(self, snake_ids: Sequence[str], *, board: str, game_type: str) -> str:
        """Start a game, and return its id. An account may start 20 in ten minutes; further calls
        wait.
        """
        body = {"snakes": list(snake_ids), "board": board, "game_type": game_type}
        created = mapping(self._ask("POST", "games", body), "a new game")
        if not isinstance(created.get("id"), str):
            raise StrangeAnswerError(
                "Arena began a game but didn't tell its id; procsnake arena games lists it"
            )
        return str(created["id"])

    def games(self, snake_id: str) -> list[GameRow]:
        """Return a snake's latest games, newest first. Arena lists at most 100, without ladder
        games.
        """
        query = urlencode({"snake_id": snake_id, "limit": PAGE})
        return [GameRow.of(game) for game in listed(self._ask("GET", f"games?{query}"), "games")]

    def statuses(self, game_ids: Sequence[str]) -> dict[str, str]:
        """Return the states of up to 500 games of the account's snakes, by id, without ladder
        games.
        """
        body = {"game_ids": list(game_ids)[:_MAX_STATUS_IDS]}
        games = listed(self._ask("POST", "games/status", body), "games")
        rows = [mapping(game, "a game") for game in games]
        return {str(row.get("id")): str(row.get("status")) for row in rows}

    def details(self, game_id: str) -> GameRow:
        """Return the details of any game, such as a ladder's, without the frames that Arena
        adds.
        """
        return GameRow.of(self._ask("GET", f"games/{_part(game_id)}/details"))

    def game(self, game_id: str) -> dict[str, Any]:
        """Return the board viewer's data on a game: `ID`, `Status`, `Width`, `Height`."""
        answer = mapping(self._ask("GET", f"games/{_part(game_id)}"), "a game")
        return dict(mapping(answer.get("Game"), "a game"))

    def frames(self, game_id: str, *, offset: int) -> list[Any]:
        """Return up to 100 frames of a game from frame number `offset` on. Fewer than 100 are the
        last.
        """
        query = urlencode({"offset": offset, "limit": PAGE})
        answer = self._ask("GET", f"games/{_part(game_id)}/frames?{query}")
        page = mapping(answer, "a page of frames")
        return listed(page.get("frames", page.get("Frames")), "frames")

    def _ask(self, method: str, path: str, body: dict[str, Any] | None = None) -> Any:
        waited = 0.0
        failures = 0
        while True:
            answer = self._exchange(method, path, body)
            is_busy = isinstance(answer, Answer) and answer.status == _BUSY
            failures += not is_busy
            may_repeat = is_busy or (
                method == "GET" and failures <= _RETRIES and _has_failed(answer)
            )
            pause = _pause(answer, failures)
            if not may_repeat or waited + pause > self._patience_s:
                if is_busy:
                    raise _busy(method, path, pause)
                return _read(method, path, answer)
            why = "too many requests" if is_busy else "no answer"
            self._tell(f"{self.arena}: {why}; the next try in {pause:.0f} s")
            waited += pause
            self._sleep(pause)

    def _exchange(
        self, method: str, path: str, body: dict[str, Any] | None
    ) -> Answer | ArenaUnreachableError:
        """One request, and the error of one that fails on the way."""
        if method != "GET":
            # On a kept connection a lost request would be sent twice.
            self._connection.close()
        try:
            answer = self._connection.exchange(method, path, body, TIMEOUT_S)
        except CALL_ERRORS as error:
            unreachable = ArenaUnreachableError(
                f"{self.arena} can't be reached for {_call(method, path)}: {in_words(error)}."
                f" {_TRY_LATER[method == 'GET']}{_about_proxy()}"
            )
            unreachable.__cause__ = error
            return unreachable
        # Messages quote answers, and a site that is debugged may echo the request's headers.
        if self._token:
            return replace(answer, body=answer.body.replace(self._token, b"[token]"))
        return answer


def _about_proxy() -> str:
    """Return a hint for networks that reach the internet only through a proxy."""
    if "https" not in getproxies():
        return ""
    return ". The proxy that is set on this machine isn't used; try a network that needs none"


_TRY_LATER = {
    True: "Look whether its site is up, and repeat the command later: nothing is lost",
    False: (
        "It may have been done nevertheless: look with procsnake arena status, or games, before you"
        " repeat the command"
    ),
}
"""What to do after a failure, by whether the request was only a reading one."""


def _call(method: str, path: str) -> str:
    """A request as people read it."""
    return f"{method} /api/{path.partition('?')[0]}"


def _part(text: str) -> str:
    """One step of a path, whatever is in it."""
    return quote(text, safe="") or "-"


def _has_failed(answer: Answer | ArenaUnreachableError) -> bool:
    return isinstance(answer, ArenaUnreachableError) or answer.status >= _FAILED


def _pause(answer: Answer | ArenaUnreachableError, failures: int) -> float:
    """How long to wait before the next try, in seconds: what `Retry-After` says, or else ever
    longer.
    """
    if isinstance(answer, Answer):
        headers = {name.lower(): value.strip() for name, value in answer.headers.items()}
        seconds = headers.get("retry-after", "")
        if seconds.isdecimal() and seconds.isascii():
            return max(1.0, float(seconds[:_MAX_DIGITS]))
    if _has_failed(answer):
        return _FIRST_PAUSE_S * 2 ** (failures - 1)
    return _BUSY_PAUSE_S


def _busy(method: str, path: str, pause: float) -> TooManyRequestsError:
    error = TooManyRequestsError(
        f"Arena refuses {_call(method, path)} for another {pause:.0f} s (429: too many requests)."
        " Wait, and repeat the command"
    )
    error.retry_after_s = pause
    return error


def _read(method: str, path: str, answer: Answer | ArenaUnreachableError) -> Any:
    """The answer's value, or the exception that its status stands for."""
    if isinstance(answer, ArenaUnreachableError):
        raise answer
    what = _call(method, path)
    excerpt = printable(answer.body.decode("utf-8", "replace").strip()[:_MAX_SHOWN])
    if answer.status >= _FAILED:
        raise ArenaDownError(
            f"Arena failed on {what} (status {answer.status}: {excerpt})."
            f" {_TRY_LATER[method == 'GET']}"
        )
    if answer.status >= _REDIRECTED:
        kind, fix = BY_STATUS.get(
            answer.status,
            (ArenaError, "look whether --arena is its address, and for a newer procsnake"),
        )
        raise kind(f"Arena refused {what} (status {answer.status}: {excerpt}); {fix}")
    if not answer.body.strip():
        return None
    try:
        return parse_json(answer.body)
    except ValueError as error:
        raise StrangeAnswerError(
            f"Arena's answer to {what} is not JSON ({excerpt!r:.60}); is --arena its address?"
        ) from error
