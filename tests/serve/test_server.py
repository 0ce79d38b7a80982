"""The application on a real port, in a process that has neither torch nor ray."""

from __future__ import annotations

import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest

import agents
from envs.common.errors import ConfigError
from serve.arena import create_app
from serve.processes import can_fork
from serve.server import Loop, PortInUseError, bind, listen, running, say_when_answering, warm_up
from tests.envs.battlesnake.positions import board
from tests.envs.battlesnake.webhook.test_requests import plain_request
from tests.serve.agents import Raises
from tests.waiting import until

SLIM = """
import sys, json, urllib.request

class Refuse:
    def find_spec(self, name, path=None, target=None):
        refused = "torch ray tensorflow onnx safetensors pandas scipy gym"
        if name.split(".")[0] in refused.split():
            raise ModuleNotFoundError(name)

sys.meta_path.insert(0, Refuse())
import agents
from serve.arena import create_app
from serve.server import running, warm_up
policy = agents.make(sys.argv[1])
warm_up({policy.name: policy})
with running(create_app({policy.name: policy})) as url:
    body = json.dumps(json.loads(sys.argv[2])).encode()
    request = urllib.request.Request(url + "/move", body)
    print(urllib.request.urlopen(request, timeout=20).read().decode())
print(sorted({name.split(".")[0] for name in sys.modules} & {"torch", "ray", "tensorflow"}))
"""


def test_answers_over_http_and_stops():
    with running(create_app(agents.make("flood"))) as url:
        assert json.load(urllib.request.urlopen(url, timeout=20))["apiversion"] == "1"
        host, port = url.removeprefix("http://").split(":")
    with socket.socket() as probe:
        assert probe.connect_ex((host, int(port))) != 0


def test_connections_are_refused_until_it_runs_and_after_it_closed():
    server = listen(create_app(agents.make("flood")))
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", server.port), timeout=20)
    server.open()
    thread = threading.Thread(target=server.run)
    thread.start()
    kept = http.client.HTTPConnection("127.0.0.1", server.port, timeout=20)
    kept.request("GET", "/")
    assert kept.getresponse().status == 200
    server.close()
    thread.join(timeout=20)
    assert not thread.is_alive()
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", server.port), timeout=20)
    kept.close()


def test_a_server_that_never_ran_gives_its_port_back():
    server = listen(create_app(agents.make("flood")))
    server.close()
    listen(create_app(agents.make("flood")), port=server.port).close()


def test_whoever_opens_second_is_told_that_the_port_is_taken():
    app = create_app(agents.make("flood"))
    first = listen(app)
    try:
        second = listen(app, port=first.port)
    except PortInUseError:
        return  # This system tells at once.
    thread = threading.Thread(target=first.run)
    first.open()
    thread.start()
    with pytest.raises(PortInUseError, match="another program listens there"):
        second.open()
    second.close()
    first.close()
    thread.join(timeout=20)


@pytest.mark.parametrize("host", ["ü..b", "::1%ü..b", "a b"])
def test_a_host_that_no_machine_has_is_refused_in_a_line(host):
    with pytest.raises(
        PortInUseError,
        match=f"can't listen on {host} port 0: .*Name an address of this machine with --host",
    ):
        bind(host, 0)


def test_what_is_too_large_is_refused_in_json_over_http_too():
    with running(create_app(agents.make("flood"))) as url:
        with pytest.raises(urllib.error.HTTPError) as refused:
            urllib.request.urlopen(url + "/move", b" " * (2 << 20) + b"{}", timeout=20)
        assert refused.value.code == 413
        assert "error" in json.load(refused.value)
        refused.value.close()


WARM = """
import json, sys
from numba.core.dispatcher import Dispatcher
import agents
from serve.arena import create_app
from serve.timing.deadline import safest_move
from serve.server import warm_up
from envs.battlesnake.webhook import read_move_request

def compiled():
    modules = [m for name, m in sys.modules.items() if name.startswith(("envs", "agents"))]
    kernels = {id(k): k for m in modules for k in vars(m).values() if isinstance(k, Dispatcher)}
    return {(k.__module__, k.__name__, str(s)) for k in kernels.values() for s in k.signatures}

agent = agents.make(sys.argv[1])
warm_up({"it": agent})
client, before = create_app(agent).test_client(), compiled()
for request in json.loads(sys.argv[2]):
    assert client.post("/move", json=request).status_code == 200
    safest_move(read_move_request(request).state, 0)
print(len(before), sorted(compiled() - before))
"""


