"""The addresses of the page on which a person plays."""

from __future__ import annotations

import json

import pytest

from envs.battlesnake.recording import Recording
from envs.battlesnake.state import MOVE_NAMES
from serve.browser.by_hand.routes import MAX_BODY_BYTES, MAX_SEED, play_app
from tests.serve.browser.by_hand.games import arrays, circle, game_of, same
from tests.serve.reader import STRANGER, Reader


@pytest.fixture
def game(tmp_path):
    return game_of(tmp_path, "circles", "flood")


@pytest.fixture
def client(game):
    app = play_app(game, clock_s=0.7)
    app.test_client_class = Reader
    return app.test_client()


def test_the_root_leads_to_the_page_and_its_files_are_there(client):
    assert client.get("/").headers["Location"] == "/play"
    assert client.checked("/play").mimetype == "text/html"


def test_moves_hints_and_undo_are_those_of_the_game(client, game):
    first = client.get("/api/play").get_json()
    assert (first["turn"], first["alive"], first["over"], first["ending"]) == (0, True, False, "")
    assert sorted(first["allowed"]) == sorted(MOVE_NAMES)
    hint = client.post("/api/play/hint", json={"turn": 0}).get_json()
    assert hint["move"] == MOVE_NAMES[game.hint(turn=0).move]
    assert hint["text"].startswith(f"alphabeta would go {hint['move']}")
    moved = client.post("/api/play/move", json={"turn": 0, "move": "up"}).get_json()
    assert (moved["turn"], game.moves[0][0]) == (1, 0)
    assert moved["board"] == game.board()
    heads = [view["board"]["snakes"][0]["body"][0] for view in (first, moved)]
    assert (heads[1]["x"], heads[1]["y"]) == (heads[0]["x"], heads[0]["y"] + 1)
    assert "down" not in moved["allowed"]
    assert client.post("/api/play/move", json={"turn": 1, "move": None}).get_json()["turn"] == 2
    assert client.post("/api/play/undo", json={"turn": 2}).get_json()["turn"] == 1
    assert client.post("/api/play/undo", json={"turn": 1}).get_json() | {"replay": ""} == first | {
        "replay": ""
    }


@pytest.mark.parametrize("body", ["[" * 4000, '{"turn": ' + "[" * 1900 + "]" * 1900 + "}"])
def test_what_is_nested_too_deeply_is_refused(client, body):
    answer = client.post("/api/play/move", data=body, content_type="application/json")
    assert answer.status_code == 400
    assert set(answer.get_json()) == {"error"}


@pytest.mark.parametrize(
    ("path", "body", "status", "said"),
    [
        ("move", {"turn": 5, "move": "up"}, 409, "on turn 1, not on turn 5"),
        ("move", {"turn": 1, "move": "down"}, 409, "your own neck"),
        ("move", {"turn": 1, "move": "upp"}, 400, "Did you mean 'up'?"),
        ("move", {"turn": 1, "move": 1}, 400, "unknown move '1'"),
        ("move", {"turn": 1, "move": ["up"]}, 400, "unknown move"),
        ("move", {"turn": "1", "move": "up"}, 400, "turn is '1'; expected a number"),
        ("move", {"turn": True, "move": "up"}, 400, "turn is 'True'"),
        ("move", {"turn": -1, "move": "up"}, 400, "from 0 to 5000"),
        ("move", {"turn": 1 << 40, "move": "up"}, 400, "from 0 to 5000"),
        ("move", {"move": "up"}, 400, "turn is 'None'"),
        ("move", {"turn": 1, "moves": "up"}, 400, "unknown entry of the request 'moves'"),
        ("move", ["up"], 400, "is not a JSON object"),
        ("hint", {"turn": 0}, 409, "on turn 1, not on turn 0"),
        ("undo", {}, 400, "turn is 'None'"),
        ("new", {"ruleset": "royal"}, 400, "Did you mean 'royale'"),
        ("new", {"map": 7}, 400, "unknown map '7'"),
        ("new", {"width": 99}, 400, "width is '99'; expected a number from 3 to 25"),
        ("new", {"height": 11.0}, 400, "height is '11.0'"),
        ("new", {"seed": MAX_SEED + 1}, 400, "seed is"),
        ("new", {"opponents": "flood"}, 400, "opponents is not a list"),
        ("new", {"opponents": ["flood"] * 16}, 400, "at most 15 names"),
        ("new", {"opponents": ["flod"]}, 400, "Did you mean 'flood'"),
        ("new", {"opponents": [{"a": 1}]}, 400, "unknown opponent"),
        ("new", {"map": "hz_castle_wall"}, 400, "hz_castle_wall"),
    ],
)
def test_what_cannot_be_is_answered_in_one_line_and_changes_nothing(
    client, game, path, body, status, said
):
    circle(game, 1)
    before = arrays(game)
    answer = client.post(f"/api/play/{path}", json=body)
    assert answer.status_code == status
    error = answer.get_json()["error"]
    assert said in error
    assert "\n" not in error
    assert (game.turn, same(arrays(game), before)) == (1, True)


