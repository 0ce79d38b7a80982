"""Describes a search by SageMaker's own tuner. `tuning_request(…)` returns the arguments of
`CreateHyperParameterTuningJob`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from envs.common.errors import ConfigError
from train.sagemaker.hyperparameters import encode
from train.sagemaker.job import Job, requests
from train.sagemaker.metric_lines import metric_name
from train.settings.sections import Tune
from train.tuning.space import NumberRange, Space, parse_space

_STRATEGIES = {"random": "Random", "optuna": "Bayesian"}
_LEFT_OUT = ("TrainingJobName", "HyperParameters", "Tags", "CheckpointConfig", "RemoteDebugConfig")
"""The members of a training job's request that a search's definition hasn't. Checkpoints are among
them, because all jobs of a search would share one folder.
"""
LONGEST_NAME = 32
_SCALES = {"": "Linear", "log": "Logarithmic", "discount": "ReverseLogarithmic"}


def tuning_request(name: str, job: Job, tune: Tune) -> dict[str, Any]:
    """Return the arguments of `CreateHyperParameterTuningJob` for a search whose training jobs are
    like `job`.

    Raises `ConfigError` for what SageMaker's tuner can't do, and what `parse_space` raises.
    """
    if tune.scheduler == "pbt":
        raise ConfigError(
            "SageMaker's tuner has no population-based training; search with random or asha, or"
            " leave out --on"
        )
    if job.spot or job.is_two_jobs:
        raise ConfigError(
            "a search on SageMaker goes neither with spot nor with two jobs: its jobs can't share"
            " checkpoints"
        )
    if not tune.search:
        raise ConfigError(
            "nothing to search: give --search KEY=low..high[:log] or KEY=a,b,c, or a section"
            " tune.search"
        )
    (request,) = requests(job)
    spaces = {key: parse_space(key, text) for key, text in tune.search.items()}
    definition = {key: value for key, value in request.items() if key not in _LEFT_OUT}
    fixed = {key: value for key, value in request["HyperParameters"].items() if key not in spaces}
    direction = "Maximize" if tune.mode == "max" else "Minimize"
    early_stopping = "Auto" if tune.scheduler == "asha" else "Off"
    return {
        "HyperParameterTuningJobName": name,
        "HyperParameterTuningJobConfig": {
            "Strategy": _STRATEGIES[tune.searcher],
            "HyperParameterTuningJobObjective": {
                "Type": direction,
                "MetricName": metric_name(tune.metric),
            },
            "ResourceLimits": {
                "MaxNumberOfTrainingJobs": tune.trials,
                "MaxParallelTrainingJobs": tune.concurrent,
            },
            "ParameterRanges": _ranges(spaces),
            "TrainingJobEarlyStoppingType": early_stopping,
        },
        "TrainingJobDefinition": {**definition, "StaticHyperParameters": fixed},
        "Tags": request["Tags"],
    }


def _ranges(spaces: Mapping[str, Space]) -> dict[str, Any]:
    whole: list[dict[str, Any]] = []
    real: list[dict[str, Any]] = []
    choices: list[dict[str, Any]] = []
    for key, space in spaces.items():
        if not isinstance(space, NumberRange):
            choices.append({"Name": key, "Values": [encode(value) for value in space.values]})
            continue
        low = space.nearest(space.low)
        high = space.nearest(space.high)
        number_range = {
            "Name": key,
            "MinValue": str(low),
            "MaxValue": str(high),
            "ScalingType": _SCALES[space.scale],
        }
        if space.whole:
            whole.append(number_range)
        else:
            real.append(number_range)
    kinds = {
        "IntegerParameterRanges": whole,
        "ContinuousParameterRanges": real,
        "CategoricalParameterRanges": choices,
    }
    return {name: ranges for name, ranges in kinds.items() if ranges}
