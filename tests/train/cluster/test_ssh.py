"""`procsnake cluster`: the commands it would give, and the real thing over ssh on machines of their
own.
"""

from __future__ import annotations

import io
import shlex
import shutil
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import pytest
import yaml

import procsnake
from tests.train.cluster.machines import ROOT, machines, require_machines
from tests.train.experiments import toy_q
from train.cluster import node, node_watch, ray_node
from train.cluster.hosts import ClusterError
from train.cluster.node import RUNS_ALREADY, keep_token
from train.cluster.ssh import Machines, call, start_command, stop_command, up

MACHINES = Machines(
    head="me@gpu", workers=["spare"], rollout=["cpu-1"], python="/opt/my venv/bin/python"
)


def test_who_learns_and_who_plays():
    assert MACHINES.groups() == [("me@gpu", "learner"), ("spare", "learner"), ("cpu-1", "rollout")]
    assert Machines(head="a", workers=["b"]).groups() == [("a", "all"), ("b", "all")]


def test_the_commands_are_what_ssh_and_the_shell_there_understand():
    command = start_command(MACHINES, "cpu-1", "rollout", "10.0.0.5")
    assert command[0] == "ssh"
    assert command[-2] == "cpu-1"
    assert "BatchMode=yes" in command
    there = shlex.split(command[-1])
    assert there == [
        "/opt/my venv/bin/python",
        *shlex.split("-m train.cluster.node start --group rollout --head 10.0.0.5"),
    ]
    assert shlex.split(start_command(MACHINES, "me@gpu", "learner", "")[-1])[-2:] == [
        "--group",
        "learner",
    ]
    assert shlex.split(stop_command(MACHINES, "cpu-1")[-1])[-1] == "stop"


def test_a_machine_cannot_be_an_option():
    with pytest.raises(ClusterError, match="is not the name of a machine"):
        start_command(MACHINES, "-oProxyCommand=evil", "rollout", "")


