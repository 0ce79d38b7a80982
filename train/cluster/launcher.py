"""The program of every machine of a run.

One machine, the head, starts Ray and the training; the others join it until it ends. No machine
waits forever. The head knows which machines have joined, names missing and lost ones, and tells all
others how the run ended. On SIGTERM the trainer saves and ends; the others wait for it."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Protocol, TypeVar

from envs.common.errors import reason
from train.cluster import ray_node
from train.cluster.control import ControlLink, ControlServer, Refused
from train.cluster.hosts import ClusterError, Hosts
from train.cluster.node_watch import NodeWatch
from train.cluster.observing import prometheus
from train.cluster.supervision import TERMINATED, Supervision

T = TypeVar("T")


class MeetingPoint(Protocol):
    """A place where workers of another job find the head's address."""

    def publish(self, address: str) -> None:
        """Leave the address there."""

    def look(self) -> str | None:
        """Return the published address, or None."""

    def clear(self) -> None:
        """Remove the address."""


@dataclass(frozen=True, kw_only=True)
class Launch:
    """All that a machine needs to know to do its part."""

    hosts: Hosts
    token_path: Path
    """The file with the secret that all machines of the run share."""
    command: Sequence[str] = ()
    """The training, which runs on the head with RAY_ADDRESS set."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """Environment variables for the command."""
    guests: int = 0
    """The number of workers of another job for which the head also waits."""
    meeting: MeetingPoint | None = None
    is_guest: bool = False
    """This machine belongs to that other job: it joins a head that it finds at `meeting`."""
    dashboard: bool = False
    """The head has Ray's dashboard, and Prometheus if the program is there; every machine tells its
    metrics.
    """
    prometheus_config: Path | None = None
    """A file of the user's for Prometheus."""
    join_seconds: float = 600.0
    """Seconds for which machines wait for each other."""
    grace_seconds: float = 100.0
    """Seconds that the trainer may take to save after SIGTERM; SageMaker kills after 120."""
    lost_seconds: float = 180.0
    """Seconds that the trainer may take to save when a machine was lost. Ray takes about a minute
    to see that, and until then the trainer waits for the machine.
    """

    @property
    def token(self) -> str:
        """The secret. Raises `ClusterError` if there is none."""
        try:
            token = self.token_path.read_text(encoding="ascii").strip()
        except (OSError, UnicodeDecodeError) as error:
            raise ClusterError(f"the token of this run can't be read: {reason(error)}") from error
        if not token:
            raise ClusterError(f"{self.token_path} is empty; it must hold the token of this run")
        return token


def launch(plan: Launch, stop: threading.Event) -> int:
    """Do this machine's part, and return its exit code.

    `stop` is set on SIGTERM. Raises `ClusterError`. If the training fails, only the head fails. The
    others end with 0, so that the reason isn't buried under their failures."""
    say = _speaker(plan.hosts.me)
    if plan.hosts.leads and not plan.is_guest:
        return _lead(plan, stop, say)
    return _follow(plan, stop, say)


def _speaker(me: str) -> Callable[[str], None]:
    began = time.monotonic()
    return lambda text: print(f"[{me} {time.monotonic() - began:6.1f} s] {text}", flush=True)


# The head.


def _lead(plan: Launch, stop: threading.Event, say: Callable[[str], None]) -> int:
    address = plan.hosts.address()
    token = plan.token
    access = ray_node.token_environment(plan.token_path)
    code = 1
    with ControlServer(address, token, say) as control:
        try:
            node = ray_node.start(
                access, address=address, group=plan.hosts.group, dashboard=plan.dashboard
            )
            say(f"leads at {address}")
            with _published(plan.meeting, address), _observed(plan, say):
                control.wait(plan.hosts.others, plan.guests, plan.join_seconds, stop)
                say(f"all {1 + len(plan.hosts.others) + plan.guests} machines are there")
                environment = {
                    **plan.environment,
                    **access,
                    "RAY_ADDRESS": f"{address}:{ray_node.PORT}",
                }
                training = Supervision(plan.command, environment, control, node, say)
                code = training.run(
                    stop, grace_seconds=plan.grace_seconds, lost_seconds=plan.lost_seconds
                )
            return code
        finally:
            control.end(code)
            ray_node.stop(access)


