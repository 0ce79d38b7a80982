"""From bytes to an object: hazards that are counted as text are those that parsing gives; what is
no list of points is left.
"""

from __future__ import annotations

import json
import tracemalloc
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

import agents
from envs.battlesnake.webhook import StackedHazards, WebhookError, read_move_request
from serve.archive.store import GameStore
from serve.arena import create_app
from serve.transport.request_body import (
    MAX_HAZARDS_BYTES,
    MAX_OTHER_BYTES,
    MAX_VALUES,
    TooLargeError,
    _with_each_hazard_once,
    read_body,
)
from tests.envs.battlesnake.positions import board
from tests.envs.battlesnake.webhook.test_requests import plain_request

COMPACT = (",", ":")
SPACED = (", ", ": ")


def snail_request(length: int, side: int = 25) -> dict:
    """A game of snail_mode at its worst: a snake that fills the board row by row, and behind it
    stacks of length - 1, … 1.

    One that is longer than half of the board goes over its own trail, as it can where hazards don't
    hurt."""
    path = [(x if y % 2 == 0 else side - 1 - x, y) for y in range(side) for x in range(side)]
    request = plain_request(board(side, side, path[:length][::-1]))
    request["game"]["map"] = "snail_mode"
    trail = [path[(length + n) % len(path)] for n in range(length - 1)]
    request["board"]["hazards"] = [
        {"x": x, "y": y} for n, (x, y) in enumerate(trail) for _ in range(length - 1 - n)
    ]
    request["board"]["hazards"] += [{"x": 0, "y": side}] * length
    return request


def points(hazards: list) -> Counter:
    layers = hazards.layers if isinstance(hazards, StackedHazards) else [1] * len(hazards)
    counted: Counter = Counter()
    for point, times in zip(hazards, layers, strict=True):
        counted[json.dumps(point)] += times
    return counted


@pytest.mark.parametrize("separators", [COMPACT, SPACED])
@pytest.mark.parametrize("length", [283, 361, 625])
def test_a_long_snakes_game_of_snail_mode_is_played_and_kept_with_all_its_hazards(
    tmp_path, length, separators
):
    request = snail_request(length)
    assert len(request["board"]["hazards"]) == length * (length + 1) // 2
    body = json.dumps(request, separators=separators).encode()
    store = GameStore(f"sqlite:///{tmp_path}/games.db")
    client = create_app(agents.make("flood"), store=store).test_client()
    for call in ("start", "move", "end"):
        assert client.post(f"/{call}", data=body).status_code == 200
    assert store.flush(60)
    turn, *_ = store.turns(request["game"]["id"], "flood")
    assert points(turn["board"]["hazards"]) == points(request["board"]["hazards"])
    store.close()
    read, size = read_body(body)
    assert size < MAX_OTHER_BYTES
    state = read_move_request(read).state
    expected = read_move_request(request).state
    assert (state.arrays.hazards == expected.arrays.hazards).all()
    assert (state.arrays.trail == expected.arrays.trail).all()
    assert state.arrays.hazards.sum() + length == length * (length + 1) // 2


coordinate = st.integers(-3, 30) | st.just(10**6)
point = st.fixed_dictionaries({"x": coordinate, "y": coordinate})
odd = st.sampled_from(
    [
        None,
        1,
        {},
        {"x": 1},
        {"y": 1, "x": 2},
        {"x": 1, "y": 1, "z": {"a": [1]}},
        {"x": "}", "y": 1},
        [],
    ]
)


@given(
    st.lists(point | odd, max_size=30) | st.lists(point, max_size=30),
    st.sampled_from([COMPACT, SPACED]),
    st.booleans(),
)
def test_counting_text_gives_what_parsing_gives(hazards, separators, is_elsewhere):
    told = {
        "board": {"hazards": hazards},
        "name": '"hazards":[{"x":1,"y":1}]',
        **({"hazards": [1]} if is_elsewhere else {}),
    }
    data = json.dumps(told, separators=separators).encode()
    shorter, layers = _with_each_hazard_once(data)
    assert json.loads(shorter) == {
        **told,
        "board": {"hazards": (read := json.loads(shorter)["board"]["hazards"])},
    }
    if layers:
        assert points(StackedHazards(read, list(layers.values()))) == points(hazards)
    else:
        assert shorter == data
    is_plain = all(
        isinstance(one, dict) and list(one) == ["x", "y"] and one["x"] != "}" for one in hazards
    )
    assert bool(layers) == (is_plain and bool(hazards) and not is_elsewhere)


