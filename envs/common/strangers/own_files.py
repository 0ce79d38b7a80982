"""Recognises files that this user wrote on this machine, by a signature whose key never leaves the
account.

Some files run code when they are opened: a checkpoint is a pickle, a file of rules is Python. They
are opened without asking only if they are signed, or if a signed file names them."""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
from pathlib import Path

_KEY_BYTES = 32


def key_path() -> Path:
    """Return `$XDG_STATE_HOME/procsnake/key` or `~/.local/state/procsnake/key`. Raises
    `RuntimeError` if there is no home.
    """
    state = os.environ.get("XDG_STATE_HOME")
    return (Path(state) if state else Path.home() / ".local" / "state") / "procsnake" / "key"


def sign(content: bytes) -> str:
    """Return the content's HMAC-SHA256 in hex, or "" where no key can be kept because no home
    exists or can be written.
    """
    key = _key()
    if key:
        return hmac.new(key, content, hashlib.sha256).hexdigest()
    return ""


def is_signed(content: bytes, signature: str) -> bool:
    """Whether `signature` is what `sign` returns for this content on this machine."""
    expected = sign(content)
    return bool(expected) and hmac.compare_digest(
        expected.encode(), signature.strip().encode("utf-8", "replace")
    )


def _key() -> bytes | None:
    """Return the key, or None where none can be kept.

    It is made when it is first needed, and only its owner can read it."""
    try:
        path = key_path()
        if not path.exists():
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            _write_key(path)
        key = path.read_bytes()
    except (OSError, RuntimeError):
        return None
    if len(key) != _KEY_BYTES:
        return None
    return key


def _write_key(path: Path) -> None:
    part = path.with_name(f".{path.name}.{os.getpid()}.{secrets.token_hex(4)}")
    with open(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(secrets.token_bytes(_KEY_BYTES))
    try:
        # A link, unlike a renaming, leaves a key alone that another process has written meanwhile.
        os.link(part, path)
    except FileExistsError:
        pass
    finally:
        part.unlink()
