"""Who may watch: people on this machine or, once there is a token, whoever knows it.

Moves are asked for by strangers; games, statistics and metrics are the owner's. Without a token they are shown to requests that
come from this machine *and* were meant for it: a web page elsewhere that reaches us by a forged host name, and a tunnel that
hands on the world's requests from 127.0.0.1, are both told apart by what they say of themselves. A proxy that says nothing
can't be: whoever runs one sets a token, and then nothing but the token counts.
"""

from __future__ import annotations

import hmac
import ipaddress
import re
from hashlib import sha256
from urllib.parse import urlsplit

from flask import Request, Response, jsonify, request

from envs.errors import ConfigError

MIN_TOKEN, MAX_TOKEN = 16, 200
COOKIE = "procsnake-viewer"
COOKIE_SECONDS = 30 * 24 * 3600
_TOKEN = re.compile(rf"[A-Za-z0-9._~-]{{{MIN_TOKEN},{MAX_TOKEN}}}")
_HANDED_ON = (
    "Forwarded", "Via", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto", "X-Real-IP",
    "CF-Connecting-IP", "Fly-Client-IP",
)  # fmt: skip


class Access:
    """The check for every page and number that is the owner's. `token`: at least 16 characters, or None for this machine only.

    A token may come as `Authorization: Bearer …`, as the cookie that `remember` sets, or once as `?token=…`.
    Raises `ConfigError` for a token that is too short to keep anybody out or can't be part of a URL.
    """

    def __init__(self, token: str | None = None) -> None:
        if token is not None and not _TOKEN.fullmatch(token):
            raise ConfigError(
                f"the viewer's token ({len(token)} characters) won't do: it takes {MIN_TOKEN} to {MAX_TOKEN} letters, digits, "
                "'.', '_', '~' and '-'. Make one: openssl rand -hex 16"
            )
        self._token = token

    def allows(self) -> bool:
        """Whether the request at hand may see what is the owner's."""
        if self._token is None:
            return is_local(request)
        bearer = request.headers.get("Authorization", "").removeprefix("Bearer ")
        return self.is_token(bearer) or _same(request.cookies.get(COOKIE, ""), self._seal("cookie"))

    def refusal(self) -> tuple[Response, int] | None:
        """For `before_request`: None if the request is allowed, else the answer to it."""
        if self.allows():
            return None
        if self._token is None:
            return jsonify(error="only shown on the machine itself; the owner can set a token: --viewer-token"), 403
        return jsonify(error="needs the viewer's token: open /watch?token=…, or send Authorization: Bearer …"), 401

    def is_token(self, text: str) -> bool:
        """Whether `text` is the token; never without one."""
        return self._token is not None and _same(text, self._token)

    def remember(self, response: Response) -> Response:
        """Set the cookie that stands for the token from now on."""
        response.set_cookie(
            COOKIE, self._seal("cookie"), max_age=COOKIE_SECONDS, httponly=True, samesite="Lax", secure=request.is_secure
        )
        return response

    def share_key(self, game_id: str) -> str | None:
        """What opens one game, and only that, to whoever has the link; None without a token."""
        return None if self._token is None else self._seal(f"game {game_id}")[:32]

    def is_share_key(self, game_id: str, key: str) -> bool:
        """Whether `key` opens the game."""
        return self._token is not None and _same(key, self.share_key(game_id) or "")

    def _seal(self, what: str) -> str:
        return hmac.new((self._token or "").encode(), what.encode(), sha256).hexdigest()


def is_local(request: Request) -> bool:
    """Whether a request comes from this machine, was meant for it, and was not handed on by a proxy that says so."""
    if any(header in request.headers for header in _HANDED_ON):
        return False
    host = urlsplit(f"//{request.host}").hostname or ""
    return _is_loopback(request.remote_addr or "") and (host == "localhost" or _is_loopback(host))


def _is_loopback(address: str) -> bool:
    try:
        found = ipaddress.ip_address(address)
    except ValueError:
        return False
    return (getattr(found, "ipv4_mapped", None) or found).is_loopback


def _same(text: str, secret: str) -> bool:
    """In constant time, whatever characters a stranger sends."""
    return hmac.compare_digest(text.encode("utf-8", "replace"), secret.encode())
