"""The official board's protocol: frames that tell the game as the engine played it, over HTTP and
WebSockets.
"""

from __future__ import annotations

import base64
import http.client
import json
import os
import re
import shlex
import subprocess
import sys
import time
import urllib.error
import urllib.request
from contextlib import contextmanager
from functools import partial

import pytest
from simple_websocket import Client, ConnectionClosed

from serve.archive.database import ABANDONED_AFTER_S
from serve.archive.store import GameStore
from serve.arena import create_app
from serve.browser.viewer import engine, routes
from serve.browser.viewer.routes import OFFICIAL_BOARD
from serve.server import running
from serve.transport.spectators import MAX_SPECTATORS
from tests.serve.agents import Raises
from tests.serve.archive.played import play, tell, tell_all, uneven_game
from tests.waiting import until

PATIENCE_SECONDS = 60
FRAME_KEYS = {"Turn", "Snakes", "Food", "Hazards"}
SNAKE_KEYS = {
    "ID",
    "Name",
    "Body",
    "Health",
    "Death",
    "Color",
    "HeadType",
    "TailType",
    "Latency",
    "Shout",
    "Squad",
    "Author",
}


def events_of(store, game_id, *, wait=lambda _: None):
    return engine.events(
        partial(store.game, game_id, "raises"), partial(store.turns, game_id, "raises"), wait
    )


def upper(points):
    return [{"X": point["x"], "Y": point["y"]} for point in points]


def test_frames_tell_the_game_as_it_was_played(store):
    played = uneven_game()
    tell_all(store, "raises", played, 1)
    assert store.flush()
    *frames, end = events_of(store, played.game_id)
    requests = [*played.requests[1], played.ends[1]]
    assert {frame["Type"] for frame in frames} == {"frame"}
    assert [frame["Data"]["Turn"] for frame in frames] == [request["turn"] for request in requests]
    for frame, request in zip(frames, requests, strict=True):
        data = frame["Data"]
        board = request["board"]
        assert set(data) == FRAME_KEYS
        assert (data["Food"], data["Hazards"]) == (upper(board["food"]), upper(board["hazards"]))
        living = [snake for snake in data["Snakes"] if snake["Death"] is None]
        assert [(s["ID"], s["Name"], s["Health"], s["Body"]) for s in living] == [
            (s["id"], s["name"], s["health"], upper(s["body"])) for s in board["snakes"]
        ]
    assert end["Type"] == "game_end"
    assert end["Data"]["game"]["Status"] == "complete"


def test_the_dead_stay_where_they_were_last_seen(store):
    played = uneven_game()
    tell_all(store, "raises", played, 1)
    assert store.flush()
    *frames, _ = events_of(store, played.game_id)
    died = {
        played.ids[slot]: len(played.requests[slot]) for slot in range(4) if played.causes[slot]
    }
    assert died
    assert min(died.values()) < len(frames) - 1
    last = {snake["ID"]: snake for snake in frames[-1]["Data"]["Snakes"]}
    assert set(last) == set(played.ids)
    assert {
        snake_id: snake["Death"]["Turn"] for snake_id, snake in last.items() if snake["Death"]
    } == died
    assert set(last[played.ids[0]]) >= SNAKE_KEYS


def test_a_game_is_told_while_it_is_played_as_it_is_told_later(store):
    played = uneven_game()
    to_come = list(played.events(1))
    waits = []

    def go_on(seconds):
        """Meanwhile the game goes on, two requests at a time."""
        waits.append(seconds)
        for event in to_come[:2]:
            tell(store, "raises", event)
        del to_come[:2]
        assert store.flush()

    go_on(0)
    told = list(events_of(store, played.game_id, wait=go_on))
    assert told == list(events_of(store, played.game_id))
    assert len(waits) > len(played.requests[1]) // 2
    assert any(snake["Death"] for snake in told[-2]["Data"]["Snakes"])


def test_a_game_is_told_page_by_page_as_it_is_told_whole(store):
    played = uneven_game()
    tell_all(store, "raises", played, 1)
    assert store.flush()
    about = partial(store.game, played.game_id, "raises")
    turns = partial(store.turns, played.game_id, "raises", limit=3)
    assert list(engine.events(about, turns, lambda _: None)) == list(
        events_of(store, played.game_id)
    )


def test_nobody_waits_for_ever_for_a_game_that_was_left(store):
    events = list(play(seed=2).events(0))
    for event in events[:4]:
        tell(store, "raises", event)
    assert store.flush()
    waits = []
    told = list(events_of(store, "game-2", wait=waits.append))
    assert "game_end" not in {event["Type"] for event in told}
    assert sum(waits) == pytest.approx(engine.PATIENCE_SECONDS)


