"""`procsnake play --human`: a person plays Battlesnake in the browser or in the terminal, or
Procgen in a window.
"""

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
from envs.battlesnake.recording import unfinished
from envs.common.errors import ConfigError, UnknownNameError
from procsnake.cli.command_line import game_settings, refuse_game_options, refuse_given
from procsnake.cli.effort_options import effort_of, tell_own_efforts
from procsnake.cli.start.match import check_record, tell_evaluations
from procsnake.cli.worlds import register_worlds

if TYPE_CHECKING:
    from serve.browser.by_hand.game import HumanGame

BATTLESNAKE = "battlesnake"
LEAST_CLOCK_S = 0.1
MOST_CLOCK_S = 60.0
_TEXT_BROWSERS = ("www-browser", "links", "elinks", "lynx", "w3m")
"""What Python's `webbrowser` falls back to where there is no screen. They run no scripts."""
_OWN_OPTIONS = ("against", "clock", "hint", "terminal", "browser")


def add_by_hand(parser: argparse.ArgumentParser) -> None:
    """Add the options for a person who plays."""
    group = parser.add_argument_group("playing by hand")
    group.add_argument(
        "--human",
        action="store_true",
        help="play yourself: battlesnake (default), or e.g. procgen/coinrun",
    )
    against = (
        "who plays Battlesnake against you; without a name you play alone (default:"
        " champion-standard flood)"
    )
    group.add_argument("--against", nargs="*", metavar="PLAYER", help=against)
    clock = (
        "seconds a turn takes, whether you have moved or not (default: every turn waits for you)"
    )
    group.add_argument("--clock", type=_clock, metavar="SECONDS", help=clock)
    hint = (
        "who tells what it would play when you ask for a hint (default: alphabeta at 200000 nodes)"
    )
    group.add_argument("--hint", metavar="PLAYER", help=hint)
    where = group.add_mutually_exclusive_group()
    terminal = "play in the terminal, which is what happens where no browser is found"
    where.add_argument(
        "--terminal", "--no-browser", action="store_true", default=None, help=terminal
    )
    browser = "serve the page even if no browser is found here, and print its address"
    where.add_argument("--browser", action="store_true", default=None, help=browser)


def _clock(text: str) -> float:
    value = float(text)
    if not LEAST_CLOCK_S <= value <= MOST_CLOCK_S:
        raise argparse.ArgumentTypeError(
            f"{text} is no number of seconds from {LEAST_CLOCK_S:g} to {MOST_CLOCK_S:g}"
        )
    return value


def refuse_without_a_person(options: argparse.Namespace) -> None:
    """Raise `ConfigError` for options that only mean something to a person who plays."""
    _refuse_own_options(options, "a game that you play yourself; add --human")


def _refuse_own_options(options: argparse.Namespace, what_for: str) -> None:
    given = next((name for name in _OWN_OPTIONS if getattr(options, name) is not None), None)
    if given is not None:
        raise ConfigError(f"--{given} is for {what_for}")


def play_by_hand(options: argparse.Namespace) -> int:
    """Run `procsnake play --human`. Returns the exit code."""
    if options.json:
        raise ConfigError("--json prints how a game of agents ended; leave it out with --human")
    refuse_given(options, ("position", "turn"), "games of agents; leave it out with --human")
    if options.players in ([], [BATTLESNAKE]):
        refuse_given(
            options,
            ("levels", "mode"),
            "games of Procgen, and this is one of Battlesnake; leave it out",
        )
        return _play_battlesnake(options)
    world, _, game = options.players[0].rpartition("/")
    if len(options.players) > 1 or world != "procgen":
        _refuse_players(options.players)
    _refuse_own_options(options, "a game of Battlesnake; leave it out")
    refuse_given(options, ("nodes", "time"), "a game of Battlesnake; leave it out")
    refuse_game_options(options, "a game of Battlesnake; leave it out")
    if options.record is not None:
        raise ConfigError(
            "--record is for a game of Battlesnake or one that agents play; leave it out, or leave"
            " out --human"
        )
    return _play_procgen(game, options)


def _refuse_players(players: list[str]) -> None:
    told = "--human plays battlesnake or one game of Procgen"
    if players[0] == BATTLESNAKE or len(players) > 1:
        opponents = [player for player in players if player != BATTLESNAKE]
        raise ConfigError(
            f"{told}, not {' '.join(players)}; opponents stand behind --against:"
            f" {' '.join(opponents)}"
        )
    raise UnknownNameError(
        "game to play by hand", players[0], [BATTLESNAKE, "procgen/coinrun"], hint=f"{told}."
    )


def _play_procgen(game: str, options: argparse.Namespace) -> int:
    from envs.procgen import keyboard

    print(keyboard.KEYS)
    keyboard.play(
        game,
        seed=options.seed,
        levels=options.levels or "all",
        distribution_mode=options.mode or "easy",
    )
    return 0


def _play_battlesnake(options: argparse.Namespace) -> int:
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
            _in_the_terminal(game, options) if in_terminal else _in_the_browser(game, options)
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
    """Whether this machine has a browser that shows pages as they are meant. One that BROWSER names
    counts as such.
    """
    try:
        found = webbrowser.get()
    except webbrowser.Error:
        return False
    return (
        bool(os.environ.get("BROWSER"))
        or Path(getattr(found, "name", "")).name not in _TEXT_BROWSERS
    )


def _tell(game: HumanGame, *, is_kept: bool) -> None:
    """How the last game ended, and which files there are."""
    from serve.browser.by_hand.words import ending

    print(ending(game) if game.is_over else f"The game was left on turn {game.turn}.")
    for path in game.paths if is_kept else []:
        if path.is_file():
            print(f"recording: {path}")
        if unfinished(path).is_file():
            print(f"recording of a game that isn't over: {unfinished(path)}")
