"""Starts and stops one machine's Ray node by Ray's own command, with its token authentication."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from train.cluster.hosts import ClusterError
from train.cluster.node_watch import NodeWatch
from train.settings.scale import group_resources

PORT = 6379
DASHBOARD_PORT = 8265
"""The port of the head's dashboard, at its own 127.0.0.1 alone."""
METRICS_PORT = 8080
"""The port at which every machine gives its metrics to whoever asks."""
_START_SECONDS = 180.0
_STOP_SECONDS = 30.0


def token_environment(token_path: Path) -> dict[str, str]:
    """Return the environment variables that let a Ray process join the cluster.

    `ray start --address` alone doesn't turn the authentication on.
    """
    return {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN_PATH": str(token_path)}


def start_command(
    *, address: str, group: str, head: str | None, dashboard: bool = False
) -> list[str]:
    """Return Ray's command for a node at `address` of `group`.

    It joins `head`, or is the head if that is None. With `dashboard` the head has Ray's dashboard,
    and each node a fixed port for its metrics; that needs the extra [cluster]."""
    command = ["start"]
    if head:
        command.append(f"--address={head}:{PORT}")
    else:
        command += ["--head", f"--port={PORT}"]
        command += _DASHBOARD if dashboard else ["--include-dashboard=false"]
    command.append(f"--node-ip-address={address}")
    if dashboard:
        command.append(f"--metrics-export-port={METRICS_PORT}")
    resources = json.dumps(group_resources(group))
    return [*command, "--disable-usage-stats", f"--resources={resources}"]


_DASHBOARD = [
    "--include-dashboard=true",
    "--dashboard-host=127.0.0.1",
    f"--dashboard-port={DASHBOARD_PORT}",
]


def start(
    environment: Mapping[str, str],
    *,
    address: str,
    group: str,
    head: str | None = None,
    dashboard: bool = False,
) -> NodeWatch:
    """Start the node, and return a watch on it. Raises `ClusterError` with Ray's last words if it
    doesn't come up.
    """
    command = start_command(address=address, group=group, head=head, dashboard=dashboard)
    try:
        done = _ray(command, environment, _START_SECONDS)
    except subprocess.TimeoutExpired:
        raise ClusterError(f"Ray did not start within {_START_SECONDS:.0f} s") from None
    if done.returncode:
        raise ClusterError(f"Ray did not start: {' '.join(done.stdout.split())[-600:]}")
    return NodeWatch.of(address)


def stop(environment: Mapping[str, str]) -> None:
    """Stop all of Ray on this machine, which is the run's own."""
    # If that takes too long, the container goes away anyway.
    with suppress(subprocess.TimeoutExpired):
        _ray(["stop", "--force"], environment, _STOP_SECONDS)


def _ray(
    arguments: list[str], environment: Mapping[str, str], seconds: float
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "ray.scripts.scripts", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="backslashreplace",
        check=False,
        timeout=seconds,
        env={**os.environ, **environment},
    )
