"""The connection that engines' and platforms' clients share."""

from __future__ import annotations

import http.client
import socket
from contextlib import closing

import pytest

from agents.measure.evaluation.connection import AnswerTooLargeError, Connection
from agents.player import without_secrets
from tests.serve.snakes import Answer, served

SIX_BYTES = b"[1, 2]"


def asked(answer, **options):
    """What the connection makes of this answer."""
    with (
        served(lambda path, body: answer) as url,
        closing(Connection(url, **options)) as connection,
    ):
        return connection.exchange("GET", "", None, 5).body


def test_half_an_answer_is_no_answer():
    with pytest.raises(http.client.IncompleteRead):
        asked(Answer(body=SIX_BYTES, headers={"Content-Length": "12"}, hangs_up=True))


def test_an_answer_may_have_as_many_bytes_as_are_allowed():
    assert asked(Answer(body=SIX_BYTES), max_answer_bytes=6) == SIX_BYTES


def test_no_answer_has_more_bytes_than_are_allowed():
    with pytest.raises(AnswerTooLargeError, match="5 bytes"):
        asked(Answer(body=SIX_BYTES), max_answer_bytes=5)


@pytest.mark.parametrize(
    ("url", "info", "move"),
    [
        ("", "/", "/move"),
        ("/", "/", "/move"),
        ("/a/b", "/a/b", "/a/b/move"),
        ("/a/", "/a/", "/a/move"),
        ("?key=1&other=2", "/?key=1&other=2", "/move?key=1&other=2"),
        ("/a/?key=1#part", "/a/?key=1", "/a/move?key=1"),
        ("/schl%C3%A4nge?a=b%20c", "/schl%C3%A4nge?a=b%20c", "/schl%C3%A4nge/move?a=b%20c"),
        (
            "/schlänge?ä=ö ü",
            "/schl%C3%A4nge?%C3%A4=%C3%B6%20%C3%BC",
            "/schl%C3%A4nge/move?%C3%A4=%C3%B6%20%C3%BC",
        ),
    ],
)
def test_paths_and_queries_are_joined_as_engines_do(url, info, move):
    """The official command line and Arena ask for the URL itself, and put the calls behind its
    path, before its query.
    """
    asked = []

    def respond(path, body):
        asked.append(path)
        return Answer()

    with served(respond) as server, closing(Connection(server + url)) as connection:
        connection.exchange("GET", "", None, 5)
        connection.exchange("POST", "move", {}, 5)
    assert asked == [info, move]


@pytest.mark.parametrize(
    ("url", "address"),
    [
        ("http://[::1]/", ("::1", 80)),
        ("https://[2001:db8::7]", ("2001:db8::7", 443)),
        ("http://[::1]:8000", ("::1", 8000)),
        ("http://user@example.org:81/", ("example.org", 81)),
    ],
)
def test_the_address_is_the_urls(url, address, monkeypatch):
    called = []

    def refuse(place, *_):
        called.append(place)
        raise ConnectionRefusedError

    monkeypatch.setattr(socket, "create_connection", refuse)
    with closing(Connection(url)) as connection, pytest.raises(ConnectionRefusedError):
        connection.exchange("GET", "", None, 5)
    assert called == [address]


def test_a_url_that_others_read_has_no_secrets():
    assert (
        without_secrets("https://me:pass@example.org:81/a/?key=1#x") == "https://example.org:81/a"
    )
