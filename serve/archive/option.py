"""The option that names the database of a server's games."""

from __future__ import annotations

import os
import re

from envs.common.outputs import kept_at

SQLITE = "sqlite:///"
_PASSWORDS = ("password", "sslpassword")
"""What PostgreSQL's driver takes in a URL's query, too."""


def default_database() -> str:
    """Return the URL of the default database."""
    return os.environ.get("DATABASE_URL") or _own()


def without_password(url: str) -> str:
    """Return a database's URL without its password, for messages. Of a malformed URL only the
    scheme is shown, because the rest may be the password.
    """
    if url.startswith(SQLITE) or not set(url) & {":", "@"}:
        return url
    # Whoever only has the option needs no database.
    import sqlalchemy as sa

    try:
        parsed = sa.make_url(url)
    except (sa.exc.ArgumentError, ValueError):
        parsed = None
    # With a second @, the host begins with the rest of the password.
    if parsed is None or "@" in (parsed.host or ""):
        scheme = re.match(r"[\w+]+://", url)
        if scheme:
            return f"{scheme[0]}…"
        return "a text without a scheme"
    return parsed.difference_update_query(_PASSWORDS).render_as_string(hide_password=True)


def _own() -> str:
    return f"{SQLITE}{kept_at('games.db')}"
