"""A stand-in for Arena's API, written from the facts about it (paths, status codes, pages, the rate
limit), refusals included.

`answers.json` has an example of each answer, to which the stand-in and the client are held. It
accepts no more than the facts say the real one accepts; what they leave open is refused. It plays
no games: a test says what frames a game has. `disturb` has the next answers fail as a real site's
may."""

from __future__ import annotations

import json
import re
import threading
import uuid
from collections import deque
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, urlsplit

from tests.http_server import QuietHandler, serving

TOKEN = "a-token-that-nobody-may-see"
OTHERS_TOKEN = "another-account's"
WHEN = "2026-11-20T20:00:00Z"
MAX_GAMES = 20
WINDOW_S = 600.0
MIN_GAMES = 10
MISSING = "00000000-0000-4000-8000-000000000000"
GAME_TYPES = {
    "standard": "Standard",
    "royale": "Royale",
    "constrictor": "Constrictor",
    "snail": "Snail Mode",
    "solo": "Solo",
}
"""How a game's type is told, by what asks for it."""
VIEWER_STATUS = {
    "waiting": "pending",
    "running": "running",
    "finished": "complete",
    "failed": "complete",
}
MOST_RANKED = 100
SNAKE = {"name": str, "url": str, "is_public": bool}
Disturbance = Callable[["Request"], None]


class Refused(Exception):
    """An answer other than 200, with a plain-text reason."""

    def __init__(self, status: int, reason: str, headers: dict[str, str] | None = None) -> None:
        super().__init__(reason)
        self.status = status
        self.headers = headers or {}


@dataclass
class State:
    """What the stand-in knows. `clock` is in seconds; tests move it on instead of waiting."""

    url: str = ""
    accounts: dict[str, str] = field(default_factory=lambda: {TOKEN: "ada", OTHERS_TOKEN: "bob"})
    snakes: dict[str, dict[str, Any]] = field(default_factory=dict)
    ladders: dict[str, dict[str, Any]] = field(default_factory=dict)
    entries: dict[tuple[str, str], dict[str, Any]] = field(default_factory=dict)
    games: dict[str, dict[str, Any]] = field(default_factory=dict)
    begun: dict[str, list[float]] = field(default_factory=dict)
    clock: float = 1000.0
    asked: list[tuple[str, str, dict[str, str]]] = field(default_factory=list)
    """Method, path and headers of each request, in order."""
    disturb: deque[Disturbance | None] = field(default_factory=deque)
    """What befalls the next requests, one entry each; None: nothing."""
    pauses: list[float] = field(default_factory=list)
    lingers_s: float = 0.0
    """For how many seconds each request stays, so that a second one beside it is sure to be
    seen.
    """
    under_way: int = 0
    most_at_once: int = 0
    """The most requests that were under way at a time."""
    counting: threading.Lock = field(default_factory=threading.Lock)
    answering: threading.Lock = field(default_factory=threading.Lock)

    def sleep(self, seconds: float) -> None:
        """Stand in for `time.sleep`: time passes here alone."""
        self.pauses.append(seconds)
        self.clock += seconds

    def add_snake(
        self,
        name: str,
        *,
        owner: str = "ada",
        url: str = "http://127.0.0.1:1",
        is_public: bool = True,
    ) -> str:
        told = {
            "id": str(uuid.uuid4()),
            "name": name,
            "url": url,
            "is_public": is_public,
            "created_at": WHEN,
            "updated_at": WHEN,
        }
        self.snakes[told["id"]] = told | {"owner": owner}
        return told["id"]

    def add_ladder(self, name: str) -> str:
        ladder_id = str(uuid.uuid4())
        self.ladders[ladder_id] = {
            "id": ladder_id,
            "name": name,
            "active": True,
            "created_at": WHEN,
        }
        return ladder_id

    def add_game(
        self,
        frames: list[dict[str, Any]],
        snakes: list[str],
        *,
        game_id: str = "",
        game_type: str = "standard",
        is_ladders: bool = False,
        **fields: Any,
    ) -> str:
        """A finished game, unless `fields` tell otherwise. After a draw, too, the first of the
        snakes is its winner.

        Of a game that `is_ladders`, the snakes' ids aren't stored.
        """
        game_id = game_id or str(uuid.uuid4())
        game = {
            "id": game_id,
            "status": "finished",
            "winner": None,
            "board": "11x11",
            "game_type": GAME_TYPES[game_type],
        }
        times = dict.fromkeys(("created_at", "updated_at", "enqueued_at"), WHEN)
        stored = {
            **game,
            **times,
            "snakes": snakes,
            "frames": list(frames),
            "is_ladders": is_ladders,
            **fields,
        }
        if stored["status"] == "finished" and stored["winner"] is None and snakes:
            stored["winner"] = snakes[0]
        self.games[game_id] = stored
        return game_id


