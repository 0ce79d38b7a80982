"""Enters a snake on Arena and its ladders, takes it off them, and starts games."""

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
    """Return the account's snake of this name (None if new), and the ladder to enter (None for
    none), without changing anything. Raises `UnknownNameError` if there is no such ladder, and
    `NotAllowedError` if the snake would be private: ladders take public snakes only.
    """
    snake = next((snake for snake in client.snakes() if snake.name == name.strip()), None)
    if not ladder:
        return snake, None
    its_ladder = named("ladder", ladder, client.ladders())
    is_public = public or (snake is not None and snake.is_public)
    if not is_public:
        raise NotAllowedError(
            f"{name.strip()} is private, and ladder {its_ladder.name!r} takes public snakes only:"
            " add --public"
        )
    return snake, its_ladder


def register(
    client: ArenaClient, snake: Snake | None, *, name: str, url: str, public: bool
) -> Snake:
    """Give the account's `snake` a new URL, or register a new one if it is None. A public snake
    stays public.
    """
    if snake is None:
        return client.create_snake(name=name.strip(), url=url, is_public=public)
    return client.update_snake(snake.id, url=url, is_public=public or snake.is_public)


def leave(client: ArenaClient, name: str, ladder: str | None = None) -> list[str]:
    """Pause a snake's entry on one ladder or on all. Returns the names of those ladders.

    Raises `NotFoundError` if it is on none, and `UnknownNameError` for names that don't exist.
    """
    snake = named("snake", name, client.snakes())
    ladders = client.ladders()
    if ladder:
        its_ladder = named("ladder", ladder, ladders)
        client.leave(its_ladder, snake)
        return [its_ladder.name]
    # The rankings list the first 100 only, so each ladder is asked.
    names = [one.name for one in ladders if one.active and _leaves(client, one, snake)]
    if not names:
        raise NotFoundError(f"{snake.name} is on no ladder, so there is nothing to leave")
    return names


def _leaves(client: ArenaClient, ladder: Ladder, snake: Snake) -> bool:
    """Whether the snake had an entry there, which is paused now."""
    try:
        client.leave(ladder, snake)
    except NotFoundError:
        return False
    return True


def snake_ids(client: ArenaClient, names: Sequence[str]) -> list[str]:
    """Return the ids of snakes, given as names of the account's own snakes or of snakes on a
    ladder, or as ids.

    Raises `ConfigError` for more than four snakes and for a name used by several authors, and
    `UnknownNameError`."""
    if not 1 <= len(names) <= MAX_SNAKES:
        raise ConfigError(f"{len(names)} snakes are to play; Arena's games have 1 to {MAX_SNAKES}")
    ids_by_name = {snake.name: {snake.id} for snake in client.snakes()}
    if any(name not in ids_by_name and not _UUID.fullmatch(name) for name in names):
        # The account's own snakes come before others of the same name.
        ids_by_name = {**_ids_on_ladders(client), **ids_by_name}
    return [_the_id(name, ids_by_name) for name in names]


def _ids_on_ladders(client: ArenaClient) -> dict[str, set[str]]:
    """The ids of the snakes on all active ladders, by name."""
    ids_by_name: dict[str, set[str]] = {}
    for ladder in client.ladders():
        if ladder.active:
            for standing in client.standings(ladder):
                ids_by_name.setdefault(standing.snake_name, set()).add(standing.snake_id)
    return ids_by_name


def _the_id(name: str, ids_by_name: dict[str, set[str]]) -> str:
    """The id of the one snake of this name; a name that is an id is returned as it is."""
    if _UUID.fullmatch(name):
        return name
    if name not in ids_by_name:
        raise UnknownNameError(
            "snake",
            name,
            ids_by_name,
            hint="Of others, those on a ladder are known by name, all public ones by id.",
        )
    ids = sorted(ids_by_name[name])
    if len(ids) > 1:
        raise ConfigError(
            f"{len(ids)} snakes on the ladders are called {name!r}; give the id of one: {ids}"
        )
    return ids[0]


def play(
    client: ArenaClient, ids: Sequence[str], *, board: str, game_type: str, games: int
) -> Iterator[str]:
    """Start games in sequence, and yield each one's id as soon as Arena has started it."""
    for _ in range(games):
        yield client.create_game(ids, board=board, game_type=game_type)


def wait_for(
    client: ArenaClient, game_ids: Sequence[str], seconds: float, sleep: Callable[[float], None]
) -> dict[str, str]:
    """Poll games until they have ended or failed, for at most `seconds`. Returns their states by
    id.
    """
    states = client.statuses(game_ids)
    waited = 0.0
    while waited < seconds and any(states.get(game) not in ENDED for game in game_ids):
        sleep(POLL_S)
        waited += POLL_S
        states = client.statuses(game_ids)
    return {game: states.get(game, "unknown") for game in game_ids}
