"""A server in a process of its own: it answers once it is made, and is gone once it is stopped."""

from __future__ import annotations

import socket
import urllib.request
from urllib.error import URLError

import pytest

from serve.background import Background, ServeError


@pytest.mark.parametrize("option", ["--port={}", "--port {}"])
def test_answers_on_the_port_that_it_is_told_as_soon_as_it_is_made_until_the_block_ends(option):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with (
        Background("greedy", "--no-games", *option.format(port).split()) as server,
        urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=5) as answer,
    ):
        assert server.url == f"http://127.0.0.1:{port}"
        assert b"apiversion" in answer.read()
    with pytest.raises(URLError):
        urllib.request.urlopen(f"{server.url}/", timeout=5)


def test_says_what_the_server_said_when_it_ended():
    with pytest.raises(ServeError, match="Did you mean 'flood'"):
        Background("flod")


def test_a_server_says_which_evaluation_its_search_uses_where():
    with Background(
        "alphabeta", "plain=alphabeta?evaluation=hand-written", "flood", "--no-games"
    ) as server:
        lines = [
            line for line in server.log.read_text().splitlines() if "evaluates positions by" in line
        ]
    assert lines == [
        (
            "alphabeta evaluates positions by: learned (duel-units) in duels of the standard game"
            " on 11×11, hand-written elsewhere"
        ),
        "plain evaluates positions by: hand-written, because that was asked for",
    ]
