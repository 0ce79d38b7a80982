"""The sixteen games, the modes that each has, and the library that plays them."""

from __future__ import annotations

import contextlib
import io
import re
import sys
import warnings
from types import ModuleType

from envs.common.errors import (
    ConfigError,
    MissingDependencyError,
    UnknownNameError,
    install_beside,
    pip_install,
)

GAMES = (
    "bigfish",
    "bossfight",
    "caveflyer",
    "chaser",
    "climber",
    "coinrun",
    "dodgeball",
    "fruitbot",
    "heist",
    "jumper",
    "leaper",
    "maze",
    "miner",
    "ninja",
    "plunder",
    "starpilot",
)

MODES: dict[str, tuple[str, ...]] = {
    "easy": GAMES,
    "hard": GAMES,
    "extreme": ("chaser", "dodgeball", "leaper", "starpilot"),
    "memory": ("caveflyer", "dodgeball", "heist", "jumper", "maze", "miner"),
    "exploration": (
        "caveflyer",
        "climber",
        "coinrun",
        "heist",
        "jumper",
        "leaper",
        "maze",
        "ninja",
    ),
}
"""The games that have each distribution mode. For any other pair the library ends the process."""

_TOO_NEW = (3, 13)
"""Of this Python on, nobody offers Procgen beside Ray: `setup.py` says why."""
_PACKAGES = {
    "libGL.so.1": "apt-get install libgl1",
    "libglib-2.0.so.0": "apt-get install libglib2.0-0",
}


def check_mode(game: str, mode: str) -> None:
    """Raise `UnknownNameError` for a game or mode that doesn't exist, and `ConfigError` for a mode
    that the game lacks.
    """
    if game not in GAMES:
        raise UnknownNameError("Procgen game", game, GAMES)
    if mode not in MODES:
        raise UnknownNameError("distribution_mode", mode, MODES)
    if game not in MODES[mode]:
        own = [name for name, games in MODES.items() if game in games]
        raise ConfigError(f"{game} has no distribution_mode {mode!r}; it has {', '.join(own)}")


def load_library() -> ModuleType:
    """Import and return the module `procgen`. Raises `MissingDependencyError` where it isn't
    installed.
    """
    if "procgen" not in sys.modules:
        # It imports the old gym, which warns and prints that it is old.
        with warnings.catch_warnings(), contextlib.redirect_stderr(io.StringIO()):
            warnings.simplefilter("ignore")
            try:
                import procgen  # noqa: F401
            except ImportError as error:
                if sys.version_info < _TOO_NEW:
                    install = pip_install("procsnake[procgen]")
                else:
                    install = install_beside("procgen")
                raise MissingDependencyError(
                    f"the package procgen ({error})", feature="Procgen", install=install
                ) from error
    return sys.modules["procgen"]


def missing_system_library(error: OSError) -> MissingDependencyError:
    """Return an error that says what to install when the dynamic linker can't load the games."""
    match = re.search(r"(lib[\w.+-]+\.so[.\d]*): cannot open", str(error))
    name = match[1] if match else str(error)
    install = _PACKAGES.get(name, f"the system package that holds {name} (apt-file search {name})")
    return MissingDependencyError(f"the system library {name}", feature="Procgen", install=install)
