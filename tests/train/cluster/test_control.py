"""Head and workers over real sockets of this machine: who is let in, who is missed, and how the end
is told.
"""

from __future__ import annotations

import socket
import threading

import pytest

from tests.waiting import until
from train.cluster.control import ControlLink, ControlServer, Refused, _Lines
from train.cluster.hosts import ClusterError

TOKEN = "a secret"
HERE = "127.0.0.1"


@pytest.fixture
def said():
    return []


@pytest.fixture
def server(said):
    with ControlServer(HERE, TOKEN, said.append, port=0) as server:
        yield server


@pytest.fixture
def call():
    links = []

    def call(server, name="algo-2", token=TOKEN):
        links.append(ControlLink(HERE, token, name, port=server.port))
        return links[-1]

    yield call
    for link in links:
        link.close()


def never():
    return threading.Event()


def test_the_end_reaches_everybody(server, call):
    links = [call(server, name) for name in ("algo-2", "algo-3")]
    for link in links:
        link.joined()
    server.wait(["algo-2", "algo-3"], 0, 10, never())
    server.end(7)
    until(lambda: all(link.ending == 7 for link in links), seconds=10)
    assert server.lost() == []


def test_a_stranger_is_refused_and_named(server, said, call):
    with pytest.raises(Refused, match="different tokens"):
        call(server, token="another")
    until(lambda: said == ["refused algo-2: it doesn't know this run's token"], seconds=10)


def test_a_head_that_does_not_know_the_token_is_noticed(said, call):
    with ControlServer(HERE, "another", said.append, port=0) as impostor, pytest.raises(Refused):
        call(impostor)


@pytest.mark.parametrize("answer", [b"NO\n", b"GO 00\n"])
def test_the_token_never_crosses_the_wire_and_a_head_must_prove_itself(answer):
    heard = bytearray()
    with socket.create_server((HERE, 0)) as listener:

        def head():
            connection, _ = listener.accept()
            with connection:
                connection.sendall(b"WHO challenge\n")
                heard.extend(connection.recv(1024))
                connection.sendall(answer)

        threading.Thread(target=head, daemon=True).start()
        with pytest.raises(Refused):
            ControlLink(HERE, TOKEN, "algo-2", port=listener.getsockname()[1])
    assert b"algo-2" in heard
    assert TOKEN.encode() not in heard


def test_one_that_connects_and_says_nothing_does_not_keep_others_out(server, call):
    with socket.create_connection((HERE, server.port)):
        call(server).joined()
        server.wait(["algo-2"], 0, 10, never())


@pytest.mark.parametrize(
    "rubbish",
    [
        b"\n",
        b"GET / HTTP/1.1\r\n\r\n",
        b"x" * 5000,
        b"\xff\xfe\n",
        b"one two three four\n",
        b"algo-2 1 \xff\n",
    ],
)
def test_rubbish_is_dropped_and_the_head_goes_on(server, rubbish, call):
    with socket.create_connection((HERE, server.port)) as connection:
        connection.sendall(rubbish)
        connection.settimeout(10)
        while connection.recv(1024):
            pass
    call(server).joined()
    server.wait(["algo-2"], 0, 10, never())


def test_one_that_breaks_after_joining_is_lost_by_name(server, call):
    link = call(server)
    link.joined()
    server.wait(["algo-2"], 0, 10, never())
    link.close()
    until(lambda: server.lost() == ["algo-2"], seconds=10)


def test_one_that_breaks_before_joining_may_call_again(server, call):
    call(server).close()
    call(server).joined()
    server.wait(["algo-2"], 0, 10, never())
    assert server.lost() == []


def test_one_that_calls_again_is_not_lost_with_its_first_call(server, said, call, monkeypatch):
    """The head's thread gets no processor for a while after its first answer."""
    again = threading.Event()
    answered = []
    send = _Lines.send

    def slowly(lines: _Lines, *words: str) -> None:
        send(lines, *words)
        if words[0] == "GO":
            answered.append(words)
            if len(answered) == 1:
                again.wait(0.5)

    monkeypatch.setattr(_Lines, "send", slowly)
    call(server).close()
    link = call(server)
    link.joined()
    server.wait(["algo-2"], 0, 10, never())
    again.set()
    until(lambda: said == ["algo-2 called"] * 2, seconds=10)
    server.end(7)
    until(lambda: link.ending == 7, seconds=10)
    assert server.lost() == []


def test_who_is_missing_is_named_with_how_far_it_came(server, said, call):
    call(server, "algo-2")
    call(server, "algo-3").joined()
    until(lambda: "algo-2 called" in said, seconds=10)
    server.wait(["algo-3"], 0, 10, never())
    with pytest.raises(ClusterError) as raised:
        server.wait(["algo-2", "algo-3", "algo-10"], 2, 0, never())
    assert "algo-2 called, but its Ray node has not joined" in str(raised.value)
    assert "algo-10 has not called" in str(raised.value)
    assert "2 of the 2 machines of the job that plays" in str(raised.value)
    assert "algo-3" not in str(raised.value)


def test_waiting_ends_when_the_job_is_stopped(server):
    stop = threading.Event()
    stop.set()
    with pytest.raises(ClusterError, match="stopped"):
        server.wait(["algo-2"], 0, 60, stop)


def test_a_worker_notices_that_the_head_is_gone(said, call):
    with ControlServer(HERE, TOKEN, said.append, port=0) as server:
        link = call(server)
    until(lambda: link.broken, seconds=10)
    assert link.ending is None


def test_a_machine_that_can_tell_why_it_leaves_is_named_with_its_reason(server, call):
    link = call(server)
    link.joined()
    server.wait(["algo-2"], 0, 10, never())
    link.failed("Ray's raylet died\nEND 0 " + "×" * 1000)
    link.close()
    until(server.lost, seconds=10)
    (lost,) = server.lost()
    assert lost.startswith("algo-2 (Ray's raylet died END 0 ???")
    assert len(lost) < 512
