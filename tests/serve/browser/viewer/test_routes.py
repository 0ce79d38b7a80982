"""The viewer's addresses: what browsers and engines get, in which form, and who gets nothing."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import quote

import pytest

import serve.browser.viewer
from agents.measure.pages import logo
from envs.battlesnake.recording import Recording
from envs.common.palette import style_sheet
from serve.archive import reader
from serve.archive.rows import unpack
from serve.archive.store import GameStore
from serve.arena import create_app
from serve.browser.viewer import Access
from serve.browser.viewer.routes import TURNS_PER_ANSWER
from tests.serve.agents import Raises
from tests.serve.archive.played import crowded_by_strangers, play, tell, tell_all
from tests.serve.reader import Reader

TOKEN = "0123456789abcdef"
STATIC = Path(serve.browser.viewer.__file__).parent / "static"
BROWSER = {"Accept": "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"}
STRANGER = {"REMOTE_ADDR": "203.0.113.9"}
HOSTILE = '<img src=x onerror="alert(1)">'


def make_app(store, **options):
    app = create_app({"raises": Raises()}, store=store, **options)
    app.test_client_class = Reader
    return app


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    """Three games that are over, one that goes on."""
    store = GameStore(f"sqlite:///{tmp_path_factory.mktemp('games')}/games.db")
    for seed in (1, 2, 3):
        tell_all(store, "raises", play(seed=seed), 0)
    for event in list(play(seed=4).events(0))[:6]:
        tell(store, "raises", event)
    assert store.flush()
    yield store
    store.close()


@pytest.fixture(scope="module")
def client(store):
    return make_app(store).test_client()


@pytest.fixture(scope="module")
def closed(store):
    """The same, for whoever knows the token."""
    return make_app(store, access=Access(TOKEN))


def ids(answer):
    return [game["id"] for game in answer.get_json()["games"]]


def test_browsers_get_the_page_and_engines_the_info_at_one_address(client):
    page = client.get("/", headers=BROWSER)
    assert page.mimetype == "text/html"
    assert "Accept" in page.headers["Vary"]
    for accept in ("*/*", "application/json", "application/json, text/html", None):
        answer = client.get("/", headers={"Accept": accept} if accept else {})
        assert answer.get_json()["apiversion"] == "1", accept


def test_a_browser_from_elsewhere_gets_the_info_like_anybody(client):
    assert (
        client.get("/", headers=BROWSER, environ_overrides=STRANGER).get_json()["apiversion"] == "1"
    )


@pytest.mark.parametrize(
    "path",
    ["/", "/watch", "/watch/game-1/raises", "/viewer/games.js", "/api/games", "/api/nothing"],
)
def test_no_answer_lets_a_page_run_what_is_not_ours(client, path):
    answer = client.get(path, headers=BROWSER)
    policy = dict(
        part.strip().split(" ", 1) for part in answer.headers["Content-Security-Policy"].split(";")
    )
    assert policy["default-src"] == "'none'"
    assert policy.get("script-src", "'self'") == policy.get("style-src", "'self'") == "'self'"
    assert policy["frame-ancestors"] == "'none'"
    assert answer.headers["X-Content-Type-Options"] == "nosniff"


class _Inline(HTMLParser):
    """Collects what a strict policy forbids, and the files that a page asks for."""

    def __init__(self):
        super().__init__()
        self.found = []
        self.files = []

    def handle_starttag(self, tag, attrs):
        attributes = dict(attrs)
        self.found += [name for name in attributes if name.startswith("on") or name == "style"]
        self.found += (
            [tag] if tag == "style" or (tag == "script" and "src" not in attributes) else []
        )
        self.files += [
            attributes[name]
            for name in ("src", "href")
            if attributes.get(name, "").startswith("/viewer/")
        ]


@pytest.mark.parametrize("page", ["games.html", "game.html"])
def test_pages_have_nothing_inline_and_every_file_they_name(client, page):
    parser = _Inline()
    parser.feed((STATIC / page).read_text())
    assert parser.found == []
    assert len(parser.files) > 3
    for file in parser.files:
        assert client.get(file).status_code == 200, file


def test_scripts_import_only_what_is_there_and_never_parse_markup():
    scripts = list(STATIC.glob("*.js"))
    imported = set()
    for script in scripts:
        text = script.read_text()
        for name in re.findall(r'from "\./([^"]+)"', text):
            imported.add(name)
            assert (STATIC / name).is_file(), f"{script.name} imports {name}"
        assert not re.search(
            r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function", text
        ), script.name
    assert len(scripts) > 10
    assert len(imported) > 10


def test_games_come_by_pages_the_last_one_first(client):
    assert ids(client.get("/api/games?live=1")) == ["game-4"]
    first = client.get("/api/games?live=0&limit=2")
    assert (ids(first), first.get_json()["more"]) == (["game-3", "game-2"], True)
    second = client.get("/api/games?live=0&limit=2&offset=2")
    assert (ids(second), second.get_json()["more"]) == (["game-1"], False)
    assert len(ids(client.get("/api/games"))) == 4


def test_turns_come_from_a_number_on(client, store):
    played = play(seed=1)
    answer = client.get("/api/games/game-1/raises/turns").get_json()
    boards = [request["board"] for request in played.requests[0]] + [played.ends[0]["board"]]
    assert [turn["board"]["snakes"] for turn in answer["turns"]] == [
        board["snakes"] for board in boards
    ]
    assert answer["game"]["ended"]
    assert not answer["more"]
    late = client.get("/api/games/game-1/raises/turns?since=3").get_json()["turns"]
    assert [turn["turn"] for turn in late] == [turn["turn"] for turn in answer["turns"]][3:]
    assert late[0]["probabilities"] == [0.25] * 4


def test_long_games_come_in_parts(tmp_path, monkeypatch):
    played = play(
        seed=1,
        num_snakes=1,
        agent="flood",
        side=11,
        max_turns=TURNS_PER_ANSWER + 20,
        ruleset="solo",
    )
    assert len(played.requests[0]) > TURNS_PER_ANSWER
    store = GameStore(f"sqlite:///{tmp_path}/games.db")
    tell_all(store, "raises", played, 0)
    assert store.flush()
    client = make_app(store).test_client()
    unpacked = []
    monkeypatch.setattr(reader, "unpack", lambda data: unpacked.append(data) or unpack(data))
    first = client.get("/api/games/game-1/raises/turns").get_json()
    assert (len(first["turns"]), first["more"]) == (TURNS_PER_ANSWER, True)
    assert len(unpacked) < TURNS_PER_ANSWER + 5
    rest = client.get(f"/api/games/game-1/raises/turns?since={TURNS_PER_ANSWER}").get_json()
    assert rest["turns"][0]["turn"] == TURNS_PER_ANSWER
    assert not rest["more"]
    monkeypatch.setattr(reader, "_PAGE_POINTS", 2)
    tell_all(store, "raises", hazardous(seed=2), 0)
    assert store.flush()
    first = client.get("/api/games/game-2/raises/turns").get_json()
    assert (len(first["turns"]), first["more"]) == (1, True)
    store.close()


def hazardous(**options):
    """A game with hazards on each board."""
    played = play(**options)
    for request in [*played.requests[0], played.ends[0]]:
        request["board"]["hazards"] = [{"x": 0, "y": 0}] * 2
    return played


FAR = "Thu, 01 Jan 99999999999 00:00:00 GMT"


@pytest.mark.parametrize(
    "header", [{"If-Modified-Since": FAR}, {"Range": "bytes=0-1", "If-Range": FAR}], ids=str
)
@pytest.mark.parametrize("path", ["/watch", "/viewer/games.js", "/"])
def test_a_date_that_no_calendar_has_counts_as_none(client, header, path):
    answer = client.get(path, headers={**BROWSER, **header})
    assert (answer.status_code, answer.data) == (200, client.get(path, headers=BROWSER).data)


def test_files_that_a_browser_has_are_not_sent_again(client):
    with client.get("/viewer/games.js") as first:
        known = {"If-Modified-Since": first.headers["Last-Modified"]}
    assert client.get("/viewer/games.js", headers=known).status_code == 304
    assert client.get("/viewer/%2e%2e/routes.py").status_code == 404


def test_a_recording_can_be_taken_home(client, tmp_path):
    answer = client.get("/api/games/game-2/raises/recording")
    assert answer.headers["Content-Disposition"] == "attachment; filename=game-2.jsonl"
    path = tmp_path / "game.jsonl"
    path.write_bytes(answer.data)
    played = play(seed=2)
    recording = Recording.read(path)
    assert [board["turn"] for board in recording.boards()][: len(played.requests[0])] == list(
        range(len(played.requests[0]))
    )
    assert recording.decisions(0)["you-0"]["probabilities"] == [0.25] * 4
    assert recording.result is not None


def test_a_game_that_recordings_cannot_hold_is_refused_in_a_line(tmp_path):
    store = GameStore(f"sqlite:///{tmp_path}/games.db")
    tell_all(store, "raises", crowded_by_strangers(seed=1), 0)
    assert store.flush()
    answer = make_app(store).test_client().get("/api/games/game-1/raises/recording")
    assert (answer.status_code, answer.get_json()["error"].partition(":")[0]) == (
        404,
        "no recording holds this game",
    )
    store.close()


def test_statistics_are_the_stores(client, store):
    assert client.get("/api/statistics").get_json() == json.loads(json.dumps(store.statistics()))


@pytest.mark.parametrize(
    "path",
    [
        "/api/games?limit=-1",
        "/api/games?limit=101",
        "/api/games?offset=x",
        "/api/games/game-1/raises/turns?since=1e3",
    ],
)
def test_numbers_that_are_none_are_refused(client, path):
    answer = client.get(path)
    assert answer.status_code == 400
    assert "expected a number from 0 to" in answer.get_json()["error"]


@pytest.mark.parametrize("game", ["nothing", "..%2f..%2fetc", "<b>", "a" * 129, "%00", "game-1%0a"])
@pytest.mark.parametrize(
    "form",
    [
        "/api/games/{}/raises",
        "/api/games/{}/raises/turns",
        "/api/games/{}/raises/recording",
        "/games/{}",
    ],
)
def test_games_that_are_none_are_not_found(client, form, game):
    answer = client.get(form.format(game))
    assert (answer.status_code, answer.mimetype) == (404, "application/json")


def test_a_strangers_name_never_gets_into_a_page(tmp_path):
    store = GameStore(f"sqlite:///{tmp_path}/games.db")
    played = play(seed=5)
    text = json.dumps(list(played.events(0))).replace("snake 1", HOSTILE.replace('"', '\\"'))
    for event in json.loads(text):
        tell(store, "raises", event)
    assert store.flush()
    client = make_app(store).test_client()
    for path in (
        "/",
        "/watch",
        "/watch/game-5/raises",
        f"/watch/game-5/{HOSTILE}",
        "/api/games",
        "/api/games/game-5/raises/turns",
    ):
        answer = client.get(path, headers=BROWSER)
        assert answer.mimetype == "application/json" or HOSTILE not in answer.text, path
    assert HOSTILE in client.get("/api/games").get_json()["games"][0]["snakes"]
    store.close()


@pytest.mark.parametrize("snake", ["Snake s1", "Würger", "#1? 100%", "<b>", "蛇"])
def test_a_game_is_found_whatever_its_snake_is_called(tmp_path, snake):
    store = GameStore(f"sqlite:///{tmp_path}/games.db")
    tell_all(store, snake, play(seed=1), 0)
    assert store.flush()
    client = make_app(store).test_client()
    path = f"game-1/{quote(snake, safe='')}"
    assert client.get(f"/watch/{path}").status_code == 200
    assert client.get(f"/api/games/{path}").get_json()["game"]["snake"] == snake
    assert client.get(f"/api/games/{path}/turns").get_json()["turns"]
    assert client.get(f"/api/games/{path}/recording").status_code == 200
    store.close()


@pytest.mark.parametrize("snake", ["", "%00", "raises%00", "a" * 257])
def test_no_snake_is_called_so(client, snake):
    assert client.get(f"/api/games/game-1/{snake}").status_code == 404
    assert client.get(f"/watch/game-1/{snake}").status_code == 404


def viewer_paths(app):
    values = {"game_id": "game-1", "snake": "raises", "filename": "games.js", "key": "0" * 32}
    rules = [
        rule
        for rule in app.url_map.iter_rules()
        if rule.endpoint.startswith("viewer.") and not rule.websocket
    ]
    return [
        app.url_map.bind("localhost").build(rule.endpoint, {k: values[k] for k in rule.arguments})
        for rule in rules
    ]


def test_strangers_see_nothing_of_it(client):
    paths = viewer_paths(client.application)
    assert len(paths) > 8
    for path in paths:
        assert client.get(path, environ_overrides=STRANGER).status_code in (403, 404), path


def test_a_token_in_an_address_becomes_a_cookie(closed):
    client = closed.test_client()
    for path in viewer_paths(closed):
        assert client.get(path).status_code in (401, 404), path
    assert client.get("/", headers=BROWSER).get_json()["apiversion"] == "1"
    assert client.get("/watch?token=wrong-wrong-wrong").status_code == 401
    answer = client.get(f"/watch?token={TOKEN}", environ_overrides=STRANGER)
    assert (answer.status_code, answer.headers["Location"]) == (302, "/watch")
    assert client.get("/watch", environ_overrides=STRANGER).status_code == 200
    assert client.get("/api/games", environ_overrides=STRANGER).status_code == 200
    assert client.get("/", headers=BROWSER, environ_overrides=STRANGER).mimetype == "text/html"


@pytest.mark.parametrize(
    "snake", ["raises", "%231%3F%20100%25", "%0D%0ASet-Cookie%3A%20x%3Dy", "W%C3%BCrger"]
)
def test_the_address_without_the_token_is_that_of_the_same_page(closed, snake):
    answer = closed.test_client().get(f"/watch/game-1/{snake}?token={TOKEN}")
    assert (answer.status_code, answer.headers["Location"]) == (302, f"/watch/game-1/{snake}")


def test_a_share_key_opens_one_game_to_the_world(closed):
    owner = {"Authorization": f"Bearer {TOKEN}"}
    key = (
        closed.test_client().get("/api/games/game-1/raises", headers=owner).get_json()["share_key"]
    )
    stranger = closed.test_client()
    shared = stranger.get(f"/share/{key}/games/game-1", environ_overrides=STRANGER)
    assert shared.get_json()["Game"]["ID"] == "game-1"
    assert stranger.get(f"/share/{key}/games/game-2", environ_overrides=STRANGER).status_code == 404
    assert stranger.get("/api/games", environ_overrides=STRANGER).status_code == 401


def test_a_database_that_cannot_be_read_is_said_to_be_so(tmp_path):
    (tmp_path / "games.db").write_bytes(b"this is not a database" * 100)
    store = GameStore(f"sqlite:///{tmp_path}/games.db")
    answer = make_app(store).test_client().get("/api/games")
    assert answer.status_code == 503
    assert "the games can't be read" in answer.get_json()["error"]
    store.close()


def test_the_style_has_the_colours_and_the_logo_of_reports(client):
    style = client.get("/viewer/palette.css")
    assert (style.mimetype, style.get_data(as_text=True)) == ("text/css", style_sheet())
    assert '@import url("palette.css")' in client.get("/viewer/style.css").get_data(as_text=True)
    icon = client.get("/viewer/favicon.svg")
    assert (icon.mimetype, icon.get_data(as_text=True)) == ("image/svg+xml", logo())
