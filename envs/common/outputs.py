"""Where commands write their files by default."""

from __future__ import annotations

from pathlib import Path

from envs.common.errors import ConfigError

OUTPUTS = Path("outputs")
"""Where commands write what they make, in the working directory, unless an option names another
place. Runs are in `runs/`.
"""


def kept_at(name: str) -> str:
    """Return the default path of a file or folder: in `outputs/`, or where earlier versions put it
    if it exists there.
    """
    if Path(name).exists() and not (OUTPUTS / name).exists():
        return name
    return str(OUTPUTS / name)


def make_place_for(path: str) -> None:
    """Make the folder of a default place.

    A new `outputs/` gets a file that makes git ignore it. Other folders are left to the user.
    Raises `ConfigError` if the folder can't be made."""
    if Path(path).parts[:1] != OUTPUTS.parts:
        return
    try:
        is_new = not OUTPUTS.exists()
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        if is_new:
            (OUTPUTS / ".gitignore").write_text("*\n", encoding="utf-8")
    except OSError as error:
        raise ConfigError(
            f"{path} can't be created: {error.strerror or error}. Choose another path, or work"
            " in another folder"
        ) from error
