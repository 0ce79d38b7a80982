"""What `procsnake launch` prints before anything costs money: time, cost and quotas, and what a
dollar buys on other instances.
"""

from __future__ import annotations

import argparse
from typing import Any

from envs.common.columns import in_columns
from envs.common.errors import ConfigError
from procsnake.cli.command_line import print_json


def explain(
    options: argparse.Namespace, experiment: Any, prices: dict[str, float], seconds: int
) -> None:
    """Print the plan for the experiment's instances: processes, batch, time, cost, quotas and
    warnings.
    """
    from train.cluster.advice import warnings
    from train.cluster.sizes import explanation, figures
    from train.sagemaker.costs import estimate

    expected = estimate.estimate(
        experiment, prices, max_seconds=seconds, decisions_per_second=own_speed(options)
    )
    needed = estimate.quotas(
        experiment, spot=options.spot, keep_alive=bool(options.keep_alive_minutes)
    )
    if options.json:
        print_json(
            {
                **figures(experiment),
                "estimate": {**expected.figures(), "quotas": dict(needed)},
                "warnings": warnings(experiment),
            }
        )
        return
    quotas = ", ".join(f"{count} × {name!r}" for name, count in needed)
    rows = [
        *explanation(experiment),
        *expected.lines(),
        ("quotas", f"{quotas} (Service Quotas → Amazon SageMaker)"),
    ]
    rows += [("warning", text) for text in warnings(experiment)]
    print(in_columns(rows))


def compare(options: argparse.Namespace) -> int:
    """Print what a dollar buys on some instances, the cheapest first. Returns the exit code."""
    from train.config import Experiment
    from train.sagemaker.costs.bill import parse_prices
    from train.sagemaker.costs.comparison import compared, parse_speeds, table

    instances = list(options.compare)
    if options.instances:
        instances.append(options.instances)
    experiment = Experiment.load(options.experiment, options.set)
    speeds = parse_speeds(options.speed, options.instances or "")
    candidates = compared(experiment, instances, parse_prices(options.price), speeds)
    if options.json:
        print_json([one.figures() for one in candidates])
    else:
        print(table(candidates))
    return 0


def max_seconds(options: argparse.Namespace, experiment: Any, prices: dict[str, float]) -> int:
    """Return the seconds after which the job is stopped."""
    from train.sagemaker.costs.estimate import affordable_seconds

    seconds = round(3600 * options.max_hours)
    if options.max_cost is None:
        return seconds
    return affordable_seconds(
        experiment,
        prices,
        options.max_cost,
        max_seconds=seconds,
        keep_alive_seconds=keep_alive_seconds(options),
        decisions_per_second=own_speed(options),
    )


def keep_alive_seconds(options: argparse.Namespace) -> int:
    """Return how many seconds the instances are kept for the next job."""
    if options.keep_alive_minutes:
        return round(60 * options.keep_alive_minutes)
    return 0


def own_speed(options: argparse.Namespace) -> float | None:
    """Return the speed that the user measured on the job's instances; None if there is none."""
    from train.sagemaker.costs.comparison import parse_speeds

    speeds = parse_speeds(options.speed, options.instances or "")
    if other := next((name for name in speeds if name != (options.instances or "")), None):
        raise ConfigError(
            f"--speed names {other}, but the job has other instances; use it with --compare"
        )
    return next(iter(speeds.values()), None)