def test_the_commands_are_printed(capsys):
    assert procsnake.main(["cluster", "up", "gpu", "--rollout", "cpu-1", "cpu-2", "--print"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 3
    assert "--group learner" in lines[0]
    assert all("--group rollout --head HEAD_ADDRESS" in line for line in lines[1:])


def test_a_machine_that_fails_is_named_with_what_it_said():
    with pytest.raises(ClusterError, match=r"cpu-1: no room here\. Try it by hand: sh -c true"):
        call(["sh", "-c", "cat >/dev/null; echo no room here >&2; exit 3"], "token", "cpu-1")


def test_what_a_machine_says_in_another_encoding_is_told():
    """Under a locale of Latin-1, its words are no UTF-8."""
    with pytest.raises(ClusterError, match=r"cpu-1: acc\\xe8s refus\\xe9\. Try it by hand"):
        call(["sh", "-c", r"printf 'acc\350s refus\351' >&2; exit 3"], "", "cpu-1")


def test_without_ssh_it_says_what_to_install():
    with pytest.raises(ClusterError, match="openssh-client"):
        call(["no-such-program-7"], "", "cpu-1")


def test_the_token_is_for_its_owner_alone(tmp_path):
    path = tmp_path / "home" / "cluster-token"
    for token in ("first", "second"):
        keep_token(token, path)
        assert path.read_text() == token
        assert path.stat().st_mode & 0o777 == 0o600
    assert [one.name for one in path.parent.iterdir()] == ["cluster-token"]


def test_a_cluster_that_cannot_be_completed_is_taken_down_again(tmp_path, monkeypatch):
    log = tmp_path / "log"
    ssh = tmp_path / "ssh"
    ssh.write_text(f"""#!/bin/sh
case "$*" in *cpu-1*start*) echo "cpu-1: connection refused" >&2; exit 255;; esac
echo "$*" >> {log}
case "$*" in *start*) cat >/dev/null; echo 10.0.0.5;; esac
""")
    ssh.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    with pytest.raises(ClusterError, match="cpu-1: connection refused"):
        up(Machines(head="gpu", rollout=["cpu-1"]), print)
    first, *rest = log.read_text().splitlines()
    assert first.endswith("start --group learner")
    assert [line.split()[-5] for line in rest] == ["gpu", "cpu-1"]
    assert all(line.endswith("train.cluster.node stop") for line in rest)


def test_a_clean_up_that_takes_too_long_does_not_hide_the_reason(monkeypatch):
    def run(command, *, timeout, **_):
        if command == stop_command(Machines(head="gpu"), "gpu"):
            raise subprocess.TimeoutExpired(command, timeout)
        return subprocess.CompletedProcess(command, 1, "", "no room here")

    monkeypatch.setattr(subprocess, "run", run)
    with pytest.raises(ClusterError, match="gpu: no room here"):
        up(Machines(head="gpu"), print)


def test_a_cluster_whose_start_is_interrupted_is_taken_down_again(monkeypatch):
    machines = Machines(head="gpu", rollout=["cpu-1"])
    ran = []

    def run(command, **_):
        ran.append(command)
        if command == start_command(machines, "cpu-1", "rollout", "10.0.0.5"):
            raise KeyboardInterrupt
        return subprocess.CompletedProcess(command, 0, "10.0.0.5\n", "")

    monkeypatch.setattr(subprocess, "run", run)
    with pytest.raises(KeyboardInterrupt):
        up(machines, print)
    assert ran[2:] == [stop_command(machines, "gpu"), stop_command(machines, "cpu-1")]


@pytest.mark.parametrize(("refuses", "stopped"), [("gpu", []), ("cpu-1", ["gpu"])])
def test_a_machine_with_a_cluster_keeps_it(tmp_path, monkeypatch, refuses, stopped):
    log = tmp_path / "log"
    ssh = tmp_path / "ssh"
    ssh.write_text(f"""#!/bin/sh
echo "$*" >> {log}
case "$*" in
  *{refuses}*start*) echo "Ray already runs here" >&2; exit {RUNS_ALREADY};;
  *start*) echo 10.0.0.5;;
esac
""")
    ssh.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    with pytest.raises(ClusterError, match=f"^{refuses}: Ray already runs here$"):
        up(Machines(head="gpu", rollout=["cpu-1"]), print)
    stops = [
        line.split()
        for line in log.read_text().splitlines()
        if line.endswith("train.cluster.node stop")
    ]
    assert [words[-5] for words in stops] == stopped


@pytest.mark.parametrize("joining", [[], ["--head", "127.0.0.1"]])
def test_a_node_where_ray_runs_keeps_its_token(tmp_path, monkeypatch, capsys, joining):
    (tmp_path / "proc" / "77").mkdir(parents=True)
    (tmp_path / "proc" / "77" / "comm").write_text("raylet\n")
    (tmp_path / "proc" / "77" / "stat").write_text(
        f"77 (raylet) S {' '.join(map(str, range(50)))}\n"
    )
    monkeypatch.setattr(node_watch, "_PROC", tmp_path / "proc")
    monkeypatch.setattr(
        ray_node, "start", lambda *_, **__: pytest.fail("a second node was started")
    )
    monkeypatch.setenv("PROCSNAKE_HOME", str(tmp_path))
    monkeypatch.setattr("sys.stdin", io.StringIO("second"))
    keep_token("first", tmp_path / "cluster-token")
    assert node.main(["start", *joining]) == RUNS_ALREADY
    assert (tmp_path / "cluster-token").read_text() == "first"
    assert "Ray already runs on this machine" in capsys.readouterr().err


def test_the_head_is_where_ssh_reached_it(tmp_path, monkeypatch, capsys):
    started = []
    monkeypatch.setattr(node_watch, "_PROC", tmp_path)
    monkeypatch.setattr(ray_node, "start", lambda *_, **options: started.append(options["address"]))
    monkeypatch.setenv("PROCSNAKE_HOME", str(tmp_path))
    monkeypatch.setenv("SSH_CONNECTION", "198.51.100.4 50022 203.0.113.7 22")
    for arguments in ([], ["--address", "203.0.113.8"], ["--head", "127.0.0.1"]):
        monkeypatch.setattr("sys.stdin", io.StringIO("token"))
        assert node.main(["start", *arguments]) == 0
    assert capsys.readouterr().out.split() == started == ["203.0.113.7", "203.0.113.8", "127.0.0.1"]


@pytest.fixture
def over_ssh(tmp_path, monkeypatch):
    """Two machines with sshd, and ssh's options to reach them."""
    require_machines()
    for program in ("ssh", "sshd", "ssh-keygen"):
        if not shutil.which(program, path="/usr/sbin:/usr/bin"):
            pytest.skip(f"needs the program {program} (openssh-client, openssh-server)")
    key = tmp_path / "key"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key], check=True)
    Path("/run/sshd").mkdir(exist_ok=True)
    with ExitStack() as stack:
        made = stack.enter_context(machines(["gpu-box", "cpu-1"], tmp_path, {}))
        for machine in made:
            settings = {
                "ListenAddress": machine.address,
                "HostKey": key,
                "AuthorizedKeysFile": f"{key}.pub",
                "UsePAM": "no",
                "StrictModes": "no",
                "PidFile": "none",
                "SetEnv": f"PROCSNAKE_HOME={machine.folder / 'procsnake'} PYTHONPATH={ROOT}",
            }
            config = machine.folder / "sshd_config"
            config.write_text("".join(f"{name} {value}\n" for name, value in settings.items()))
            machine.start(["/usr/sbin/sshd", "-D", "-e", "-f", str(config)])
        for machine in made:
            machine.wait_for("Server listening", 30)
        options = (
            "-i",
            str(key),
            "-o",
            "StrictHostKeyChecking=no",
            "-o",
            "UserKnownHostsFile=/dev/null",
            "-o",
            "LogLevel=ERROR",
        )
        # ssh itself runs where it reaches both: in the network of the first machine.
        program = tmp_path / "bin" / "ssh"
        program.parent.mkdir()
        program.write_text(f'#!/bin/sh\nexec ip netns exec {made[0].namespace} /usr/bin/ssh "$@"\n')
        program.chmod(0o755)
        monkeypatch.setenv("PATH", f"{program.parent}:/usr/sbin:/usr/bin:/bin")
        yield made, options


