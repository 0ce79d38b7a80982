"""The connection that engines' and platforms' clients share."""

from __future__ import annotations

import http.client
from contextlib import closing

import pytest

from agents.evaluation.connection import AnswerTooLargeError, Connection
from tests.serve.snakes import Answer, served

SIX_BYTES = b"[1, 2]"


def asked(answer, **options):
    """What the connection makes of this answer."""
    with served(lambda path, body: answer) as url, closing(Connection(url, **options)) as connection:
        return connection.exchange("GET", "", None, 5).body


def test_half_an_answer_is_no_answer():
    with pytest.raises(http.client.IncompleteRead):
        asked(Answer(body=SIX_BYTES, headers={"Content-Length": "12"}, hangs_up=True))


def test_an_answer_may_have_as_many_bytes_as_are_allowed():
    assert asked(Answer(body=SIX_BYTES), max_answer_bytes=6) == SIX_BYTES


def test_no_answer_has_more_bytes_than_are_allowed():
    with pytest.raises(AnswerTooLargeError, match="5 bytes"):
        asked(Answer(body=SIX_BYTES), max_answer_bytes=5)
