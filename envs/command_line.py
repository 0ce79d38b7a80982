"""What all commands share: the parser with its errors, common options, and pictures in the terminal."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from envs.errors import ConfigError, UnknownNameError

USER_ERROR, INTERRUPTED = 2, 130


class Parser(argparse.ArgumentParser):
    """argparse, with one-line errors and a did-you-mean for commands and options."""

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Nothing may be left over. Each command says so itself: only it knows its options."""
        options, left = super().parse_known_args(args, namespace)
        for word in left:
            if word.startswith("--"):
                self._refuse("option", word.partition("=")[0], self._option_string_actions)
        if left:
            self.error(f"unexpected {' '.join(left)!r}")
        return options, left

    def error(self, message: str) -> Any:
        self.exit(USER_ERROR, f"{self.prog}: {message}. See {self.prog} --help\n")

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is not None and value not in action.choices:
            self._refuse(action.dest, value, action.choices)

    def _refuse(self, kind: str, name: str, known: Iterable[str]) -> None:
        hint = f"See {self.prog} --help"
        self.exit(USER_ERROR, f"{self.prog}: {UnknownNameError(kind, name, known, hint=hint)}\n")


class Commands:
    """The commands of a parser. Calling it adds one and returns its parser."""

    def __init__(self, parser: argparse.ArgumentParser) -> None:
        self._added = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")

    def __call__(
        self, name: str, run: Callable[[argparse.Namespace], int | None] | None, summary: str, examples: str
    ) -> argparse.ArgumentParser:
        layout = argparse.RawDescriptionHelpFormatter
        parser = self._added.add_parser(name, help=summary, description=summary, epilog=examples, formatter_class=layout)
        parser.set_defaults(run=run)
        return parser


def at_least(low: int) -> Callable[[str], int]:
    """The type of an option that is a whole number from `low` up."""

    def number(text: str) -> int:
        value = int(text)
        if value < low:
            raise argparse.ArgumentTypeError(f"{value} is less than {low}")
        return value

    return number


def add_game_options(parser: argparse.ArgumentParser) -> None:
    """The board, the rules and the seed."""
    parser.add_argument("--width", type=int, default=11, help="board width (default: %(default)s)")
    parser.add_argument("--height", type=int, default=11, help="board height (default: %(default)s)")
    parser.add_argument("--ruleset", default="standard", help="official ruleset (default: %(default)s)")
    parser.add_argument("--map", default="standard", help="official map (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="games repeat with their seed (default: %(default)s)")


def game_settings(options: argparse.Namespace) -> Any:
    """The `Settings` that `add_game_options` asked for."""
    from envs.battlesnake.settings import Settings

    return Settings(ruleset=options.ruleset, map=options.map)


def draw_all(pictures: Iterable[str], delay: float) -> None:
    """Draw each board over the last one; without a terminal only the last is printed."""
    live = sys.stdout.isatty()
    lines, picture = 0, ""
    for picture in pictures:
        if live:
            print(f"\x1b[{lines}F\x1b[J" * bool(lines) + picture, flush=True)
            lines = picture.count("\n") + 1
            time.sleep(delay)
    if not live:
        print(picture)


def write_whole(path: Path, text: str) -> None:
    """The file appears whole or not at all."""
    part = path.with_name(f".{path.name}.part")
    try:
        part.write_text(text, encoding="utf-8")
        os.replace(part, path)
    except OSError as error:
        raise ConfigError(f"{path} can't be written: {error.strerror or error}. Choose another place") from error
