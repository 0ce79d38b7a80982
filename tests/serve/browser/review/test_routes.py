"""The addresses of the pages that open and analyse games."""

from __future__ import annotations

import pytest

from agents.measure.analysis.win_probability import GROUPS, WinProbability
from serve.browser.review.reviews import Reviews
from serve.browser.review.routes import MAX_FILE_BYTES, fit_in_json, review_app
from tests.serve.browser.review.games import in_no_time, lost_game, text_of, wait_for
from tests.serve.reader import STRANGER, Reader


@pytest.fixture
def reviews():
    return Reviews(in_no_time)


@pytest.fixture
def client(reviews):
    app = review_app(reviews, curves=WinProbability.shipped())
    app.test_client_class = Reader
    return app.test_client()


def test_the_root_leads_to_the_page_and_its_files_are_there(client):
    assert client.get("/").headers["Location"] == "/analyse"
    assert client.checked("/analyse").mimetype == "text/html"


def test_a_file_that_is_sent_is_opened_and_analysed(client, reviews):
    recording, proof = lost_game()
    path = client.post("/api/analyses?name=lost.jsonl", data=text_of(recording)).get_json()["path"]
    assert client.get(path).mimetype == "text/html"
    game = client.get(f"/api/games/{path.split('/')[2]}/recording").get_json()["game"]
    assert client.get(game["analysis"]).get_json()["snakes"][0]["state"] == "waiting"
    assert client.get(f"{game['analysis']}/0").status_code == 404
    with reviews.working():
        wait_for(reviews, game["id"], "done", "done")
    names = {client.get(f"{game['analysis']}/{n}").get_json()["snake"]["name"] for n in range(2)}
    assert proof.victim in names
    assert client.get(f"{game['analysis']}/2").status_code == 404
    (listed,) = client.get("/api/analyses").get_json()["games"]
    assert (listed["name"], listed["path"], listed["turns"], listed["done"]) == (
        "lost.jsonl",
        path,
        recording.turns[-1],
        1,
    )


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"nothing",
        b"\xff\xfe\x00",
        b"[" * 100_000,
        b"{}",
        b'{"game": 1}\n{"turn": 1}\n',
        b"5\n6\n",
    ],
    ids=range(7),
)
def test_what_is_no_game_is_refused_in_one_line(client, reviews, body):
    answer = client.post("/api/analyses?name=" + "n" * 500, data=body)
    assert answer.status_code == 400
    error = answer.get_json()["error"]
    assert 0 < len(error) <= 500
    assert "\n" not in error
    assert reviews.listed() == []


def test_files_that_are_too_large_are_refused(client):
    assert client.post("/api/analyses", data=b" " * (MAX_FILE_BYTES + 1)).status_code == 413


def test_strangers_and_pages_of_other_sites_start_nothing(client, reviews):
    text = text_of(lost_game()[0])
    assert client.post("/api/analyses", data=text, **STRANGER).status_code == 403
    assert (
        client.post(
            "/api/analyses", data=text, headers={"Origin": "https://elsewhere.example"}
        ).status_code
        == 403
    )
    assert (
        client.post("/api/analyses", data=text, headers={"Host": "elsewhere.example"}).status_code
        == 403
    )
    assert (
        client.post(
            "/api/analyses", data=text, headers={"X-Forwarded-For": "203.0.113.9"}
        ).status_code
        == 403
    )
    for path in ("/analyse", "/api/analyses", "/api/analyses/x", "/api/analyses/x/0"):
        assert client.get(path, **STRANGER).status_code == 403, path
    assert reviews.listed() == []


def test_the_fit_is_told_with_what_its_file_knows():
    shipped = fit_in_json(WinProbability.shipped())
    assert set(shipped) == set(GROUPS)
    for told in shipped.values():
        assert sum(positions for positions, _, _ in told["bins"]) == told["held_out"][0]
    bare = WinProbability(WinProbability.shipped().curves, {"bins": "none"})
    assert fit_in_json(bare)["duel"]["bins"] is None is fit_in_json(bare)["duel"]["held_out"]
