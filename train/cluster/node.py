"""One machine's part of `procsnake cluster`: `python -m train.cluster.node start --group learner`.

It reads the token from stdin, because everybody on the machine could read an argument.
"""

from __future__ import annotations

import argparse
import os
import socket
import sys
from pathlib import Path

from envs.common.errors import ProcsnakeError
from envs.common.shell_command import shell_command
from train.cluster import node_watch, ray_node
from train.settings.scale import ALL

RUNS_ALREADY = 17
"""Exit code of `start` where a node of Ray runs, which is left as it is."""
_NOWHERE = "192.0.2.1"
"""An address for documentation; nothing is sent there."""


def main(arguments: list[str] | None = None) -> int:
    """Start or stop this machine's node. Prints its address."""
    parser = argparse.ArgumentParser(prog="train.cluster.node")
    parser.add_argument("action", choices=["start", "stop"])
    parser.add_argument("--group", default=ALL)
    parser.add_argument("--head", help="address of the head; without it this machine leads")
    parser.add_argument("--address", help="this machine's own address, if it has several")
    options = parser.parse_args(arguments)
    path = token_path()
    if options.action == "stop":
        ray_node.stop({})
        path.unlink(missing_ok=True)
        return 0
    # A fresh token would lock out the machines of the cluster that runs.
    if node_watch.is_running():
        print(
            "Ray already runs on this machine, perhaps with a training. Train on what is there"
            f" (--cluster auto), or stop it first: {shell_command('cluster', 'down', 'MACHINE')}",
            file=sys.stderr,
        )
        return RUNS_ALREADY
    try:
        keep_token(sys.stdin.read().strip(), path)
        address = options.address
        if not address and options.head is None:
            address = _called_at()
        if not address:
            address = own_address(options.head)
        ray_node.start(
            ray_node.token_environment(path),
            address=address,
            group=options.group,
            head=options.head,
        )
    except (ProcsnakeError, OSError) as error:
        print(error, file=sys.stderr)
        return 1
    print(address)
    return 0


def token_path() -> Path:
    """Return the file with the token of the cluster to which this machine belongs."""
    return Path(os.environ.get("PROCSNAKE_HOME") or Path.home() / ".procsnake") / "cluster-token"


def keep_token(token: str, path: Path) -> None:
    """Write the token so that only this user can read it."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}.part")
    part.unlink(missing_ok=True)
    descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with open(descriptor, "w", encoding="ascii") as file:
        file.write(token)
    os.replace(part, path)


def own_address(peer: str | None) -> str:
    """Return the address from which this machine reaches `peer`.

    Without a peer, it is the one from which it reaches most others."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        # Of a datagram socket only the route is looked up.
        any_socket.connect((peer or _NOWHERE, ray_node.PORT))
        return any_socket.getsockname()[0]


def _called_at() -> str:
    """The address at which ssh reached this machine; empty if unknown, or of IPv6."""
    address = "".join(os.environ.get("SSH_CONNECTION", "").split()[2:3])
    if ":" in address:
        return ""
    return address


if __name__ == "__main__":
    sys.exit(main())
