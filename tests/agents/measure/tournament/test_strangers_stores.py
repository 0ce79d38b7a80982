"""Tournaments' files that were damaged, or that strangers hand over."""

from __future__ import annotations

import json
import sqlite3
import zlib
from contextlib import closing
from functools import partial

import pytest

from agents.measure.sprt.settings import Sprt
from agents.measure.sprt.statistics import Hypotheses
from agents.measure.tournament import store as store_module
from agents.measure.tournament.play import play_tournament
from agents.measure.tournament.settings import Player, Tournament
from agents.measure.tournament.store import Store, StoreError
from procsnake import main
from tests.agents.measure.tournament.made import small
from tests.sqlite_journal import write_journal


@pytest.fixture
def played(tmp_path):
    """Two short games."""
    path = tmp_path / "tournament.db"
    with Store(path, Tournament) as store:
        play_tournament(small("random", "greedy", max_turns=5), store)
    return path


def change(path, *statements):
    with closing(sqlite3.connect(path)) as connection, connection:
        for statement in statements:
            (
                connection.execute(*statement)
                if isinstance(statement, tuple)
                else connection.executescript(statement)
            )


DAMAGE = [
    "UPDATE tournament SET config = '{\"play'",
    "UPDATE tournament SET config = '[]'",
    "UPDATE tournament SET config = '{}'",
    "UPDATE tournament SET config = json_set(config, '$.players', 'x')",
    "UPDATE tournament SET config = json_set(config, '$.rounds', 'x')",
    "UPDATE tournament SET config = json_set(config, '$.settings', json('{\"x\": 1}'))",
    "UPDATE tournament SET config = json_set(config, '$.players[0].spec', 5)",
    "UPDATE tournament SET config = json_set(config, '$.players[0].name', null)",
    "UPDATE tournament SET config = json_set(config, '$.cpu_ms', 'x')",
    "UPDATE tournament SET config = json_set(config, '$.nodes', 2.5)",
    "UPDATE tournament SET config = json_set(config, '$.tell_deadline', 1)",
    "UPDATE seat SET latency_ms = 9e999",
    "UPDATE seat SET slowest_ms = 1e308",
    "UPDATE seat SET cpu_ms = -1",
    "DELETE FROM seat",
    "DELETE FROM seat WHERE slot = 1",
    "UPDATE seat SET player = 7",
    "UPDATE seat SET player = 'x'",
    "UPDATE seat SET place = -1",
    "UPDATE seat SET place = 2",
    "UPDATE seat SET latency_ms = 'x'",
    "UPDATE game SET turns = 7000",
    "UPDATE game SET moves = x'00'",
    ("UPDATE game SET moves = ?", (zlib.compress(bytes([9] * 10)),)),
    ("UPDATE tournament SET config = ?", (json.dumps({"x": "x" * (2 << 20)}),)),
]


@pytest.mark.parametrize("damage", DAMAGE, ids=range(len(DAMAGE)))
def test_a_damaged_file_is_one_line(played, capsys, damage):
    change(played, damage)
    with Store(played, Tournament) as store, pytest.raises(StoreError, match="damaged"):
        store.games()
    for more in ((), ("--replay", "0/0")):
        assert main(["tournament", "--store", str(played), *more]) == 2
        assert capsys.readouterr().err.count("\n") == 1


TOO_MUCH = ("$.rounds', 1000000000", "$.games', 1000000000", "$.players', json(players)")


