"""Tournaments on disk: those of older versions are gone on with, those of newer ones refused."""

from __future__ import annotations

import gzip
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from agents.tournament import store as stores
from agents.tournament.play import play_tournament
from agents.tournament.settings import Tournament
from agents.tournament.store import Store, StoreError
from envs.common.migrations import NewerDatabaseError

OLD = Path(__file__).parents[2] / "data" / "tournament-9be3ed9.db.gz"


@pytest.fixture
def old(tmp_path):
    """Two games of greedy against random on 7×7, as commit 9be3ed9 kept them."""
    file = tmp_path / "tournament.db"
    file.write_bytes(gzip.decompress(OLD.read_bytes()))
    return file


def test_a_tournament_of_9be3ed9_is_read_and_gone_on_with(old):
    with Store(old, Tournament) as store:
        tournament, games = store.load(), store.games()
    assert [player.name for player in tournament.players] == ["random", "greedy"]
    assert [(game.round, game.number, game.turns) for game in games] == [(0, 0, 11), (0, 1, 60)]
    with Store(old, Tournament) as store:
        assert len(play_tournament(tournament, store)) == 2
    with closing(sqlite3.connect(old)) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (len(stores.STATEMENTS),)


def test_the_next_column_breaks_no_tournament(old, monkeypatch):
    with Store(old, Tournament) as store:
        games = store.games()
    statements = (*stores.STATEMENTS, "ALTER TABLE game ADD COLUMN note TEXT NOT NULL DEFAULT 'none'")
    monkeypatch.setattr(stores, "STATEMENTS", statements)
    for _ in range(2):
        with Store(old, Tournament) as store:
            assert [game.seed for game in store.games()] == [game.seed for game in games]
    with closing(sqlite3.connect(old)) as connection, connection:
        connection.execute("DELETE FROM game WHERE number = 1")
        connection.execute("DELETE FROM seat WHERE number = 1")
    with Store(old, Tournament) as store:
        store.add(games[1])
        assert len(store.games()) == 2


def test_a_tournament_of_a_newer_procsnake_is_refused(old):
    with closing(sqlite3.connect(old)) as connection:
        connection.execute("PRAGMA user_version = 99")
    with pytest.raises(NewerDatabaseError, match=r"version 99.*Update procsnake"):
        Store(old, Tournament)


def test_a_game_that_another_process_has_played_meanwhile_is_refused_in_a_line(old):
    with Store(old, Tournament) as store, Store(old, Tournament) as other:
        game = other.games()[0]
        with pytest.raises(StoreError, match=r"holds game 0 of round 0 already: another procsnake .* --store"):
            store.add(game)
        assert len(store.games()) == 2
