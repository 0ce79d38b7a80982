"""The commands `procsnake arena enter`, `leave` and `play`."""

from __future__ import annotations

import argparse
import sys
import time

from envs.common.strangers.printable import printable
from procsnake.cli.command_line import at_least, print_json, progress_on_stderr
from procsnake.cli.compete.arena_account import client_for
from procsnake.cli.exit_codes import USER_ERROR
from serve.ladder.records import BOARDS, GAME_TYPES

ENTER_HELP = """\
Checks the snake as `procsnake doctor` does, and enters it only if it passes. If you already have
a snake of this name, it gets the new URL. Ladders take public snakes only. The standard ladder
plays four snakes on 11x11, about 100 games per day.

examples:
  procsnake arena enter https://snake.example.org --name Hisser
  procsnake arena enter https://snake.example.org --name Hisser --public --ladder Standard

exit code: 0 if entered, 1 if the snake isn't ready, 2 if Arena refused
"""
LEAVE_HELP = """\
Pauses the snake's entry. It stays registered and keeps its rating; enter --ladder resumes it.

examples:
  procsnake arena leave Hisser
  procsnake arena leave Hisser --ladder Standard
"""
PLAY_HELP = """\
Starts games between one to four snakes. Name your own snakes and those on a ladder; give the id
of any other public snake. A snake may play in several seats. Arena allows 20 games in ten minutes
per account, and the command waits when needed.

examples:
  procsnake arena play Hisser Rival --board 7x7 --type royale --games 5
  procsnake arena play Hisser Hisser --wait 300      # wait up to 300 s for the result
"""


def add_enter(parser: argparse.ArgumentParser) -> None:
    """Add the options of `procsnake arena enter`."""
    parser.add_argument("url", help="public URL of the snake")
    parser.add_argument("--name", required=True, help="its name on Arena, 1 to 64 characters")
    parser.add_argument(
        "--public", action="store_true", help="let others play against it, which ladders require"
    )
    parser.add_argument("--ladder", metavar="NAME", help="also enter it on this leaderboard")


def add_leave(parser: argparse.ArgumentParser) -> None:
    """Add the options of `procsnake arena leave`."""
    parser.add_argument("name", help="name of your snake")
    parser.add_argument("--ladder", metavar="NAME", help="only this leaderboard (default: all)")


def add_play(parser: argparse.ArgumentParser) -> None:
    """Add the options of `procsnake arena play`."""
    parser.add_argument(
        "snakes", nargs="+", metavar="SNAKE", help="one to four snakes, by name or id"
    )
    parser.add_argument(
        "--board", choices=BOARDS, default="11x11", help="size of the board (default: %(default)s)"
    )
    parser.add_argument(
        "--type", choices=GAME_TYPES, default="standard", help="kind of game (default: %(default)s)"
    )
    parser.add_argument(
        "--games", type=at_least(1), default=1, help="number of games (default: %(default)s)"
    )
    parser.add_argument(
        "--wait",
        type=at_least(0),
        default=0,
        metavar="S",
        help="seconds to wait for the games to end (default: 0)",
    )


def run_enter(options: argparse.Namespace) -> int:
    """Run `procsnake arena enter`. Returns the exit code: 1 if the snake isn't ready."""
    from serve.doctor.examination import examine
    from serve.ladder.entering import check_entry, planned, register

    with client_for(options) as client, progress_on_stderr(options):
        check_entry(options.name, options.url, arena=client.arena)
        registered, ladder = planned(
            client, options.name, public=options.public, ladder=options.ladder
        )
        report = examine(options.url)
        print(report.as_text())
        if not report.passed:
            print(
                f"{options.name} was not entered; fix what is marked above first", file=sys.stderr
            )
            return 1
        snake = register(
            client, registered, name=options.name, url=options.url, public=options.public
        )
        done = "has its new URL" if registered else "is registered"
        print(
            printable(
                f"{snake.name} {done}: {snake.url}, {'public' if snake.is_public else 'private'}"
            )
        )
        if ladder:
            client.join(ladder, snake)
            print(
                printable(
                    f"{snake.name} is on ladder {ladder.name!r}; it gets a rank after ten games"
                )
            )
    if options.json:
        print_json(
            {
                "id": snake.id,
                "name": snake.name,
                "url": snake.url,
                "ladder": ladder.name if ladder else None,
            }
        )
    return 0


def run_leave(options: argparse.Namespace) -> int:
    """Run `procsnake arena leave`. Returns the exit code."""
    from serve.ladder.entering import leave

    with client_for(options) as client:
        ladders = leave(client, options.name, options.ladder)
    (
        print_json({"left": ladders})
        if options.json
        else print(printable(f"{options.name} no longer plays on {', '.join(ladders)}"))
    )
    return 0


def run_play(options: argparse.Namespace) -> int:
    """Run `procsnake arena play`. Returns the exit code: 2 if Arena refused a game. Those before it
    are played.
    """
    from serve.ladder.entering import play, snake_ids, wait_for
    from serve.ladder.errors import ArenaError

    begun: list[str] = []
    refusal: ArenaError | None = None
    with client_for(options) as client, progress_on_stderr(options):
        ids = snake_ids(client, options.snakes)
        try:
            for game in play(
                client, ids, board=options.board, game_type=options.type, games=options.games
            ):
                begun.append(game)
                print(f"{len(begun)}/{options.games}  {printable(game)}", flush=True)
        except ArenaError as error:
            if not begun:
                raise
            refusal = error
        if options.wait:
            states = wait_for(client, begun, options.wait, time.sleep)
        else:
            states = dict.fromkeys(begun, "begun")
        for game in begun if options.wait else ():
            print(printable(f"{game}  {states[game]}"))
    if options.json:
        print_json([{"id": game, "status": states[game]} for game in begun])
    if refusal is not None:
        print(
            printable(
                f"procsnake arena play: {len(begun)} of {options.games} games started. {refusal}"
            ),
            file=sys.stderr,
        )
        return USER_ERROR
    return 0
