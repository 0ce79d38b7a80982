"""What all commands share: the parser and its errors, common options, and pictures in the
terminal.
"""

from __future__ import annotations

import argparse
import json
import math
import re
import sys
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext, redirect_stdout
from typing import Any

from envs.common.addresses import not_a_path, scheme_of
from envs.common.errors import ConfigError, UnknownNameError
from envs.common.plain_values import known_to_json
from envs.common.shell_command import program, shell_command
from procsnake.cli.exit_codes import USER_ERROR


class Parser(argparse.ArgumentParser):
    """An argparse parser whose errors take one line, and which suggests the nearest command or
    option.

    It refuses empty arguments, because a shell makes them from unset variables.
    """

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Refuse surplus arguments. Each command's parser does this itself, because only it knows
        its options.
        """
        options, surplus = super().parse_known_args(args, namespace)
        for word in surplus:
            if word.startswith("--"):
                self._refuse("option", word.partition("=")[0], self._option_string_actions)
        if surplus:
            self.error(f"unexpected {' '.join(surplus)!r}")
        return options, surplus

    def error(self, message: str) -> Any:
        self.exit(USER_ERROR, f"{self.prog}: {message}. {self._help_hint}\n")

    def _get_values(self, action: argparse.Action, arg_strings: list[str]) -> Any:
        # All words after a command are values of one action. The command's own parser looks at
        # them.
        if action.nargs == argparse.PARSER:
            return super()._get_values(action, arg_strings)
        if "" in arg_strings:
            raise argparse.ArgumentError(
                action, "it is empty; maybe it comes from a variable that isn't set"
            )
        for text in arg_strings:
            _require_known_address(action, text)
        return super()._get_values(action, arg_strings)

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is not None and value not in action.choices:
            self._refuse(action.dest, value, action.choices)

    def _refuse(self, kind: str, name: str, names: Iterable[str]) -> None:
        self.exit(
            USER_ERROR,
            f"{self.prog}: {UnknownNameError(kind, name, names, hint=self._help_hint)}\n",
        )

    @property
    def _help_hint(self) -> str:
        return f"See {shell_command(*self.prog.split()[1:], '--help')}"


def _require_known_address(action: argparse.Action, text: str) -> None:
    """Refuse an address where a path is needed, which would become a folder of that name."""
    scheme = scheme_of(text)
    if not scheme or action.dest in _ADDRESSES or scheme in getattr(action, "schemes", ()):
        return
    if scheme not in _ADDRESSES_OF_OTHERS or action.dest in _PATHS:
        raise argparse.ArgumentError(action, not_a_path(text, scheme))


_ADDRESSES_OF_OTHERS = (
    "http",
    "https",
    "ftp",
    "hf",
    "ray",
    "git",
    "ssh",
    "sqlite",
    "postgres",
    "postgresql",
    "postgresql+psycopg",
)
"""Schemes of snakes, bundles, clusters, repositories and databases."""
_ADDRESSES = ("database",)
"""Options that are addresses themselves. Whoever reads them says which they take, and shows no
password.
"""
_PATHS = (
    "runs",
    "resume",
    "config",
    "out",
    "record",
    "report",
    "include",
    "store",
    "book",
    "write_book",
    "run_folders",
    "curves",
    "recording",
    "directory",
    "secret_file",
    "viewer_token_file",
)
"""Options and arguments that are paths alone."""


class Commands:
    """The commands of a parser. Calling the object adds a command and returns the command's
    parser.
    """

    def __init__(self, parser: argparse.ArgumentParser) -> None:
        self._added = parser.add_subparsers(
            dest="command", required=True, metavar="COMMAND", parser_class=Parser
        )

    def __call__(
        self,
        name: str,
        run: Callable[[argparse.Namespace], int] | None,
        summary: str,
        examples: str,
    ) -> argparse.ArgumentParser:
        layout = argparse.RawDescriptionHelpFormatter
        epilog = examples.replace("\n  procsnake ", f"\n  {program()} ")
        parser = self._added.add_parser(
            name, help=summary, description=summary, epilog=epilog, formatter_class=layout
        )
        parser.set_defaults(run=run, command=parser.prog.partition(" ")[2])
        return parser


def at_least(low: int) -> Callable[[str], int]:
    """Return the type of an option that is an integer of at least `low`."""

    def number(text: str) -> int:
        value = int(text)
        if value < low:
            raise argparse.ArgumentTypeError(f"{value} is less than {low}")
        return value

    return number


def between(low: int, high: int) -> Callable[[str], int]:
    """Return the type of an option that is an integer from `low` to `high`."""
    bounded_below = at_least(low)

    def number(text: str) -> int:
        value = bounded_below(text)
        if value > high:
            raise argparse.ArgumentTypeError(f"{value} is more than {high}")
        return value

    return number


def positive(text: str) -> float:
    """Parse an option that is a finite number greater than 0."""
    value = non_negative(text)
    if value == 0:
        raise argparse.ArgumentTypeError(f"{text} is not greater than 0")
    return value


def non_negative(text: str) -> float:
    """Parse an option that is a number from 0 to a thousand million, which clocks can handle."""
    value = float(text)
    if not 0 <= value < math.inf:
        raise argparse.ArgumentTypeError(f"{text} is not a number of at least 0")
    if value > _LARGEST:
        raise argparse.ArgumentTypeError(f"{text} is more than {_LARGEST:.0f}")
    return value


def pause(text: str) -> float:
    """Parse an option that is a pause between two frames, in seconds, at most an hour."""
    if float(text) > _LONGEST_PAUSE_S:
        raise argparse.ArgumentTypeError(f"{text} seconds are more than an hour")
    return non_negative(text)


def port(text: str) -> int:
    """Parse an option that is a TCP port, from 0 (any free one) to 65535."""
    value = int(text)
    if not 0 <= value <= _HIGHEST_PORT:
        raise argparse.ArgumentTypeError(
            f"{value} is not a port; ports go from 0, any free one, to {_HIGHEST_PORT}"
        )
    return value


_HIGHEST_PORT = 65535
_LARGEST = 1e9
_LONGEST_PAUSE_S = 3600.0


def add_json(parser: argparse._ActionsContainer) -> None:
    """Add the option `--json`, with which a command prints its results as JSON."""
    parser.add_argument(
        "--json", action="store_true", help="print JSON on stdout; progress goes to stderr"
    )


def print_json(value: Any) -> None:
    """Print a command's results on stdout as JSON. Paths become text, and numbers that JSON doesn't
    have (NaN) become null.
    """
    print(json.dumps(known_to_json(value), indent=2, default=str))


def progress_on_stderr(options: argparse.Namespace) -> AbstractContextManager[Any]:
    """Return a context in which progress goes to stderr if `--json` was given, because stdout is
    then for the JSON alone.
    """
    if options.json:
        return redirect_stdout(sys.stderr)
    return nullcontext()


def add_imports(parser: argparse.ArgumentParser) -> None:
    """Add the option `--imports`, for modules that register the user's own worlds or parts."""
    help_text = (
        "Python module that registers the policy's world or observation type; may be repeated"
        " (default: those of the run, if it is yours)"
    )
    parser.add_argument("--imports", action="append", default=[], metavar="MODULE", help=help_text)