@contextmanager
def _published(meeting: MeetingPoint | None, address: str) -> Iterator[None]:
    if not meeting:
        yield
        return
    meeting.publish(address)
    try:
        yield
    finally:
        meeting.clear()


def _observed(plan: Launch, say: Callable[[str], None]) -> AbstractContextManager[None]:
    if plan.dashboard:
        return prometheus(plan.prometheus_config, say)
    return nullcontext()


# The others.


def _follow(plan: Launch, stop: threading.Event, say: Callable[[str], None]) -> int:
    deadline = time.monotonic() + plan.join_seconds
    access = ray_node.token_environment(plan.token_path)
    token = plan.token
    address = plan.hosts.address()
    name = plan.hosts.me
    if plan.is_guest:
        name = f"{plan.hosts.group}/{name}"
    head, link = _until(deadline, stop, "the head to answer", lambda: _called(plan, token, name))
    try:
        join = partial(_joined, plan, access, address, head, link, say)
        node = _until(deadline, stop, "Ray to start", join, pause=2.0)
        link.joined()
        say(f"joined the head at {head}")
        return _stay(plan, link, node, stop, say)
    finally:
        link.close()
        ray_node.stop(access)


def _called(plan: Launch, token: str, name: str) -> tuple[str, ControlLink] | None:
    """Call the head. Return its address and a link to it, or None while there is no address.

    The address may change while nobody answers there."""
    assert plan.meeting or not plan.is_guest, "a guest needs a place to meet"
    if plan.meeting and plan.is_guest:
        address = plan.meeting.look()
    else:
        address = socket.gethostbyname(plan.hosts.head)
    if not address:
        return None
    return address, ControlLink(address, token, name)


def _joined(
    plan: Launch,
    access: Mapping[str, str],
    address: str,
    head: str,
    link: ControlLink,
    say: Callable[[str], None],
) -> NodeWatch | None:
    try:
        return ray_node.start(
            access, address=address, group=plan.hosts.group, head=head, dashboard=plan.dashboard
        )
    except ClusterError as error:
        if link.ending is not None or link.broken:
            raise
        say(f"{error}; once more")
        ray_node.stop(access)
        return None


def _stay(
    plan: Launch,
    link: ControlLink,
    node: NodeWatch,
    stop: threading.Event,
    say: Callable[[str], None],
) -> int:
    """Stay until the head says how it ended. Return the exit code.

    Raises `ClusterError` if the head or this machine's own Ray node is lost."""
    leave_at = None
    while link.ending is None:
        if link.broken:
            raise ClusterError(f"lost the head {plan.hosts.head}: {link.broken}")
        if stop.is_set() and leave_at is None:
            # The trainer still needs this machine to save.
            say("SIGTERM: staying until the head has ended")
            leave_at = time.monotonic() + plan.grace_seconds + 10
        if leave_at and time.monotonic() > leave_at:
            return TERMINATED
        if trouble := node.died():
            say(trouble)
            link.failed(trouble)
            raise ClusterError(trouble)
        time.sleep(0.1)
    say(f"the head ended with {link.ending}")
    return 0


def _until(
    deadline: float,
    stop: threading.Event,
    what: str,
    attempt: Callable[[], T | None],
    *,
    pause: float = 0.5,
) -> T:
    """Call `attempt` until it returns something, and return that.

    Network errors mean "not yet"; `Refused` and other `ClusterError`s pass. Raises `ClusterError`
    after the `deadline`, and if `stop` is set."""
    last: Any = "it is not there yet"
    while time.monotonic() < deadline:
        if stop.is_set():
            raise ClusterError(f"stopped while waiting for {what}")
        try:
            if result := attempt():
                return result
        except Refused:
            raise
        except OSError as error:
            last = error
        time.sleep(pause)
    raise ClusterError(f"gave up waiting for {what} ({last})")
