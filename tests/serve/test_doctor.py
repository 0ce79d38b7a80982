"""The doctor finds nothing wrong with a good snake, and each thing that is wrong with a bad one, by
name.
"""

from __future__ import annotations

import itertools
import json
import shlex
import threading
import time
from base64 import b64encode
from types import SimpleNamespace

import pytest

import agents
import procsnake
from envs.battlesnake.webhook import read_move_request
from envs.common.errors import ConfigError
from serve.archive.store import GameStore
from serve.arena import create_app
from serve.doctor import client, requests
from serve.doctor import load as company
from serve.doctor.examination import examine
from serve.doctor.findings import FAULTS
from serve.server import running, warm_up
from tests.serve.archive.played import play, tell_all
from tests.serve.snakes import INFO, Answer, as_json, good_snake, open_ways, served

GENEROUS_MS = 4000


def faults_of(respond, **options):
    """{fault: the check that found it} at a snake that answers like this, the follow-up "not-tried"
    left out.
    """
    with served(respond) as url:
        report = examine(url, **{"timeout_ms": GENEROUS_MS, "games": 2, "moves": 10} | options)
    return {f.fault: f.check for f in report.findings if f.fault and f.fault != "not-tried"}, report


def only_at(path, answer):
    """Good but for one path, at which it gives this answer."""
    return lambda asked, body: answer(body) if asked == path else good_snake(asked, body)


def delayed(path, seconds, *, times=10**6):
    """Good, but the first `times` answers at a path take a while."""
    count = itertools.count()

    def respond(asked, body):
        if asked == path and next(count) < times:
            time.sleep(seconds)
        return good_snake(asked, body)

    return respond


def changed_move(change):
    """Good, but for what becomes of its answers to /move."""
    return only_at("/move", lambda body: change(body) if body else good_snake("/move", body))


def test_a_good_snake_of_strangers_has_nothing():
    faults, report = faults_of(good_snake)
    assert not faults
    assert report.passed
    assert 0 < report.latency_ms["p50"] <= report.latency_ms["p99"] <= report.latency_ms["max"]


def test_our_server_has_nothing():
    agent = agents.make("flood")
    warm_up({"flood": agent})
    with running(create_app(agent)) as url:
        report = examine(url, timeout_ms=GENEROUS_MS, moves=20)
    assert report.passed, report.as_text()
    assert not [finding for finding in report.findings if finding.fault]


def test_the_figures_of_a_server_of_ours_stay_as_they_were(tmp_path):
    store = GameStore(f"sqlite:///{tmp_path}/games.db")
    tell_all(store, "flood", play(seed=1), 0)
    assert store.flush()
    before = store.statistics()
    with running(create_app(agents.make("flood"), store=store)) as url:
        assert examine(url, timeout_ms=GENEROUS_MS, games=2, moves=10).passed
    assert store.flush()
    after = store.statistics()
    assert after.pop("checks") > 10
    assert before.pop("checks") == 0
    assert after == before
    assert [path.name for path in store.export(tmp_path / "games")] == [
        "game-1--flood--you-0.jsonl"
    ]
    store.close()


