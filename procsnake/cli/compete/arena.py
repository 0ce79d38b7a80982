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
Arena (https://arena.battlesnake.com) is where ranked games are played. This was tried against a
stand-in of its API, not live.

examples, of an evening:
  procsnake arena login         # once: paste the token that the site made for you
  procsnake arena enter https://snake.example.org --name Hisser --public --ladder Standard
  procsnake arena status        # your snakes, their ranks and their health
  procsnake arena play Hisser Rival --board 7x7 --type royale --games 5
  procsnake arena games --lost --since 12h
  procsnake arena fetch --all   # as recordings, each checked against the rules
  procsnake arena leave Hisser  # off the ladders; enter brings it back
"""
LOGIN_HELP = """\
Opens the page of Arena that makes a token, /auth/github?cli=true, and prints it. Asks for the
token, tries it, and keeps it in a file that only you can read (mode 600). It is never taken
from the command line, which other users of the machine can see.

examples:
  procsnake arena login                              # asks, and shows nothing of what you paste
  procsnake arena login < token.txt                  # takes the first line
  PROCSNAKE_ARENA_TOKEN=… procsnake arena status     # without a file; nothing is kept
"""
STATUS_HELP = """\
Lists your snakes with rank, score (μ − 3σ), games, and what the four calls of Arena's health
sweep give from here. Arena's own sweeps aren't in its API. A snake gets a rank after ten games.

examples:
  procsnake arena status
  procsnake arena status --no-sweep --json           # without calling your snakes

exit code: 0 all is well, 1 a snake failed a call of the sweep, 2 Arena refused
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

    add("login", run_login, "Keep the token of your account.", LOGIN_HELP)
    add_enter(add("enter", run_enter, "Register a snake and enter it on a ladder.", ENTER_HELP))
    _add_status(add("status", run_status, "Show your snakes' ranks and health.", STATUS_HELP))
    add_play(add("play", run_play, "Have games played on Arena.", PLAY_HELP))
    add_games(add("games", run_games, "List your snakes' games.", GAMES_HELP))
    add_fetch(
        add(
            "fetch",
            run_fetch,
            "Write games as recordings, and check each against the rules.",
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
        where = f"the token is kept in {token_file}"
    else:
        where = f"the token of {VARIABLE} is right, and is kept nowhere else"
    print(f"logged in at {arena}: {where}")
    print(f"your snakes: {printable(', '.join(snakes)) or 'none yet'}")
    return 0


def _asked_for(arena: str) -> str:
    """What somebody pastes, or the first line of a pipe."""
    if sys.stdin.isatty():
        page = f"{arena}{TOKEN_PAGE}"
        tell(f"Arena makes a token on {page}")
        with suppress(webbrowser.Error):
            webbrowser.open(page)
    try:
        if sys.stdin.isatty():
            return getpass.getpass("token: ")
        return sys.stdin.readline(1024)
    except EOFError as error:
        raise ConfigError(
            f"no token was given; make one on {arena}{TOKEN_PAGE}, and paste it"
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
