"""Makes untrusted text harmless before it reaches a terminal, a log or a folder."""

from __future__ import annotations

import hashlib
import json
import re

_MOST_LETTERS = 300
_MOST_IN_A_NAME = 80
_MOST_BESIDE_A_HASH = 70
_HASH_DIGITS = 12


def printable(text: object, *, keep: str = "") -> str:
    """Return the text with characters that a terminal would obey escaped as in Python, such as
    \\x1b or \\u202e.

    `keep` are characters that stay as they are, such as "\\n" where several lines are wanted.
    """
    letters = []
    for letter in str(text):
        if not letter.isprintable() and letter not in keep:
            letter = letter.encode("unicode_escape").decode()
        letters.append(letter)
    return "".join(letters)


def in_one_line(text: object) -> str:
    """Return the first 300 letters of the text, such as the message of another library's error,
    without its line breaks.
    """
    return " ".join(str(text).split())[:_MOST_LETTERS]


def file_name(*texts: str) -> str:
    """Return a file name without a suffix, made of up to three texts. Different texts give
    different names: if a file name can't hold all their letters, it ends in a hash of the texts.
    """
    parts = [re.sub(r"[^A-Za-z0-9_-]", "_", text)[:_MOST_IN_A_NAME] for text in texts]
    if "--".join(parts).split("--") == list(texts):
        return "--".join(parts)
    digest = hashlib.sha256(json.dumps(texts).encode()).hexdigest()[:_HASH_DIGITS]
    return "--".join([*(part[:_MOST_BESIDE_A_HASH] for part in parts), digest])
