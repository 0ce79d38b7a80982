"""The API as engines see it: answers, refusals, concurrency, and nothing but JSON whatever
arrives.
"""

from __future__ import annotations

import json
import os
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families

import agents
from envs.battlesnake.state import MOVE_NAMES
from envs.battlesnake.webhook import requests as webhook
from envs.common.errors import ConfigError
from serve.archive.store import GameStore
from serve.arena import Look, create_app
from serve.browser.viewer import Access
from serve.transport.request_body import MAX_VALUES
from tests.envs.battlesnake.positions import board
from tests.envs.battlesnake.webhook.test_requests import plain_request, recorded
from tests.serve.agents import Raises

EXAMPLES = int(os.environ.get("PROCSNAKE_EXAMPLES", "200"))
"""How many damaged requests are drawn. `make test-long` draws more."""


@pytest.fixture(scope="module")
def client():
    return create_app(
        {"flood": agents.make("flood"), "raises": Raises()}, look=Look(color="#12AA33", author="me")
    ).test_client()


def small_request():
    return plain_request(board(7, 7, [(0, 0), (1, 0), (2, 0)], [(5, 5), (5, 4), (5, 3)]))


def request_with_a_corpse():
    """What Arena sends: the second snake ran into the first one's body two turns ago."""
    request = small_request()
    request["turn"] = 9
    request["game"]["ruleset"]["version"] = "v1.0.0"
    request["board"]["snakes"][1] |= {
        "body": [{"x": x, "y": 0} for x in (1, 2, 3)],
        "latency": "0",
        "shout": "",
    }
    return request


def test_info_is_what_the_api_asks_for(client):
    info = client.get("/").get_json()
    assert info["apiversion"] == "1"
    assert (info["color"], info["author"]) == ("#12AA33", "me")
    assert client.get("/snakes/raises/").get_json() == info


def test_moves_are_answered_by_every_snake(client):
    for path in ("/move", "/snakes/flood/move", "/snakes/raises/move"):
        answer = client.post(path, json=small_request())
        assert (answer.status_code, answer.get_json()["move"]) == (200, "up")
    for path in ("/start", "/end"):
        assert client.post(path, json=small_request()).status_code == 200


def test_all_recorded_requests_get_a_move(client):
    _, requests = recorded()
    answered = 0
    for request in requests:
        listed = {snake["id"] for snake in request["board"]["snakes"]}
        if request["you"]["id"] in listed:
            assert client.post("/move", json=request).get_json()["move"] in MOVE_NAMES
            answered += 1
    assert answered > 100


def test_concurrent_games_do_not_mix(client):
    boards = [board(7, 7, [(x, 0), (x, 1), (x, 2)]) for x in (0, 6)]
    requests = [plain_request(b, id=f"game {n}") for n, b in enumerate(boards)]

    def ask(n):
        return (
            client.application.test_client().post("/move", json=requests[n % 2]).get_json()["move"]
        )

    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(ask, range(40)))
    assert answers == ["right", "left"] * 20


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"", 400),
        (b"[]", 400),
        (b"{", 400),
        (b"null", 400),
        (b'{"game": 1}', 400),
        (b'{"you":' * 5000, 400),
        (b" " * (2 << 20) + b"{}", 413),
    ],
    ids=["empty", "list", "cut off", "null", "no game", "deep", "large"],
)
def test_malformed_bodies_get_a_reason_in_json(client, body, status):
    answer = client.post("/move", data=body, content_type="application/json")
    assert answer.status_code == status
    assert isinstance(answer.get_json()["error"], str)


@pytest.mark.parametrize(
    ("change", "status"),
    [
        (lambda r: r["board"].update(food=[{"x": 3, "y": 3}] * 300), 400),
        (lambda r: r["board"].update(hazards=[{"x": 3, "y": 3}] * 300), 200),
        (lambda r: r["game"].update(id="\ud800"), 200),
        (lambda r: r["you"].update(id="\ud800"), 200),
        (lambda r: r["game"]["ruleset"]["settings"].update(royale={"shrinkEveryNTurns": 0}), 200),
    ],
    ids=[
        "food in a heap",
        "hazards in a heap",
        "half a character",
        "half a character of ours",
        "period 0",
    ],
)
def test_odd_requests_that_random_damage_hardly_finds(client, change, status):
    request = plain_request(board(19, 19, [(0, 0), (1, 0), (2, 0)], [(5, 5), (5, 4), (5, 3)]))
    change(request)
    assert client.post("/move", data=json.dumps(request)).status_code == status


