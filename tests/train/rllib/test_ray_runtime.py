from __future__ import annotations

import os
import subprocess
import sys
from types import SimpleNamespace

import pytest
import ray
from ray._private.node import Node
from ray.widgets.util import _has_outdated

from train.rllib.ray_runtime import RayError, running_ray

START = """
from train.rllib.ray_runtime import RayError, running_ray
try:
    with running_ray(1):
        pass
except RayError as error:
    print(error)
"""


def test_a_ray_that_cant_start_is_told_in_a_line():
    """Its folder is one that can't be made."""
    environment = {**os.environ, "RAY_TMPDIR": "/dev/null/x"}
    told = subprocess.run(
        [sys.executable, "-c", START], env=environment, capture_output=True, text=True, check=True
    ).stdout
    assert "Not a directory: '/dev/null/x'" in told
    assert "RAY_TMPDIR: another folder" in told
    assert len(told.splitlines()) == 1


def starts(monkeypatch: pytest.MonkeyPatch, *failures: str) -> list[dict]:
    """Let Ray's starts fail with these words, one after another, and return what each was given."""
    given: list[dict] = []

    def init(**options) -> None:
        given.append(options)
        if len(given) <= len(failures):
            raise RuntimeError(failures[len(given) - 1])

    monkeypatch.setattr(ray, "is_initialized", lambda: False)
    monkeypatch.setattr(ray, "init", init)
    monkeypatch.setattr(ray, "shutdown", lambda: None)
    return given


BUSY = "The current node timed out during startup. This could happen because …"


def test_a_ray_that_starts_too_slowly_is_started_again(monkeypatch):
    given = starts(monkeypatch, BUSY, BUSY)
    with running_ray(1):
        pass
    assert given == [given[0]] * 3


@pytest.mark.parametrize(("failures", "attempts"), [((BUSY,) * 3, 3), (("No space left",), 1)])
def test_a_ray_that_fails_otherwise_or_again_is_an_error(monkeypatch, failures, attempts):
    given = starts(monkeypatch, *failures)
    with pytest.raises(RayError, match=failures[-1]), running_ray(1):
        pass
    assert len(given) == attempts


HALF_STARTED = """
import os, subprocess
from ray._private.node import Node
from train.rllib.ray_runtime import RayError, running_ray

def fail(node):
    print("begun with", *node.all_processes)
    raise RuntimeError("no raylet")

Node.start_ray_processes = fail
try:
    with running_ray(1):
        pass
except RayError:
    children = ["ps", "--ppid", str(os.getpid()), "-o", "comm="]
    print("left", subprocess.run(children, capture_output=True, text=True).stdout)
"""


def test_a_start_that_fails_leaves_no_process_behind():
    """The next start would be slower still."""
    told = subprocess.run(
        [sys.executable, "-c", HALF_STARTED], capture_output=True, text=True, check=True
    ).stdout
    begun, _, left = told.partition("left")
    assert "gcs_server" in begun
    assert left.split() == ["ps"]


def test_ray_asks_for_no_newer_widgets(monkeypatch, caplog):
    """As it does in Colab's notebooks."""
    starts(monkeypatch)
    with running_ray(1):
        pass
    assert _has_outdated(("ipywidgets", "999"), message="Run `pip install -U ipywidgets`")
    assert not caplog.records


def test_a_ray_of_our_own_has_no_dashboard_and_no_monitor(monkeypatch):
    started = {"start_api_server": Node.start_api_server, "start_monitor": Node.start_monitor}
    node = SimpleNamespace()

    def init(**_options) -> None:
        Node.start_api_server(node, include_dashboard=False, raise_on_failure=False)
        Node.start_monitor(node)

    starts(monkeypatch)
    monkeypatch.setattr(ray, "init", init)
    with running_ray(1):
        pass
    assert vars(node) == {"_webui_url": ""}
    assert {name: getattr(Node, name) for name in started} == started


@pytest.mark.usefixtures("one_ray")
def test_the_rest_of_ray_runs():
    running = ray._private.worker._global_node.all_processes
    assert {"gcs_server", "raylet"} <= running.keys()
    assert running.keys().isdisjoint({"dashboard", "monitor"})
    assert ray.get(ray.remote(lambda: 3).remote()) == 3
