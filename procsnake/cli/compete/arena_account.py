"""The account that the commands act for: its Arena, its token, and the client for both."""

from __future__ import annotations

import argparse
import os
import sys
from typing import TYPE_CHECKING

from envs.common.strangers.printable import printable

if TYPE_CHECKING:
    from serve.ladder.client import ArenaClient

ARENA_VARIABLE = "PROCSNAKE_ARENA"


def add_arena_address(parser: argparse.ArgumentParser) -> None:
    """Add the option `--arena`."""
    where = f"address of Arena (default: {ARENA_VARIABLE}, or else https://arena.battlesnake.com)"
    parser.add_argument(
        "--arena", metavar="URL", default=os.environ.get(ARENA_VARIABLE) or None, help=where
    )


def address(options: argparse.Namespace) -> str:
    """Return the Arena's address. Raises `ConfigError` if it is invalid."""
    from serve.ladder.token import ARENA, arena_address

    return arena_address(options.arena or ARENA)


def client_for(options: argparse.Namespace) -> ArenaClient:
    """Return the API for the account that is logged in. Raises `WrongTokenError` if none is."""
    from serve.ladder.client import ArenaClient
    from serve.ladder.token import token_for

    arena = address(options)
    return ArenaClient(arena, token_for(arena), tell=tell)


def tell(line: str) -> None:
    """Print a line of progress on stderr."""
    print(printable(line), file=sys.stderr, flush=True)
