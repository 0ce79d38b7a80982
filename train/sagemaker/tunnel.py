"""The command that opens a port of the head from outside, which the head prints.

It opens a tunnel of AWS Systems Manager.
"""

from __future__ import annotations

import os

from train.cluster.observing import PROMETHEUS_PORT, found_prometheus
from train.cluster.ray_node import DASHBOARD_PORT

_FIRST = "procsnake-tunnel "


def tunnel_lines(host: str) -> list[str]:
    """Return a line for each port of the head. `host` is the head's name in the job."""
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
    """Return the text for people in a line of `tunnel_lines`; "" for other lines."""
    if line.startswith(_FIRST):
        return line.removeprefix(_FIRST)
    return ""


def _command(job: str, host: str, port: int) -> str:
    return (
        f"aws ssm start-session --target sagemaker-training-job:{job}_{host} --document-name"
        " AWS-StartPortForwardingSession "
        f"""--parameters '{{"portNumber":["{port}"],"localPortNumber":["{port}"]}}'"""
    )
