"""The command `procsnake arena`: enter a snake, follow it, and fetch its games. Each subcommand has
a pair of functions.
"""

from __future__ import annotations

import argparse
import getpass
import os
import sys
import webbrowser
from collections.abc import Callable
from contextlib import suppress

from envs.common.errors import ConfigError
from envs.common.strangers.printable import printable
from procsnake.cli.command_line import Commands, add_json, print_json
from procsnake.cli.compete.arena_account import add_arena_address, address, client_for, tell
from procsnake.cli.compete.arena_entries import (
    ENTER_HELP,
    LEAVE_HELP,
    PLAY_HELP,
    add_enter,
    add_leave,
    add_play,
    run_enter,
    run_leave,
    run_play,
)
from procsnake.cli.compete.arena_games import (
    FETCH_HELP,
    GAMES_HELP,
    add_fetch,
    add_games,
    run_fetch,
    run_games,
)

TOKEN_PAGE = "/auth/github?cli=true"
"""Where Arena makes a token; it ends on a page that shows it."""
HELP = """\
Arena (https://arena.battlesnake.com) hosts ranked games. These commands were tested against a
stand-in for its API, not live.

examples:
  procsnake arena login         # once: paste the token from the site
  procsnake arena enter https://snake.example.org --name Hisser --public --ladder Standard
  procsnake arena status        # your snakes with ranks and health
  procsnake arena play Hisser Rival --board 7x7 --type royale --games 5
  procsnake arena games --lost --since 12h
  procsnake arena fetch --all   # as recordings, each checked against the rules
  procsnake arena leave Hisser  # enter --ladder resumes it
"""
LOGIN_HELP = """\
Opens and prints Arena's page for tokens, /auth/github?cli=true. Asks for the token, tries it, and
saves it in a file that only you can read (mode 600). The token can't be an argument, because
other users of the machine can see command lines.

examples:
  procsnake arena login                              # asks, without showing what you paste
  procsnake arena login < token.txt                  # reads the first line
  PROCSNAKE_ARENA_TOKEN=… procsnake arena status     # without saving it
"""
STATUS_HELP = """\
Lists your snakes with rank, score (μ − 3σ), games, and the results of the four calls of Arena's
health sweep, made from here because Arena's API doesn't report its own. A snake gets a rank after
ten games.

examples:
  procsnake arena status
  procsnake arena status --no-sweep --json           # without calling your snakes

exit code: 0 if all is well, 1 if a snake failed a call, 2 if Arena refused
"""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the subcommands."""
    command = Commands(parser)

    def add(
        name: str, run: Callable[[argparse.Namespace], int], summary: str, examples: str
    ) -> argparse.ArgumentParser:
        added = command(name, run, summary, examples)
        add_arena_address(added)
        add_json(added)
        return added

    add("login", run_login, "Save your account's token.", LOGIN_HELP)
    add_enter(add("enter", run_enter, "Register a snake and enter it on a ladder.", ENTER_HELP))
    _add_status(add("status", run_status, "Show your snakes' ranks and health.", STATUS_HELP))
    add_play(add("play", run_play, "Request games on Arena.", PLAY_HELP))
    add_games(add("games", run_games, "List your snakes' games.", GAMES_HELP))
    add_fetch(
        add(
            "fetch",
            run_fetch,
            "Download games as recordings, and check them against the rules.",
            FETCH_HELP,
        )
    )
    add_leave(add("leave", run_leave, "Take a snake off the ladders.", LEAVE_HELP))


def _add_status(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--no-sweep", action="store_true", help="don't call your snakes")


def run_login(options: argparse.Namespace) -> int:
    """Run `procsnake arena login`. Returns the exit code."""
    from serve.ladder.client import ArenaClient
    from serve.ladder.token import VARIABLE, checked_token, save_token

    arena = address(options)
    from_environment = os.environ.get(VARIABLE)
    token = checked_token(from_environment or _asked_for(arena))
    with ArenaClient(arena, token, tell=tell) as client:
        snakes = [snake.name for snake in client.snakes()]
    token_file = None if from_environment else save_token(token, arena)
    if options.json:
        print_json({"arena": arena, "token_file": token_file, "snakes": snakes})
        return 0
    if token_file:
        where = f"the token is saved in {token_file}"
    else:
        where = f"the token in {VARIABLE} works; it is not saved"
    print(f"logged in at {arena}: {where}")
    print(f"your snakes: {printable(', '.join(snakes)) or 'none yet'}")
    return 0


def _asked_for(arena: str) -> str:
    """What somebody pastes, or the first line of a pipe."""
    if sys.stdin.isatty():
        page = f"{arena}{TOKEN_PAGE}"
        tell(f"get a token from Arena: {page}")
        with suppress(webbrowser.Error):
            webbrowser.open(page)
    try:
        if sys.stdin.isatty():
            return getpass.getpass("token: ")
        return sys.stdin.readline(1024)
    except EOFError as error:
        raise ConfigError(
            f"no token was given; get one from {arena}{TOKEN_PAGE}, and paste it"
        ) from error


def run_status(options: argparse.Namespace) -> int:
    """Run `procsnake arena status`. Returns the exit code: 1 if a snake failed a call of the
    sweep.
    """
    from serve.ladder.standing import status_of

    with client_for(options) as client:
        statuses = status_of(client, sweeping=not options.no_sweep)
    if options.json:
        print_json([one.as_json() for one in statuses])
    else:
        for line in [line for one in statuses for line in one.as_lines()] or [
            "you have no snake on Arena yet"
        ]:
            print(printable(line))
    if any(one.sweep is not None and not one.sweep.passed for one in statuses):
        return 1
    return 0
