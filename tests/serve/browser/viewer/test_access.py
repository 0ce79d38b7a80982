"""Who may watch: the machine itself, or whoever knows the token, and nobody by accident."""

from __future__ import annotations

import pytest
from flask import Flask, jsonify

from envs.common.errors import ConfigError
from serve.browser.viewer import Access

TOKEN = "0123456789abcdef"


def is_allowed(
    access, *, address="127.0.0.1", host="127.0.0.1:8000", headers=None, path="/", cookies=None
):
    cookie = (
        {"Cookie": "; ".join(f"{name}={value}" for name, value in cookies.items())}
        if cookies
        else {}
    )
    environ = {"REMOTE_ADDR": address}
    with Flask(__name__).test_request_context(
        path,
        base_url=f"http://{host}",
        headers={**(headers or {}), **cookie},
        environ_overrides=environ,
    ):
        return access.allows()


@pytest.mark.parametrize("address", ["127.0.0.1", "127.8.8.8", "::1", "::ffff:127.0.0.1"])
@pytest.mark.parametrize("host", ["localhost:8000", "127.0.0.1", "[::1]:8000"])
def test_without_a_token_this_machine_may_watch(address, host):
    assert is_allowed(Access(), address=address, host=host)


@pytest.mark.parametrize(
    "address", ["10.0.0.7", "203.0.113.9", "::ffff:203.0.113.9", "fe80::1", "", "nonsense"]
)
def test_without_a_token_other_machines_may_not(address):
    assert not is_allowed(Access(), address=address)


@pytest.mark.parametrize(
    "host", ["evil.example", "localhost.evil.example", "127.0.0.1.evil.example:8000", "10.0.0.7"]
)
def test_a_page_that_reaches_us_by_a_forged_name_may_not(host):
    assert not is_allowed(Access(), host=host)


PROXIES = """
X-Forwarded-For Forwarded Via X-Real-IP CF-Connecting-IP X-Forwarded-Host x-forwarded-port
X-Forwarded-Ssl X-Forwarded True-Client-IP X-Client-IP X-Cluster-Client-IP Fastly-Client-IP
X-Envoy-External-Address CF-Ray CDN-Loop X-Amzn-Trace-Id X-Amz-Cf-Id CloudFront-Forwarded-Proto
X-Appengine-User-IP X-Azure-ClientIP X-ARR-SSL X-Vercel-Id X-Nf-Client-Connection-Ip
X-Request-Start Tailscale-User-Login Ngrok-Trace-Id Fly-Client-IP X-Original-Host
X-Original-Forwarded-For Proxy-Client-IP WL-Proxy-Client-IP X-Varnish Surrogate-Capability
Akamai-Origin-Hop X-ProxyUser-Ip X-Scheme Front-End-Https X-Cloud-Trace-Context Client-IP
Max-Forwards X-Forwarded-Context X-Forwarded-Prefix
"""
"""The last two are those of jupyter-server-proxy, which SageMaker Studio has."""


@pytest.mark.parametrize("header", PROXIES.split())
def test_what_a_proxy_on_this_machine_hands_on_may_not(header):
    assert not is_allowed(Access(), headers={header: "127.0.0.1"})


def test_with_a_token_nothing_else_counts():
    access = Access(TOKEN)
    assert not is_allowed(access)
    assert is_allowed(
        access,
        address="203.0.113.9",
        host="snake.example",
        headers={"Authorization": f"Bearer {TOKEN}"},
    )
    for wrong in (TOKEN[:-1], TOKEN.upper(), "", "ключ-ключ-ключ-ключ"):
        assert not is_allowed(
            access, headers={"Authorization": f"Bearer {wrong}".encode().decode("latin-1")}
        )


def test_the_cookie_stands_for_the_token_and_does_not_tell_it():
    access = Access(TOKEN)
    app = Flask(__name__)
    with app.test_request_context():
        cookie = access.remember(jsonify({})).headers["Set-Cookie"]
    assert TOKEN not in cookie
    assert {"HttpOnly", "SameSite=Lax"} <= set(cookie.split("; "))
    name, _, value = cookie.split("; ")[0].partition("=")
    assert is_allowed(access, cookies={name: value})
    assert not is_allowed(access, cookies={name: TOKEN})
    assert not is_allowed(Access("another-token-of-16"), cookies={name: value})


@pytest.mark.parametrize(
    ("headers", "is_secure"),
    [
        ({}, False),
        ({"X-Forwarded-Proto": "https"}, True),
        ({"X-Forwarded-Proto": "https, http"}, True),
        ({"X-Forwarded-Proto": "http"}, False),
        ({"Forwarded": "for=1.2.3.4;proto=https"}, True),
        ({"CF-Visitor": '{"scheme":"https"}'}, True),
        ({"Front-End-Https": "on"}, True),
        ({"Sec-Fetch-Site": "none"}, True),
    ],
    ids=str,
)
def test_behind_a_proxy_that_speaks_tls_the_cookie_is_for_tls_alone(headers, is_secure):
    access = Access(TOKEN)
    app = Flask(__name__)
    with app.test_request_context(base_url="http://snake.example", headers=headers):
        assert (
            "Secure" in access.remember(jsonify({})).headers["Set-Cookie"].split("; ")
        ) == is_secure


def test_without_tls_on_this_machine_the_cookie_still_comes_back():
    access = Access(TOKEN)
    app = Flask(__name__)
    with app.test_request_context(
        base_url="http://localhost:8000", headers={"Sec-Fetch-Site": "none"}
    ):
        assert "Secure" not in access.remember(jsonify({})).headers["Set-Cookie"].split("; ")


def test_a_share_key_opens_its_game_only():
    access = Access(TOKEN)
    key = access.share_key("a")
    assert access.is_share_key("a", key)
    assert not access.is_share_key("b", key)
    assert not access.is_share_key("a", key[:-1])
    assert not Access("another-token-of-16").is_share_key("a", key)
    assert not is_allowed(access, headers={"Authorization": f"Bearer {key}"})


def test_without_a_token_there_are_no_share_keys():
    assert Access().share_key("a") is None
    assert not Access().is_share_key("a", "")
    assert not Access().is_token("")


@pytest.mark.parametrize(
    "token", ["", "short", "sixteen letters and", "ключключключключ", "x" * 201]
)
def test_a_token_that_keeps_nobody_out_or_fits_no_url_is_refused(token):
    with pytest.raises(ConfigError, match="16 to 200 letters"):
        Access(token)
