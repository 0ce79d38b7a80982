"""The OpenAPI document against its specification, the requests of the official engine, and what
Schemathesis makes of it.
"""

from __future__ import annotations

import copy
from collections import Counter

import jsonschema
import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from openapi_spec_validator import validate
from schemathesis import GenerationMode

import agents
from serve import openapi
from serve.arena import create_app
from tests.envs.battlesnake.webhook.test_requests import recorded

CALLS = ("start", "move", "end")
QUICK = 10
LONG = 420


@pytest.fixture(scope="module")
def client():
    return create_app(agents.make("flood")).test_client()


def checker(schema):
    document = openapi.document()
    return jsonschema.Draft202012Validator(
        {"$ref": f"#/components/schemas/{schema}", "components": document["components"]}
    )


def test_it_is_an_openapi_document_and_served_beside_each_snake(client):
    validate(openapi.document())
    assert client.get("/openapi.json").get_json() == openapi.document()
    assert client.get("/snakes/flood/openapi.json").get_json() == openapi.document()


def test_it_takes_what_the_official_engine_sends_and_describes_what_we_answer(client):
    request, answer, info = map(checker, ("Request", "Move", "Info"))
    info.validate(client.get("/").get_json())
    for sent in recorded()[1]:
        request.validate(sent)
        if sent["you"]["id"] in {snake["id"] for snake in sent["board"]["snakes"]}:
            answer.validate(client.post("/move", json=sent).get_json())


def change(request, path, value):
    changed = copy.deepcopy(request)
    place = changed
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    return changed


@pytest.mark.parametrize(
    ("path", "last", "beyond"),
    [
        ("turn", 1 << 30, (1 << 30) + 1),
        ("game.id", "g" * 256, "g" * 257),
        ("board.width", 1 << 16, 0),
        ("board.height", 1 << 16, True),
        ("you.health", 100, 101),
    ],
)
def test_its_limits_are_the_ones_that_hold(client, path, last, beyond):
    request = next(r for r in recorded()[1] if r["turn"] == 3)
    for value, status in ((last, 200), (beyond, 400)):
        sent = change(request, path.split("."), value)
        assert client.post("/move", json=sent).status_code == status
        assert checker("Request").is_valid(sent) == (status == 200)


@pytest.mark.parametrize(
    "path",
    [
        "game.timeout",
        "game.ruleset.settings.foodSpawnChance",
        "game.ruleset.settings.royale",
        "game.map",
        "you.name",
    ],
)
@pytest.mark.parametrize("value", [-1, 10**9, "text" * 100, None, [1]], ids=str)
def test_what_no_move_depends_on_is_no_reason_to_refuse(client, path, value):
    sent = change(next(r for r in recorded()[1] if r["turn"] == 3), path.split("."), value)
    checker("Request").validate(sent)
    assert client.post("/move", json=sent).status_code == 200


def bounded(document):
    """The same document, with short lists and plain extra fields: generators draw a hundred times
    as many cases from it.
    """

    def bind(schema):
        parts = (
            list(schema.values())
            if isinstance(schema, dict)
            else schema
            if isinstance(schema, list)
            else []
        )
        if isinstance(schema, dict) and schema.get("type") == "array":
            schema["maxItems"] = 3
        if isinstance(schema, dict) and "properties" in schema:
            schema["additionalProperties"] = {"type": ["integer", "string", "null"]}
        for part in parts:
            bind(part)

    bind(document["components"]["schemas"])
    return document


def statuses(app, call, mode, count):
    """How often each status came, of `count` generated requests, each sent as it is and as part of
    a real one.
    """
    schema = schemathesis.openapi.from_dict(bounded(openapi.document()))
    schema.app = app
    seen = Counter()
    real = recorded()[1][3]
    client = app.test_client()

    @given(
        schema[f"/{call}"]["POST"].as_strategy(generation_mode=mode),
        st.sampled_from(("game", "turn", "board", "you")),
    )
    @settings(
        max_examples=count,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    def send(case, part):
        seen[case.call().status_code] += 1
        mixed = {**real, part: case.body.get(part)} if isinstance(case.body, dict) else real
        seen[client.post(f"/{call}", json=mixed).status_code] += 1

    send()
    return seen


def check_statuses(count):
    seen = Counter()
    app = create_app(agents.make("flood"))
    for call in CALLS:
        for mode in GenerationMode:
            seen += statuses(app, call, mode, count)
    assert set(seen) <= {200, 400}, seen
    assert min(seen[200], seen[400]) > count / 4
    return seen.total()


def test_whatever_fits_it_or_does_not_is_answered():
    check_statuses(QUICK)


@pytest.mark.long
def test_five_thousand_cases_are_answered():
    assert check_statuses(LONG) >= 5000
