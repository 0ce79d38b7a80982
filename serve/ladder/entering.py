"""Enters a snake on Arena and on its ladders, takes it off them, and has games played."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Iterator, Sequence
from urllib.parse import urlsplit

from envs.common.errors import ConfigError, UnknownNameError
from serve.ladder.client import ArenaClient
from serve.ladder.errors import NotAllowedError, NotFoundError
from serve.ladder.records import ENDED, MAX_NAME, MAX_SNAKES, Ladder, Snake
from serve.ladder.standing import named
from serve.ladder.token import is_here

POLL_S = 5.0
"""Seconds between two looks at games that are played. Arena asks for two at least."""
_UUID = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")


def check_entry(name: str, url: str, *, arena: str) -> None:
    """Raise `ConfigError` for a name or URL that Arena would refuse or couldn't reach."""
    if not 1 <= len(name.strip()) <= MAX_NAME:
        raise ConfigError(
            f"the name has {len(name.strip())} characters; Arena takes 1 to {MAX_NAME}"
        )
    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
    except ValueError as error:
        raise ConfigError(f"{url!r} is not the URL of a snake: {error}") from error
    if parts.scheme not in ("http", "https") or not host:
        raise ConfigError(
            f"{url!r} is not the URL of a snake; it looks like https://snake.example.org"
        )
    if _is_private(host) and not is_here(urlsplit(arena).hostname or ""):
        raise ConfigError(
            f"Arena can't reach {host}, which is an address of this machine or network. Give a"
            " public URL"
        )


def _is_private(host: str) -> bool:
    try:
        return not ipaddress.ip_address(host).is_global
    except ValueError:
        return host == "localhost" or host.endswith((".local", ".internal"))


def planned(
    client: ArenaClient, name: str, *, public: bool, ladder: str | None
) -> tuple[Snake | None, Ladder | None]:
    """Return the account's snake of this name, None for a new one, and the ladder that is meant.

    Nothing is changed yet. Raises `UnknownNameError` if there is no such ladder, and
    `NotAllowedError` if the snake would be private: ladders take public snakes only."""
    known = next((snake for snake in client.snakes() if snake.name == name.strip()), None)
    meant = named("ladder", ladder, client.ladders()) if ladder else None
    if meant and not (public or (known and known.is_public)):
        raise NotAllowedError(
            f"{name.strip()} is private, and ladder {meant.name!r} takes public snakes only: add"
            " --public"
        )
    return known, meant


def register(
    client: ArenaClient, known: Snake | None, *, name: str, url: str, public: bool
) -> Snake:
    """Register a new snake, or give the known one its new URL. A public snake stays public."""
    if known is None:
        return client.create_snake(name=name.strip(), url=url, is_public=public)
    return client.update_snake(known.id, url=url, is_public=public or known.is_public)


def leave(client: ArenaClient, name: str, ladder: str | None = None) -> list[str]:
    """Pause a snake's entry on one ladder or on all. Returns the names of those ladders.

    Raises `NotFoundError` if it is on none, and `UnknownNameError` for names that don't exist.
    """
    snake = named("snake", name, client.snakes())
    ladders = client.ladders()
    if ladder:
        meant = named("ladder", ladder, ladders)
        client.leave(meant, snake)
        return [meant.name]
    # The rankings list the first 100 only, so each ladder is asked.
    left = [one.name for one in ladders if one.active and _leaves(client, one, snake)]
    if not left:
        raise NotFoundError(f"{snake.name} is on no ladder, so there is nothing to leave")
    return left


def _leaves(client: ArenaClient, ladder: Ladder, snake: Snake) -> bool:
    """Whether the snake had an entry there, which is paused now."""
    try:
        client.leave(ladder, snake)
    except NotFoundError:
        return False
    return True


def snake_ids(client: ArenaClient, names: Sequence[str]) -> list[str]:
    """Return the ids of snakes: of one's own by name, of others that stand on a ladder by name, of
    any public one by its id.

    Raises `ConfigError` for more than four snakes and for a name that several authors have given,
    and `UnknownNameError`."""
    if not 1 <= len(names) <= MAX_SNAKES:
        raise ConfigError(f"{len(names)} snakes are to play; Arena's games have 1 to {MAX_SNAKES}")
    mine = {snake.name: {snake.id} for snake in client.snakes()}
    strangers = [name for name in names if name not in mine and not _UUID.fullmatch(name)]
    others: dict[str, set[str]] = {}
    if strangers:
        for standing in (
            one for ladder in client.ladders() if ladder.active for one in client.standings(ladder)
        ):
            others.setdefault(standing.snake_name, set()).add(standing.snake_id)
    return [name if _UUID.fullmatch(name) else _the_one(name, {**others, **mine}) for name in names]


def _the_one(name: str, known: dict[str, set[str]]) -> str:
    if name not in known:
        raise UnknownNameError(
            "snake",
            name,
            known,
            hint="Of others, those on a ladder are known by name, all public ones by id.",
        )
    if len(known[name]) > 1:
        raise ConfigError(
            f"{len(known[name])} snakes on the ladders are called {name!r}; give the id of one:"
            f" {sorted(known[name])}"
        )
    return next(iter(known[name]))


def play(
    client: ArenaClient, ids: Sequence[str], *, board: str, game_type: str, games: int
) -> Iterator[str]:
    """Have games played one after the other, and yield each one's id as soon as Arena has begun
    it.
    """
    for _ in range(games):
        yield client.create_game(ids, board=board, game_type=game_type)


def wait_for(
    client: ArenaClient, game_ids: Sequence[str], seconds: float, sleep: Callable[[float], None]
) -> dict[str, str]:
    """Look at games until they have ended or failed, for at most `seconds`. Returns their states by
    id.
    """
    found = client.statuses(game_ids)
    waited = 0.0
    while waited < seconds and any(found.get(game) not in ENDED for game in game_ids):
        sleep(POLL_S)
        waited += POLL_S
        found = client.statuses(game_ids)
    return {game: found.get(game, "unknown") for game in game_ids}
