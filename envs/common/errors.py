"""The errors that a user's input can cause, with one class per kind of failure.

The command line prints the message of a `ProcsnakeError` on one line and exits with code 2. Users
of the library catch the class that they care about. A message says what was wrong, the value seen,
the likely cause, and what to try next."""

from __future__ import annotations

import difflib
import re
import shlex
import shutil
import sys
import sysconfig
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib import metadata
from importlib.machinery import PathFinder
from numbers import Integral
from pathlib import Path
from typing import Any

_HOME = Path(__file__).parents[2]


class ProcsnakeError(Exception):
    """The base class of all errors that a user can cause and fix.

    `next_commands` has the words of commands of procsnake that help, each by its purpose, as in
    `{"to start one": ("serve", "flood")}`. They follow the message, which is then a whole sentence.
    Words in capitals, such as RUN or FILE, are for the reader to fill in.
    """

    next_commands: Mapping[str, tuple[str, ...]] = {}

    def __init__(
        self, message: str = "", *, next_commands: Mapping[str, Sequence[object]] | None = None
    ) -> None:
        super().__init__(message)
        self.next_commands = {
            purpose: tuple(map(str, words)) for purpose, words in (next_commands or {}).items()
        }

    @property
    def message(self) -> str:
        """The message without the commands."""
        return super().__str__()

    def __str__(self) -> str:
        return self.with_commands(_plain_command)

    def with_commands(self, shell_command: Callable[..., str]) -> str:
        """Return the message with its next commands, which `shell_command` makes of their words."""
        suggestions = [
            f"{purpose}: {shell_command(*words)}" for purpose, words in self.next_commands.items()
        ]
        if not suggestions:
            return self.message
        listed = "; ".join(suggestions)
        return f"{self.message} {listed[0].upper()}{listed[1:]}"

    def __reduce__(self) -> tuple[Any, ...]:
        # Errors cross processes; made anew of its message alone, as Python would, one with other
        # arguments raises another.
        return _remade, (type(self), self.message, self.__dict__)


def _plain_command(*words: str) -> str:
    return shlex.join(["procsnake", *words])


def _remade(kind: type[ProcsnakeError], message: str, attributes: dict[str, Any]) -> ProcsnakeError:
    error = kind.__new__(kind, message)
    error.__dict__.update(attributes)
    return error


class UnknownNameError(ProcsnakeError):
    """Nothing is registered under this name. The message offers the nearest of the `names` that
    are.
    """

    def __init__(self, kind: str, name: str, names: Iterable[str], *, hint: str = "") -> None:
        self.kind = kind
        self.name = name
        self.names = sorted(names)
        near = difflib.get_close_matches(str(name), self.names, n=3, cutoff=0.5)
        if near:
            offer = f"Did you mean {' or '.join(repr(n) for n in near)}?"
        else:
            offer = f"Known: {', '.join(self.names)}."
        super().__init__(" ".join(filter(None, (f"unknown {kind} {name!r}.", offer, hint))))


class ConfigError(ProcsnakeError):
    """A configuration value has the wrong type or is outside its range."""


class InvalidStateError(ProcsnakeError):
    """No game can have this board, snake or state array. The message begins with the field that is
    wrong.
    """


class InvalidActionError(ProcsnakeError):
    """An array of actions has the wrong shape or type, or an action is missing."""


class ComplianceError(ProcsnakeError):
    """A world, map, ruleset or agent breaks the contract of its kind. The message says what is
    wrong, where and when.
    """


