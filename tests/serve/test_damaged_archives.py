"""Archives that were damaged, or that strangers hand over: one line, and no memory by their
word.
"""

from __future__ import annotations

import sqlite3
import zlib
from contextlib import closing

import pytest

from procsnake import main
from serve.archive.rows import MAX_UNPACKED_BYTES, pack, unpack
from serve.archive.store import GameStore
from tests.serve.archive.played import play, tell_all
from tests.sqlite_journal import write_journal

DAMAGE = [
    ("UPDATE games SET game = '{'", ()),
    ("UPDATE games SET game = '{}'", ()),
    ("UPDATE games SET game = '7'", ()),
    ("UPDATE turns SET data = ?", (b"no zlib",)),
    ("UPDATE turns SET data = ?", (zlib.compress(bytes(2 * MAX_UNPACKED_BYTES)),)),
    ("UPDATE turns SET data = ?", (zlib.compress(b"[]"),)),
    ("UPDATE turns SET data = ?", (zlib.compress(b'{"board": 7}'),)),
    (
        "UPDATE turns SET data = ?",
        (zlib.compress(b'{"board": {"width": 25000, "height": 25000, "snakes": []}}'),),
    ),
    ("UPDATE turns SET move = 9", ()),
    ('UPDATE games SET "end" = ?', (b"no zlib",)),
]


@pytest.fixture
def damaged(tmp_path):
    """An archive of two games that are over, game-1 and game-2, after a change."""

    def change(statement, values=()):
        file = tmp_path / "games.db"
        store = GameStore(f"sqlite:///{file}")
        for seed in (1, 2):
            tell_all(store, "s", play(seed=seed), 0)
            assert store.flush()
        store.close()
        with closing(sqlite3.connect(file)) as connection, connection:
            connection.execute(statement, values)
        return f"sqlite:///{file}"

    return change


@pytest.mark.parametrize(("statement", "values"), DAMAGE, ids=range(len(DAMAGE)))
def test_a_damaged_archive_is_one_line_or_one_for_each_game(
    damaged, tmp_path, capsys, statement, values
):
    url = damaged(statement, values)
    code = main(["games", "export", str(tmp_path / "out"), "--database", url])
    told = capsys.readouterr().err.splitlines()
    if code == 1:
        assert [line.partition(":")[0] for line in told] == [
            f"left out the game game-{number} of s" for number in (2, 1)
        ]
    else:
        assert (code, len(told)) == (2, 1), told
    main(["games", "list", "--database", url])
    assert "Traceback" not in capsys.readouterr().err


ENDLESS = (
    "CREATE VIEW turns AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i"
    " AS number FROM n"
)


@pytest.mark.parametrize(
    "statement", ["ALTER TABLE games ADD COLUMN more BLOB AS (zeroblob(900000000))", ENDLESS]
)
def test_a_schema_that_is_a_program_is_refused_before_it_runs(damaged, tmp_path, capsys, statement):
    url = damaged("DROP TABLE turns")
    file = tmp_path / "games.db"
    with closing(sqlite3.connect(file)) as connection:
        connection.execute(statement)
    before = file.read_bytes()
    assert main(["games", "list", "--database", url]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "is not an archive of games: it holds" in line
    assert file.read_bytes() == before


def test_a_journal_beside_an_archive_deletes_nothing(damaged, tmp_path, capsys):
    url = damaged("UPDATE turns SET x = 0")
    thesis = tmp_path / "thesis.txt"
    thesis.write_text("years of work")
    write_journal(tmp_path / "games.db", names=thesis)
    assert main(["games", "list", "--database", url]) == 2
    assert "would delete another file" in capsys.readouterr().err
    assert thesis.exists()


def test_a_damaged_game_does_not_keep_the_others_from_being_exported(damaged, tmp_path, capsys):
    url = damaged(
        "UPDATE turns SET data = ? WHERE number = (SELECT number FROM games WHERE game_id ="
        " 'game-2')",
        (b"no zlib",),
    )
    assert main(["games", "export", str(tmp_path / "out"), "--database", url]) == 1
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["game-1--s--you-0.jsonl"]
    told = capsys.readouterr()
    assert told.err.startswith(
        "left out the game game-2 of s: the games can't be read, because the database is damaged"
    )
    assert told.out == f"1 game exported to {tmp_path / 'out'}, 1 left out\n"


def test_stacked_hazards_are_not_written_out_by_a_strangers_word_for_the_boards_size():
    board = {"width": 10**6, "height": 10**6, "hazards": [{"x": 0, "y": 0}], "layers": [10**6]}
    with pytest.raises(ValueError, match="more hazards than a game can have"):
        unpack(pack({"board": board}))


def test_what_unpacks_to_more_than_a_turn_has_is_not_unpacked():
    assert unpack(pack({"a": [1]})) == {"a": [1]}
    with pytest.raises(ValueError, match=f"inflates to more than {MAX_UNPACKED_BYTES}"):
        unpack(zlib.compress(bytes(MAX_UNPACKED_BYTES + 1), 9))