BAD_SNAKES = {
    "hangs-up": changed_move(lambda body: None),
    "redirects": lambda path, body: Answer(301, b"", {"Location": "https://elsewhere.example"}),
    "not-found": lambda path, body: good_snake(path, body) if path == "/" else Answer(404),
    "not-allowed": lambda path, body: Answer(403),
    "not-200": changed_move(lambda body: as_json({"move": open_ways(body)[0]}, 201)),
    "server-error": changed_move(lambda body: Answer(500)),
    "too-large": changed_move(lambda body: Answer(200, b" " * 10**6)),
    "not-json": changed_move(lambda body: Answer(200, b"up")),
    "not-text": changed_move(lambda body: as_json({"move": open_ways(body)[0], "shout": 7})),
    "no-apiversion": only_at("/", lambda body: as_json(INFO | {"apiversion": 1})),
    "bad-color": only_at("/", lambda body: as_json(INFO | {"color": "red"})),
    "slow-info": delayed("/", 1.1),
    "cold-start": delayed("/", 1.1, times=1),
    "no-move": changed_move(lambda body: as_json({"direction": "up"})),
    "uppercase-move": changed_move(lambda body: as_json({"move": open_ways(body)[0].upper()})),
    "invalid-move": changed_move(lambda body: as_json({"move": ["up"]})),
    "long-shout": changed_move(
        lambda body: as_json({"move": open_ways(body)[0], "shout": "s" * 257})
    ),
    "closes-connection": lambda path, body: Answer(200, good_snake(path, body).body, hangs_up=True),
    "walks-into-death": changed_move(lambda body: as_json({"move": "up"})),
    "fails-on-garbage": lambda path, body: (
        good_snake(path, body) if path == "/" or body else Answer(500)
    ),
    "shows-its-trace": lambda path, body: (
        good_snake(path, body)
        if path == "/" or body
        else Answer(400, b"Traceback (most recent call last):\n  File ...")
    ),
}


IN_ANOTHER_FORM = {
    "byte order mark": lambda text: b"\xef\xbb\xbf" + text.encode(),
    "UTF-16": lambda text: text.encode("utf-16"),
    "UTF-32": lambda text: text.encode("utf-32-le"),
    "Latin-1": lambda text: text.replace("}", ', "shout": "\xe9"}').encode("latin-1"),
    "not a number": lambda text: text.replace("}", ', "score": NaN}').encode(),
    "half a surrogate pair": lambda text: text.replace("}", ', "shout": "\\ud83d"}').encode(),
}
"""Answers that Python's JSON reader takes, and those of the engines, written in Go and Rust, refuse
or change.
"""


@pytest.mark.parametrize("form", IN_ANOTHER_FORM)
def test_an_answer_that_engines_cannot_read_is_no_json(form):
    answer = IN_ANOTHER_FORM[form]
    faults, report = faults_of(
        changed_move(lambda body: Answer(200, answer(good_snake("/move", body).body.decode())))
    )
    assert set(faults) == {"not-json"}
    assert not report.passed


@pytest.mark.parametrize("part", ["author", "color", "head", "tail", "version"])
def test_a_look_that_engines_cannot_read_is_a_fault(part):
    faults, report = faults_of(only_at("/", lambda body: as_json(INFO | {part: 1})), moves=1)
    assert faults == {"not-text": part}
    assert not report.passed


def test_the_doctor_and_a_match_keep_what_a_url_carries(tmp_path):
    """A snake that a platform reaches at this URL, and nobody who leaves out its path, query or
    user.
    """
    asked = []

    def respond(path, body, headers):
        asked.append(path)
        place, _, query = path.partition("?")
        authorization = headers.get("Authorization")
        if query != "key=a%2Fb&x=" or authorization != "Basic " + b64encode(b"me:p@ss").decode():
            return Answer(403)
        return good_snake(place.removeprefix("/snake") or "/", body)

    with served(respond, with_headers=True) as url:
        secret_url = url.replace("://", "://me:p%40ss@") + "/snake?key=a%2Fb&x="
        report = examine(secret_url, timeout_ms=GENEROUS_MS, games=2, moves=4)
        assert report.passed, report.as_text()
        record = tmp_path / "game.jsonl"
        assert (
            procsnake.main(
                [
                    "match",
                    secret_url,
                    *shlex.split("flood --width 7 --height 7 --record"),
                    str(record),
                ]
            )
            == 0
        )
    assert set(asked) == {f"/snake{call}?key=a%2Fb&x=" for call in ("", "/start", "/move", "/end")}
    assert not {secret for secret in ("p%40ss", "a%2Fb") if secret in record.read_text()}


@pytest.mark.parametrize("fault", BAD_SNAKES)
def test_what_is_wrong_is_named_and_nothing_else(fault):
    faults, report = faults_of(BAD_SNAKES[fault])
    assert set(faults) == {fault}
    assert report.passed == (FAULTS[fault].verdict != "✗")
    assert FAULTS[fault].fix in report.as_text()


