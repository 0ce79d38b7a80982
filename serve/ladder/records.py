"""The answers of Arena's API as typed records. A malformed answer raises `StrangeAnswerError`;
unknown fields are ignored.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from serve.ladder.errors import StrangeAnswerError

BOARDS = ("7x7", "11x11", "19x19")
GAME_TYPES = ("standard", "royale", "constrictor", "snail", "solo")
MAX_SNAKES = 4
MAX_NAME = 64
OVER = ("finished", "complete")
"""The states of a game that was played to its end: Arena's, and the old engine's."""
FAILED = "failed"
"""The state of a game whose runner has died. It never has a result."""
ENDED = (*OVER, FAILED)


@dataclass(frozen=True)
class Snake:
    """A snake of the account. Arena requests moves from its `url`."""

    id: str
    name: str
    url: str
    is_public: bool

    @classmethod
    def of(cls, entry: Any) -> Snake:
        """Read a snake as the API describes it."""
        with _named("a snake"):
            return cls(
                _text(entry["id"]),
                _text(entry["name"]),
                _text(entry["url"]),
                bool(entry["is_public"]),
            )


@dataclass(frozen=True)
class Ladder:
    """A leaderboard."""

    id: str
    name: str
    active: bool

    @classmethod
    def of(cls, entry: Any) -> Ladder:
        """Read a leaderboard as the API describes it."""
        with _named("a leaderboard"):
            return cls(_text(entry["id"]), _text(entry["name"]), bool(entry.get("active", True)))


@dataclass(frozen=True)
class Standing:
    """A snake's place on a ladder. `rank` is 0 until it has played `min_games`; `score` is the
    rating's μ − 3σ.
    """

    ladder: str
    snake_id: str
    snake_name: str
    owner: str
    rank: int
    score: float
    games: int
    firsts: int
    min_games: int

    @classmethod
    def of(cls, entry: Any, *, ladder: str, min_games: int) -> Standing:
        """Read an entry of `ranked` or `placement`."""
        with _named("a ranking"):
            return cls(
                ladder=ladder,
                snake_id=_text(entry["battlesnake_id"]),
                snake_name=_text(entry.get("snake_name", "")),
                owner=_text(entry.get("owner") or ""),
                rank=int(entry.get("rank") or 0),
                score=float(entry["display_score"]),
                games=int(entry["games_played"]),
                firsts=int(entry.get("first_place_finishes") or 0),
                min_games=min_games,
            )


@dataclass(frozen=True)
class GameRow:
    """A game in a list. `winner` is a snake's id or name, or ""; after a draw it is one of the last
    to die. `snakes` are the players' (id, name); in ladder games the ids are "".
    """

    id: str
    status: str
    winner: str
    snakes: tuple[tuple[str, str], ...]
    board: str
    game_type: str
    created_at: str

    @classmethod
    def of(cls, entry: Any) -> GameRow:
        """Read a game from the API's list."""
        with _named("a game"):
            return cls(
                id=_text(entry["id"]),
                status=_text(entry["status"]),
                winner=_winner(entry.get("winner")),
                snakes=tuple(
                    (_text(snake["id"] or ""), _text(snake.get("name", "")))
                    for snake in entry.get("snakes") or ()
                ),
                board=_text(entry.get("board", "")),
                game_type=kind_of(_text(entry.get("game_type", ""))),
                created_at=_text(entry.get("created_at", "")),
            )

    @property
    def is_over(self) -> bool:
        """Whether the game was played to its end."""
        return self.status in OVER

    def result_for(self, snake: Snake) -> str:
        """Return "won", "lost" or "draw" for one of its snakes; "" for a running game and one
        without rivals.
        """
        if not self.is_over or len(self.snakes) < 2:
            return ""
        if not self.winner:
            return "draw"
        if self.winner in (snake.id, snake.name):
            return "won"
        return "lost"


def kind_of(game_type: str) -> str:
    """Return one of `GAME_TYPES` for a game's type however it is spelt ("Snail Mode",
    "snail_mode"), or the text as it is.
    """
    name = game_type.strip().lower().replace("_", " ").removesuffix(" mode")
    if name in GAME_TYPES:
        return name
    return game_type


@contextmanager
def _named(what: str) -> Iterator[None]:
    try:
        yield
    except (LookupError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise StrangeAnswerError(
            f"Arena's answer holds {what} that can't be read ({type(error).__name__}:"
            f" {str(error)[:80]}). Its API may have changed; look for a newer procsnake"
        ) from error


def listed(answer: Any, what: str) -> list[Any]:
    """Return the answer if it is a list; otherwise raise `StrangeAnswerError`."""
    if not isinstance(answer, list):
        raise StrangeAnswerError(
            f"Arena's answer should be a list of {what}, and is {type(answer).__name__}"
        )
    return answer


def mapping(answer: Any, what: str) -> Mapping[str, Any]:
    """Return the answer if it is an object; otherwise raise `StrangeAnswerError`."""
    if not isinstance(answer, Mapping):
        raise StrangeAnswerError(f"Arena's answer should be {what}, and is {type(answer).__name__}")
    return answer


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r:.40} is not text")
    return value


def _winner(value: Any) -> str:
    """The winner's id or name; the facts don't say whether `value` is one of them, or a snake."""
    if isinstance(value, Mapping):
        value = value.get("id") or value.get("name")
    return _text(value or "")
