"""The machines of a run: which one leads, which one this is, and its address."""

from __future__ import annotations

import re
import socket
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from envs.common.errors import ProcsnakeError

try:
    import fcntl
except ModuleNotFoundError:  # Windows; the machines of a run are Linux.
    fcntl = None  # type: ignore[assignment]

_SIOCGIFADDR = 0x8915
_INTERFACE_BYTES = 256
_ADDRESS_AT = 20


class ClusterError(ProcsnakeError):
    """The machines of a run could not connect with each other, or lost each other."""


@dataclass(frozen=True)
class Hosts:
    """All machines of a run by name, seen from one of them."""

    me: str
    """The name of this machine."""
    groups: Mapping[str, str]
    """The group of each machine."""
    head: str
    """The machine that leads. It learns, and starts the training."""
    interface: str = "eth0"
    """The network device through which the machines reach each other."""

    @property
    def group(self) -> str:
        """This machine's group."""
        return self.groups[self.me]

    @property
    def leads(self) -> bool:
        """Whether this is the head."""
        return self.me == self.head

    @property
    def others(self) -> list[str]:
        """All machines except the head, in natural order."""
        return sorted(self.groups.keys() - {self.head}, key=natural)

    def address(self) -> str:
        """Return this machine's address on `interface`.

        It is the loopback address if there is no such device, and on Windows."""
        if fcntl is None:
            return "127.0.0.1"
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
            request = struct.pack(f"{_INTERFACE_BYTES}s", self.interface.encode()[:15])
            try:
                answer = fcntl.ioctl(any_socket, _SIOCGIFADDR, request)
            except OSError:
                return "127.0.0.1"
        return socket.inet_ntoa(answer[_ADDRESS_AT : _ADDRESS_AT + 4])


def natural(name: str) -> list[Any]:
    """Return a sort key that puts algo-2 before algo-10."""
    parts: list[Any] = re.split(r"(\d+)", name)
    # Every second part is a number.
    parts[1::2] = map(int, parts[1::2])
    return parts


def from_resource_config(config: Mapping[str, Any], *, head_group: str, only_group: str) -> Hosts:
    """Read SageMaker's resourceconfig.json.

    The head is the first host, in natural order, of the instance group `head_group`. Without
    instance groups it is the first of all hosts, which then belong to `only_group`. Raises
    `ClusterError` for a file that contradicts itself."""
    me = config.get("current_host")
    names = config.get("hosts")
    if not me or not names or me not in names:
        raise ClusterError(
            f"resourceconfig.json names the hosts {names} and this one {me!r}, which isn't one of"
            " them"
        )
    groups = dict.fromkeys(names, only_group)
    instance_groups = config.get("instance_groups") or []
    in_groups: dict[str, str] = {}
    for group in instance_groups:
        in_groups |= dict.fromkeys(group["hosts"], group["instance_group_name"])
    if instance_groups and in_groups.keys() != set(names):
        raise ClusterError(
            f"resourceconfig.json names the hosts {names}, but its groups hold {sorted(in_groups)}"
        )
    # A job without heterogeneous instances has one group, of SageMaker's naming.
    if len(instance_groups) > 1:
        groups = in_groups

    group_names = sorted(set(groups.values()))
    candidates = list(groups)
    if len(group_names) > 1:
        candidates = [host for host, group in groups.items() if group == head_group]
    if not candidates:
        raise ClusterError(
            f"no instance group is called {head_group!r}; there are {', '.join(group_names)}"
        )
    head = min(candidates, key=natural)
    return Hosts(me, groups, head, config.get("network_interface_name", "eth0"))
