"""Turns overrides of an experiment into a job's hyperparameters and back.

The original kits' names are understood, too.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from envs.common.errors import ConfigError
from train.config import Experiment, parse_override
from train.sagemaker.original_names import translate

EXPERIMENT = "experiment"
"""The hyperparameter with the name of an experiment, or with a YAML file in the source that the job
carries.
"""


@dataclass(frozen=True)
class Meeting:
    """How two jobs find each other. Its hyperparameters have the original kits' names."""

    is_primary: bool
    """Whether this job learns and leads. Otherwise it only plays."""
    num_secondary: int
    """The number of instances of the job that plays."""
    bucket: str
    """The S3 bucket in which the jobs leave notes for each other."""
    prefix: str
    """The beginning of the notes' names in the bucket."""
    region: str
    """The AWS region of the bucket."""

    def hyperparameters(self) -> dict[str, Any]:
        """Return the hyperparameters that are sent, before encoding."""
        role = "primary" if self.is_primary else "secondary"
        return {
            "rl_cluster_type": role,
            "rl_num_instances_secondary": self.num_secondary,
            "s3_bucket": self.bucket,
            "s3_prefix": self.prefix,
            "aws_region": self.region,
        }

    @classmethod
    def from_hyperparameters(cls, values: dict[str, Any]) -> Meeting | None:
        """Take its own hyperparameters out of decoded `values`; None if they name no role.

        Raises `ConfigError` if some are missing.
        """
        own = {name: values.pop(name) for name in _NAMES_OF_A_MEETING if name in values}
        role = own.get("rl_cluster_type")
        if "rl_cluster_type" not in own:
            return None
        if role == "secondary":
            # The kit's second job doesn't say how many it is: it waits for the first.
            own.setdefault("rl_num_instances_secondary", 0)
        if missing := [name for name in _NAMES_OF_A_MEETING if name not in own]:
            raise ConfigError(
                f"rl_cluster_type is given, but not {', '.join(missing)}; two jobs need"
                f" {', '.join(_NAMES_OF_A_MEETING)}"
            )
        if role not in ("primary", "secondary"):
            raise ConfigError(f"rl_cluster_type is {role!r}; it must be primary or secondary")
        count = own["rl_num_instances_secondary"]
        try:
            num_secondary = int(count)
        except ValueError:
            raise ConfigError(f"rl_num_instances_secondary {count!r} is not a number") from None
        return cls(
            is_primary=role == "primary",
            num_secondary=num_secondary,
            bucket=str(own["s3_bucket"]),
            prefix=str(own["s3_prefix"]),
            region=str(own["aws_region"]),
        )


_NAMES_OF_A_MEETING = (
    "rl_cluster_type",
    "rl_num_instances_secondary",
    "s3_bucket",
    "s3_prefix",
    "aws_region",
)


def encode(value: Any) -> str:
    """Return a value as a hyperparameter.

    It is JSON, except for strings that can't be read as anything else."""
    if isinstance(value, str) and decode(value) == value:
        return value
    return json.dumps(value)


def decode(text: str) -> Any:
    """Return the value of a hyperparameter, which is JSON or else a plain text.

    Versions 1 and 2 of the SDK send strings as JSON, and version 3 as they are."""
    try:
        return json.loads(text)
    except ValueError:
        return text


def encode_overrides(experiment: str, overrides: Iterable[str]) -> dict[str, str]:
    """Return the hyperparameters of an experiment with "dotted.key=value" overrides.

    Raises `ConfigError` for any other form.
    """
    hyperparameters = {EXPERIMENT: encode(experiment)}
    for override in overrides:
        key, value = parse_override(override)
        hyperparameters[key] = encode(value)
    return hyperparameters


@dataclass(frozen=True)
class Task:
    """The training that a job does."""

    experiment: str
    """The experiment's name, or the path of its file."""
    overrides: list[str]
    """The overrides, for `Experiment.load`."""
    meeting: Meeting | None
    notes: list[str]
    """Lines on names of the original kits that mean nothing here, and why."""

    @classmethod
    def from_hyperparameters(
        cls, hyperparameters: Mapping[str, str], code: Path | None = None
    ) -> Task:
        """Read the hyperparameters that `encode_overrides`, the SDKs or the original kits'
        estimators send.

        `code` is the folder with the source that the job carries, in which the experiment may be a
        file. Raises `UnknownNameError` for `rl.…` names that the kits didn't have, `ConfigError`
        for names and values that can't be kept, and what `Experiment.load` raises if they depend
        on the experiment's algorithm."""
        values = {name: decode(text) for name, text in hyperparameters.items()}
        meeting = Meeting.from_hyperparameters(values)
        entry_point = values.get("sagemaker_program")
        for name in list(values):
            if name.startswith(("sagemaker_", "_tuning")):
                del values[name]
        experiment = str(values.pop(EXPERIMENT, ""))
        if not experiment:
            raise ConfigError(
                "no hyperparameter names the experiment; give one, e.g. experiment=battlesnake-ppo"
            )
        if code and (code / experiment).is_file():
            experiment = str(code / experiment)
        values, notes = translate(values, lambda: Experiment.load(experiment).algorithm)
        if entry_point:
            notes.append(
                f"entry_point {entry_point!r} is not run: this image trains the experiment"
                f" {experiment!r}. What your script registers belongs into a module that the"
                " experiment imports (docs/your-own-parts.md)"
            )
        overrides = [f"{key}={json.dumps(value)}" for key, value in values.items()]
        return cls(experiment, overrides, meeting, notes)


def own_overrides(experiment: str, overrides: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return (overrides, notes) with the predecessors' names translated, so that a launch fails
    before a job costs money.

    Raises what `Task.from_hyperparameters` raises."""
    pairs = dict(parse_override(override) for override in overrides)
    values, notes = translate(pairs, lambda: Experiment.load(experiment).algorithm)
    if values == pairs:
        return list(overrides), notes
    return [f"{key}={json.dumps(value)}" for key, value in values.items()], notes
