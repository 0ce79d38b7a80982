"""The program of a training job's container: `python -m train.sagemaker.container.entry train`.

It runs on every machine. Exit code 0 is success; anything else fails the job, with
/opt/ml/output/failure as its reason.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from pathlib import Path
from typing import Any

from envs.common.errors import ProcsnakeError, reason
from train.cluster.hosts import from_resource_config
from train.cluster.launcher import Launch, launch
from train.sagemaker.container.files import Container
from train.sagemaker.container.meeting_point import S3MeetingPoint
from train.sagemaker.hyperparameters import Task
from train.sagemaker.job import DASHBOARD, JOIN_SECONDS
from train.sagemaker.tunnel import tunnel_lines
from train.settings.scale import ALL, LEARNER, ROLLOUT

_FAILED = 1


def main(arguments: list[str]) -> int:
    """Do this machine's part in the job, and return the exit code.

    SageMaker calls training containers with "train"."""
    if arguments != ["train"]:
        action = " ".join(arguments) or "do nothing"
        print(f"this image trains; it can't {action}. Call it with: train", file=sys.stderr)
        return 2
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    container = Container.here()
    try:
        own_part = plan(container)
        if own_part.dashboard and own_part.hosts.leads and not own_part.is_guest:
            print("\n".join(tunnel_lines(own_part.hosts.me)), flush=True)
        return launch(own_part, stop)
    except (ProcsnakeError, OSError) as error:
        print(f"procsnake: {reason(error)}", file=sys.stderr, flush=True)
        container.fail(str(error))
        return _FAILED


def plan(container: Container) -> Launch:
    """Return this machine's part, by the files that SageMaker put into the container.

    Raises `ProcsnakeError` for bad files."""
    meeting = Task.from_hyperparameters(container.hyperparameters(), container.code).meeting
    group = ALL
    role: dict[str, Any] = {}
    if meeting is not None:
        role["meeting"] = S3MeetingPoint(meeting)
        if meeting.is_primary:
            group = LEARNER
            role["guests"] = meeting.num_secondary
        else:
            group = ROLLOUT
            role["is_guest"] = True
    patience: dict[str, Any] = {
        name: float(os.environ[key]) for name, key in _PATIENCE.items() if key in os.environ
    }
    prometheus: Path | None = container.code / "prometheus.yml"
    if prometheus and not prometheus.is_file():
        prometheus = None
    return Launch(
        hosts=from_resource_config(
            container.resource_config(), head_group=LEARNER, only_group=group
        ),
        token_path=container.token,
        command=(sys.executable, "-m", "train.sagemaker.container.trainer"),
        dashboard=os.environ.get(DASHBOARD) == "1",
        prometheus_config=prometheus,
        **role,
        **patience,
    )


_PATIENCE = {"join_seconds": JOIN_SECONDS, "grace_seconds": "PROCSNAKE_GRACE_SECONDS"}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