@dataclass
class Request:
    """A request, and how it may be disturbed: `cut` sends half of the answer."""

    method: str
    steps: list[str]
    query: dict[str, str]
    body: Any
    user: str | None
    state: State
    cut: bool = False

    def who(self) -> str:
        if self.user is None:
            raise Refused(401, "invalid token")
        return self.user

    def fields(self, kinds: dict[str, type], *, optional: Collection[str] = ()) -> dict[str, Any]:
        """The fields of the body, which are these and no others."""
        body = self.body if isinstance(self.body, dict) else {}
        if unknown := body.keys() - kinds.keys():
            raise Refused(422, f"unknown fields: {sorted(unknown)}")
        for name, kind in kinds.items():
            if (name in body or name not in optional) and type(body.get(name)) is not kind:
                raise Refused(422, f"{name}: expected {kind.__name__}")
        return body

    def number(self, name: str, default: int, most: int) -> int:
        text = self.query.get(name, str(default))
        if not text.isdigit() or int(text) > most:
            raise Refused(400, f"{name} must be at most {most}")
        return int(text)


def fails_with(status: int, reason: str = "something broke", **headers: str) -> Disturbance:
    def disturb(request: Request) -> None:
        raise Refused(
            status, reason, {name.replace("_", "-"): value for name, value in headers.items()}
        )

    return disturb


def cuts_off(request: Request) -> None:
    request.cut = True


def hangs_up(request: Request) -> None:
    raise ConnectionAbortedError


def answer(request: Request) -> tuple[int, Any]:
    """Status and JSON of the answer."""
    for (method, pattern), route in ROUTES.items():
        ids = [
            step
            for step, part in zip(request.steps, pattern.split("/"), strict=False)
            if part == "*"
        ]
        same = len(request.steps) == len(pattern.split("/")) and all(
            part in ("*", step)
            for step, part in zip(request.steps, pattern.split("/"), strict=True)
        )
        if same and method == request.method:
            if not all(re.fullmatch(r"[0-9a-f-]{36}", one) for one in ids):
                raise Refused(400, "invalid id")
            return route(request, *ids)
    raise Refused(404, "no such route")


def shown(snake: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in snake.items() if key != "owner"}


def own_snake(request: Request, snake_id: str) -> dict[str, Any]:
    snake = request.state.snakes.get(snake_id)
    if snake is None or snake["owner"] != request.who():
        raise Refused(404, "battlesnake not found")
    return snake


def check_name(request: Request, text: str, but: str = "") -> str:
    name = text.strip()
    state = request.state
    if not 1 <= len(name) <= 64:
        raise Refused(400, "name must have 1 to 64 characters")
    if any(
        s["name"] == name and s["owner"] == request.user and s["id"] != but
        for s in state.snakes.values()
    ):
        raise Refused(409, "a battlesnake of this name exists")
    return name


def check_url(url: str) -> str:
    if urlsplit(url).scheme not in ("http", "https"):
        raise Refused(400, "url must be http or https")
    return url


def list_snakes(request: Request) -> tuple[int, Any]:
    user = request.who()
    mine = [shown(snake) for snake in request.state.snakes.values() if snake["owner"] == user]
    return 200, sorted(mine, key=lambda snake: snake["name"])


def create_snake(request: Request) -> tuple[int, Any]:
    owner = request.who()
    told = request.fields(SNAKE, optional=["is_public"])
    name = check_name(request, told["name"])
    url = check_url(told["url"])
    snake_id = request.state.add_snake(
        name, owner=owner, url=url, is_public=told.get("is_public", False)
    )
    return 201, shown(request.state.snakes[snake_id])


def update_snake(request: Request, snake_id: str) -> tuple[int, Any]:
    snake = own_snake(request, snake_id)
    changes = request.fields(SNAKE, optional=SNAKE)
    if "name" in changes:
        changes["name"] = check_name(request, changes["name"], but=snake_id)
    if "url" in changes:
        check_url(changes["url"])
    snake.update(changes)
    return 200, shown(snake)


def delete_snake(request: Request, snake_id: str) -> tuple[int, Any]:
    own_snake(request, snake_id)
    del request.state.snakes[snake_id]
    return 204, None


def get_snake(request: Request, snake_id: str) -> tuple[int, Any]:
    return 200, shown(own_snake(request, snake_id))


def list_ladders(request: Request) -> tuple[int, Any]:
    return 200, list(request.state.ladders.values())


def the_ladder(request: Request, ladder_id: str) -> dict[str, Any]:
    if ladder_id not in request.state.ladders:
        raise Refused(404, "leaderboard not found")
    return request.state.ladders[ladder_id]