@pytest.mark.parametrize("much", TOO_MUCH)
def test_a_match_that_nobody_could_play_is_one_line(played, capsys, much):
    players = json.dumps([{"name": str(n), "spec": "random"} for n in range(2000)])
    change(
        played,
        "UPDATE tournament SET config = json_set(config, '"
        + much.replace("players)", f"'{players}')")
        + ")",
    )
    assert main(["tournament", "--store", str(played)]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "are too many" in line


def test_one_game_that_unpacks_to_too_many_moves_is_refused_for_its_size(played, capsys):
    change(played, ("UPDATE game SET moves = ?", (zlib.compress(bytes(1 << 25)),)))
    assert main(["tournament", "--store", str(played)]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "it inflates to more than 16777216 bytes" in line


def test_moves_that_are_few_in_the_file_and_many_in_memory_are_counted_together(
    played, monkeypatch
):
    monkeypatch.setattr(store_module, "_MAX_ALL_MOVES", 15)
    with (
        Store(played, Tournament) as store,
        pytest.raises(StoreError, match="inflates to more than"),
    ):
        store.games()


TABLES = (
    "CREATE TABLE notes (text)",
    "CREATE TABLE notes (text); PRAGMA user_version = 99",
    "CREATE VIEW notes AS SELECT 1",
    "CREATE TABLE game (title); PRAGMA user_version = 2",
)


@pytest.mark.parametrize("tables", TABLES)
def test_a_database_of_something_else_stays_as_it_was(tmp_path, tables):
    path = tmp_path / "notes.db"
    change(path, tables)
    before = path.read_bytes()
    with pytest.raises(StoreError, match=r"is not a tournament file: it holds '(notes|game)'"):
        Store(path, Tournament)
    assert path.read_bytes() == before
    assert [one.name for one in tmp_path.iterdir()] == ["notes.db"]


ENDLESS = (
    "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i AS round, i AS number"
    " FROM n"
)
COMPUTED = "ALTER TABLE seat ADD COLUMN more BLOB AS (zeroblob(900000000))"
PROGRAMS = {
    "an endless view": ("seat", f"DROP TABLE seat; CREATE VIEW seat AS {ENDLESS}"),
    "a computed column": ("seat", COMPUTED),
    "a trigger": (
        "on_game",
        "CREATE TRIGGER on_game AFTER INSERT ON game BEGIN DELETE FROM seat; END",
    ),
    "an index over an expression": (
        "costly",
        "CREATE INDEX costly ON game (length(zeroblob(round + 900000000)))",
    ),
    "a check": (
        "game",
        "PRAGMA writable_schema = ON; UPDATE sqlite_master SET sql = replace(sql,"
        " 'moves BLOB NOT NULL', 'moves BLOB NOT NULL CHECK (length(randomblob(900000000)))')"
        " WHERE name = 'game'",
    ),
}


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_schema_that_is_a_program_is_refused_before_it_runs(played, capsys, program):
    name, statements = PROGRAMS[program]
    change(played, statements)
    before = played.read_bytes()
    assert main(["tournament", "--store", str(played)]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert f"it holds {name!r}, which doesn't match procsnake's schema" in line
    assert played.read_bytes() == before


def test_a_journal_beside_a_store_deletes_nothing(played, tmp_path, capsys):
    thesis = tmp_path / "thesis.txt"
    thesis.write_text("years of work")
    write_journal(played, names=thesis)
    assert main(["tournament", "--store", str(played)]) == 2
    assert "would delete another file" in capsys.readouterr().err
    assert thesis.exists()


def test_a_file_whose_pages_are_damaged_is_one_line(played, capsys):
    with open(played, "r+b") as file:
        file.seek(4096)
        file.write(b"\xff" * 12_000)
    assert main(["tournament", "--store", str(played)]) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_moves_that_end_before_their_game_are_one_line(played, capsys):
    change(played, ("UPDATE game SET turns = 1, moves = ?", (zlib.compress(bytes(2)),)))
    assert main(["tournament", "--store", str(played), "--replay", "0/0"]) == 2
    assert "before the game does" in capsys.readouterr().err


def test_rules_that_a_store_names_are_executed_if_it_is_own_or_trusted(
    tmp_path, monkeypatch, capsys
):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    trace = tmp_path / "was executed"
    rules = tmp_path / "rules.py"
    path = tmp_path / "tournament.db"
    rules.write_text(
        f"open({str(trace)!r}, 'w').close()\n\n\ndef any_way(me):\n    return [True] * 4\n"
    )
    go_on = ["tournament", "--store", str(path)]
    options = ["--width", "7", "--height", "7", "--max-turns", "3"]
    assert main([*go_on, f"mine={rules}", "random", *options]) == 0
    trace.unlink()
    assert main([*go_on, "--rounds", "2"]) == 0
    assert trace.exists()
    trace.unlink()

    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "another state"))
    capsys.readouterr()
    assert main([*go_on, "--rounds", "3"]) == 2
    told = capsys.readouterr().err
    assert "rules.py' is a file of rules" in told
    assert "--trust" in told
    assert not trace.exists()
    assert main([*go_on, "--rounds", "3", "--trust"]) == 0
    assert trace.exists()


@pytest.mark.parametrize("command", ["tournament", "sprt"])
def test_names_that_a_terminal_would_obey_are_shown_escaped(tmp_path, capsys, command):
    path = tmp_path / "stranger.db"
    kind = {"tournament": Tournament, "sprt": partial(Sprt, hypotheses=Hypotheses(elo1=100))}[
        command
    ]
    evil = (Player("\x1b]0;evil\x07A", "flood"), Player("\x1b[31mB", "random"))
    with Store(path, Sprt if command == "sprt" else Tournament) as store:
        store.begin(kind(players=evil, nodes=10, width=7, height=7, max_turns=60, seed=1))
    assert main([command, "--store", str(path), "--jobs", "1"]) == 0
    told = capsys.readouterr()
    assert "\x1b" not in told.out + told.err
    assert (r"H1 accepted: \x1b]0;evil\x07A is" in told.out) or command == "tournament"
    assert "note: \\x1b]0;evil\\x07A, \\x1b[31mB keep their own effort" in told.err


def test_a_changed_player_is_not_own(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    path = tmp_path / "tournament.db"
    with Store(path, Tournament) as store:
        store.begin(small("random", "greedy"))
        assert store.is_own()
    change(path, "UPDATE tournament SET config = json_set(config, '$.players[0].spec', 'evil.py')")
    with Store(path, Tournament) as store:
        assert not store.is_own()
