"""The part of a launch that all engines share: the experiment, the machines and the time limit."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import PurePosixPath

import yaml

from envs.common.errors import ConfigError
from envs.common.plain_values import looks_like_a_secret
from train.cluster.sizes import require_processes
from train.config import Experiment
from train.settings.scale import ALL, LEARNER, ROLLOUT, Heterogeneous, Instances, Local, machines

EXPERIMENT_FILE = "experiment.yaml"


@dataclass(frozen=True, kw_only=True)
class Plan:
    """A launch. Engines check its parts, because they allow different names."""

    name: str
    """The name of the job."""
    experiment: Experiment
    """The experiment with all overrides. Its scale names machines."""
    max_hours: float
    """Hours after which the engine ends the job."""

    def __post_init__(self) -> None:
        require_processes(self.experiment, "clusters")
        if isinstance(self.experiment.scale, Local):
            raise ConfigError(
                "the experiment's scale is local; name machines by their size, e.g. --instances"
                " '2*16cpu-64gib'"
            )
        if looks_like_a_secret(self.experiment_text):
            raise ConfigError(
                "there seems to be a secret in the experiment, which everyone can read who may see"
                " the job"
            )

    @property
    def experiment_text(self) -> str:
        """The experiment with all overrides, as YAML."""
        return yaml.safe_dump(self.experiment.to_dict(), sort_keys=False)

    @property
    def groups(self) -> list[tuple[str, Instances]]:
        """The groups of machines. The first machine of the first group leads."""
        scale = self.experiment.scale
        if isinstance(scale, Heterogeneous):
            return [(LEARNER, scale.learner), (ROLLOUT, scale.rollout)]
        assert not isinstance(scale, Local)
        return [(ALL, machines(scale)[0])]

    @property
    def num_machines(self) -> int:
        """The number of all machines."""
        return sum(instances.count for _, instances in self.groups)

    def train_command(self, folder: str, runs: str) -> list[str]:
        """The command that trains on a cluster whose head has the experiment's file in `folder`.

        It continues the job's run if there is one in the job's part of `runs`, a folder or an
        address."""
        config = str(PurePosixPath(folder) / EXPERIMENT_FILE)
        return [
            "python",
            "-m",
            "procsnake.begin_or_continue",
            config,
            f"{runs.rstrip('/')}/{self.name}",
        ]


def default_name(experiment: str) -> str:
    """Return a name for a job with the current second in it."""
    return f"{experiment}-{time.strftime('%m%d-%H%M%S')}"
