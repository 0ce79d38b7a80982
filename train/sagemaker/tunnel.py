"""The command by which a port of the head is reached from outside: a tunnel of AWS Systems Manager.
The head prints it.
"""

from __future__ import annotations

import os

from train.cluster.observing import PROMETHEUS_PORT, found_prometheus
from train.cluster.ray_node import DASHBOARD_PORT

_FIRST = "procsnake-tunnel "


def tunnel_lines(host: str) -> list[str]:
    """Return the lines for the ports of the head, which is `host` in the job."""
    # SageMaker tells the containers the job's name.
    job = os.environ.get("TRAINING_JOB_NAME", "NAME")
    ports = [("Ray's dashboard", DASHBOARD_PORT)]
    if found_prometheus():
        ports.append(("Prometheus", PROMETHEUS_PORT))
    return [
        f"{_FIRST}{what}, then at http://localhost:{port}: {_command(job, host, port)}"
        for what, port in ports
    ]


def parse_tunnel_line(line: str) -> str:
    """Return what a line of `tunnel_lines` tells people; an empty text for other lines."""
    if line.startswith(_FIRST):
        return line.removeprefix(_FIRST)
    return ""


def _command(job: str, host: str, port: int) -> str:
    return (
        f"aws ssm start-session --target sagemaker-training-job:{job}_{host} --document-name"
        " AWS-StartPortForwardingSession "
        f"""--parameters '{{"portNumber":["{port}"],"localPortNumber":["{port}"]}}'"""
    )
