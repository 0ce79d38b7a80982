"""Machines to throw away, on one Linux: each has its own network, processes, host name, /opt/ml,
/tmp/ray and shared memory.

They are joined by a bridge in a namespace of its own and have no way out. Needs root.
"""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
SUBNET = "10.77.0"
_NAP = 0.05
_SCRIPT = """\
set -e
mount --make-rprivate /
hostname "$1"
mkdir -p /opt/ml /tmp/ray
mount --bind "$2" /opt/ml
mount -t tmpfs tmpfs /tmp/ray
mount -t tmpfs -o size=512m tmpfs /dev/shm
shift 2
exec "$@"
"""


def require_machines() -> None:
    """Skip the test, saying why, where there can be none."""
    if os.geteuid() != 0:
        pytest.skip("needs root, for network namespaces")
    for program in ("ip", "unshare", "setpriv"):
        if not shutil.which(program):
            pytest.skip(f"needs the program {program} (iproute2, util-linux)")
    name = f"probe{uuid.uuid4().hex[:6]}"
    tried = subprocess.run(
        ["ip", "netns", "add", name], capture_output=True, text=True, check=False
    )
    if tried.returncode:
        pytest.skip(f"network namespaces can't be made here: {tried.stderr.strip()}")
    subprocess.run(["ip", "netns", "del", name], check=False)


@dataclass
class Machine:
    """One of them. `name` may be "algo-1@second": of another job, which has hosts of the same
    names.
    """

    name: str
    address: str
    namespace: str
    folder: Path
    process: subprocess.Popen[bytes] | None = None
    environment: dict[str, str] = field(default_factory=dict)

    @property
    def ml(self) -> Path:
        """Its /opt/ml."""
        return self.folder / "opt_ml"

    @property
    def log(self) -> str:
        """What it has printed."""
        path = self.folder / "log.txt"
        return path.read_text(errors="replace") if path.is_file() else ""

    @property
    def failure(self) -> str:
        """The reason that it left, if it failed."""
        path = self.ml / "output" / "failure"
        return path.read_text() if path.is_file() else ""

    def start(self, command: Sequence[str]) -> None:
        """Run a command as its first process."""
        home = self.folder / "home"
        home.mkdir(exist_ok=True)
        tini = shutil.which("tini")
        init = [tini, "--"] if tini else []
        isolated = shlex.split(
            "unshare --uts --pid --mount --ipc --fork --kill-child=KILL --mount-proc"
        )
        arguments = [
            "bash",
            "-c",
            _SCRIPT,
            "init",
            self.name.partition("@")[0],
            str(self.ml),
            *init,
            *command,
        ]
        environment = {
            "PATH": "/usr/sbin:/usr/bin:/sbin:/bin",
            "LANG": "C.UTF-8",
            "HOME": str(home),
            "PYTHONPATH": str(ROOT),
            "PROCSNAKE_CACHE": os.environ.get(
                "PROCSNAKE_CACHE", str(Path.home() / ".cache" / "procsnake")
            ),
            **self.environment,
        }
        with open(self.folder / "log.txt", "ab") as log:
            self.process = subprocess.Popen(
                [
                    *shlex.split("setpriv --pdeathsig KILL ip netns exec"),
                    self.namespace,
                    *isolated,
                    *arguments,
                ],
                stdout=log,
                stderr=subprocess.STDOUT,
                env=environment,
                cwd=ROOT,
                start_new_session=True,
            )

    def first_process(self) -> int:
        """The number that its first process has outside."""
        assert self.process
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children")
        return int(children.read_text().split()[0])

    def terminate(self) -> None:
        """SIGTERM to its first process, as SageMaker stops a container."""
        os.kill(self.first_process(), signal.SIGTERM)

    def vanish(self) -> None:
        """The machine is gone at once, with all its processes."""
        os.kill(self.first_process(), signal.SIGKILL)

    def kill(self, name: str) -> None:
        """End its processes of this name at once, and nothing else."""
        own = os.readlink(f"/proc/{self.first_process()}/ns/pid")
        for comm in Path("/proc").glob("[0-9]*/comm"):
            try:
                if comm.read_text().strip() == name and os.readlink(comm.parent / "ns/pid") == own:
                    os.kill(int(comm.parent.name), signal.SIGKILL)
            except FileNotFoundError:
                continue

    def unplug(self) -> None:
        """Nothing reaches it or comes from it any more."""
        subprocess.run(["ip", "-n", self.namespace, "link", "set", "eth0", "down"], check=True)

    def wait(self, seconds: float) -> int:
        """Its exit code. Fails the test, with what it printed, if it takes longer.

        Time is counted in short naps of this process, so that it stands still while the whole
        machine does."""
        assert self.process
        for _ in range(round(seconds / _NAP)):
            if self.process.poll() is not None:
                return self.process.returncode
            time.sleep(_NAP)
        pytest.fail(
            f"{self.name} still runs after {seconds:.0f} s; it printed:\n{self.log[-3000:]}"
        )

    def wait_for(self, text: str, seconds: float) -> None:
        """Until it has printed `text`. Fails the test if it ends or takes longer."""
        assert self.process
        deadline = time.monotonic() + seconds
        while text not in self.log:
            if self.process.poll() is not None or time.monotonic() > deadline:
                pytest.fail(
                    f"{self.name} never printed {text!r} (exit code"
                    f" {self.process.poll()}):\n{self.log[-3000:]}"
                )
            time.sleep(0.1)

    def close(self) -> None:
        """Stop it, if it still runs."""
        if self.process and self.process.poll() is None:
            try:
                self.vanish()
            except (IndexError, OSError):
                self.process.kill()
            self.process.wait(10)


