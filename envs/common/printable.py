"""Makes strangers' texts harmless before they reach a terminal or a log."""

from __future__ import annotations

_MOST_LETTERS = 300


def printable(text: object, *, keep: str = "") -> str:
    """Return the text with characters that a terminal would obey escaped as in Python, such as \\x1b or \\u202e.

    `keep` are characters that stay as they are, such as "\\n" where several lines are wanted.
    """
    return "".join(
        letter if letter.isprintable() or letter in keep else letter.encode("unicode_escape").decode() for letter in str(text)
    )


def in_one_line(text: object) -> str:
    """Return the first 300 letters of the text, such as the message of another library's error, without its line breaks."""
    return " ".join(str(text).split())[:_MOST_LETTERS]