@pytest.mark.parametrize(
    "opponent",
    ["runs/mine", "/etc/passwd", "my_rule.py", "flood?options=x.yaml", "http://127.0.0.1:1"],
)
def test_a_page_names_no_files_and_no_addresses(client, opponent):
    answer = client.post("/api/play/new", json={"opponents": [opponent]})
    assert (answer.status_code, "unknown opponent" in answer.get_json()["error"]) == (400, True)


def test_another_game_is_the_one_that_is_asked_for(client, game):
    asked = {
        "ruleset": "wrapped",
        "map": "empty",
        "width": 9,
        "height": 5,
        "seed": 77,
        "opponents": ["greedy"],
    }
    begun = client.post("/api/play/new", json=asked).get_json()
    assert begun["setup"] == asked
    assert (begun["turn"], begun["board"]["width"], len(begun["board"]["snakes"])) == (0, 9, 2)
    # What was begun with stays on offer.
    assert "circles" in client.get("/api/play/choices").get_json()["opponents"]
    again = client.post("/api/play/new", json={}).get_json()
    assert again["setup"] == asked | {"seed": 78}
    alone = client.post("/api/play/new", json={"opponents": []}).get_json()
    assert len(alone["board"]["snakes"]) == 1
    assert game.setup.settings.food_spawn_chance == 0


def test_choices_are_what_there_is(client):
    known = client.get("/api/play/choices").get_json()
    assert {"circles", "flood", "alphabeta", "champion-standard"} <= set(known["opponents"])
    assert (len(known["rulesets"]), len(known["maps"])) == (6, 25)
    assert (known["sides"], known["clock_ms"]) == ({"least": 3, "most": 25}, 700)


def test_the_end_is_told_and_the_viewer_shows_the_game(client, game):
    view = client.get("/api/play").get_json()
    while not view["over"]:
        view = client.post("/api/play/move", json={"turn": view["turn"], "move": None}).get_json()
    assert view["result"] == "lost"
    assert (
        view["ending"]
        == "You lose. You ran into flood's body on turn 3. flood wins after 102 turns."
    )
    assert [view["turn"], game.turn] == [102, 102]
    assert client.get(view["replay"]).status_code == 200
    recording = client.get(f"{view['replay'].replace('/watch', '/api/games')}/recording").get_data(
        as_text=True
    )
    assert [json.loads(line) for line in recording.splitlines()] == [
        json.loads(line) for line in game.path.read_text().splitlines()
    ]
    assert len(Recording.read(game.path).turns) == view["turn"] + 1


def test_nobody_elsewhere_plays(client, game):
    before = game.turn
    asked = {"json": {"turn": 0, "move": "up"}}
    assert client.post("/api/play/move", **asked, **STRANGER).status_code == 403
    assert client.get("/play", **STRANGER).status_code == 403
    # A page of another site, a page under a forged name, and a form, which browsers send without
    # asking.
    assert (
        client.post(
            "/api/play/move", **asked, headers={"Origin": "https://evil.example"}
        ).status_code
        == 403
    )
    assert (
        client.post("/api/play/move", **asked, headers={"Host": "evil.example"}).status_code == 403
    )
    assert (
        client.post(
            "/api/play/move", data='{"turn": 0, "move": "up"}', content_type="text/plain"
        ).status_code
        == 400
    )
    assert game.turn == before
    own = {"Origin": "http://localhost"}
    assert client.post("/api/play/move", **asked, headers=own).status_code == 200


def test_large_bodies_and_unknown_addresses_are_refused(client):
    large = client.post("/api/play/move", json={"turn": 0, "move": "u" * MAX_BODY_BYTES})
    assert large.status_code in (400, 413)
    assert "error" in large.get_json()
    assert "error" in client.get("/api/play/nothing").get_json()
    assert client.get("/api/play/move").status_code == 405
