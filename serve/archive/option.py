"""The option that says where a server's games are."""

from __future__ import annotations

import argparse
import os

from envs.common.command_line import kept_at

SQLITE = "sqlite:///"


def add_database(parser: argparse.ArgumentParser) -> None:
    """Add the option `--database`."""
    which = f"database of games: sqlite:///FILE or postgresql://… (default: DATABASE_URL, or else {_own()})"
    parser.add_argument("--database", default=default_database(), metavar="URL", help=which)


def default_database() -> str:
    """Return the URL of the database that is meant where none is named."""
    return os.environ.get("DATABASE_URL") or _own()


def _own() -> str:
    return f"{SQLITE}{kept_at('games.db')}"