@pytest.mark.parametrize("size", [(2, 2), (2, 30), (26, 26), (100, 3)], ids=str)
def test_a_board_that_the_engine_cannot_hold_gets_a_legal_move_all_the_same(client, size):
    width, height = size
    request = small_request()
    request["board"] |= {"width": width, "height": height, "snakes": [], "food": [{"x": 0, "y": 0}]}
    corner = [(width - 1, height - 1), (width - 2, height - 1), (width - 2, height - 2)]
    request["you"]["body"] = [{"x": x, "y": y} for x, y in corner]
    for path, answered in (("/start", {}), ("/move", {"move": "down", "shout": ""}), ("/end", {})):
        answer = client.post(path, json=request)
        assert (answer.status_code, answer.get_json()) == (200, answered)


def test_seventeen_snakes_get_a_legal_move(client):
    bodies = [
        {"id": str(n), "health": 50, "body": [{"x": n, "y": y} for y in (2, 1, 0)]}
        for n in range(17)
    ]
    request = small_request()
    request["board"] |= {"width": 19, "height": 19, "snakes": bodies}
    request["you"] = bodies[3]
    assert client.post("/move", json=request).get_json()["move"] == "up"


@pytest.mark.parametrize("depth", range(100, 1000, 50))
def test_nesting_that_json_reads_is_refused(client, depth):
    text = json.dumps(small_request()).replace('"turn": 5', f'"turn": {"[" * depth}{"]" * depth}')
    assert "[[[" in text
    assert client.post("/move", data=text).status_code == 400


def test_a_url_works_with_and_without_a_slash_at_its_end(client):
    assert (
        client.get("/snakes/flood").status_code == client.get("/snakes/flood/").status_code == 200
    )


def test_unknown_paths_and_methods_answer_in_json(client):
    assert client.get("/nothing").status_code == 404
    assert client.get("/move").status_code == 405
    assert "error" in client.get("/snakes/nobody/").get_json()


_leaves = (
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=20)
)
_json = st.recursive(
    _leaves,
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4)
    ),
)


@st.composite
def damaged_requests(draw):
    """A good request in which some values, anywhere, are something else."""
    request = draw(st.sampled_from([small_request, request_with_a_corpse]))()
    for _ in range(draw(st.integers(1, 4))):
        node = request
        key = None
        while isinstance(node, dict | list) and len(node) and (key is None or draw(st.booleans())):
            parent = node
            key = draw(
                st.sampled_from(sorted(node) if isinstance(node, dict) else range(len(node)))
            )
            node = parent[key]
        parent[key] = draw(_json | st.integers(-3, 30))
    return request


@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))
@given(request=damaged_requests(), path=st.sampled_from(["/start", "/move", "/end"]))
def test_nothing_that_arrives_is_an_internal_error(client, request, path):
    answer = client.post(path, data=json.dumps(request), content_type="application/json")
    assert answer.status_code in (200, 400)
    if answer.status_code == 200 and path == "/move":
        assert answer.get_json()["move"] in MOVE_NAMES


@pytest.mark.parametrize("names", [("root",), ("flood", "viewer"), ("a-b", "a_b", "a.b")], ids=str)
def test_a_snake_may_have_any_name_that_fits_into_a_url(store, names):
    client = create_app({name: agents.make("flood") for name in names}, store=store).test_client()
    for path in ("", *(f"/snakes/{name}" for name in names)):
        assert client.get(f"{path}/").get_json()["apiversion"] == "1"
        assert client.post(f"{path}/move", json=small_request()).get_json()["move"] == "up"
    with client.get("/", headers={"Accept": "text/html"}) as page:
        assert page.mimetype == "text/html"


def test_a_look_or_name_that_is_none_is_refused():
    with pytest.raises(ConfigError, match="color is 'red'"):
        Look(color="red")
    with pytest.raises(ConfigError, match="part of a URL"):
        create_app({"a/b": agents.make("flood")})
    with pytest.raises(ConfigError, match="no agents"):
        create_app({})


