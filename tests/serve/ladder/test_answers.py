"""An example of each of Arena's answers (`answers.json`, from the facts about its API): the
stand-in gives such ones, and the client understands them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from serve.ladder.client import ArenaClient
from serve.ladder.download import recording_of
from serve.ladder.records import Ladder, Snake, kind_of
from tests.http_server import QuietHandler, serving
from tests.serve.ladder.stand_in import TOKEN

ANSWERS = json.loads(Path(__file__).with_name("answers.json").read_text())
SNAKE = ANSWERS["GET snakes"]["body"][0]
GAME = ANSWERS["GET games"]["body"][0]
LADDER = ANSWERS["GET leaderboards"]["body"][0]


def shape(value):
    """The value's names and types; of a list those of its first entry, of a number that it is
    one.
    """
    if isinstance(value, dict):
        return {key: shape(entry) for key, entry in value.items()}
    if isinstance(value, list):
        return [shape(entry) for entry in value[:1]]
    return "number" if isinstance(value, float) else type(value).__name__.replace("int", "number")


@pytest.fixture
def exchanged(arena, monkeypatch):
    """The stand-in's answers to all that a client can ask, by route."""
    mine = arena.add_snake("Hisser")
    ladder = arena.add_ladder("Standard")
    frames = ANSWERS["GET games/*/frames"]["body"]["frames"]
    game = arena.add_game(
        frames, [mine, arena.add_snake("Rival", owner="bob")], board="7x7", game_type="snail"
    )
    told = {}
    asked = {
        "GET snakes": (None,),
        "POST snakes": ({"name": "New", "url": "https://snake.example.org/", "is_public": True},),
        "PUT snakes/*": ({"is_public": True}, mine),
        "GET leaderboards": (None,),
        "POST leaderboards/*/entries": ({"battlesnake_id": mine}, ladder),
        "GET leaderboards/*/rankings": (None, ladder),
        "DELETE leaderboards/*/entries/*": (None, ladder, mine),
        "GET games": (None,),
        "GET games/*/details": (None, game),
        "POST games/status": ({"game_ids": [game]},),
        "GET games/*": (None, game),
        "GET games/*/frames": (None, game),
        "POST games": ({"snakes": [mine], "board": "7x7", "game_type": "Solo"},),
    }
    with ArenaClient(arena.url, TOKEN) as client:
        for route, (body, *ids) in asked.items():
            method, path = route.split()
            for one in ids:
                path = path.replace("*", one, 1)
            if route.startswith("GET leaderboards/"):
                next(iter(arena.entries.values()))["games_played"] = 31
            query = "?snake_id=" + mine if route == "GET games" else ""
            answer = client._connection.exchange(method, path + query, body, 5)
            told[route] = answer.status, json.loads(answer.body) if answer.body else None
    return told


def test_the_stand_in_answers_as_the_examples_do(exchanged):
    assert exchanged.keys() == ANSWERS.keys()
    for route, example in ANSWERS.items():
        assert exchanged[route][0] == example["status"], route
        assert shape(exchanged[route][1]) == shape(example["body"]), route


@pytest.fixture
def client():
    """The client of a server that gives the examples."""

    class Examples(QuietHandler):
        def answer(self):
            steps = [
                "*" if "-" in step else step
                for step in self.path.partition("?")[0].removeprefix("/api/").split("/")
            ]
            self.rfile.read(int(self.headers.get("Content-Length", 0)))
            example = ANSWERS[f"{self.command} {'/'.join(steps)}"]
            content = b"" if example["body"] is None else json.dumps(example["body"]).encode()
            self.send_response(example["status"])
            if content:
                self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        do_GET = do_POST = do_PUT = do_DELETE = answer

    with serving(Examples) as url, ArenaClient(url, TOKEN) as client:
        yield client


def test_the_client_understands_each_example(client):
    snake = Snake(SNAKE["id"], "Hisser", "https://snake.example.org/", is_public=True)
    ladder = Ladder(LADDER["id"], "Standard", active=True)
    assert client.snakes() == [snake]
    assert client.create_snake(name="Hisser", url=snake.url, is_public=True) == snake
    assert client.update_snake(snake.id, is_public=True) == snake
    assert client.ladders() == [ladder]
    (standing,) = client.standings(ladder)
    assert (standing.rank, standing.score, standing.games, standing.firsts, standing.min_games) == (
        1,
        21.5,
        31,
        9,
        10,
    )
    client.join(ladder, snake)
    client.leave(ladder, snake)
    assert client.create_game([snake.id], board="7x7", game_type="snail") == GAME["id"]
    for row in (client.games(snake.id)[0], client.details(GAME["id"])):
        assert (row.status, row.is_over, row.game_type, row.board) == (
            "finished",
            True,
            "snail",
            "7x7",
        )
        assert row.result_for(snake) == "won"
    assert client.statuses([GAME["id"]]) == {GAME["id"]: "finished"}
    assert client.game(GAME["id"])["Status"] == "complete"
    frames = client.frames(GAME["id"], offset=0)
    recording = recording_of(GAME["id"], frames, width=7, height=7, game_type="snail")
    causes = [snake["eliminatedCause"] for snake in recording.boards()[0]["snakes"]]
    assert causes == ["", "snake-self-collision"]


@pytest.mark.parametrize("spelling", ["Snail Mode", "snail_mode", "snail mode", "SNAIL", "snail"])
def test_a_type_is_known_however_it_is_spelt(spelling):
    assert kind_of(spelling) == "snail"