class MissingDependencyError(ProcsnakeError):
    """An optional package (or system library) that this feature needs is not installed."""

    def __init__(
        self,
        package: str,
        *,
        feature: str,
        install: str = "",
        next_commands: Mapping[str, Sequence[object]] | None = None,
    ) -> None:
        message = f"{feature} needs {package}, which is not installed."
        if install:
            message += f" Try: {install}"
        super().__init__(message, next_commands=next_commands)

    @classmethod
    def of_extra(cls, error: ModuleNotFoundError, *, feature: str) -> MissingDependencyError | None:
        """Return the error that names the extra which installs this module; None for any other
        module.
        """
        package = (error.name or "").partition(".")[0]
        if package and (extra := _extra_with(package)):
            return cls(package, feature=feature, install=pip_install(f"procsnake[{extra}]"))
        return None


def reason(error: Exception) -> str:
    """Return an error's message, without the number and file name that Python adds to operating
    system errors.
    """
    return getattr(error, "strerror", None) or str(error)


def check_range(name: str, value: int, low: int, high: int) -> int:
    """Return an integer of any type as Python's own. NumPy's small ones overflow in a product, and
    JSON takes none of them.

    Raises `ConfigError`, which names the value, unless it is an integer from `low` to `high`, and
    not True or False."""
    if isinstance(value, bool) or not isinstance(value, Integral) or not low <= value <= high:
        raise ConfigError(f"{name} is {value!r}; it must be an integer from {low} to {high}")
    return int(value)


def whole_seed(seed: Any) -> int:
    """Return a seed of any integer type as Python's own. Raises `ConfigError` for anything else,
    True and False among it.
    """
    if isinstance(seed, bool) or not isinstance(seed, Integral):
        raise ConfigError(f"seed is {seed!r}; it must be an integer")
    return int(seed)


def check_switch(name: str, value: Any) -> None:
    """Raise `ConfigError`, which names the value, unless it is True or False. Other values would
    count as one of the two.
    """
    if not isinstance(value, bool):
        raise ConfigError(f"{name} is {value!r}; it must be true or false")


def pip_install(*requirements: str) -> str:
    """Return the shell command that installs these requirements into this Python."""
    pip = shutil.which("pip")
    if pip and Path(pip).parent == Path(sysconfig.get_path("scripts")):
        words = ["pip", "install"]
    elif PathFinder.find_spec("pip"):
        words = [sys.executable, "-m", "pip", "install"]
    else:
        # uv makes environments without pip.
        words = ["uv", "pip", "install", "--python", sys.executable]
    return shlex.join([*words, *requirements])


def install_beside(extra: str) -> str:
    """Return the shell command that installs an extra into an environment of its own, for parts
    that ask for NumPy 1.

    It gets the Python that runs here, or 3.12, the newest that NumPy 1 has wheels for. In a clone,
    the command installs the clone, because `procsnake` alone would be looked up on PyPI."""
    place = f".venv-{extra}"
    minor = min(sys.version_info.minor, 12)
    source = _HOME if _is_clone() else "procsnake"
    return (
        f"python3.{minor} -m venv {place} && {place}/bin/pip install"
        f" {shlex.quote(f'{source}[train,{extra}]')}"
    )


def make_environment(extra: str) -> str | None:
    """Return the shell commands that make the environment of an extra and run procsnake in it.
    Return None outside a clone, because they need its Makefile.
    """
    if not _is_clone():
        return None
    python = shlex.quote(str(_HOME / f".venv-{extra}" / "bin" / "python"))
    return f"make -C {shlex.quote(str(_HOME))} .venv-{extra}/.installed && {python} -m procsnake …"


def _is_clone() -> bool:
    return (_HOME / "Makefile").is_file()


def _extra_with(package: str) -> str | None:
    """Return the extra of procsnake that asks for the distribution of this import name.

    The two names differ in dashes and capitals at most."""
    pattern = re.compile(rf"{re.escape(package)}\b.*;.*\bextra == [\"'](?!dev)(\w+)", re.IGNORECASE)
    try:
        requirements = metadata.requires("procsnake") or []
    except metadata.PackageNotFoundError:
        return None
    for requirement in requirements:
        if match := pattern.match(requirement.replace("-", "_")):
            return match[1]
    return None
