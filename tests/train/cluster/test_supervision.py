"""How a training ends on the head: by itself, killed, stopped, and when a machine or the Ray node
beside it is lost.
"""

from __future__ import annotations

import signal
import sys
import threading
from contextlib import suppress
from pathlib import Path

import pytest

from train.cluster import memory
from train.cluster.control import ControlServer
from train.cluster.hosts import ClusterError
from train.cluster.node_watch import NodeWatch
from train.cluster.supervision import TERMINATED, Supervision

SAVES = """
import signal, sys, time
def save(*_):
    print("saved", flush=True)
    sys.exit(0)
signal.signal(signal.SIGTERM, save)
print("ready", flush=True)
time.sleep(60)
"""
IGNORES = (
    "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('ready',"
    " flush=True); time.sleep(60)"
)


class Lost(ControlServer):
    """A head's side of which a test says who is lost."""

    def __init__(self) -> None:
        self.gone: list[str] = []

    def lost(self) -> list[str]:
        return self.gone


class Node(NodeWatch):
    """A node of which a test says whether it lives."""

    def died(self) -> str:
        return "Ray's raylet on this machine died" if dead else ""


dead: list[bool] = []


@pytest.fixture(autouse=True)
def _alive():
    dead.clear()


def run(program: str, then=None, *, lost_seconds: float = 30.0) -> tuple[int, list[str]]:
    """The exit code and what was said. `then(stop, control)` happens once the training has printed
    that it is ready.
    """
    control = Lost()
    stop = threading.Event()
    told = []
    training = Supervision(
        [sys.executable, "-c", program], {}, control, Node((), None), told.append
    )

    def wait() -> None:
        while not any("ready" in word for word in training._words):
            threading.Event().wait(0.01)
        then(stop, control)

    if then:
        threading.Thread(target=wait, daemon=True).start()
    return training.run(stop, grace_seconds=30.0, lost_seconds=lost_seconds), told


def test_a_training_that_ends_well_ends_with_nothing_and_one_that_fails_with_its_last_words():
    assert run("print('done')")[0] == 0
    with pytest.raises(ClusterError, match=r"ended with 3: (?s:.*)out of snakes"):
        run("print('out of snakes', flush=True); raise SystemExit(3)")


def test_a_training_outlives_what_is_no_text(capsys):
    """As a name in Latin-1, printed by a library."""
    program = (
        "import sys; sys.stdout.buffer.write(b'caf\\xe9\\n'); sys.stdout.flush(); print('trains"
        " on', flush=True)"
    )
    assert run(program)[0] == 0
    assert capsys.readouterr().out == "caf\\xe9\ntrains on\n"


@pytest.mark.skipif(
    not Path("/dev/full").exists(), reason="only Linux has a device that is always full"
)
def test_a_training_outlives_a_log_whose_disk_is_full(monkeypatch):
    with suppress(OSError), open("/dev/full", "w") as full:
        monkeypatch.setattr(sys, "stdout", full)
        assert run("for step in range(9): print(step, flush=True)")[0] == 0
        with pytest.raises(ClusterError, match=r"ended with 3: (?s:.*)out of snakes"):
            run("print('out of snakes', flush=True); raise SystemExit(3)")


def test_sigterm_lets_it_save():
    code, told = run(SAVES, lambda stop, _: stop.set())
    assert (code, told[0]) == (TERMINATED, "SIGTERM: the trainer is asked to save and end")
    assert told[1] == "the training ended with 0"


def test_a_lost_machine_lets_it_save_too_and_is_named(capsys):
    with pytest.raises(
        ClusterError, match="lost the machine algo-2; start again from the last checkpoint"
    ):
        run(SAVES, lambda _, control: control.gone.append("algo-2"))
    assert "saved" in capsys.readouterr().out


def test_the_nodes_own_death_lets_it_save_too_and_is_told():
    with pytest.raises(ClusterError, match="raylet on this machine died; start again"):
        run(SAVES, lambda *_: dead.append(True))


def test_one_that_does_not_save_in_time_is_killed():
    with pytest.raises(ClusterError, match="lost the machine algo-2"):
        run(IGNORES, lambda _, control: control.gone.append("algo-2"), lost_seconds=0.0)


def test_a_killed_training_asks_for_memory_and_tells_what_speaks_for_it(monkeypatch, tmp_path):
    kill_oneself = f"import os; os.kill(os.getpid(), {signal.SIGKILL.value})"
    events = tmp_path / "memory.events"
    monkeypatch.setattr(memory, "_COUNTERS", (events,))
    with pytest.raises(ClusterError, match=r"ended with -9 .out of memory. nothing here shows"):
        run(kill_oneself)
    events.write_text("low 0\noom 2\noom_kill 4\noom_group_kill 0\n")
    with pytest.raises(
        ClusterError, match=r"the kernel has counted no such kill; [0-9.]+ GiB are free now"
    ):
        run(kill_oneself)
    before = "oom 2\noom_kill 4\n"
    counts = f"open({str(events)!r}, 'w').write({before.replace('4', '5')!r}); {kill_oneself}"
    with pytest.raises(
        ClusterError, match="out of memory: the kernel has killed 1 of its processes"
    ):
        run(counts)