@pytest.mark.parametrize(
    "hazards",
    [
        b'{"x":1,"y":1}{"x":1,"y":1}',
        b',{"x":1,"y":1}',
        b'{"x":1,"y":1},',
        b'{"x":1,"y":1},,{"x":1,"y":1}',
        b'{"x":1,"y":1},{"x":01,"y":1}',
        b'{"x":1,"y":1}}',
        b'{"x":1,"y":1',
    ],
)
def test_text_that_is_no_json_is_not_made_json(hazards):
    shorter, _ = _with_each_hazard_once(b'{"board":{"hazards":[' + hazards + b"]}}")
    with pytest.raises(WebhookError):
        read_body(shorter)


def test_what_no_game_has_is_too_large():
    entry = b'{"x":1,"y":1},'
    most = MAX_HAZARDS_BYTES // len(entry)
    assert read_body(b'{"board":{"hazards":[' + entry * (most - 1) + entry[:-1] + b"]}}")[0][
        "board"
    ]["hazards"].layers == [most]
    with pytest.raises(TooLargeError, match="bytes"):
        read_body(b'{"board":{"hazards":[' + entry * (most + 1) + entry[:-1] + b"]}}")
    for different in (4, 4000):
        mixed = b",".join(b'{"x":%d,"y":1}' % (n % different) for n in range(4000))
        with pytest.raises(TooLargeError, match="values"):
            read_body(b'{"board":{"hazards":[' + mixed + b"]}}")
    with pytest.raises(TooLargeError, match="values"):
        read_body(b"[" * (MAX_VALUES + 1))
    with pytest.raises(TooLargeError, match="bytes"):
        read_body(b'{"a":"' + b"a" * MAX_OTHER_BYTES + b'"}')


@pytest.mark.parametrize("entry", ['{"x":"%s","y":1}', '{"x":1,"y":1%s}', '%s{"x":1,"y":1}', "%s"])
def test_refusing_a_large_entry_copies_it_a_few_times_at_most(entry):
    long_entry = entry % (" " * (MAX_HAZARDS_BYTES - len(entry)))
    body = f'{{"board":{{"hazards":[{long_entry}]}}}}'.encode()
    tracemalloc.start()
    try:
        with pytest.raises(TooLargeError):
            read_body(body)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most < 3 * len(body)


@pytest.mark.parametrize("text", ['{"a": NaN}', '{"a": "\\ud800"}', '{"a": 1, "a": 2}', "\ufeff{}"])
def test_what_jsons_own_reader_takes_is_taken(text):
    for body in (text.encode(), text.removeprefix("\ufeff").encode("utf-16")):
        assert repr(read_body(body)[0]) == repr(json.loads(body))


@pytest.mark.parametrize("depth", [990, 1000, 1020, 1030])
@pytest.mark.parametrize("call", ["start", "move", "end"])
def test_nesting_at_the_edge_of_what_is_read_is_no_error_of_ours(tmp_path, call, depth):
    request = plain_request(board(7, 7, [(0, 0), (1, 0), (2, 0)]))
    store = GameStore(f"sqlite:///{tmp_path}/games.db")
    client = create_app(agents.make("flood"), store=store).test_client()
    nested = "[" * depth + "]" * depth
    for place in ("turn", "shout"):
        told = {**request, "turn": 5, "you": {**request["you"], "shout": 7}}
        text = json.dumps(told).replace(
            '"turn": 5' if place == "turn" else '"shout": 7', f'"{place}": {nested}'
        )
        assert client.post(f"/{call}", data=text).status_code in (200, 400)
    assert store.flush(20)
    assert store.writer.lost == 0
    store.close()