def add_seed(parser: argparse.ArgumentParser) -> None:
    """Add the option `--seed`."""
    parser.add_argument(
        "--seed",
        type=int,
        default=0,
        help="random seed; the same seed repeats the games (default: %(default)s)",
    )


def add_game_options(parser: argparse.ArgumentParser, *, board: bool = True) -> None:
    """Add the options for the rules and the seed, and with `board` for the board's sides."""
    for name, default, help_text in _GAME_OPTIONS:
        if name in ("width", "height") and not board:
            continue
        parser.add_argument(
            f"--{name}",
            type=type(default),
            default=default,
            help=f"{help_text} (default: %(default)s)",
        )
    add_seed(parser)
    for official, default, help_text in _OFFICIAL_SETTINGS:
        parser.add_argument(
            f"--{_dashed(official)}",
            f"--{official}",
            type=int,
            default=default,
            metavar="N",
            help=f"{help_text} (default: %(default)s)",
        )


_GAME_OPTIONS = (
    ("width", 11, "board width"),
    ("height", 11, "board height"),
    ("ruleset", "standard", "official ruleset"),
    ("map", "standard", "official map"),
)
_OFFICIAL_SETTINGS = (
    ("foodSpawnChance", 15, "chance of new food each turn, in per cent"),
    ("minimumFood", 1, "least food on the board at any time"),
    ("hazardDamagePerTurn", 14, "health lost per turn in a hazard; negative values heal"),
    ("shrinkEveryNTurns", 25, "royale: turns between new hazards"),
)
"""The official command line's name of an option, its default there, and what it is."""


def _dashed(official: str) -> str:
    return re.sub("[A-Z]", lambda letter: f"-{letter[0].lower()}", official)


def refuse_given(options: argparse.Namespace, names: Iterable[str], what_for: str) -> None:
    """Raise `ConfigError` for the first of the named options that was given; the message says that
    it is for `what_for`.
    """
    for name in names:
        value = getattr(options, name)
        if value is not None and value is not False:
            seen = "" if value is True else f" is {value}, but it"
            raise ConfigError(f"--{name.replace('_', '-')}{seen} is for {what_for}")


def refuse_game_options(
    options: argparse.Namespace, what_for: str, *, only: Iterable[str] | None = None
) -> None:
    """Raise `ConfigError` for an option of `add_game_options`, other than the seed, that differs
    from its default.

    With `only`, check only these options.
    """
    defaults = {
        _dashed(name).replace("-", "_"): default
        for name, default, _ in (*_GAME_OPTIONS, *_OFFICIAL_SETTINGS)
    }
    for name in only or defaults:
        if getattr(options, name) != defaults[name]:
            refuse_given(options, [name], what_for)


def game_settings(options: argparse.Namespace) -> Any:
    """Return the `Settings` that the options of `add_game_options` describe."""
    from envs.battlesnake.settings import Settings

    return Settings(
        ruleset=options.ruleset,
        map=options.map,
        food_spawn_chance=options.food_spawn_chance,
        minimum_food=options.minimum_food,
        hazard_damage=options.hazard_damage_per_turn,
        shrink_every_n_turns=options.shrink_every_n_turns,
    )
