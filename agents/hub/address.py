"""Addresses of bundles on the Hugging Face Hub, in the form that huggingface_hub itself uses:
`hf://user/name@revision/folder`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from urllib.parse import quote, unquote

from agents.card import BundleError

SCHEME = "hf://"
IN_TEXT = re.compile(r"hf://[\w.@%/-]+")
"""An address within other text, such as `NAME=hf://user/name+mcts?near=9`."""
_LOOKS = "it looks like hf://user/name, hf://user/name@revision or hf://user/name@revision/folder"
_NAME = re.compile(r"[A-Za-z0-9_](?:[\w.-]{0,94}[A-Za-z0-9_])?", re.ASCII)
_REVISION = re.compile(r"[A-Za-z0-9_][\w./-]{0,199}", re.ASCII)
_FOLDER = re.compile(r"(?:\w[\w.-]*/)*\w[\w.-]*", re.ASCII)
_MAX_FOLDER = 100
_COMMIT = re.compile(r"[0-9a-f]{40}")


class HubError(BundleError):
    """A bundle's address on the Hub is wrong, there is no playable bundle, or the Hub can't be
    reached.
    """


@dataclass(frozen=True)
class Address:
    """Where a bundle lies on the Hub."""

    repository: str
    """`user/name`."""
    revision: str = "main"
    """A branch, a tag, or a commit's 40 hexadecimal digits."""
    folder: str = ""
    """The bundle's folder in the repository; "" for the repository itself."""

    @classmethod
    def parse(cls, text: str) -> Address:
        """Read an address. A slash within a revision is written %2F. Raises `HubError` for any
        other text.
        """
        place = text.removeprefix(SCHEME).rstrip("/")
        user, _, rest = place.partition("/")
        middle, _, folder = rest.partition("/")
        name, at, revision = middle.partition("@")
        if not at:
            revision = "main"
        address = cls(f"{user}/{name}", unquote(revision), folder)
        if not (text.startswith(SCHEME) and address._is_possible(user, name)):
            raise HubError(f"{text!r} is not an address on the Hugging Face Hub; {_LOOKS}")
        return address

    def _is_possible(self, user: str, name: str) -> bool:
        """Return whether the Hub can have such an address."""
        if not _REVISION.fullmatch(self.revision) or ".." in self.revision:
            return False
        for part in (user, name):
            if not _NAME.fullmatch(part) or ".." in part or "--" in part:
                return False
        if not self.folder:
            return True
        return len(self.folder) <= _MAX_FOLDER and _FOLDER.fullmatch(self.folder) is not None

    @property
    def is_pinned(self) -> bool:
        """Return whether the revision is a commit, so that the bundle can't change."""
        return _COMMIT.fullmatch(self.revision) is not None

    def at(self, revision: str) -> Address:
        """Return the address of the same folder at another revision."""
        return replace(self, revision=revision)

    def inside(self, path: str) -> str:
        """Return the path of one of the bundle's files in the repository."""
        if not self.folder:
            return path
        return f"{self.folder}/{path}"

    @property
    def player(self) -> str:
        """The name of a player from there: the folder's, or else the repository's."""
        folder = self.folder.rpartition("/")[2]
        if folder not in ("", "bundle"):
            return folder
        return self.repository.partition("/")[2]

    def __str__(self) -> str:
        address = f"{SCHEME}{self.repository}"
        if self.revision != "main":
            address += f"@{quote(self.revision, safe='')}"
        if self.folder:
            address += f"/{self.folder}"
        return address
