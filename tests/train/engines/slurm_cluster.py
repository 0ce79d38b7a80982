"""A Slurm of its own on machines to throw away: munged outside, slurmctld and slurmd on the first,
slurmd on the others.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.train.cluster.machines import Machine, machines, require_machines
from tests.waiting import until

PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "scancel", "scontrol")
_FIRST_JOBS = range(1, 12)
_CONF = """\
ClusterName=thrown-away
SlurmctldHost={first.name}({first.address})
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
SlurmUser=root
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool-%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd-%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd-%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/affinity
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU_Memory
JobAcctGatherType=jobacct_gather/none
ReturnToService=2
{nodes}
PartitionName=all Nodes=ALL Default=YES State=UP
"""


@dataclass(frozen=True)
class Slurm:
    """A running cluster."""

    folder: Path
    machines: list[Machine]

    @property
    def first(self) -> Machine:
        """The machine on which slurmctld runs."""
        return self.machines[0]

    def call(self, *words: object) -> str:
        """What a command of Slurm's prints on the first machine, in the folder `desk`. Fails the
        test if it fails.
        """
        environment = {**os.environ, **self.first.environment}
        inside = ["ip", "netns", "exec", self.first.namespace, *map(str, words)]
        done = subprocess.run(
            inside,
            capture_output=True,
            text=True,
            timeout=60,
            cwd=self.folder / "desk",
            env=environment,
            check=False,
        )
        assert done.returncode == 0, f"{words}: {done.stderr}{self.logs()}"
        return done.stdout

    def submit(self, script: Path) -> str:
        """Submit a batch script. Returns the job's number."""
        return self.call("sbatch", "--parsable", script).split(";")[0].strip()

    def state(self, job: str) -> str:
        """The job's state, such as RUNNING or COMPLETED; of a job with several components, the
        first one's.
        """
        return (
            self.call("scontrol", "--oneliner", "show", "job", job)
            .partition("JobState=")[2]
            .split()[0]
        )

    def wait(self, job: str, seconds: float) -> str:
        """The state in which the job ended. Fails the test, with what it printed, if it takes
        longer.
        """

        def told() -> str:
            return f"{self.state(job)} after {seconds} s:\n{self.printed(job)}\n{self.logs()}"

        lasting = ("PENDING", "CONFIGURING", "RUNNING", "COMPLETING")
        return until(
            lambda: (state := self.state(job)) not in lasting and state, seconds=seconds, told=told
        )

    def printed(self, job: str) -> str:
        """What the job has printed so far."""
        return "".join(path.read_text() for path in (self.folder / "desk").glob(f"*-{job}.log"))

    def logs(self) -> str:
        """The ends of what Slurm's daemons have logged."""
        return "\n".join(
            f"{path.name}: {path.read_text()[-1500:]}" for path in self.folder.glob("slurm*.log")
        )


@contextmanager
def slurm_cluster(names: list[str], folder: Path) -> Iterator[Slurm]:
    """Start the cluster on machines of these names. Skips the test, saying why, where there can be
    none.
    """
    require_machines()
    for program in PROGRAMS:
        if not shutil.which(program, path=f"{os.environ['PATH']}:/usr/sbin"):
            pytest.skip(f"needs the program {program} (slurmctld, slurmd, slurm-client, munge)")
    for name in ("desk", "state", *(f"spool-{name}" for name in names)):
        (folder / name).mkdir(parents=True)
    # Control groups of the first version are mounted where Slurm uses them, which is nowhere here.
    (folder / "cgroup.conf").write_text("CgroupPlugin=cgroup/v1\n")
    with (
        machines(names, folder, {"SLURM_CONF": str(folder / "slurm.conf")}) as made,
        _munge(folder),
    ):
        nodes = (
            f"NodeName={one.name} NodeAddr={one.address} CPUs=2 RealMemory=4000 State=UNKNOWN"
            for one in made
        )
        (folder / "slurm.conf").write_text(
            _CONF.format(first=made[0], folder=folder, nodes="\n".join(nodes))
        )
        for machine in made:
            # The machines share this one's /tmp, where the Ray of each job has a folder that is the
            # machine's own.
            mounts = "".join(
                f"mkdir -p /tmp/procsnake-{n}; mount -t tmpfs tmpfs /tmp/procsnake-{n}; "
                for n in _FIRST_JOBS
            )
            leads = "slurmctld -D & sleep 1; " if machine is made[0] else ""
            machine.start(["bash", "-c", f"{mounts}{leads}exec slurmd -D -N {machine.name}"])
        slurm = Slurm(folder, made)
        try:
            _wait_for_nodes(slurm, len(made))
            yield slurm
        finally:
            for n in _FIRST_JOBS:
                with suppress(OSError):
                    Path(f"/tmp/procsnake-{n}").rmdir()


def _wait_for_nodes(slurm: Slurm, count: int) -> None:
    inside = ["ip", "netns", "exec", slurm.first.namespace, "sinfo", "--noheader", "--format=%D %t"]
    environment = {**os.environ, **slurm.first.environment}

    def are_idle() -> bool:
        done = subprocess.run(
            inside, capture_output=True, text=True, env=environment, check=False, timeout=60
        )
        return done.stdout.split() == [str(count), "idle"]

    until(are_idle, seconds=60, told=slurm.logs)


@contextmanager
def _munge(folder: Path) -> Iterator[None]:
    """The daemon by which Slurm's programs know whose requests they get. Its socket is a file, so
    one does for all machines.
    """
    key = folder / "munge.key"
    key.write_bytes(os.urandom(128))
    key.chmod(0o600)
    ends = {
        "key-file": "key",
        "socket": "socket",
        "pid-file": "pid",
        "seed-file": "seed",
        "log-file": "log",
    }
    files = [f"--{name}={folder}/munge.{end}" for name, end in ends.items()]
    process = subprocess.Popen(
        ["setpriv", "--pdeathsig", "KILL", "munged", "--foreground", "--force", *files],
        stderr=subprocess.DEVNULL,
        env={**os.environ, "PATH": f"{os.environ['PATH']}:/usr/sbin"},
    )
    try:
        until(lambda: process.poll() is not None or (folder / "munge.socket").exists(), seconds=30)
        assert process.poll() is None, (folder / "munge.log").read_text()
        yield
    finally:
        process.terminate()
        process.wait(10)
