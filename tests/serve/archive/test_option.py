"""How a database is named in messages."""

from __future__ import annotations

import pytest

from serve.archive.option import without_password


@pytest.mark.parametrize(
    ("url", "told"),
    [
        ("sqlite:///games.db", "sqlite:///games.db"),
        ("postgres://ada:s3cret@h:5/games", "postgres://ada:***@h:5/games"),
        ("postgresql://ada:s3/cr:et@h/games", "postgresql://ada:***@h/games"),
        (
            "postgresql://ada@h/games?password=s3cret&host=/run",
            "postgresql://ada@h/games?host=%2Frun",
        ),
        ("postgresql://ada:s3cret@[::1/games", "postgresql://…"),
        ("mysql://ada:p@ssw0rd@h/x", "mysql://…"),
        ("sqlite:///a%20b#c?d.db", "sqlite:///a%20b#c?d.db"),
        ("games.db", "games.db"),
        ("postgresql:/ada:s3cret@h/games", "a text without a scheme"),
    ],
)
def test_a_database_is_named_without_its_password(url, told):
    assert without_password(url) == told
