"""The application on a real port, in a process that has neither torch nor ray."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import urllib.request

import pytest

import agents
from serve.arena import create_app
from serve.server import PortInUseError, listen, running
from tests.envs.battlesnake.positions import board
from tests.envs.battlesnake.test_webhook import plain_request

SLIM = """
import sys, json, urllib.request
import agents
from serve.arena import create_app
from serve.server import running, warm_up
policy = agents.make(sys.argv[1])
warm_up({policy.name: policy})
with running(create_app({policy.name: policy})) as url:
    body = json.dumps(json.loads(sys.argv[2])).encode()
    print(urllib.request.urlopen(urllib.request.Request(url + "/move", body), timeout=20).read().decode())
print(sorted({name.split(".")[0] for name in sys.modules} & {"torch", "ray", "tensorflow"}))
"""


def test_answers_over_http_and_stops():
    with running(create_app(agents.make("flood"))) as url:
        assert json.load(urllib.request.urlopen(url, timeout=20))["apiversion"] == "1"
        host, port = url.removeprefix("http://").split(":")
    with socket.socket() as probe:
        assert probe.connect_ex((host, int(port))) != 0


def test_a_port_in_use_is_said_in_one_line():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.raises(PortInUseError, match="another program listens there"):
            listen(create_app(agents.make("flood")), port=taken.getsockname()[1])


def test_a_bundle_is_served_without_torch_and_ray(tmp_path):
    pytest.importorskip("torch")
    from tests.agents.bundles import make_bundle

    bundle = make_bundle(tmp_path / "bundle")
    request = plain_request(board(11, 11, [(0, 0), (1, 0), (2, 0)], [(5, 5), (5, 4), (5, 3)]))
    done = subprocess.run(
        [sys.executable, "-c", SLIM, str(bundle), json.dumps(request)], capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr
    move, loaded = done.stdout.strip().rsplit("\n", 1)
    assert json.loads(move)["move"] == "up"
    assert loaded == "[]"