def test_the_boards_page_may_read_games_and_other_pages_may_not(store):
    tell_all(store, "raises", play(seed=1), 0)
    assert store.flush()
    client = create_app({"raises": Raises()}, store=store).test_client()
    answer = client.get("/games/game-1", headers={"Origin": OFFICIAL_BOARD})
    assert answer.headers["Access-Control-Allow-Origin"] == OFFICIAL_BOARD
    game = answer.get_json()["Game"]
    assert {key: game[key] for key in ("ID", "Width", "Height", "RulesetName", "SnakeTimeout")} == {
        "ID": "game-1", "Width": 7, "Height": 7, "RulesetName": "standard", "SnakeTimeout": 500,
    }  # fmt: skip
    other = client.get("/games/game-1", headers={"Origin": "https://evil.example"})
    assert "Access-Control-Allow-Origin" not in other.headers


def test_on_other_servers_there_are_no_websockets_and_it_says_so(store):
    tell_all(store, "raises", play(seed=1), 0)
    assert store.flush()
    client = create_app({"raises": Raises()}, store=store).test_client()
    answer = client.get(
        "/games/game-1/events", headers={"Upgrade": "websocket", "Connection": "Upgrade"}
    )
    assert answer.status_code == 501
    assert "procsnake serve" in answer.get_json()["error"]


def test_a_server_in_a_thread_has_websockets_too(store):
    played = play(seed=1)
    tell_all(store, "raises", played, 0)
    assert store.flush()
    with running(create_app({"raises": Raises()}, store=store)) as url:
        messages, reason = everything(watch(url, played.game_id))
    assert messages[-1]["Type"] == "game_end"
    assert reason == 1000


def test_spectators_get_a_long_game_page_by_page(store, monkeypatch):
    played = play(seed=1)
    pages = []
    read = store.turns
    tell_all(store, "raises", played, 0)
    assert store.flush()
    monkeypatch.setattr(routes, "TURNS_PER_ANSWER", 3)
    monkeypatch.setattr(
        store, "turns", lambda *args, **options: pages.append(read(*args, **options)) or pages[-1]
    )
    with running(create_app({"raises": Raises()}, store=store)) as url:
        messages, _ = everything(watch(url, played.game_id))
    assert [message["Type"] for message in messages] == ["frame"] * (
        len(played.requests[0]) + 1
    ) + ["game_end"]
    assert max(map(len, pages)) == 3


def shake_hands(url, path, headers=None):
    """What a server answers to whoever wants a WebSocket: status and, if it is none, JSON."""
    key = base64.b64encode(bytes(16)).decode()
    offer = {
        "Upgrade": "websocket",
        "Connection": "Upgrade",
        "Sec-WebSocket-Version": "13",
        "Sec-WebSocket-Key": key,
    }
    connection = http.client.HTTPConnection(url.removeprefix("http://"), timeout=PATIENCE_SECONDS)
    try:
        connection.request("GET", path, headers={**offer, **(headers or {})})
        response = connection.getresponse()
        return response.status, None if response.status == 101 else json.load(response)
    finally:
        connection.close()


def watch(url, game_id, **options):
    return Client(f"{url.replace('http', 'ws')}/games/{game_id}/events", **options)


@contextmanager
def serving(database, *flags):
    """`procsnake serve` on gunicorn, in a process of its own; gives its URL."""
    command = [
        sys.executable,
        *shlex.split("-m procsnake serve flood greedy --port 0 --database"),
        database,
        *flags,
    ]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONUNBUFFERED": "1"}
    )
    try:
        for line in process.stdout:
            if found := re.search(r"http://\S+", line):
                yield found[0]
                break
        else:
            raise AssertionError("the server did not start")
    finally:
        process.terminate()
        process.communicate(timeout=30)


def everything(client):
    """Messages until the server closes, and the code with which it does."""
    messages = []
    try:
        while True:
            message = client.receive(timeout=PATIENCE_SECONDS)
            assert message is not None, f"nothing came for {PATIENCE_SECONDS} seconds"
            messages.append(json.loads(message))
    except ConnectionClosed as closed:
        return messages, closed.reason


@pytest.fixture(scope="module")
def gunicorn(tmp_path_factory):
    """URL of a server whose two snakes have played a game, and what the second was sent; the first
    died earlier.
    """
    database = f"sqlite:///{tmp_path_factory.mktemp('games')}/games.db"
    store = GameStore(database)
    played = uneven_game(num_snakes=3)
    tell_all(store, "flood", played, 0)
    tell_all(store, "greedy", played, 1)
    for slot in range(2):
        tell_all(store, "flood", uneven_game(), slot)
    store.close()
    with serving(database) as url:
        yield url, [*played.requests[1], played.ends[1]]


def test_a_websocket_client_reads_a_whole_game(gunicorn):
    url, requests = gunicorn
    messages, reason = everything(watch(url, requests[0]["game"]["id"]))
    assert [message["Type"] for message in messages] == ["frame"] * len(requests) + ["game_end"]
    assert [message["Data"]["Turn"] for message in messages[:-1]] == [
        request["turn"] for request in requests
    ]
    assert reason == 1000