def test_what_was_played_can_be_watched(store):
    client = create_app(agents.make("flood"), store=store).test_client()
    for path, turn in (("/start", 5), ("/move", 5), ("/end", 6)):
        assert client.post(path, json={**small_request(), "turn": turn}).status_code == 200
    assert store.flush(20)
    (game,) = client.get("/api/games").get_json()["games"]
    assert (game["snake"], game["errors"], game["result"]) == ("flood", 0, "draw")
    turn, end = client.get(f"/api/games/{game['id']}/flood/turns").get_json()["turns"]
    assert (turn["move"], end["move"]) == ("up", None)
    assert 0 < turn["latency_ms"] < 60_000


def test_the_watchdogs_answers_are_counted_and_the_rest_is_not_for_strangers(store):
    app = create_app(
        {"flood": agents.make("flood"), "raises": Raises()},
        store=store,
        access=Access("0123456789abcdef"),
    )
    client = app.test_client()
    for path in ("/move", "/snakes/raises/move", "/start", "/end"):
        client.post(path, json=small_request())
    client.post("/move", data=b"{")
    assert client.get("/metrics").status_code == 401
    assert client.get("/api/games").status_code == 401
    text = client.get("/metrics", headers={"Authorization": "Bearer 0123456789abcdef"}).get_data(
        as_text=True
    )
    counted = {family.name: family for family in text_string_to_metric_families(text)}
    moves = {
        tuple(sample.labels.values()): sample.value
        for sample in counted["procsnake_moves"].samples
        if "total" in sample.name
    }
    assert moves == {("agent", "flood"): 1.0, ("watchdog", "raises"): 1.0}
    statuses = {
        tuple(s.labels.values()): s.value
        for s in counted["procsnake_requests"].samples
        if "total" in s.name
    }
    assert statuses["move", "200"] == 2.0
    assert statuses["move", "400"] == 1.0
    seconds = [
        sample
        for sample in counted["procsnake_move_seconds"].samples
        if sample.name.endswith("_count")
    ]
    assert sum(sample.value for sample in seconds) == 2.0


def test_metrics_are_for_this_machine_alone(client):
    assert client.get("/metrics").status_code == 200
    assert client.get("/metrics", environ_base={"REMOTE_ADDR": "203.0.113.7"}).status_code == 403
    assert client.get("/metrics", headers={"X-Forwarded-For": "203.0.113.7"}).status_code == 403


def test_every_answer_says_what_browsers_must_not_do(client):
    for path in ("/", "/health", "/nothing", "/move"):
        headers = client.get(path).headers
        assert "default-src 'none'" in headers["Content-Security-Policy"]
        assert headers["X-Content-Type-Options"] == "nosniff"
    assert set(client.get("/move").headers["Allow"].split(", ")) == {"POST", "OPTIONS"}


def test_behind_a_secret_there_is_nothing_without_it(store):
    secret = "s3cret-s3cret-s3cret"
    client = create_app({"flood": agents.make("flood")}, secret=secret, store=store).test_client()
    for path in ("/", "/snakes/flood/", "/snakes/flood"):
        assert client.get(path, headers={"Accept": "application/json"}).status_code == 404
        assert client.get(f"/{secret}{path}").get_json()["apiversion"] == "1"
    assert client.post("/move", json=small_request()).status_code == 404
    assert client.post(f"/{secret}/move", json=small_request()).get_json()["move"] == "up"
    assert client.get("/health").get_json() == {"status": "ok"}
    with client.get("/", headers={"Accept": "text/html"}) as page:
        assert page.mimetype == "text/html"
    with pytest.raises(ConfigError, match="secret"):
        create_app(agents.make("flood"), secret="short")


def test_a_browser_gets_the_viewer_where_an_engine_gets_the_snake(store):
    client = create_app(agents.make("flood"), store=store).test_client()
    with client.get("/", headers={"Accept": "text/html"}) as page:
        assert page.mimetype == "text/html"
    for accept in ("application/json", "*/*", ""):
        assert client.get("/", headers={"Accept": accept}).get_json()["apiversion"] == "1"
    assert (
        client.get("/snakes/flood/", headers={"Accept": "text/html"}).get_json()["apiversion"]
        == "1"
    )


