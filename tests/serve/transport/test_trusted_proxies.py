"""Behind a proxy a caller is who the proxy says, and nobody else's word is taken."""

from __future__ import annotations

import json
import urllib.request
from contextlib import closing
from http.client import HTTPConnection

import pytest
from flask import Flask, request

from envs.common.errors import ConfigError
from serve.server import running
from serve.transport import connections
from serve.transport.trusted_proxies import TRUSTED_PROXIES, TrustedProxies
from tests.serve.transport.test_connections import ask


@pytest.mark.parametrize(
    ("peer", "forwarded_for", "caller"),
    [
        ("10.0.0.7", "203.0.113.5", "203.0.113.5"),
        ("10.0.0.7", "127.0.0.1, 203.0.113.5", "203.0.113.5"),
        ("10.0.0.7", "198.51.100.1,203.0.113.5, 10.0.0.9", "203.0.113.5"),
        ("::ffff:10.0.0.7", "2001:db8::1", "2001:db8::1"),
        ("10.0.0.7", "", "10.0.0.7"),
        ("10.0.0.7", "203.0.113.5, unknown", "10.0.0.7"),
        ("10.0.0.7", "x" * 10_000, "10.0.0.7"),
        ("203.0.113.9", "10.0.0.7", "203.0.113.9"),
        ("", "203.0.113.5", ""),
    ],
)
def test_the_last_address_that_is_no_proxys_is_the_callers(peer, forwarded_for, caller):
    assert TrustedProxies(["10.0.0.0/8", "fd00::/8"]).caller(peer, forwarded_for) == caller


@pytest.mark.parametrize("network", ["proxy.example.org", "10.0.0.1/8", "10.0.0.0/99", ""])
def test_what_is_no_network_is_refused(network):
    with pytest.raises(ConfigError, match="--trusted-proxy"):
        TrustedProxies([network])


@pytest.mark.parametrize(("networks", "seen"), [(["127.0.0.1"], "203.0.113.5"), ([], "127.0.0.1")])
def test_a_server_sees_callers_behind_its_proxy_and_counts_the_proxy_as_nobody(
    networks, seen, monkeypatch
):
    monkeypatch.setitem(connections.Connections.__init__.__kwdefaults__, "per_address", 1)
    app = Flask("told")
    app.config["MAX_CONTENT_LENGTH"] = 100
    app.extensions[TRUSTED_PROXIES] = TrustedProxies(networks)
    app.get("/")(lambda: json.dumps(request.remote_addr))
    with running(app) as url:
        asked = urllib.request.Request(url, headers={"X-Forwarded-For": "203.0.113.5"})
        assert json.load(urllib.request.urlopen(asked)) == seen
        if networks:
            with closing(HTTPConnection(url.removeprefix("http://"), timeout=10)) as first:
                assert status_of(first) == 200
                assert ask(url, "/")[0] == 200
                assert status_of(first) == 200


def status_of(connection: HTTPConnection) -> int:
    connection.request("GET", "/")
    response = connection.getresponse()
    response.read()
    return response.status
