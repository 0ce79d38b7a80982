"""What SageMaker writes into the containers of a job, for machines of
`tests.train.cluster.machines`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import yaml

from tests.train.cluster.machines import Machine
from train.config import Experiment

TOKEN = "0123456789abcdef" * 4


def prepare(
    machines: Sequence[Machine],
    *,
    groups: Mapping[str, Sequence[int]] | None = None,
    hyperparameters: Mapping[str, str] | None = None,
    experiment: Experiment | None = None,
    token: str = TOKEN,
) -> None:
    """Write the files of one job. `groups`: indices of machines by the name of their instance
    group.
    """
    names = [machine.name.partition("@")[0] for machine in machines]
    for machine, name in zip(machines, names, strict=True):
        config: dict[str, Any] = {
            "current_host": name,
            "hosts": sorted(names),
            "network_interface_name": "eth0",
        }
        if groups:
            config["instance_groups"] = [
                {
                    "instance_group_name": group,
                    "instance_type": "ml.m5.large",
                    "hosts": [names[k] for k in members],
                }
                for group, members in groups.items()
            ]
            config["current_group_name"] = next(
                g for g, members in groups.items() if name in [names[k] for k in members]
            )
        _write(machine.ml / "input/config/resourceconfig.json", json.dumps(config))
        given = {"experiment": "experiment.yaml", **(hyperparameters or {})}
        _write(machine.ml / "input/config/hyperparameters.json", json.dumps(given))
        _write(machine.ml / "input/data/token/token", token)
        if experiment:
            _write(machine.ml / "code/experiment.yaml", yaml.safe_dump(experiment.to_dict()))


def _write(path: Any, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
