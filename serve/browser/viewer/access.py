"""Decides who may watch: people on this machine or, with a token, anybody who knows it.

Anybody may ask for moves, but games, statistics and metrics belong to the owner. Without a token
they are shown only to requests that come from this machine *and* were meant for it. Headers reveal
two other kinds of requests: a foreign web page's with a forged host name, and those that a tunnel
passes on from 127.0.0.1. A proxy that adds no header can't be recognised: set a token, which then
replaces this check."""

from __future__ import annotations

import hmac
import ipaddress
import re
from hashlib import sha256
from urllib.parse import urlsplit

from flask import Request, Response, jsonify, request
from werkzeug.wrappers import Response as BaseResponse

from envs.common.errors import ConfigError

MIN_TOKEN = 16
MAX_TOKEN = 200
COOKIE = "procsnake-viewer"
COOKIE_SECONDS = 30 * 24 * 3600
_TOKEN = re.compile(rf"[A-Za-z0-9._~-]{{{MIN_TOKEN},{MAX_TOKEN}}}")
# What proxies, tunnels and content networks add, from their manuals; a browser on this machine
# sends none of it.
_HANDED_ON = re.compile(
    r"forwarded|via|x-forwarded(-.*)?|x-original-.*|x-real-(ip|port)"
    r"|x-(client|cluster-client|proxyuser|remote)-(ip|addr)|client-ip|true-client-ip"
    r"|x-remote-addr|(wl-)?proxy-client-ip|max-forwards|cdn-loop|surrogate-capability"
    r"|x-varnish|x-request-start|cf-.*|fly-.*|fastly-.*|akamai-.*|x-akamai-.*|x-envoy-.*"
    r"|x-amzn?-.*|cloudfront-.*|x-appengine-.*|x-cloud-trace-context|x-azure-.*|x-arr-.*"
    r"|x-vercel-.*|x-nf-.*|x-railway-.*|x-render-.*|rndr-id|tailscale-.*|ngrok-.*|x-scheme"
    r"|front-end-https"
)
_SCHEME_HEADERS = (
    "X-Forwarded-Proto",
    "X-Forwarded-Scheme",
    "X-Scheme",
    "CF-Visitor",
    "CloudFront-Forwarded-Proto",
    "Forwarded",
)
_SWITCH_HEADERS = ("X-Forwarded-Ssl", "Front-End-Https")
"""Where proxies say which scheme the browser used, by its name or by "on" for HTTPS."""
_HTTPS = re.compile(r"\bhttps\b", re.IGNORECASE)


class Access:
    """The access check for the owner's pages and figures. `token` has at least 16 characters, or is
    None for this machine only.

    A token may come as `Authorization: Bearer …`, as the cookie that `remember` sets, or once as
    `?token=…`. Raises `ConfigError` for a token that is too short to protect anything, or that
    can't be part of a URL."""

    def __init__(self, token: str | None = None) -> None:
        if token is not None and not _TOKEN.fullmatch(token):
            raise ConfigError(
                f"the viewer's token ({len(token)} characters) won't do: it takes {MIN_TOKEN} to"
                f" {MAX_TOKEN} letters, digits, '.', '_', '~' and '-'. Make one: openssl rand"
                " -hex 16"
            )
        self._token = token

    def allows(self) -> bool:
        """Whether the current request may see what belongs to the owner."""
        if self._token is None:
            return is_local(request)
        bearer = request.headers.get("Authorization", "").removeprefix("Bearer ")
        return self.is_token(bearer) or _same(request.cookies.get(COOKIE, ""), self._seal("cookie"))

    def refusal(self) -> tuple[Response, int] | None:
        """Return an answer that refuses the current request, or None if it is allowed. For use as
        `before_request`.
        """
        if self.allows():
            return None
        if self._token is None:
            reason = "only shown on the machine itself; the owner can set a token: --viewer-token"
            return jsonify(error=reason), 403
        reason = "needs the viewer's token: open /watch?token=…, or send Authorization: Bearer …"
        return jsonify(error=reason), 401

    def is_token(self, text: str) -> bool:
        """Whether `text` is the token. Without a token it never is."""
        return self._token is not None and _same(text, self._token)

    def remember(self, response: BaseResponse) -> BaseResponse:
        """Set the cookie that stands for the token from now on.

        If the browser came by HTTPS, it sends the cookie by HTTPS only.
        """
        response.set_cookie(
            COOKIE,
            self._seal("cookie"),
            max_age=COOKIE_SECONDS,
            httponly=True,
            samesite="Lax",
            secure=is_encrypted(request),
        )
        return response

    def share_key(self, game_id: str) -> str | None:
        """Return the key that shares this one game by a link; None without a token."""
        if self._token is None:
            return None
        return self._seal(f"game {game_id}")[:32]

    def is_share_key(self, game_id: str, key: str) -> bool:
        """Whether `key` opens the game."""
        return self._token is not None and _same(key, self.share_key(game_id) or "")

    def _seal(self, what: str) -> str:
        return hmac.new((self._token or "").encode(), what.encode(), sha256).hexdigest()


def is_local(request: Request) -> bool:
    """Whether a request comes from this machine, was meant for it, and wasn't passed on by a proxy
    that names itself.
    """
    if any(_HANDED_ON.fullmatch(header.lower()) for header, _ in request.headers):
        return False
    return _is_loopback(request.remote_addr or "") and _is_for_here(request)


def is_encrypted(request: Request) -> bool:
    """Whether the browser uses HTTPS, with us or with a proxy before us.

    A proxy's header is believed, because a lie affects only the liar's own cookie. Without such a
    header the browser shows it: it sends `Sec-Fetch-Site` only over HTTPS or to the machine itself
    (w3.org/TR/fetch-metadata)."""
    if request.is_secure:
        return True
    if any(_HTTPS.search(request.headers.get(name, "")) for name in _SCHEME_HEADERS):
        return True
    if any(request.headers.get(name, "").lower() == "on" for name in _SWITCH_HEADERS):
        return True
    return "Sec-Fetch-Site" in request.headers and not _is_for_here(request)


def is_a_web_pages(request: Request) -> bool:
    """Whether a web page of any origin makes the request. Engines don't send the headers that
    browsers add to a page's POST.
    """
    return any(header in request.headers for header in ("Origin", "Sec-Fetch-Site"))


def is_another_sites(request: Request) -> bool:
    """Return whether a web page of another origin makes the request, as browsers report."""
    return request.origin not in (None, request.host_url.rstrip("/"))


def _is_for_here(request: Request) -> bool:
    host = urlsplit(f"//{request.host}").hostname or ""
    return host == "localhost" or _is_loopback(host)


def _is_loopback(address: str) -> bool:
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return False
    return (getattr(parsed, "ipv4_mapped", None) or parsed).is_loopback


def _same(text: str, secret: str) -> bool:
    """In constant time, whatever characters a stranger sends."""
    return hmac.compare_digest(text.encode("utf-8", "replace"), secret.encode())