def test_a_game_of_two_bodies_of_one_snake_is_told_to_its_end(gunicorn):
    """The first body dies early; the second, which lives longest, is the same snake of ours."""
    url, _ = gunicorn
    played = uneven_game()
    requests = [*played.requests[1], played.ends[1]]
    messages, _ = everything(watch(url, played.game_id))
    assert [message["Data"]["Turn"] for message in messages[:-1]] == [
        request["turn"] for request in requests
    ]
    deaths = {snake["ID"]: snake["Death"] for snake in messages[-2]["Data"]["Snakes"]}
    assert (deaths["you-0"]["Turn"], deaths["you-0"]["Cause"]) == (
        len(played.requests[0]),
        played.causes[0],
    )


def test_while_one_body_plays_the_game_is_not_over(store):
    """Of two snakes of ours the first is dead, so nobody asks it any more and its row is closed
    after a while.
    """
    played = uneven_game()
    died = len(played.requests[0])
    told = list(played.events(1))
    for event in [*list(played.events(0))[:-1], *told[: died + 2]]:
        tell(store, "raises", event)
    assert store.flush()
    store._database.close_abandoned(time.time() + ABANDONED_AFTER_S + 60)
    rest = told[died + 2 :]
    tell(store, "raises", rest.pop(0))
    assert store.flush()

    def go_on(_):
        for event in rest:
            tell(store, "raises", event)
        assert store.flush()

    turns = partial(store.turns, played.game_id, "raises", you="you-0")
    about = partial(store.game, played.game_id, "raises", "you-0")
    *frames, end = engine.events(about, turns, go_on)
    assert [frame["Data"]["Turn"] for frame in frames] == [
        *range(len(played.requests[1])),
        played.ends[1]["turn"],
    ]
    assert end["Type"] == "game_end"


def test_a_game_played_on_the_server_is_watched_as_it_goes(gunicorn):
    url, _ = gunicorn
    events = list(play(seed=1007).events(0))
    for event in events[:3]:
        post(url, event)
    socket = watch_when_known(url, "game-1007")
    first = json.loads(socket.receive(timeout=PATIENCE_SECONDS))
    assert (first["Type"], first["Data"]["Turn"]) == ("frame", 0)
    for event in events[3:]:
        post(url, event)
    messages, _ = everything(socket)
    assert messages[-1]["Type"] == "game_end"
    assert [message["Data"]["Turn"] for message in messages[:-1]] == list(range(1, len(messages)))


def post(url, event):
    """Send what an engine sends."""
    kind, body, _ = event
    request = urllib.request.Request(
        f"{url}/{kind}", json.dumps(body).encode(), {"Content-Type": "application/json"}
    )
    urllib.request.urlopen(request, timeout=PATIENCE_SECONDS).close()


def answers(url):
    """Whether a server answers there with 200."""
    try:
        urllib.request.urlopen(url, timeout=PATIENCE_SECONDS).close()
    except urllib.error.HTTPError as error:
        error.close()
        return False
    except OSError:
        return False
    return True


def watch_when_known(url, game_id):
    """A socket to a game that was just begun: games are written behind the server's back."""
    until(partial(answers, f"{url}/games/{game_id}"), seconds=PATIENCE_SECONDS)
    return watch(url, game_id)


@pytest.mark.parametrize(
    ("path", "headers", "status"),
    [
        ("/games/nothing/events", {}, 404),
        ("/games/{}/events", {"Origin": "https://evil.example"}, 403),
        ("/games/{}/events", {"Host": "evil.example"}, 403),
        ("/share/0123456789abcdef0123456789abcdef/games/{}/events", {}, 404),
    ],
)
def test_who_may_not_watch_is_told_before_the_handshake(gunicorn, path, headers, status):
    url, requests = gunicorn
    answered, answer = shake_hands(url, path.format(requests[0]["game"]["id"]), headers)
    assert answered == status
    assert set(answer) == {"error"}


def test_a_handshake_that_is_none_is_refused(gunicorn):
    url, requests = gunicorn
    connection = http.client.HTTPConnection(url.removeprefix("http://"), timeout=PATIENCE_SECONDS)
    offer = {
        "Upgrade": "websocket",
        "Connection": "Upgrade",
        "Sec-WebSocket-Version": "7",
        "Sec-WebSocket-Key": "x",
    }
    connection.request("GET", f"/games/{requests[0]['game']['id']}/events", headers=offer)
    assert connection.getresponse().status in (400, 426)
    connection.close()


def test_pages_that_may_watch_do(gunicorn):
    url, requests = gunicorn
    for origin in (OFFICIAL_BOARD, url):
        status, _ = shake_hands(
            url, f"/games/{requests[0]['game']['id']}/events", {"Origin": origin}
        )
        assert status == 101, origin


def test_spectators_leave_room_for_players(gunicorn):
    url, _ = gunicorn
    for event in list(play(seed=1008).events(0))[:2]:
        post(url, event)
    watching = [watch_when_known(url, "game-1008") for _ in range(MAX_SPECTATORS)]
    for socket in watching:
        assert json.loads(socket.receive(timeout=PATIENCE_SECONDS))["Data"]["Turn"] == 0
    messages, reason = everything(watch(url, "game-1008"))
    assert (messages, reason) == ([], 1013)
    for socket in watching:
        socket.close()
