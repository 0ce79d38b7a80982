"""The commands `procsnake arena games` and `fetch`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from envs.common.columns import in_columns
from envs.common.errors import ConfigError
from envs.common.outputs import kept_at, make_place_for
from envs.common.strangers.printable import printable
from procsnake.cli.command_line import print_json, progress_on_stderr
from procsnake.cli.compete.arena_account import client_for, tell
from procsnake.cli.database_option import add_database
from serve.archive.option import without_password

if TYPE_CHECKING:
    from serve.ladder.client import ArenaClient
    from serve.ladder.download import Fetched
    from serve.ladder.following import OwnGame

GAMES_HELP = """\
Lists your snakes' games, newest first. Arena reports the last 100 games of each snake, without
ladder games. Those come from your server's archive (--database). Times without a zone are UTC.

examples:
  procsnake arena games --lost --since 12h
  procsnake arena games --snake Hisser --since 2026-11-20 --json
"""
FETCH_HELP = """\
Downloads games as recordings, one file per game, for replay, analyse and train. Each game is
played again by our rules, and turns that don't follow from the one before are reported. In royale
games the hazards are also compared with those that the game's id gives. Repeat the command to
continue an interrupted download; games that are already there aren't fetched again.

examples:
  procsnake arena fetch 3b241101-e2bb-4255-8caf-4136c566a962
  procsnake arena fetch --all --lost --since 1d --out lost-games
  procsnake arena fetch --all --keep                  # also show them in the server's viewer
  procsnake replay show outputs/arena-games/3b241101-….jsonl  # and: replay animate, replay to-test

exit code: 0 if all were fetched, 1 if some failed, 2 if Arena refused; games fetched before stay
"""


def add_games(parser: argparse.ArgumentParser) -> None:
    """Add the options of `procsnake arena games`."""
    parser.add_argument(
        "--snake", metavar="NAME", help="only games of your snake NAME (default: all)"
    )
    parser.add_argument("--lost", action="store_true", help="only games that you lost")
    parser.add_argument(
        "--since",
        metavar="WHEN",
        help="only games that began since then: a date, or 90m, 12h, 3d ago",
    )
    add_database(parser)


def add_fetch(parser: argparse.ArgumentParser) -> None:
    """Add the options of `procsnake arena fetch`."""
    parser.add_argument(
        "games", nargs="*", metavar="GAME", help="ids of games, yours or other players'"
    )
    parser.add_argument(
        "--all", action="store_true", help="all games of your snakes that match the options below"
    )
    add_games(parser)
    parser.add_argument(
        "--out",
        metavar="DIR",
        default=kept_at("arena-games"),
        help="folder to write (default: %(default)s)",
    )
    parser.add_argument(
        "--keep",
        action="store_true",
        help="also add the games to the archive, which the viewer shows",
    )


def run_games(options: argparse.Namespace) -> int:
    """Run `procsnake arena games`. Returns the exit code."""
    from serve.ladder.following import GAME_HEADS

    with client_for(options) as client:
        games = _own_games(client, options)
    if options.json:
        print_json([game.as_json() for game in games])
    else:
        print(
            in_columns([game.as_row() for game in games], GAME_HEADS) if games else "no such games"
        )
    return 0


def _own_games(client: ArenaClient, options: argparse.Namespace) -> list[OwnGame]:
    from serve.ladder.following import moment, own_games
    from serve.ladder.standing import named

    since = moment(options.since) if options.since else None
    snakes = client.snakes()
    authors = [named("snake", options.snake, snakes)] if options.snake else snakes
    with _archived(options.database) as archived:
        return own_games(client, authors, archived=archived, lost=options.lost, since=since)


@contextmanager
def _archived(database: str) -> Iterator[Iterable[Mapping[str, Any]]]:
    """The games of a server's archive; none if there is no archive."""
    from serve.archive.reader import GameArchive

    with closing(GameArchive(database)) as archive:
        if archive.exists:
            yield archive.every_game()
        else:
            tell(
                f"no archive at {without_password(database)}, so ladder games are missing; name"
                " another with --database"
            )
            yield ()


def run_fetch(options: argparse.Namespace) -> int:
    """Run `procsnake arena fetch`. Returns the exit code: 1 if games can't be fetched."""
    from serve.ladder.download import recording_path

    if bool(options.games) == options.all:
        raise ConfigError("name the games by their ids, or use --all for those of your snakes")
    folder = Path(options.out)
    with client_for(options) as client, progress_on_stderr(options):
        if options.all:
            own_games = {
                game.row.id: game for game in _own_games(client, options) if game.row.is_over
            }
        else:
            own_games = {}
        missing = [
            game
            for game in own_games or dict.fromkeys(options.games)
            if not recording_path(folder, game).exists()
        ]
        make_place_for(str(folder / "any"))
        fetched, failed = _fetch_all(client, missing, own_games, folder)
        if options.keep:
            files = [
                recording_path(folder, game) for game in own_games or dict.fromkeys(options.games)
            ]
            _keep_all(client, [file for file in files if file.exists()], options.database)
        there = len(own_games or set(options.games)) - len(missing)
        print(
            f"{len(fetched)} games fetched to {folder}"
            + (f", {there} were already there" if there else "")
        )
    if options.json:
        print_json(
            {
                "fetched": [one.as_json() for one in fetched],
                "failed": failed,
                "already_there": there,
            }
        )
    return 1 if failed else 0


def _keep_all(client: ArenaClient, files: list[Path], database: str) -> None:
    """Put games into a server's archive. Those that are in it already stay as they are."""
    from envs.battlesnake.recording import Recording
    from serve.ladder.keeping import keep

    mine = frozenset(snake.name for snake in client.snakes())
    for file in files:
        names = keep(Recording.read(file), database, mine)
        print(printable(f"{file}  archived as a game of {', '.join(names)}"))


def _fetch_all(
    client: ArenaClient, games: list[str], own_games: Mapping[str, OwnGame], folder: Path
) -> tuple[list[Fetched], dict[str, str]]:
    """Fetch one game after the other. A game that can't be fetched doesn't hold up the others; a
    site that is down does.
    """
    from envs.battlesnake.recording import RecordingError
    from serve.ladder.download import UnfinishedGameError, fetch
    from serve.ladder.errors import NotAllowedError, NotFoundError, RefusedError, StrangeAnswerError
    from serve.ladder.following import ARCHIVE

    fetched = []
    failed = {}
    for game in games:
        try:
            listed = own_games.get(game)
            # What the archive calls over may have failed.
            if listed is not None and listed.source != ARCHIVE:
                row = listed.row
            else:
                row = None
            fetched.append(fetch(client, game, folder, row=row))
            source = f" (known from: {listed.source})" if listed is not None else ""
            print(printable(f"{game}  {fetched[-1].check}{source}"), flush=True)
        except (
            NotAllowedError,
            NotFoundError,
            RefusedError,
            StrangeAnswerError,
            UnfinishedGameError,
            RecordingError,
        ) as error:
            failed[game] = str(error)
            print(printable(f"{game}  not fetched: {error}"), file=sys.stderr, flush=True)
    return fetched, failed