def test_who_asks_too_often_is_told_to_wait():
    client = create_app(agents.make("flood"), rate_limit=0.001).test_client()
    answers = [client.post("/move", json=small_request()) for _ in range(11)]
    assert [answer.status_code for answer in answers] == [200] * 10 + [429]
    assert answers[-1].headers["Retry-After"] == "1"
    elsewhere = client.post(
        "/move", json=small_request(), environ_base={"REMOTE_ADDR": "203.0.113.7"}
    )
    assert elsewhere.status_code == 200
    assert client.get("/health").status_code == 200


def test_a_clock_that_jumps_is_no_reason_to_be_late(store, monkeypatch):
    client = create_app(agents.make("flood"), store=store).test_client()
    real = time.time
    for jump in (0, 3e8, -3e8, 5, -5):
        monkeypatch.setattr(time, "time", lambda jump=jump: real() + jump)
        assert client.post("/move", json=small_request()).get_json()["move"] == "up"
    monkeypatch.undo()
    assert store.flush(20)
    assert store.statistics()["errors"] == 0


def test_thousands_of_games_that_are_begun_are_not_all_kept(store):
    client = create_app(agents.make("flood"), store=store).test_client()
    request = plain_request(board(11, 11, [(0, 0), (1, 0), (2, 0)], [(5, 5), (5, 4), (5, 3)]))
    for number in range(300):
        request["game"]["id"] = f"hostile-{number}"
        assert client.post("/start" if number % 2 else "/move", json=request).status_code == 200
    assert store.flush(20)
    assert 100 <= len(list(store.every_game())) < 150


@pytest.mark.parametrize(
    "headers",
    [{"Origin": "https://evil.example"}, {"Origin": "null"}, {"Sec-Fetch-Site": "cross-site"}],
    ids=str,
)
@pytest.mark.parametrize("call", ["start", "move", "end"])
def test_a_web_page_writes_nothing_into_the_games(tmp_path, call, headers):
    """A page anywhere may post text/plain to this machine without asking, and its address may be
    made to look like ours.
    """
    store = GameStore(f"sqlite:///{tmp_path}/games.db")
    client = create_app({"flood": agents.make("flood")}, store=store).test_client()
    answer = client.post(
        f"/{call}", data=json.dumps(small_request()), content_type="text/plain", headers=headers
    )
    assert answer.status_code == 403
    assert store.writer._taken == 0
    assert (
        client.post(
            f"/{call}", data=json.dumps(small_request()), content_type="text/plain"
        ).status_code
        == 200
    )
    assert store.writer._taken == 1
    store.close()


def test_a_body_of_more_values_than_a_board_holds_is_refused_unread(client):
    request = small_request()
    request["board"]["hazards"] = [{"x": 1, "y": 1}] * 2500
    assert client.post("/move", json=request).status_code == 200
    for unknown in ([[]] * MAX_VALUES, [0] * MAX_VALUES, [{}] * MAX_VALUES):
        answer = client.post("/move", json={**request, "unknown": unknown})
        assert answer.status_code == 413
        assert "values" in answer.get_json()["error"]


def test_the_last_board_is_read_once_whoever_lives(tmp_path, monkeypatch):
    """Sixteen snakes of whom the last alone lives, in a body that is no game otherwise."""
    reads = []
    place = webhook.state_from_board
    monkeypatch.setattr(
        webhook, "state_from_board", lambda *board, **more: reads.append(1) or place(*board, **more)
    )
    request = small_request()
    you = request["you"]
    request["board"]["snakes"] = [{**you, "id": f"dead-{n}", "health": 0} for n in range(15)] + [
        {**you, "id": "last"}
    ]
    store = GameStore(f"sqlite:///{tmp_path}/games.db")
    client = create_app({"s": agents.make("flood")}, store=store).test_client()
    client.post("/end", json={**request, "you": {**you, "health": 0}})
    assert store.flush(20)
    assert store.games()[0]["snakes"] == [you["name"]]
    request["board"]["food"] = [{"x": "no", "y": "number"}]
    client.post("/end", json={**request, "game": {**request["game"], "id": "other"}})
    assert store.flush(20)
    assert len(reads) == 1
    store.close()
