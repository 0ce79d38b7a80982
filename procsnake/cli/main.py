"""The entry point of the command line: it finds the command, and turns errors into one line."""

from __future__ import annotations

# Nothing of ours and nothing large is imported here: what Ctrl-C interrupts must be inside `main`,
# which tells it in a line.
import argparse
import errno
import io
import os
import sys
from collections.abc import Sequence

from procsnake.cli.commands import COMMANDS
from procsnake.cli.exit_codes import INTERRUPTED, USER_ERROR
from procsnake_packages import OWN_PACKAGES, ShadowedPackageError, require_own


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command. Returns the exit code: 0, 2 for a user error, 130 after Ctrl-C."""
    try:
        _open_streams()
        try:
            require_own(*OWN_PACKAGES)
            if "_ARGCOMPLETE" in os.environ:
                # The shell asks what may stand where the Tab key was pressed.
                from procsnake.cli.tab_key import complete

                complete()
            return _run(parse(arguments))
        finally:
            # As Python ends, it would be too late to tell what can't be written.
            sys.stdout.flush()
    except KeyboardInterrupt:
        print("\nprocsnake: stopped; nothing is left half-written", file=sys.stderr)
        return INTERRUPTED
    except ShadowedPackageError as error:
        print(f"procsnake: {error}", file=sys.stderr)
        return USER_ERROR
    except BrokenPipeError:
        _leave_stdout()
        return 0
    except OSError as error:
        message = _said_of_surroundings(error)
        if message is None:
            raise
        print(f"procsnake: {message}", file=sys.stderr)
        if error.errno in _NO_ROOM:
            _leave_stdout()
        return USER_ERROR


_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)


def _said_of_surroundings(error: OSError) -> str | None:
    """What is told of stdout or a working directory that fails; None if the error is of something
    else.
    """
    # What goes wrong with any other file has the file's name.
    if error.filename is None and error.errno in _NO_ROOM:
        return f"the output can't be written: {error.strerror}"
    try:
        os.getcwd()
    except OSError:
        return "the working directory is gone; somebody has removed it. Go to another one"
    return None


def _open_streams() -> None:
    """Open the streams that are closed (`>&-`), which are None, and have stdout take what its
    encoding lacks.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(os.open(os.devnull, os.O_RDWR), mode, encoding="utf-8"))
    if isinstance(sys.stdout, io.TextIOWrapper) and sys.stdout.errors in (
        "strict",
        "surrogateescape",
    ):
        sys.stdout.reconfigure(errors="replace")


def _leave_stdout() -> None:
    """Have what is still to be written go nowhere."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _run(options: argparse.Namespace) -> int:
    from envs.common.errors import MissingDependencyError, ProcsnakeError
    from envs.common.shell_command import shell_command
    from procsnake.cli.hub_addresses import pin_addresses

    try:
        _name_runs(options)
        pin_addresses(options)
        return options.run(options) or 0
    except ModuleNotFoundError as error:
        missing = MissingDependencyError.of_extra(error, feature=f"procsnake {options.command}")
        if missing is None:
            raise
        problem: ProcsnakeError = missing
    except ProcsnakeError as error:
        problem = error
    # A message shows what was wrong, such as a name in a file of a stranger's.
    from envs.common.strangers.printable import printable

    message = printable(problem.with_commands(shell_command), keep="\n")
    print(f"procsnake {options.command}: {message}", file=sys.stderr)
    return USER_ERROR


_NAMING_RUNS = (
    "against",
    "agent",
    "agents",
    "bundle",
    "config",
    "hint",
    "init_from",
    "players",
    "player",
    "policies",
    "policy",
    "resume",
    "run_folders",
    "source",
    "world",
)
"""The options, by their place in the parsed ones, that take the folder of a run."""


def _name_runs(options: argparse.Namespace) -> None:
    """Put the folder of a run into each option where `latest` or the beginning of a name stands for
    it, and say so.
    """
    from agents import champions, registry
    from train.config import list_experiments
    from train.runs.names import with_runs

    taken = frozenset((*registry.names(), *champions.names(), *list_experiments()))
    folder = getattr(options, "runs", None) or "runs"

    def named(word: str) -> str:
        run = with_runs(word, folder=folder, taken=taken)
        if run != word:
            print(f"{word} is {run}", file=sys.stderr)
        return run

    for name in _NAMING_RUNS:
        value = getattr(options, name, None)
        if isinstance(value, str):
            setattr(options, name, named(value))
        elif isinstance(value, list):
            setattr(options, name, [named(one) if isinstance(one, str) else one for one in value])


def parse(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """Parse a command line, importing only the named command. Ends the process after an error or
    `--help`.
    """
    words = sys.argv[1:] if arguments is None else list(arguments)
    name = next((word for word in words if not word.startswith("-")), "")
    # What is not a command is compared with all of them.
    only = name if name in ("", *COMMANDS) else None
    return build_parser(only).parse_args(words or ["--help"])


def build_parser(only: str | None = None) -> argparse.ArgumentParser:
    """Return the parser of all commands, or one with only the command `only`."""
    from procsnake.cli.command_line import Commands
    from procsnake.cli.overview import OverviewParser

    parser = OverviewParser()
    command = Commands(parser)
    for one in COMMANDS.values():
        if only in (None, one.name):
            one.add_to(command)
    return parser