@pytest.mark.parametrize("kind", ["flood", "alphabeta", "bundle"])
def test_after_warming_up_nothing_is_compiled_for_a_request(kind, tmp_path):
    agent = kind
    if kind == "bundle":
        pytest.importorskip("torch")
        from tests.agents.bundles import make_bundle

        agent = str(make_bundle(tmp_path / "bundle"))
    bodies = [(0, 0), (1, 0), (2, 0)], [(5, 5), (5, 4), (5, 3)]
    requests = [
        plain_request(board(11, 11, *bodies, ruleset=ruleset)) for ruleset in ("royale", "wrapped")
    ]
    command = [sys.executable, "-c", WARM, agent, json.dumps(requests)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    kernels, compiled_late = done.stdout.strip().split(" ", 1)
    assert int(kernels) > 3
    assert compiled_late == "[]"


def test_a_policy_for_other_boards_than_the_arenas_can_be_served(caplog):
    class Choosy(Raises):
        def act(self, state, you, deadline=None):
            raise ConfigError(f"not on {state.width}x{state.height}")

    warm_up({"choosy": Choosy()})
    assert "choosy plays on no board of the arena: not on 19x19" in caplog.text


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
        [sys.executable, "-c", SLIM, str(bundle), json.dumps(request)],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    move, loaded = done.stdout.strip().rsplit("\n", 1)
    assert json.loads(move)["move"] == "up"
    assert loaded == "[]"


WAITS = """
import socket, sys, time
from concurrent.futures import ThreadPoolExecutor
from flask import Flask, request
from serve import processes, server
from serve.transport import front
from serve.arena import GAMES
from serve.transport.exchange import Exchange

app = Flask("waits")
app.config["MAX_CONTENT_LENGTH"] = 1000
app.extensions[GAMES] = None

@app.get("/<float:seconds>")
def wait(seconds):
    time.sleep(seconds)
    return str(seconds)

@app.get("/held/<int:port>")
def held(port):
    with socket.create_connection(("127.0.0.1", port)) as gate:
        gate.recv(1)
    return str(Exchange.of(request.environ).arrived)

class Tells(ThreadPoolExecutor):
    # Prints the path of a request that has been read and is to have a thread.
    def submit(self, work, environ, exchange):
        print(environ["PATH_INFO"], flush=True)
        return super().submit(work, environ, exchange)

front.ThreadPoolExecutor = Tells
front.THREADS = 1
listener = server.bind("127.0.0.1", 0)
print(server.url_of(listener), flush=True)
if sys.argv[1] == "gunicorn":
    processes.run(lambda: app, listener)
else:
    server.Server(app, listener).run()
"""


@pytest.mark.parametrize("kind", ["alone", "gunicorn"])
def test_the_time_that_requests_wait_for_a_thread_is_known(tmp_path, kind):
    with server_of(WAITS, kind, tmp_path / "told") as (url, _):
        until(lambda: waited(f"{url}/0.0") is not None)
        with socket.create_server(("127.0.0.1", 0)) as gate, ThreadPoolExecutor(3) as pool:
            gate.settimeout(20)
            path = f"/held/{gate.getsockname()[1]}"
            began = time.monotonic()
            calls = [pool.submit(waited, url + path) for _ in range(3)]
            read_whole(tmp_path / "told", path, 3)
            all_are_there = time.monotonic()
            for _ in range(3):
                gate.accept()[0].close()
            arrived = [call.result() for call in calls]
        # One thread answers them one after the other, and all had come before it was done with the
        # first.
        assert began <= min(arrived) <= max(arrived) <= all_are_there


@pytest.mark.parametrize(
    ("kind", "how"),
    [
        *(("alone", how) for how in ("SIGTERM", "SIGINT", "SIGHUP")),
        *(
            ("gunicorn", how)
            for how in ("SIGTERM", "SIGINT", "Ctrl-C", "SIGHUP", "closed terminal")
        ),
    ],
)
def test_requests_under_way_are_answered_before_it_ends(tmp_path, kind, how):
    """A terminal sends Ctrl-C, and its end, to all processes of a program, `kill -INT` to one. A
    server alone is one process.
    """
    with server_of(
        WAITS.replace("front.THREADS = 1", "front.THREADS = 8"), kind, tmp_path / "told"
    ) as (url, served):
        until(lambda: waited(f"{url}/0.0") is not None)
        with ThreadPoolExecutor(6) as pool:
            calls = [pool.submit(waited, f"{url}/1.0") for _ in range(6)]
            read_whole(tmp_path / "told", "/1.0", 6)
            if how in ("Ctrl-C", "closed terminal"):
                os.killpg(served.pid, signal.SIGINT if how == "Ctrl-C" else signal.SIGHUP)
            else:
                served.send_signal(signal.Signals[how])
            assert None not in [call.result() for call in calls]
        assert served.wait(timeout=20) == 0
        with pytest.raises(urllib.error.URLError):
            urllib.request.urlopen(f"{url}/0.0", timeout=20)


@pytest.mark.parametrize("kind", ["alone", "gunicorn"])
def test_under_nohup_it_serves_on_when_its_terminal_is_closed(tmp_path, kind):
    ignoring = "import signal\nsignal.signal(signal.SIGHUP, signal.SIG_IGN)\n"
    with server_of(ignoring + WAITS, kind, tmp_path / "told") as (url, served):
        until(lambda: waited(f"{url}/0.0") is not None)
        os.killpg(served.pid, signal.SIGHUP)
        assert waited(f"{url}/1.5") == 1.5
        assert served.poll() is None


def test_a_worker_is_heard_of_though_the_clock_is_set_back(monkeypatch):
    beats = threading.Semaphore(0)
    an_hour_ago = time.time() - 3600
    loop = Loop(create_app(agents.make("random")), on_beat=beats.release)
    with bind("127.0.0.1", 0) as listener:
        listener.listen()
        thread = threading.Thread(target=loop.run, kwargs={"sockets": [listener]})
        thread.start()
        try:
            assert beats.acquire(timeout=20)
            monkeypatch.setattr(time, "time", lambda: an_hour_ago)
            assert all(beats.acquire(timeout=20) for _ in range(2))
        finally:
            loop.stop()
            thread.join(timeout=20)


FROZEN = """
import gc, sys
from flask import Flask
from procsnake.cli.compete import serve as commands
from serve import processes, server
from serve.arena import GAMES

class Kept:
    pass

def make_app():
    app = Flask("frozen")
    app.config["MAX_CONTENT_LENGTH"] = 1000
    app.extensions[GAMES], app.kept = None, Kept()
    app.get("/")(lambda: str(float(any(one is app.kept for one in gc.get_objects()))))
    return app

listener = server.bind("127.0.0.1", 0)
print(server.url_of(listener), flush=True)
if sys.argv[1] == "gunicorn":
    processes.run(make_app, listener)
else:
    commands._run_here(make_app(), listener, "serving")
"""


@pytest.mark.parametrize("kind", ["alone", "gunicorn"])
def test_what_is_there_before_the_first_request_is_not_searched_for_garbage(tmp_path, kind):
    """A full search takes a tenth of a second, in which nobody is answered."""
    with server_of(FROZEN, kind, tmp_path / "told") as (url, _):
        until(lambda: waited(url) is not None)
        assert waited(url) == 0.0


def test_serving_is_said_when_a_first_request_has_been_answered(capsys):
    app = create_app(agents.make("flood"))
    asked = []

    @app.before_request
    def not_at_once():
        asked.append(None)
        return "not yet" if len(asked) > 3 else ("still warming up", 503)

    with running(app) as url:
        say_when_answering(url, "serving it")
    assert len(asked) == 4
    assert capsys.readouterr().out == "serving it\n"
    say_when_answering(url, "serving it", is_wanted=iter([True, False]).__next__)
    assert capsys.readouterr().out == ""


@contextmanager
def server_of(script, kind, told):
    """(URL, process) of a server that prints into a file. It has a process group of its own, as at
    a terminal.
    """
    if kind == "gunicorn" and not can_fork():
        pytest.skip("needs gunicorn and fork")
    with told.open("w") as file:
        served = subprocess.Popen(
            [sys.executable, "-c", script, kind], stdout=file, start_new_session=True
        )
    try:
        yield until(lambda: told.read_text().splitlines(), seconds=60)[0], served
    finally:
        served.terminate()
        try:
            served.wait(timeout=60)
        finally:
            served.kill()


def read_whole(told, path, count):
    """Wait until a server of `WAITS` has read as many requests for a path."""
    until(lambda: told.read_text().splitlines().count(path) >= count)


def waited(url):
    try:
        with urllib.request.urlopen(url, timeout=20) as answer:
            return float(answer.read())
    except OSError:
        return None
