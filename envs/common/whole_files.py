"""Writes files and folders so that they appear whole or not at all, and never through links."""

from __future__ import annotations

import errno
import os
import secrets
import shutil
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from envs.common.addresses import require_path
from envs.common.errors import ConfigError


def make_folder_of(path: Path) -> None:
    """Make the folder of a file that will be written later, perhaps after hours of play.

    Raises `ConfigError` if no file can be written there, and for an address such as
    s3://bucket/file."""
    require_path(path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=path.parent):
            pass
        if path.is_dir():
            raise ConfigError(f"{path} can't be written: it is a folder. Choose another place")
    except OSError as error:
        raise _unwritable(path, error) from error


def not_through_links(path: str, flags: int) -> int:
    """Open a file as `os.open` does, for `open(…, opener=not_through_links)`. Raises `OSError` if
    it is a link or a pipe.

    Use it for files that are written in place in a folder that others may have made, where a link
    may lead to a file of the user's."""
    if os.path.lexists(path) and (os.path.islink(path) or not os.path.isfile(path)):
        raise OSError(errno.ELOOP, "it is a link, or not a regular file", path)
    # The file may have changed meanwhile. Windows has no such flag.
    return os.open(path, flags | getattr(os, "O_NOFOLLOW", 0), 0o666)


def replace_whole(path: Path, content: str | bytes) -> None:
    """Write a file so that it appears whole or not at all. Text becomes UTF-8. Raises `OSError` if
    it can't be written.
    """
    # Two processes may write the same file, so each has a part of its own.
    part = path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")
    if isinstance(content, str):
        content = content.encode()
    try:
        part.write_bytes(content)
        os.replace(part, path)
    except BaseException:
        with suppress(OSError):
            part.unlink()
        raise


def write_whole(path: Path, content: str | bytes) -> None:
    """Write a file so that it appears whole or not at all. Text becomes UTF-8. Raises `ConfigError`
    if it can't be written.
    """
    require_path(path)
    try:
        replace_whole(path, content)
    except OSError as error:
        raise _unwritable(path, error) from error


def _unwritable(path: Path, error: OSError) -> ConfigError:
    return ConfigError(f"{path} can't be written: {error.strerror or error}. Choose another place")


def write_folder(target: Path, contents: Mapping[str, bytes]) -> None:
    """Write the files, by name, as the folder `target`, replacing an existing one. Raises
    `OSError`.

    They are written beside the target, and swapped by renaming. If the second rename fails the old
    folder comes back."""
    fresh = Path(tempfile.mkdtemp(prefix=f".{target.name}.", suffix=".part", dir=target.parent))
    old = fresh.with_suffix(".old")
    try:
        for name, content in contents.items():
            (fresh / name).write_bytes(content)
        fresh.chmod(0o755)
        if target.exists():
            os.replace(target, old)
        os.replace(fresh, target)
    except BaseException:
        if old.exists() and not target.exists():
            os.replace(old, target)
        shutil.rmtree(fresh, ignore_errors=True)
        raise
    shutil.rmtree(old, ignore_errors=True)