def rankings(request: Request, ladder_id: str) -> tuple[int, Any]:
    ladder = the_ladder(request, ladder_id)
    state = request.state
    entries = [
        entry
        for (where, _), entry in state.entries.items()
        if where == ladder_id and entry["active"]
    ]
    entries.sort(key=lambda entry: -entry["display_score"])
    told = []
    for entry in entries:
        snake = state.snakes[entry["battlesnake_id"]]
        about_entry = {
            key: value
            for key, value in entry.items()
            if key not in ("leaderboard_entry_id", "active")
        }
        told.append(
            {
                **about_entry,
                "rank": 0,
                "snake_name": snake["name"],
                "owner": snake["owner"],
                "scores": {},
            }
        )
    ranked = [entry for entry in told if entry["games_played"] >= MIN_GAMES][:MOST_RANKED]
    ranked = [entry | {"rank": rank} for rank, entry in enumerate(ranked, 1)]
    placement = [entry for entry in told if entry["games_played"] < MIN_GAMES][:MOST_RANKED]
    about = {
        "leaderboard_id": ladder_id,
        "leaderboard_name": ladder["name"],
        "min_games": MIN_GAMES,
    }
    return 200, {**about, "ranked": ranked, "placement": placement}


def join(request: Request, ladder_id: str) -> tuple[int, Any]:
    user = request.who()
    snake_id = request.fields({"battlesnake_id": str})["battlesnake_id"]
    state = request.state
    the_ladder(request, ladder_id)
    snake = state.snakes.get(snake_id)
    if snake is None or snake["owner"] != user:
        raise Refused(403, "not your battlesnake")
    if not snake["is_public"]:
        raise Refused(400, "only public battlesnakes can enter")
    fresh = {
        "leaderboard_entry_id": str(uuid.uuid4()),
        "battlesnake_id": snake_id,
        "display_score": 0.0,
        "games_played": 0,
    }
    counts = {"first_place_finishes": 0, "non_first_finishes": 0, "first_place_rate": 0.0}
    entry = state.entries.setdefault((ladder_id, snake_id), {**fresh, **counts})
    entry["active"] = True
    return 201, entry


def leave(request: Request, ladder_id: str, snake_id: str) -> tuple[int, Any]:
    request.who()
    entry = request.state.entries.get((ladder_id, snake_id))
    if entry is None:
        raise Refused(404, "no such entry")
    own_snake(request, snake_id)
    entry["active"] = False
    return 204, None


def create_game(request: Request) -> tuple[int, Any]:
    user = request.who()
    state = request.state
    recent = [at for at in state.begun.get(user, []) if at > state.clock - WINDOW_S]
    # A try that is refused counts as well.
    state.begun[user] = [*recent, state.clock]
    if len(recent) >= MAX_GAMES:
        raise Refused(429, "too many games", {"Retry-After": str(round(WINDOW_S))})
    told = request.fields({"snakes": list, "board": str, "game_type": str})
    ids = told["snakes"]
    game_type = re.sub("[_ ]mode$", "", told["game_type"].lower())
    if not 1 <= len(ids) <= 4:
        raise Refused(400, "1 to 4 snakes")
    if told["board"] not in ("7x7", "11x11", "19x19"):
        raise Refused(400, "unknown board")
    if game_type not in GAME_TYPES:
        raise Refused(400, "unknown game type")
    if game_type == "solo" and len(ids) != 1:
        raise Refused(400, "solo takes exactly one snake")
    for snake_id in ids:
        snake = state.snakes.get(snake_id)
        if snake is None or (snake["owner"] != user and not snake["is_public"]):
            raise Refused(400, "battlesnake not found or not accessible")
    game_id = state.add_game([], ids, board=told["board"], game_type=game_type, status="waiting")
    return 201, {"id": game_id, "status": "waiting"}


def about_game(
    state: State, game: dict[str, Any], *, without: Collection[str] = ()
) -> dict[str, Any]:
    names = [
        {"id": None if game["is_ladders"] else one, "name": state.snakes[one]["name"]}
        for one in game["snakes"]
    ]
    hidden = ("frames", "is_ladders", *without)
    return {**{key: value for key, value in game.items() if key not in hidden}, "snakes": names}


def takes_part(game: dict[str, Any], snake_ids: Collection[str]) -> bool:
    """Whether one of these snakes plays, by its id: the ladder's games don't store it."""
    return not game["is_ladders"] and not set(snake_ids).isdisjoint(game["snakes"])


