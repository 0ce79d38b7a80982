"""One folder of caches, wherever the environment puts it."""

from __future__ import annotations

from pathlib import Path

import pytest

from envs.common.cache import cache_root


@pytest.mark.parametrize(
    ("variables", "place"),
    [
        ({}, "/home/me/.cache/procsnake"),
        ({"XDG_CACHE_HOME": "/elsewhere"}, "/elsewhere/procsnake"),
        ({"XDG_CACHE_HOME": "/elsewhere", "PROCSNAKE_CACHE": "/own"}, "/own"),
        ({"XDG_CACHE_HOME": "", "PROCSNAKE_CACHE": ""}, "/home/me/.cache/procsnake"),
    ],
)
def test_the_most_particular_variable_counts(monkeypatch, variables, place):
    for name in ("XDG_CACHE_HOME", "PROCSNAKE_CACHE"):
        monkeypatch.delenv(name, raising=False)
    for name, value in {"HOME": "/home/me", **variables}.items():
        monkeypatch.setenv(name, value)
    assert cache_root() == Path(place)