@pytest.mark.long
def test_two_machines_become_a_cluster_over_ssh_and_are_trained_on(over_ssh, tmp_path):
    (head, worker), options = over_ssh
    both = Machines(head="gpu-box", rollout=["cpu-1"], python=sys.executable, ssh_options=options)
    said = []
    assert up(both, said.append) == head.address
    assert said == [f"gpu-box: learner, at {head.address}", f"cpu-1: rollout, at {worker.address}"]
    tokens = {
        (machine.folder / "procsnake" / "cluster-token").read_text() for machine in (head, worker)
    }
    assert len(tokens) == 1
    with pytest.raises(ClusterError, match="gpu-box: Ray already runs on this machine"):
        up(both, said.append)

    experiment = tmp_path / "experiment.yaml"
    experiment.write_text(
        yaml.safe_dump({**toy_q("identity").to_dict(), "budget": {"total_agent_steps": 2048}})
    )
    train = [
        sys.executable,
        "-m",
        "procsnake",
        "train",
        "--config",
        str(experiment),
        "--cluster",
        "auto",
        "--runs",
        str(tmp_path / "runs"),
    ]
    out = call(
        ["ssh", *options, "gpu-box", f"cd {shlex.quote(str(ROOT))} && {shlex.join(train)}"],
        "",
        "gpu-box",
    )
    assert out.startswith("report: ")
    (run,) = (tmp_path / "runs").iterdir()
    # It did not say how many play: one for each of the playing machine's two processors.
    assert yaml.safe_load((run / "config.yaml").read_text())["num_env_runners"] == 2

    for machine in ("cpu-1", "gpu-box"):
        call(stop_command(both, machine), "", machine)
    assert not [
        machine
        for machine in (head, worker)
        if (machine.folder / "procsnake" / "cluster-token").exists()
    ]