def test_a_board_that_is_upside_down():
    def respond(path, body):
        answer = good_snake(path, body)
        flip = {b'{"move": "up"}': b'{"move": "down"}', b'{"move": "down"}': b'{"move": "up"}'}
        return Answer(answer.status, flip.get(answer.body, answer.body))

    faults, _ = faults_of(respond)
    assert faults == {"upside-down": "orientation"}


@pytest.mark.parametrize(
    ("what", "breaks"),
    [
        (
            "dead snakes in the list",
            lambda body: any(not snake["body"] for snake in body["board"]["snakes"]),
        ),
        ("unknown fields", lambda body: "addedLater" in body),
        ("optional fields left out", lambda body: "settings" not in body["game"]["ruleset"]),
        (
            "you not in the list",
            lambda body: (
                body["you"]["id"] not in [snake["id"] for snake in body["board"]["snakes"]]
            ),
        ),
        ("an empty game.map", lambda body: body["game"].get("map") == ""),
        (
            "stacked hazards, and some off the board",
            lambda body: any(p["y"] > 10 for p in body["board"].get("hazards", ())),
        ),
        ("19×19 board", lambda body: body["board"]["width"] == 19),
        ("a game alone", lambda body: body["game"]["ruleset"]["name"] == "solo"),
    ],
)
def test_what_an_odd_request_breaks_is_told_with_its_oddity(what, breaks):
    faults, _ = faults_of(
        changed_move(lambda body: Answer(500) if breaks(body) else good_snake("/move", body))
    )
    assert faults == {"server-error": f"move: {what}"}


def test_one_that_keeps_its_game_in_a_global_variable():
    kept = {}

    def respond(path, body):
        if path == "/move" and body:
            kept["game"] = body
            time.sleep(0.02)
            return good_snake(path, kept["game"])
        return good_snake(path, body)

    faults, _ = faults_of(respond)
    assert "mixes-games" in faults
    assert set(faults) <= {"mixes-games", "fails-under-load"}


def test_one_that_fails_in_company():
    busy = threading.Lock()

    def respond(path, body):
        if path != "/move":
            return good_snake(path, body)
        if not busy.acquire(blocking=False):
            return Answer(503)
        time.sleep(0.02)
        busy.release()
        return good_snake(path, body)

    faults, report = faults_of(respond, games=4, moves=40)
    assert faults == {"fails-under-load": "4 games at a time"}
    assert "HTTP status 503" in report.as_text()


def test_one_that_answers_one_game_after_the_other():
    one = threading.Lock()

    def respond(path, body):
        if path == "/move" and body:
            with one:
                time.sleep(0.08)
        return good_snake(path, body)

    faults, _ = faults_of(respond, timeout_ms=500, games=16, moves=32)
    assert "slow-under-load" in faults


def test_one_that_thinks_for_too_long_and_one_that_only_wakes_up_slowly():
    faults, report = faults_of(delayed("/move", 0.6), timeout_ms=500)
    assert faults == {"slow-move": "POST /move"}
    assert "a game allows 500" in report.as_text()
    faults, report = faults_of(delayed("/move", GENEROUS_MS / 1000 + 0.2, times=1))
    assert faults == {"cold-start": "POST /move"}
    assert report.passed


@pytest.mark.parametrize(("delay_s", "fault"), [(0.02, None), (0.6, "far"), (0.98, "out-of-reach")])
def test_how_much_of_the_timeout_the_way_costs(delay_s, fault):
    _, report = faults_of(delayed("/", delay_s), timeout_ms=1000)
    (way,) = [finding for finding in report.findings if finding.check == "the way"]
    assert way.fault == (fault or "")
    assert float(way.summary.split("up to ")[1].split()[0]) >= 1000 * delay_s
    assert "of 1000 ms" in way.summary


def test_one_that_leaves_no_margin(monkeypatch):
    monkeypatch.setattr(company, "CLOSE_MS", GENEROUS_MS - 20)
    faults, report = faults_of(delayed("/move", 0.05))
    assert faults == {"close-to-timeout": "2 games at a time"}
    assert report.passed


