"""The API as engines see it: answers, refusals, concurrency, and nothing but JSON whatever arrives."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import agents
from envs.battlesnake.state import MOVE_NAMES
from envs.errors import ConfigError
from serve.arena import Look, create_app
from tests.envs.battlesnake.positions import board
from tests.envs.battlesnake.test_webhook import plain_request, recorded
from tests.serve.agents import Raises


@pytest.fixture(scope="module")
def client():
    return create_app(
        {"flood": agents.make("flood"), "raises": Raises()}, look=Look(color="#12AA33", author="me")
    ).test_client()


def small_request():
    return plain_request(board(7, 7, [(0, 0), (1, 0), (2, 0)], [(5, 5), (5, 4), (5, 3)]))


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
    for request in requests:
        listed = {snake["id"] for snake in request["board"]["snakes"]}
        if request["you"]["id"] in listed:
            assert client.post("/move", json=request).get_json()["move"] in MOVE_NAMES


def test_concurrent_games_do_not_mix(client):
    boards = [board(7, 7, [(x, 0), (x, 1), (x, 2)]) for x in (0, 6)]
    requests = [plain_request(b, id=f"game {n}") for n, b in enumerate(boards)]

    def ask(n):
        return client.application.test_client().post("/move", json=requests[n % 2]).get_json()["move"]

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
        (b" " * 300_000, 413),
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
    ids=["food in a heap", "hazards in a heap", "half a character", "half a character of ours", "period 0"],
)
def test_odd_requests_that_random_damage_hardly_finds(client, change, status):
    request = plain_request(board(19, 19, [(0, 0), (1, 0), (2, 0)], [(5, 5), (5, 4), (5, 3)]))
    change(request)
    assert client.post("/move", data=json.dumps(request)).status_code == status


@pytest.mark.parametrize("depth", range(100, 1000, 50))
def test_nesting_that_json_reads_is_refused(client, depth):
    text = json.dumps(small_request()).replace('"turn": 5', f'"turn": {"[" * depth}{"]" * depth}')
    assert "[[[" in text
    assert client.post("/move", data=text).status_code == 400


def test_a_url_works_with_and_without_a_slash_at_its_end(client):
    assert client.get("/snakes/flood").status_code == client.get("/snakes/flood/").status_code == 200


def test_unknown_paths_and_methods_answer_in_json(client):
    assert client.get("/nothing").status_code == 404
    assert client.get("/move").status_code == 405
    assert "error" in client.get("/snakes/nobody/").get_json()


_leaves = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=20)
_json = st.recursive(
    _leaves, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4)
)


@st.composite
def damaged_requests(draw):
    """A good request in which some values, anywhere, are something else."""
    request = small_request()
    for _ in range(draw(st.integers(1, 4))):
        node, key = request, None
        while isinstance(node, dict | list) and len(node) and (key is None or draw(st.booleans())):
            parent, key = node, draw(st.sampled_from(sorted(node) if isinstance(node, dict) else range(len(node))))
            node = parent[key]
        parent[key] = draw(_json | st.integers(-3, 30))
    return request


@settings(max_examples=500, deadline=None, suppress_health_check=list(HealthCheck))
@given(request=damaged_requests(), path=st.sampled_from(["/start", "/move", "/end"]))
def test_nothing_that_arrives_is_an_internal_error(client, request, path):
    answer = client.post(path, data=json.dumps(request), content_type="application/json")
    assert answer.status_code in (200, 400)
    if answer.status_code == 200 and path == "/move":
        assert answer.get_json()["move"] in MOVE_NAMES


def test_a_look_or_name_that_is_none_is_refused():
    with pytest.raises(ConfigError, match="color is 'red'"):
        Look(color="red")
    with pytest.raises(ConfigError, match="part of a URL"):
        create_app({"a/b": agents.make("flood")})
    with pytest.raises(ConfigError, match="no agents"):
        create_app({})
