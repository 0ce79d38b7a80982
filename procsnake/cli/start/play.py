"""The command `procsnake play`: a person plays Battlesnake in the browser or in the terminal."""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
import webbrowser
from pathlib import Path
from typing import TYPE_CHECKING

from agents.player import Player
from envs.common.errors import ConfigError
from procsnake.cli.command_line import (
    add_game_options,
    add_imports,
    at_least,
    game_settings,
)
from procsnake.cli.effort_options import add_effort, effort_of, tell_own_efforts
from procsnake.cli.start.match import check_record, tell_evaluations
from procsnake.cli.worlds import register_worlds

if TYPE_CHECKING:
    from serve.browser.by_hand.game import HumanGame

LEAST_CLOCK_S = 0.1
MOST_CLOCK_S = 60.0
_TEXT_BROWSERS = ("www-browser", "links", "elinks", "lynx", "w3m")
"""What Python's `webbrowser` falls back to where there is no screen. They run no scripts."""


HELP = """\
You play against the snakes named by --against, in the browser or the terminal. Steer with the
arrow keys.

examples:
  procsnake play                                          # against two good snakes
  procsnake play --against alphabeta --clock 0.5 --record mine.jsonl
  procsnake play --terminal --against flood --map royale --width 7 --height 7
"""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    parser.add_argument(
        "--against",
        nargs="*",
        metavar="PLAYER",
        help="your opponents; none to play alone (default: champion-standard flood)",
    )
    parser.add_argument(
        "--clock",
        type=_clock,
        metavar="SECONDS",
        help="seconds per turn, whether or not you have moved (default: wait for you)",
    )
    parser.add_argument(
        "--hint",
        metavar="PLAYER",
        help="player that gives you hints (default: alphabeta at 200000 nodes)",
    )
    where = parser.add_mutually_exclusive_group()
    where.add_argument(
        "--terminal",
        action="store_true",
        help="play in the terminal (default if no browser is found)",
    )
    where.add_argument(
        "--browser",
        action="store_true",
        help="serve the page and print its address, even if no browser is found",
    )
    parser.add_argument(
        "--timeout",
        type=at_least(1),
        default=500,
        help="milliseconds per move for opponents (default: %(default)s)",
    )
    parser.add_argument(
        "--record",
        metavar="FILE",
        help="write the game as JSON lines, in the official format",
    )
    add_effort(parser)
    add_imports(parser)
    add_game_options(parser)


def _clock(text: str) -> float:
    value = float(text)
    if not LEAST_CLOCK_S <= value <= MOST_CLOCK_S:
        raise argparse.ArgumentTypeError(
            f"{text} is not a number of seconds from {LEAST_CLOCK_S:g} to {MOST_CLOCK_S:g}"
        )
    return value


def run(options: argparse.Namespace) -> int:
    """Run `procsnake play`. Returns the exit code."""
    in_terminal = options.terminal or not (options.browser or finds_browser())
    if in_terminal and not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise ConfigError(
            "no terminal to play in, and no browser was found; --browser serves the page and prints"
            " its address"
        )
    check_record(options.record)
    print("warming up …", file=sys.stderr, flush=True)
    with tempfile.TemporaryDirectory() as scratch:
        game = _make_game(options, Path(options.record or Path(scratch) / "game.jsonl"))
        tell_evaluations(game.referee)
        try:
            if in_terminal:
                _in_the_terminal(game, options)
            else:
                _in_the_browser(game, options)
        except KeyboardInterrupt:
            print()
        finally:
            game.close()
        _tell(game, is_kept=bool(options.record))
    return 0


def _make_game(options: argparse.Namespace, recording: Path) -> HumanGame:
    from serve.browser.by_hand.game import HINT, HumanGame
    from serve.browser.by_hand.table import OPPONENTS, Setup

    settings = game_settings(options)
    opponents = options.against
    if opponents is None:
        opponents = [] if settings.ruleset == "solo" else OPPONENTS
    effort = effort_of(options)
    players = [Player.parse(text) for text in opponents]
    tell_own_efforts(effort, ((player.name or player.spec, player.spec) for player in players))
    for player in players:
        register_worlds(player.spec, options.imports)
    return HumanGame(
        Setup(
            opponents=tuple(opponents),
            settings=settings,
            width=options.width,
            height=options.height,
            seed=options.seed,
        ),
        make=effort.make,
        recording=recording,
        hint_by=options.hint or HINT,
        timeout_ms=round(options.time) if options.wall else options.timeout,
        tell_deadline=options.wall,
    )


def _in_the_terminal(game: HumanGame, options: argparse.Namespace) -> None:
    from serve.browser.by_hand.terminal import play_in_terminal

    play_in_terminal(game, clock_s=options.clock or 0.0)


def _in_the_browser(game: HumanGame, options: argparse.Namespace) -> None:
    from serve.browser.by_hand.routes import PAGE, play_app
    from serve.server import running

    with running(play_app(game, clock_s=options.clock or 0.0)) as url:
        print(f"you play at {url}{PAGE} (Ctrl-C ends the game)", flush=True)
        webbrowser.open(f"{url}{PAGE}")
        while True:
            time.sleep(1)


def finds_browser() -> bool:
    """Return whether this machine has a graphical browser, or one named by BROWSER."""
    try:
        browser = webbrowser.get()
    except webbrowser.Error:
        return False
    return (
        bool(os.environ.get("BROWSER"))
        or Path(getattr(browser, "name", "")).name not in _TEXT_BROWSERS
    )


def _tell(game: HumanGame, *, is_kept: bool) -> None:
    """How the last game ended, and which files there are."""
    from envs.battlesnake.recording import unfinished
    from serve.browser.by_hand.words import ending

    print(ending(game) if game.is_over else f"The game was left on turn {game.turn}.")
    for path in game.paths if is_kept else []:
        if path.is_file():
            print(f"recording: {path}")
        if unfinished(path).is_file():
            print(f"recording of a game that isn't over: {unfinished(path)}")
