"""The way to the head's dashboard: what the entry point makes of the job's environment, and a
command that AWS's would take.
"""

from __future__ import annotations

import json
import shlex

import boto3
from botocore.stub import Stubber

from train.cluster.launcher import Launch
from train.sagemaker import tunnel
from train.sagemaker.container import entry
from train.sagemaker.container.files import Container
from train.sagemaker.tunnel import parse_tunnel_line, tunnel_lines


def container(tmp_path, hosts=("algo-1", "algo-2"), me="algo-1") -> Container:
    (tmp_path / "input/config").mkdir(parents=True)
    (tmp_path / "code").mkdir()
    config = {"current_host": me, "hosts": list(hosts), "network_interface_name": "eth0"}
    (tmp_path / "input/config/resourceconfig.json").write_text(json.dumps(config))
    (tmp_path / "input/config/hyperparameters.json").write_text(
        json.dumps({"experiment": "battlesnake-ppo"})
    )
    return Container(tmp_path)


def started(tmp_path, monkeypatch, me="algo-1") -> Launch:
    """What the entry point would have launched on this machine."""
    found = []
    here = container(tmp_path, me=me)
    monkeypatch.setattr(Container, "here", lambda: here)
    monkeypatch.setattr(entry, "launch", lambda plan, stop: found.append(plan) or 0)
    monkeypatch.setattr(entry.signal, "signal", lambda *_: None)
    assert entry.main(["train"]) == 0
    return found[0]


def test_a_job_without_a_dashboard_has_none(tmp_path, monkeypatch, capsys):
    plan = started(tmp_path, monkeypatch)
    assert (plan.dashboard, plan.prometheus_config, capsys.readouterr().out) == (False, None, "")


def test_the_head_tells_the_ways_and_the_users_file_is_found(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("PROCSNAKE_DASHBOARD", "1")
    monkeypatch.setenv("TRAINING_JOB_NAME", "procsnake-battlesnake-ppo-1")
    monkeypatch.setattr(tunnel, "found_prometheus", lambda: "/usr/bin/prometheus")
    plan = started(tmp_path, monkeypatch)
    assert plan.dashboard
    printed = capsys.readouterr().out.splitlines()
    assert [parse_tunnel_line(line).split(":")[0] for line in printed] == [
        "Ray's dashboard, then at http",
        "Prometheus, then at http",
    ]
    (tmp_path / "code" / "prometheus.yml").touch()
    assert entry.plan(Container(tmp_path)).prometheus_config == tmp_path / "code" / "prometheus.yml"


def test_those_who_join_tell_nothing(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("PROCSNAKE_DASHBOARD", "1")
    assert started(tmp_path, monkeypatch, me="algo-2").dashboard
    assert capsys.readouterr().out == ""


def test_the_command_is_a_call_that_systems_manager_knows(monkeypatch):
    """As the AWS command line sends it, by botocore's model of the service."""
    monkeypatch.setenv("TRAINING_JOB_NAME", "procsnake-x")
    line, *_ = tunnel_lines("algo-3")
    words = shlex.split(parse_tunnel_line(line).partition(": aws ")[2])
    assert words[:2] == ["ssm", "start-session"]
    told = dict(zip(words[2::2], words[3::2], strict=True))
    assert told["--target"] == "sagemaker-training-job:procsnake-x_algo-3"
    client = boto3.client("ssm", "eu-west-1", aws_access_key_id="a", aws_secret_access_key="b")
    sent = {
        "Target": told["--target"],
        "DocumentName": told["--document-name"],
        "Parameters": json.loads(told["--parameters"]),
    }
    with Stubber(client) as stub:
        stub.add_response("start_session", {}, sent)
        client.start_session(**sent)
    assert sent["Parameters"] == {"portNumber": ["8265"], "localPortNumber": ["8265"]}
    assert parse_tunnel_line("procsnake-metrics training_iteration=1") == ""