def list_games(request: Request) -> tuple[int, Any]:
    request.who()
    limit = request.number("limit", 20, 100)
    snake_id = request.query.get("snake_id")
    games = [
        game
        for game in request.state.games.values()
        if snake_id is None or takes_part(game, [snake_id])
    ]
    return 200, [about_game(request.state, game) for game in reversed(games)][:limit]


def the_game(request: Request, game_id: str) -> dict[str, Any]:
    if game_id not in request.state.games:
        raise Refused(404, "game not found")
    return request.state.games[game_id]


def details(request: Request, game_id: str) -> tuple[int, Any]:
    request.who()
    game = the_game(request, game_id)
    about = about_game(request.state, game, without=("updated_at", "enqueued_at"))
    return 200, {**about, "frames": game["frames"]}


def statuses(request: Request) -> tuple[int, Any]:
    user = request.who()
    ids = request.fields({"game_ids": list})["game_ids"]
    if len(ids) > 500:
        raise Refused(400, "at most 500 games")
    mine = [snake["id"] for snake in request.state.snakes.values() if snake["owner"] == user]
    games = [request.state.games.get(one) for one in ids]
    told = [game for game in games if game is not None and takes_part(game, mine)]
    return 200, [{"id": game["id"], "status": game["status"]} for game in told]


def for_the_viewer(request: Request, game_id: str) -> tuple[int, Any]:
    game = the_game(request, game_id)
    width, height = map(int, game["board"].split("x"))
    return 200, {
        "Game": {
            "ID": game_id,
            "Status": VIEWER_STATUS[game["status"]],
            "Width": width,
            "Height": height,
        }
    }


def frames(request: Request, game_id: str) -> tuple[int, Any]:
    game = the_game(request, game_id)
    offset = request.number("offset", 0, 1 << 30)
    limit = request.number("limit", 100, 100)
    page = game["frames"][offset : offset + limit]
    return 200, {"count": len(page), "frames": page}


ROUTES: dict[tuple[str, str], Callable[..., tuple[int, Any]]] = {
    ("GET", "snakes"): list_snakes,
    ("POST", "snakes"): create_snake,
    ("GET", "snakes/*"): get_snake,
    ("PUT", "snakes/*"): update_snake,
    ("DELETE", "snakes/*"): delete_snake,
    ("GET", "leaderboards"): list_ladders,
    ("GET", "leaderboards/*/rankings"): rankings,
    ("POST", "leaderboards/*/entries"): join,
    ("DELETE", "leaderboards/*/entries/*"): leave,
    ("POST", "games"): create_game,
    ("POST", "games/status"): statuses,
    ("GET", "games"): list_games,
    ("GET", "games/*/details"): details,
    ("GET", "games/*/frames"): frames,
    ("GET", "games/*"): for_the_viewer,
}


class Handler(QuietHandler):
    state: State

    def handle_any(self) -> None:
        state = self.state
        with state.counting:
            state.under_way += 1
            state.most_at_once = max(state.most_at_once, state.under_way)
        try:
            with state.answering:
                # `time.sleep` is stood in for.
                threading.Event().wait(state.lingers_s)
                told = self.told()
        finally:
            # Before the answer leaves, because the next request may come as soon as it is there.
            with state.counting:
                state.under_way -= 1
        if told is None:
            self.close_connection = True
        else:
            self.send(*told)

    do_GET = do_POST = do_PUT = do_DELETE = handle_any

    def told(self) -> tuple[int, bytes, dict[str, str], bool] | None:
        """Status, content and headers of the answer, and whether it is cut; None if there is to be
        none.
        """
        parts = urlsplit(self.path)
        state = self.state
        state.asked.append((self.command, parts.path, dict(self.headers)))
        text = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        bearer = self.headers.get("Authorization", "").removeprefix("Bearer ")
        query = {name: values[0] for name, values in parse_qs(parts.query).items()}
        steps = parts.path.removeprefix("/api/").split("/")
        request = Request(self.command, steps, query, None, state.accounts.get(bearer), state)
        try:
            if disturb := state.disturb.popleft() if state.disturb else None:
                disturb(request)
            request.body = json.loads(text) if text else None
            status, told = answer(request)
        except Refused as refusal:
            return refusal.status, str(refusal).encode(), refusal.headers, False
        except ConnectionAbortedError:
            return None
        return status, b"" if told is None else json.dumps(told).encode(), {}, request.cut

    def send(self, status: int, content: bytes, headers: dict[str, str], cut: bool) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        if status != 204:
            self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content[: len(content) // 2] if cut else content)
        self.close_connection |= cut


@contextmanager
def standing_in() -> Iterator[State]:
    """The stand-in on a free port of this machine, for as long as the context lasts."""
    state = State()
    with serving(type("HandlerOfState", (Handler,), {"state": state})) as state.url:
        yield state
