"""A server in a process of its own: it answers once it is made, and is gone once it is stopped."""

from __future__ import annotations

import urllib.request
from urllib.error import URLError

import pytest

from serve.background import Background, ServeError


def test_answers_as_soon_as_it_is_made_and_ends_with_the_block():
    with Background("greedy", "--no-games") as server, urllib.request.urlopen(f"{server.url}/", timeout=5) as answer:
        assert b"apiversion" in answer.read()
    with pytest.raises(URLError):
        urllib.request.urlopen(f"{server.url}/", timeout=5)


def test_says_what_the_server_said_when_it_ended():
    with pytest.raises(ServeError, match="Did you mean 'flood'"):
        Background("flod")