@contextmanager
def machines(
    names: Sequence[str], folder: Path, environment: Mapping[str, str]
) -> Iterator[list[Machine]]:
    """Machines of these names, which resolve among those of the same job."""
    tag = f"ps{uuid.uuid4().hex[:4]}"
    switch = f"{tag}-switch"
    made = []
    try:
        _ip("netns", "add", switch)
        _ip("-n", switch, "link", "add", "br0", "type", "bridge")
        _ip("-n", switch, "addr", "add", f"{SUBNET}.1/24", "dev", "br0")
        _ip("-n", switch, "link", "set", "br0", "up")
        _ip("-n", switch, "link", "set", "lo", "up")
        for k, name in enumerate(names):
            machine = Machine(
                name,
                f"{SUBNET}.{10 + k}",
                f"{tag}-{k}",
                folder / name,
                environment=dict(environment),
            )
            machine.ml.mkdir(parents=True)
            made.append(machine)
            _plug(machine, switch, f"{tag}v{k}")
        for machine in made:
            _write_names(machine, made)
        yield made
    finally:
        for machine in made:
            machine.close()
        for namespace in (switch, *(machine.namespace for machine in made)):
            subprocess.run(["ip", "netns", "del", namespace], capture_output=True, check=False)
            shutil.rmtree(Path("/etc/netns") / namespace, ignore_errors=True)


@contextmanager
def on_the_switch(
    machine: Machine, command: Sequence[str], port: int, environment: Mapping[str, str]
) -> Iterator[None]:
    """A server that all machines of `machine`'s network reach at SUBNET.1 and `port`."""
    inside = ["ip", "netns", "exec", f"{machine.namespace.rpartition('-')[0]}-switch"]
    process = subprocess.Popen(
        [*inside, *command], stderr=subprocess.DEVNULL, env={**os.environ, **environment}, cwd=ROOT
    )
    knock = f"import socket; socket.create_connection(('{SUBNET}.1', {port}))"
    try:
        deadline = time.monotonic() + 60
        while subprocess.run(
            [*inside, *python("-c", knock)], capture_output=True, check=False
        ).returncode:
            assert process.poll() is None, "the server has ended"
            assert time.monotonic() < deadline, "the server does not come up"
        yield
    finally:
        process.terminate()
        process.wait(10)


def python(*arguments: str) -> list[str]:
    """A command of this Python."""
    return [sys.executable, *arguments]


def _plug(machine: Machine, switch: str, cable: str) -> None:
    _ip("netns", "add", machine.namespace)
    _ip(
        "link",
        "add",
        cable,
        "netns",
        switch,
        "type",
        "veth",
        "peer",
        "name",
        "eth0",
        "netns",
        machine.namespace,
    )
    _ip("-n", switch, "link", "set", cable, "master", "br0", "up")
    _ip("-n", machine.namespace, "addr", "add", f"{machine.address}/24", "dev", "eth0")
    _ip("-n", machine.namespace, "link", "set", "eth0", "up")
    _ip("-n", machine.namespace, "link", "set", "lo", "up")


def _write_names(machine: Machine, all_machines: Sequence[Machine]) -> None:
    job = machine.name.partition("@")[2]
    known = [
        (other.address, other.name.partition("@")[0])
        for other in all_machines
        if other.name.partition("@")[2] == job
    ]
    folder = Path("/etc/netns") / machine.namespace
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "hosts").write_text(
        "127.0.0.1 localhost\n" + "".join(f"{address} {name}\n" for address, name in known)
    )


def _ip(*arguments: str) -> None:
    done = subprocess.run(["ip", *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"ip {' '.join(arguments)}: {done.stderr}"
