"""Addresses: what is read from them, and what is none."""

from __future__ import annotations

import pytest

from agents.hub import Address, HubError

COMMIT = "0123456789abcdef" * 2 + "01234567"


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("hf://ada/snake", ("ada/snake", "main", "")),
        ("hf://ada/snake@v1.0", ("ada/snake", "v1.0", "")),
        ("hf://ada/snake@refs%2Fpr%2F3", ("ada/snake", "refs/pr/3", "")),
        ("hf://ada/my_snake-2.0/runs/first", ("ada/my_snake-2.0", "main", "runs/first")),
        (f"hf://ada/snake@{COMMIT}/bundle", ("ada/snake", COMMIT, "bundle")),
    ],
)
def test_it_is_read_and_written(text, parts):
    address = Address.parse(text)
    assert (address.repository, address.revision, address.folder) == parts
    assert str(address) == text
    assert address.is_pinned == (parts[1] == COMMIT)


@pytest.mark.parametrize(
    "text",
    [
        "hf://",
        "hf://snake",
        "hf:///snake",
        "hf://ada/",
        "hf://ada/snake@",
        "hf://ada/..",
        "hf://../snake",
        "hf://ada/snake/..",
        "hf://ada/snake/a/../../b",
        "hf://ada/snake//b",
        "hf://ada/snake/.git",
        "hf://ada/snake/a\\b",
        "hf://ada/snake@../x",
        "hf://ada/snake@%2e%2e%2fx",
        "hf://ada/snake@-x",
        "hf://ada/sna ke",
        "hf://ada/snake\n",
        "hf://ada/snäke",
        "hf://ada/s--e",
        "hf://ada/" + "a" * 97,
        "hf://ada/snake/" + "a" * 101,
        "https://huggingface.co/ada/snake",
    ],
)
def test_what_is_none_is_refused_with_what_one_looks_like(text):
    with pytest.raises(HubError, match="it looks like hf://user/name"):
        Address.parse(text)


@pytest.mark.parametrize(
    ("folder", "player"), [("", "snake"), ("/bundle", "snake"), ("/runs/second", "second")]
)
def test_a_player_is_called_as_the_repository_or_the_folder(folder, player):
    assert Address.parse(f"hf://ada/snake{folder}").player == player
