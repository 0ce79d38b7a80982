"""The watch on a Ray node, on processes that only look like Ray's."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from train.cluster import memory, node_watch
from train.cluster.node_watch import NodeWatch, is_running

ADDRESS = "127.9.8.7"
OTHER = "127.9.8.6"


@pytest.fixture
def start(tmp_path) -> Iterator:
    """Starts a program of that name and address, which waits."""
    shell = shutil.which("bash")
    started = []

    def start(name: str, address: str) -> subprocess.Popen[bytes]:
        program = tmp_path / name
        if not program.exists():
            shutil.copy(shell, program)
        arguments = [str(program), "-c", "read", f"--node_ip_address={address}"]
        process = subprocess.Popen(arguments, stdin=subprocess.PIPE)
        started.append(process)
        # Popen returns when the old program is gone, a moment before the kernel has written down
        # the new one's arguments.
        while address.encode() not in (Path("/proc") / str(process.pid) / "cmdline").read_bytes():
            assert process.poll() is None
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()


def test_whichever_of_its_processes_dies_is_named(start, monkeypatch):
    monkeypatch.setattr(memory, "_COUNTERS", (Path("/nonexistent"),))
    raylet = start("raylet", ADDRESS)
    _ = start("gcs_server", ADDRESS)
    watch = NodeWatch.of(ADDRESS)
    assert [name for name, *_ in sorted(watch.processes)] == ["gcs_server", "raylet"]
    assert watch.died() == ""
    raylet.kill()
    # Dead, but not buried, as where a container has no init.
    while (Path("/proc") / str(raylet.pid) / "stat").read_text().split()[2] != "Z":
        pass
    assert watch.died().startswith("Ray's raylet on this machine died (out of memory?")
    raylet.wait()
    assert "raylet" in watch.died()


def test_nodes_at_other_addresses_and_other_programs_are_not_watched(start):
    start("raylet", OTHER)
    start("worker", ADDRESS)
    assert NodeWatch.of(ADDRESS).processes == ()
    assert NodeWatch.of(ADDRESS).died() == ""


def test_a_node_runs_where_this_user_has_a_living_process_of_it(start, tmp_path, monkeypatch):
    seen = tmp_path / "proc"
    seen.mkdir()
    monkeypatch.setattr(node_watch, "_PROC", seen)
    other = start("python", ADDRESS)
    (seen / str(other.pid)).symlink_to(f"/proc/{other.pid}")
    assert not is_running()
    raylet = start("raylet", ADDRESS)
    (seen / str(raylet.pid)).symlink_to(f"/proc/{raylet.pid}")
    assert is_running()
    monkeypatch.setattr(node_watch.os, "getuid", lambda: 4711)
    assert not is_running()
    monkeypatch.undo()
    monkeypatch.setattr(node_watch, "_PROC", seen)
    raylet.kill()
    raylet.wait()
    assert not is_running()