def test_one_that_never_answers(monkeypatch):
    monkeypatch.setattr(client, "PATIENCE_S", 0.3)
    faults, _ = faults_of(delayed("/", 0.6, times=2))
    assert faults == {"timed-out": "GET /"}


def test_one_that_never_recovers_from_garbage():
    broken = threading.Event()

    def respond(path, body):
        if path == "/move" and not body:
            broken.set()
            return Answer(400)
        return Answer(500) if broken.is_set() else good_snake(path, body)

    faults, _ = faults_of(respond)
    assert faults["never-recovers"] == "and a move after those"


MOVES_ALONE = 1 + 4 + len(requests.odd_ones(GENEROUS_MS)) + 1 + 32
"""How many moves the doctor asks for before games are played: one that is ordinary, four with one
way out, and so on.
"""


@pytest.mark.parametrize(
    "seconds", [8, MOVES_ALONE, MOVES_ALONE + 5], ids=["odd requests", "before games", "games"]
)
def test_nothing_is_begun_after_the_time_is_up(seconds, monkeypatch):
    """One second passes with each move. When time is up, no more than the end of a game is told."""
    moves = []
    late = []
    for module in ("examination", "load"):
        monkeypatch.setattr(
            f"serve.doctor.{module}.time", SimpleNamespace(monotonic=lambda: float(len(moves)))
        )

    def respond(path, body):
        if len(moves) >= seconds:
            late.append(path)
        if path == "/move" and body:
            moves.append(body)
        return good_snake(path, body)

    faults, report = faults_of(respond, games=1, moves=20, seconds=seconds)
    assert not faults
    assert len(moves) == seconds
    assert set(late) <= {"/end"}
    is_cut_short = "not-tried" in [finding.fault for finding in report.findings]
    assert is_cut_short == (seconds <= MOVES_ALONE)


@pytest.mark.parametrize("opponent", ["flood", "random"])
def test_no_more_moves_are_asked_for_than_allowed(monkeypatch, opponent):
    """The winner of a game is asked once more, and against the second one it wins often."""
    monkeypatch.setattr("serve.doctor.load._OPPONENT", opponent)
    asked = []
    faults_of(
        changed_move(lambda body: asked.append(body["you"]["id"]) or good_snake("/move", body)),
        games=3,
        moves=100,
    )
    assert sum(you != "you" for you in asked) == 100


def test_the_odd_requests_are_ones_that_can_be_read():
    """Another reader of ours, which refuses what can't be, takes them all."""
    for body in requests.odd_ones(500).values():
        turn = read_move_request(json.loads(json.dumps(body)))
        assert turn.ids[turn.you] == "you"
        assert turn.timeout_ms == 500


def test_on_the_command_line(capsys):
    with served(good_snake) as url:
        assert (
            procsnake.main(
                [
                    "doctor",
                    url,
                    "--timeout",
                    str(GENEROUS_MS),
                    *shlex.split("--games 1 --moves 5 --json"),
                ]
            )
            == 0
        )
        told = json.loads(capsys.readouterr().out)
        assert told["passed"]
        assert {finding["verdict"] for finding in told["findings"]} == {"✓"}
    assert procsnake.main(["doctor", "http://127.0.0.1:9"]) == 1
    assert "unreachable" in capsys.readouterr().out
    assert procsnake.main(["doctor", "http://127.0.0.1:9", "--json"]) == 1
    told = json.loads(capsys.readouterr().out)
    assert not told["passed"]
    assert "unreachable" in {finding["fault"] for finding in told["findings"]}
    assert procsnake.main(["doctor", "ftp://snake"]) == 2
    assert procsnake.main(["doctor", url, "--moves", "100000"]) == 2
    assert "no load test" in capsys.readouterr().err


def test_what_is_no_url_is_refused():
    for url in ("", "127.0.0.1:8000", "http://", "http://[", "http://host:port"):
        with pytest.raises(ConfigError, match="not the URL"):
            examine(url)
