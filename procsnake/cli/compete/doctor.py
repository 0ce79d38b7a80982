"""The command `procsnake doctor`."""

from __future__ import annotations

import argparse

from procsnake.cli.command_line import add_json, at_least, print_json

HELP = """\
Sends your snake what a platform would send, and reports what would go wrong there. It first makes
about a hundred single requests, a few of them invalid, then plays several games at once.

examples:
  procsnake doctor http://127.0.0.1:8000
  procsnake doctor https://snake.example.org/secret --timeout 300 --games 8
  procsnake doctor https://snake.example.org --json > report.json

exit code: 0 if the snake is ready, 1 if it isn't, 2 if no snake answers at this URL
"""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of `procsnake doctor`."""
    parser.add_argument("url", help="URL of the snake, as a platform gets it")
    parser.add_argument(
        "--timeout",
        type=at_least(1),
        default=500,
        help="milliseconds per move (default: %(default)s)",
    )
    parser.add_argument(
        "--games",
        type=at_least(1),
        default=4,
        help="parallel games (default: %(default)s, at most 20)",
    )
    parser.add_argument(
        "--moves",
        type=at_least(1),
        default=200,
        help="total moves (default: %(default)s, at most 2000)",
    )
    parser.add_argument(
        "--seconds",
        type=float,
        default=60.0,
        help="start nothing new after this time (default: %(default)s)",
    )
    add_json(parser)


def run(options: argparse.Namespace) -> int:
    """Run `procsnake doctor`. Returns 0 if the snake is ready to play, otherwise 1."""
    from serve.doctor.examination import examine

    report = examine(
        options.url,
        timeout_ms=options.timeout,
        games=options.games,
        moves=options.moves,
        seconds=options.seconds,
    )
    print_json(report.as_json()) if options.json else print(report.as_text())
    return 0 if report.passed else 1
