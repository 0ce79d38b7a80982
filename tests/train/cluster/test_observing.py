"""Prometheus beside the head, by a stand-in that notes how it is called; and Ray's options, by
Ray's own parser.
"""

from __future__ import annotations

import subprocess
import time
from pathlib import Path

import pytest
import yaml
from ray.scripts.scripts import start as ray_start

from tests.waiting import until
from train.cluster import observing, ray_node


@pytest.fixture
def program(tmp_path, monkeypatch) -> Path:
    """The stand-in, alone on the path beside the shell. It notes its arguments and its file, then
    waits to be ended.
    """
    folder = tmp_path / "bin"
    folder.mkdir()
    script = f"""#!/bin/sh
for word; do
  case "$word" in --config.file=*) cat "${{word#--config.file=}}" > {tmp_path}/config; esac
done
echo "$@" > {tmp_path}/called
trap 'touch {tmp_path}/ended; exit 0' TERM
while :; do /bin/sleep 0.05; done
"""
    (folder / "prometheus").write_text(script)
    (folder / "prometheus").chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
    monkeypatch.setenv("RAY_TMPDIR", "/somewhere")
    return tmp_path


def soon(path: Path) -> str:
    return until(lambda: path.is_file() and path.read_text(), told=lambda: f"{path} isn't there")


def test_it_scrapes_whatever_ray_lists_and_nobody_else_reaches_it(program):
    said = []
    with observing.prometheus(None, said.append):
        arguments = soon(program / "called").split()
        assert "--web.listen-address=127.0.0.1:9090" in arguments
    (scraped,) = yaml.safe_load((program / "config").read_text())["scrape_configs"]
    assert scraped["file_sd_configs"][0]["files"] == [
        "/somewhere/ray/prom_metrics_service_discovery.json"
    ]
    assert (program / "ended").exists()
    assert len(said) == 1


def test_the_users_own_file_is_taken(program):
    own = program / "prometheus.yml"
    own.write_text("global: {scrape_interval: 1m}\n")
    with observing.prometheus(own, print):
        soon(program / "called")
    assert (program / "config").read_text() == own.read_text()


def test_the_training_goes_on_without_it(program):
    said = []
    (program / "bin" / "prometheus").write_text("#!/bin/sh\nexit 3\n")
    with observing.prometheus(None, said.append):
        time.sleep(1)
    assert said[-1] == "Prometheus had ended before, with 3"


def test_where_there_is_no_such_program_there_is_nothing_to_say(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    said = []
    with observing.prometheus(None, said.append):
        pass
    assert said == []


@pytest.mark.parametrize("head", [None, "10.0.0.1"])
@pytest.mark.parametrize("dashboard", [False, True])
def test_ray_understands_how_a_node_is_started(head, dashboard):
    words = ray_node.start_command(
        address="10.0.0.2", group="learner", head=head, dashboard=dashboard
    )
    told = ray_start.make_context("start", words[1:]).params
    assert told["metrics_export_port"] == (8080 if dashboard else None)
    assert told["address"] == (f"{head}:6379" if head else None)
    if head is None:
        assert told["include_dashboard"] is dashboard
        assert told["dashboard_host"] in ("127.0.0.1", "localhost")
        assert int(told["dashboard_port"]) == 8265


def test_without_the_extra_ray_says_what_is_missing(monkeypatch):
    answer = subprocess.CompletedProcess([], 1, "Download ray[default] to use the dashboard")
    monkeypatch.setattr(ray_node, "_ray", lambda *_: answer)
    with pytest.raises(ray_node.ClusterError, match=r"ray\[default\]"):
        ray_node.start({}, address="10.0.0.2", group="learner", dashboard=True)
