"""The token stays with its owner: out of messages, away from other users, and away from other
sites.
"""

from __future__ import annotations

import json
import os
import stat

import pytest

from envs.common.errors import ConfigError
from serve.ladder.errors import WrongTokenError
from serve.ladder.token import (
    VARIABLE,
    arena_address,
    checked_token,
    save_token,
    token_for,
    token_path,
)
from tests.serve.ladder.stand_in import TOKEN

ARENA = "https://arena.example"


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.delenv(VARIABLE, raising=False)


def test_the_file_is_its_owners_alone():
    umask = os.umask(0)
    try:
        path = save_token(TOKEN, ARENA)
    finally:
        os.umask(umask)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert token_for(ARENA) == TOKEN
    assert list(path.parent.iterdir()) == [path]


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o666])
def test_a_file_that_others_can_read_is_refused(mode):
    save_token(TOKEN, ARENA).chmod(mode)
    with pytest.raises(ConfigError, match="chmod 600") as caught:
        token_for(ARENA)
    assert TOKEN not in str(caught.value)


def test_a_token_goes_to_its_own_arena_alone():
    save_token(TOKEN, ARENA)
    with pytest.raises(WrongTokenError, match=f"is for {ARENA}, not for https://evil"):
        token_for("https://evil.example")


def test_the_environment_comes_first(monkeypatch):
    save_token("old", ARENA)
    monkeypatch.setenv(VARIABLE, f" {TOKEN}\n")
    assert token_for(ARENA) == TOKEN


@pytest.mark.parametrize(
    "content", ["", "{", "[]", '{"token": "x"}', json.dumps({"arena": ARENA, "token": ""})]
)
def test_a_damaged_file_says_what_to_do(content):
    path = save_token(TOKEN, ARENA)
    path.write_text(content)
    with pytest.raises((ConfigError, WrongTokenError), match=r"login|empty"):
        token_for(ARENA)


def test_without_a_token_it_says_how_to_get_one():
    assert not token_path().exists()
    with pytest.raises(WrongTokenError, match="procsnake arena login"):
        token_for(ARENA)


@pytest.mark.parametrize("text", ["", "  ", "a b", "a\r\nX-Header: b", "ä", "x" * 513])
def test_what_no_header_may_hold_is_refused_unseen(text):
    with pytest.raises(WrongTokenError) as caught:
        checked_token(text)
    assert not text.strip() or text not in str(caught.value)


@pytest.mark.parametrize(
    "url",
    [
        *(
            "arena.example",
            "ftp://a",
            "http://",
            "https://u:p@a",
            "https://a/?x=1",
            "http://a.example",
        ),
        *("http://[", "https://a:x"),
        *(
            "http://127.evil.example",
            "http://127.0.0.1.evil.example",
            "http://127.0.0.256",
            "http://localhost.evil.example",
        ),
    ],
)
def test_addresses_to_which_no_token_goes(url):
    with pytest.raises(ConfigError):
        arena_address(url)


@pytest.mark.parametrize(
    ("url", "address"),
    [
        ("https://A.example/", "https://a.example"),
        ("http://127.0.0.1:8/x/", "http://127.0.0.1:8/x"),
        ("http://127.9.8.7", "http://127.9.8.7"),
        ("http://[::1]:8", "http://[::1]:8"),
        ("http://LocalHost:8", "http://localhost:8"),
    ],
)
def test_addresses_are_kept_in_one_form(url, address):
    assert arena_address(url) == address
