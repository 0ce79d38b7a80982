"""The token of an Arena account: its sources, and a file that only its owner can read."""

from __future__ import annotations

import ipaddress
import json
import os
import stat
from pathlib import Path
from urllib.parse import urlsplit

from envs.common.errors import ConfigError
from envs.common.strangers.bounded import parse_json, read_text
from serve.ladder.errors import WrongTokenError

VARIABLE = "PROCSNAKE_ARENA_TOKEN"
ARENA = "https://arena.battlesnake.com"
_MAX_BYTES = 4096
_MAX_TOKEN = 512
_OTHERS = stat.S_IRWXG | stat.S_IRWXO


def token_path() -> Path:
    """Return `$XDG_CONFIG_HOME/procsnake/arena.json` or `~/.config/procsnake/arena.json`."""
    config = os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config"
    return Path(config, "procsnake", "arena.json")


def checked_token(text: str) -> str:
    """Return the token without spaces around it.

    Raises `WrongTokenError`, whose message never shows the token, for an impossible token.
    """
    token = text.strip()
    if not token:
        raise WrongTokenError(
            "the token is empty; Arena makes one on its page /auth/github?cli=true"
        )
    if len(token) > _MAX_TOKEN or not token.isascii() or not token.isprintable() or " " in token:
        raise WrongTokenError(
            f"the token has characters that no token has, or more than {_MAX_TOKEN}; copy it again"
        )
    return token


def token_for(arena: str) -> str:
    """Return the token for the Arena at this address, from the environment or from the file of
    `save_token`.

    Raises `WrongTokenError` if there is none for this address, and `ConfigError` if others can read
    the file."""
    if text := os.environ.get(VARIABLE):
        return checked_token(text)
    path = token_path()
    if not path.exists():
        raise WrongTokenError(f"no token is known: run procsnake arena login, or set {VARIABLE}")
    try:
        is_shared = os.name == "posix" and path.stat().st_mode & _OTHERS
        entry = parse_json(read_text(path, _MAX_BYTES))
        owner = str(entry["arena"])
        token = str(entry["token"])
    except (OSError, ValueError, LookupError, TypeError) as error:
        raise ConfigError(
            f"{path} holds no token: {type(error).__name__}. Run procsnake arena login again"
        ) from error
    if is_shared:
        raise ConfigError(
            f"other users of this machine can read {path}, which holds a token. Run: chmod 600"
            f" {path}"
        )
    if owner != arena:
        raise WrongTokenError(
            f"the token that is kept is for {owner}, not for {arena}; log in there, or leave"
            " --arena out"
        )
    return checked_token(token)


def save_token(token: str, arena: str) -> Path:
    """Write the token to a file of mode 600, which is returned. The file appears whole or not at
    all.

    Raises `ConfigError` if it can't be written.
    """
    path = token_path()
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with open(
            os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8"
        ) as file:
            json.dump({"arena": arena, "token": token}, file)
        os.replace(part, path)
    except OSError as error:
        part.unlink(missing_ok=True)
        raise ConfigError(
            f"{path} can't be written: {error.strerror or error}. Set {VARIABLE} instead"
        ) from error
    return path


def arena_address(url: str) -> str:
    """Return an Arena's address without a slash at its end.

    Raises `ConfigError` if it isn't an HTTP URL, has a user or a query, or would send the token
    unencrypted to another machine."""
    try:
        parts = urlsplit(url)
        port = f":{parts.port}" if parts.port is not None else ""
    except ValueError as error:
        raise ConfigError(f"{url!r} is not the address of an Arena: {error}") from error
    if (
        parts.scheme not in ("http", "https")
        or not parts.hostname
        or parts.username
        or parts.query
        or parts.fragment
    ):
        raise ConfigError(f"{url!r} is not the address of an Arena; it looks like {ARENA}")
    if parts.scheme == "http" and not is_here(parts.hostname):
        raise ConfigError(
            f"{url} would send your token unencrypted; use https://{parts.hostname}{port}"
        )
    host = parts.hostname
    if ":" in host:  # an IPv6 address
        host = f"[{host}]"
    return f"{parts.scheme}://{host}{port}{parts.path.rstrip('/')}"


def is_here(host: str) -> bool:
    """Whether a host name means this machine."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
