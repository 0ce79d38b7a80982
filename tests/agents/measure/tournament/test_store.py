"""Tournaments on disk: what is kept, refused, and gone on with."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from dataclasses import replace

import numpy as np
import pytest

from agents.measure.tournament import store as stores
from agents.measure.tournament.play import play_tournament
from agents.measure.tournament.settings import Tournament
from agents.measure.tournament.store import Store, StoreError
from agents.options_file import OptionsFile
from envs.common.errors import ConfigError
from envs.common.migrations import NewerDatabaseError
from tests.agents.measure.tournament.made import game, small, won


@pytest.fixture
def store_file(tmp_path):
    """The store of a tournament of two games, greedy against random on 7×7."""
    file = tmp_path / "tournament.db"
    with Store(file, Tournament) as store:
        play_tournament(small("random", "greedy"), store)
    return file


def test_a_tournament_is_read_and_gone_on_with(store_file):
    tournament = small("random", "greedy")
    with Store(store_file, Tournament) as store:
        games = store.games()
        assert store.load() == tournament
        assert play_tournament(tournament, store) == games
    assert [(game.round, game.number) for game in games] == [(0, 0), (0, 1)]


def test_the_next_column_breaks_no_tournament(store_file, monkeypatch):
    with Store(store_file, Tournament) as store:
        games = store.games()
    statements = (
        *stores.STATEMENTS,
        "ALTER TABLE game ADD COLUMN note TEXT NOT NULL DEFAULT 'none'",
    )
    monkeypatch.setattr(stores, "STATEMENTS", statements)
    for _ in range(2):
        with Store(store_file, Tournament) as store:
            assert [game.seed for game in store.games()] == [game.seed for game in games]
    with closing(sqlite3.connect(store_file)) as connection, connection:
        connection.execute("DELETE FROM game WHERE number = 1")
        connection.execute("DELETE FROM seat WHERE number = 1")
    with Store(store_file, Tournament) as store:
        store.add(games[1])
        assert len(store.games()) == 2


def test_a_tournament_of_a_newer_procsnake_is_refused(store_file):
    with closing(sqlite3.connect(store_file)) as connection:
        connection.execute("PRAGMA user_version = 99")
    with pytest.raises(NewerDatabaseError, match=r"version 99.*Update procsnake"):
        Store(store_file, Tournament)


def test_a_game_that_another_process_has_played_meanwhile_is_refused_in_a_line(store_file):
    with Store(store_file, Tournament) as store, Store(store_file, Tournament) as other:
        game = other.games()[0]
        with pytest.raises(
            StoreError, match=r"holds game 0 of round 0 already: another procsnake .* --store"
        ):
            store.add(game)
        assert len(store.games()) == 2


def test_only_a_match_without_games_gives_way_to_another(tmp_path):
    misspelt, meant, third = (small("flood", other) for other in ("gredy", "greedy", "random"))
    with (
        Store(tmp_path / "t.db", Tournament) as store,
        Store(tmp_path / "t.db", Tournament) as other,
    ):
        store.begin(misspelt)
        other.begin(meant)
        # Whoever plays the first one still must not put its games among those of the second.
        with pytest.raises(StoreError, match=r"now holds another tournament: players differ"):
            store.add(won(0, 1))
        assert other.games() == []
        other.begin(replace(meant, rounds=3))
        other.add(won(0, 1))
        with pytest.raises(ConfigError, match=r"holds another tournament: players differ"):
            store.begin(third)
        assert (store.load(), len(store.games())) == (replace(meant, rounds=3), 1)


def test_more_rounds_that_another_process_asks_for_are_no_other_match(tmp_path):
    meant = small("flood", "greedy")
    with (
        Store(tmp_path / "t.db", Tournament) as store,
        Store(tmp_path / "t.db", Tournament) as other,
    ):
        store.begin(meant)
        other.begin(replace(meant, rounds=3))
        store.add(won(0, 1))
        assert len(other.games()) == 1


def test_a_player_that_has_changed_since_plays_no_further_games(tmp_path):
    options = tmp_path / "tuned.yaml"
    write_options(options, near=3)
    asked = small(f"alphabeta?nodes=20&options={options}", "greedy", max_turns=5)
    with Store(tmp_path / "t.db", Tournament) as store:
        play_tournament(asked, store)
        write_options(options, near=4)
        assert len(play_tournament(asked, store)) == 2, "none was left to play"
        with pytest.raises(
            ConfigError, match=r"t\.db has games of an earlier version of alphabeta\?"
        ):
            play_tournament(replace(asked, rounds=2), store)
        write_options(options, near=3)
        assert len(play_tournament(replace(asked, rounds=2), store)) == 4


def write_options(path, **options):
    OptionsFile(agent="alphabeta", options=options, against="alphabeta").write(path)


def test_a_full_disk_is_told_and_the_games_before_are_kept(store_file):
    with Store(store_file, Tournament) as store:
        games = store.games()
        (pages,) = store._database.execute("PRAGMA page_count").fetchone()
        store._database.execute(f"PRAGMA max_page_count = {pages}")
        moves = np.random.default_rng(0).integers(4, size=(20_000, 2), dtype=np.int8)
        with pytest.raises(
            StoreError, match=r"tournament.db can't be written: database or disk is full"
        ):
            store.add(replace(games[0], number=7, turns=len(moves), moves=moves))
        assert len(store.games()) == len(games)


def test_a_lock_that_is_not_given_back_is_told(store_file):
    with Store(store_file, Tournament) as store, closing(sqlite3.connect(store_file)) as other:
        tournament, (game, _) = store.load(), store.games()
        store._database.execute("PRAGMA busy_timeout = 1")
        other.execute("BEGIN IMMEDIATE")
        for write in (lambda: store.begin(tournament), lambda: store.add(replace(game, number=7))):
            with pytest.raises(StoreError, match=r"can't be written: database is locked"):
                write()


@pytest.mark.parametrize(
    ("places", "shares"),
    [((1, 2), (1, 0)), ((1, 1), (1 / 2, 1 / 2)), ((1, 3, 1, 1), (1 / 3, 0, 1 / 3, 1 / 3))],
)
def test_the_first_place_is_shared_by_those_who_have_it(places, shares):
    shared = game(*enumerate(places))
    assert [float(shared.share(slot)) for slot in range(len(places))] == pytest.approx(shares)
