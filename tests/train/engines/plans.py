"""Plans as the commands make them."""

from __future__ import annotations

from typing import Any

from train.config import Experiment
from train.engines.plan import Plan
from train.settings.scale import scale_overrides

SCALES = [
    "16cpu-60gib",
    "3*16cpu-60gib",
    "8cpu-1gpu-32gib+2*36cpu-60gib",
    "2*8cpu-2gpu+36cpu",
    "ml.c5.4xlarge",
    "2*ml.g5.12xlarge",
    "ml.g5.2xlarge+2*ml.c5.9xlarge",
]
"""One machine, several, and two kinds, by size and by AWS's types."""


def plan(
    instances: str, *overrides: str, experiment: str = "battlesnake-apex", **more: Any
) -> Plan:
    """A plan for these machines."""
    loaded = Experiment.load(experiment, [*scale_overrides(instances), *overrides])
    return Plan(**{"name": "mine", "experiment": loaded, "max_hours": 2.0, **more})
