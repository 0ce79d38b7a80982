"""What a container of a training job runs: `python -m train.sagemaker.container.entry train`, on every
machine.

Exit code 0 is success; anything else fails the job, with /opt/ml/output/failure as its reason.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from typing import Any

from envs.common.errors import ProcsnakeError, reason
from train.cluster.hosts import from_resource_config
from train.cluster.launcher import Launch, launch
from train.sagemaker.container.files import Container
from train.sagemaker.container.meeting_point import S3MeetingPoint
from train.sagemaker.hyperparameters import Meeting, Task
from train.sagemaker.job import DASHBOARD, JOIN_SECONDS
from train.sagemaker.tunnel import tunnel_lines
from train.settings.scale import ALL, LEARNER, ROLLOUT

_FAILED = 1


def main(arguments: list[str]) -> int:
    """Run the container's part in the job. Returns the exit code. SageMaker calls training
    containers with "train".
    """
    if arguments != ["train"]:
        print(
            f"this image trains; it can't {' '.join(arguments) or 'do nothing'}. Call it with:"
            " train",
            file=sys.stderr,
        )
        return 2
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    container = Container.here()
    try:
        mine = plan(container)
        if mine.dashboard and mine.hosts.leads and not mine.is_guest:
            print("\n".join(tunnel_lines(mine.hosts.me)), flush=True)
        return launch(mine, stop)
    except (ProcsnakeError, OSError) as error:
        print(f"procsnake: {reason(error)}", file=sys.stderr, flush=True)
        container.fail(str(error))
        return _FAILED


def plan(container: Container) -> Launch:
    """Return this machine's part, by the files that SageMaker put into the container. Raises
    `ProcsnakeError` for bad files.
    """
    meeting = Task.from_hyperparameters(container.hyperparameters(), container.code).meeting
    config = container.resource_config()
    patience: dict[str, Any] = {
        name: float(os.environ[key]) for name, key in _PATIENCE.items() if key in os.environ
    }
    return Launch(
        hosts=from_resource_config(config, head_group=LEARNER, only_group=_group(meeting)),
        token_path=container.token,
        command=(sys.executable, "-m", "train.sagemaker.container.trainer"),
        guests=meeting.num_secondary if meeting and meeting.is_primary else 0,
        meeting=S3MeetingPoint(meeting) if meeting else None,
        is_guest=meeting is not None and not meeting.is_primary,
        dashboard=os.environ.get(DASHBOARD) == "1",
        prometheus_config=own if (own := container.code / "prometheus.yml").is_file() else None,
        **patience,
    )


_PATIENCE = {"join_seconds": JOIN_SECONDS, "grace_seconds": "PROCSNAKE_GRACE_SECONDS"}


def _group(meeting: Meeting | None) -> str:
    if meeting is None:
        return ALL
    return LEARNER if meeting.is_primary else ROLLOUT


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
