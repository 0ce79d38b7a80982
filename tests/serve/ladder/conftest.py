"""The stand-in of Arena, and an account that is logged in there."""

from __future__ import annotations

from functools import partial

import pytest

from serve.doctor.examination import examine
from serve.ladder.client import ArenaClient
from serve.ladder.token import VARIABLE
from tests.command_line import run
from tests.serve.ladder.stand_in import TOKEN, standing_in


@pytest.fixture
def arena(tmp_path, monkeypatch):
    """The stand-in; no token is known, and nothing of the real user's is touched."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.delenv(VARIABLE, raising=False)
    monkeypatch.chdir(tmp_path)
    with standing_in() as state:
        monkeypatch.setenv("PROCSNAKE_ARENA", state.url)
        monkeypatch.setattr("time.sleep", state.sleep)
        yield state


@pytest.fixture
def client(arena):
    with ArenaClient(arena.url, TOKEN, sleep=arena.sleep) as client:
        yield client


@pytest.fixture
def command(arena, monkeypatch, capsys):
    """Runs `procsnake arena …` for the account that is logged in: (exit code, stdout, stderr)."""
    monkeypatch.setenv(VARIABLE, TOKEN)
    return lambda *words: run(capsys, "arena", *words)


@pytest.fixture(autouse=True)
def patient_examination(monkeypatch):
    """A busy machine may be late for one of two hundred moves within a game's half second."""
    monkeypatch.setattr(
        "serve.doctor.examination.examine", partial(examine, timeout_ms=4000, moves=20)
    )
