"""The command `procsnake benchmark procgen`."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from envs.common.columns import counted, in_columns
from envs.common.cores import usable_cores
from envs.common.outputs import kept_at, make_place_for
from procsnake.cli.command_line import (
    add_json,
    at_least,
    positive,
    print_json,
    progress_on_stderr,
)

if TYPE_CHECKING:
    from train.comparison.places import Begin
    from train.comparison.procgen_protocol import Protocol

HELP = """\
Trains each game with each seed, measures it on unseen levels, and writes one page with curves,
scores beside published ones, aggregates with intervals, and films. Repeat the command to
continue after an interruption.

presets:
  small   coinrun, starpilot, bigfish; easy, 200 levels, 30 minutes each: for ablations
  easy    sixteen games, 200 levels, 25 million decisions each (Cobbe et al. 2020, generalisation)
  hard    sixteen games in hard mode, 500 levels, 200 million decisions each
  all     sixteen games, easy, all levels, 25 million decisions each (sample efficiency)

examples:
  procsnake benchmark procgen --dry-run         # the plan, its hours and cost
  procsnake benchmark procgen --seeds 1 --minutes 5 --games coinrun  # a first look
  procsnake benchmark procgen --out outputs/a   # coinrun, starpilot, bigfish: 3 seeds of 30 minutes
  procsnake benchmark procgen --experiment procgen-ppo-cpu  # settings for machines without a GPU
  procsnake benchmark procgen --out outputs/b --set ppo.num_epochs=2 \\
     --against outputs/a/benchmark.json
  # one training per CPU of a Ray cluster
  procsnake benchmark procgen --preset easy --cluster auto --out /shared/easy
"""
_FIELDS = ("experiment", "seeds", "distribution_mode", "levels", "minutes", "steps", "episodes")


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the command."""
    parser.add_argument(
        "--preset", default="small", help="small, easy, hard or all (default: %(default)s)"
    )
    changes = parser.add_argument_group("overriding the preset")
    changes.add_argument("--games", help="games separated by commas, without procgen/")
    changes.add_argument(
        "--experiment", help="experiment to train each game with (default: procgen-ppo)"
    )
    changes.add_argument("--seeds", type=at_least(1), help="trainings per game (default: 3)")
    changes.add_argument(
        "--mode", dest="distribution_mode", choices=("easy", "hard"), help="distribution mode"
    )
    changes.add_argument("--levels", help="training levels: train:N or all")
    budget = changes.add_mutually_exclusive_group()
    budget.add_argument("--minutes", type=positive, help="minutes per training")
    budget.add_argument("--steps", type=at_least(1), help="decisions per training")
    changes.add_argument(
        "--episodes", type=at_least(1), help="episodes per measurement (default: 512)"
    )
    changes.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="override a value; may be repeated",
    )
    parser.add_argument(
        "--jobs",
        type=at_least(1),
        help="parallel trainings, which share the cores (default: one per core)",
    )
    parser.add_argument(
        "--cluster",
        metavar="ADDRESS",
        help=(
            "train on this Ray cluster, whose machines share --out; auto: the one that this"
            " machine is in"
        ),
    )
    parser.add_argument(
        "--out",
        default=kept_at("benchmarks/procgen"),
        help="folder for runs and results (default: %(default)s)",
    )
    parser.add_argument(
        "--against",
        metavar="FILE",
        help="benchmark.json to compare with, by probability of improvement",
    )
    parser.add_argument(
        "--dry-run",
        action="store_true",
        help="show what would be trained, for how long and at what cost, and exit",
    )
    parser.add_argument(
        "--price", type=positive, help="price of this machine per hour, for the cost in the plan"
    )
    add_json(parser)


def run(options: argparse.Namespace) -> int:
    """Run `procsnake benchmark procgen`. Returns the exit code."""
    from train.comparison.places import on_this_machine
    from train.comparison.procgen_protocol import preset
    from train.runs.folder import require_place

    changes = {name: value for name in _FIELDS if (value := getattr(options, name)) is not None}
    if options.games is not None:
        changes["games"] = tuple(game.strip() for game in options.games.split(","))
    protocol = preset(options.preset, **changes, overrides=tuple(options.set))
    require_place(Path(options.out))
    if options.against:
        from train.comparison.procgen_benchmark import comparable

        comparable(options.against, protocol)
    if options.cluster:
        from train.rllib.ray_runtime import running_ray

        with running_ray(0, options.cluster):
            from agents.measure.tournament.on_cluster import cluster_cpus
            from train.comparison.places import OnCluster, require_room

            cores = cluster_cpus()
            require_room(cores, options.jobs or cores)
            return _run(protocol, options, cores, OnCluster)
    return _run(protocol, options, usable_cores(), on_this_machine)


def _run(protocol: Protocol, options: argparse.Namespace, cores: int, begin: Begin) -> int:
    """Print the plan, then train and measure, with `cores` shared by the trainings."""
    jobs = options.jobs or cores
    plan = _plan(protocol, jobs, cores, options)
    if options.dry_run:
        if options.json:
            print_json(plan)
        else:
            print(_plan_in_words(protocol, plan))
        return 0

    from train.comparison.procgen_benchmark import PAGE, RESULT, benchmark
    from train.comparison.procgen_page import rows_of

    make_place_for(str(Path(options.out) / RESULT))
    with progress_on_stderr(options):
        print(_plan_in_words(protocol, plan))
        result = benchmark(
            protocol, out=options.out, jobs=jobs, cores=cores, against=options.against, begin=begin
        )
    if options.json:
        print_json(result)
        return 0
    heads, rows = rows_of(result)
    for row in rows:
        print(f"\n{row[0]}")
        print(in_columns(zip(heads[1:], row[1:], strict=True), indent="  "))
    print(f"\n{_together(result)}\n\nwritten: {options.out}/{PAGE}, {RESULT}")
    return 0


def _together(result: Mapping[str, Any]) -> str:
    """The figures over all games, each with its interval, as lines of text."""
    from agents.measure.evaluation.procgen_aggregates import interval_in_words

    estimates = [*result["aggregates"], *([result["against"]] if "against" in result else [])]
    rows = [
        (one["name"], f"{one['value']:.3f}", interval_in_words(one["interval"]))
        for one in estimates
    ]
    return in_columns(rows, ("all games", "value", "95 % interval"))


def _plan(protocol: Protocol, jobs: int, cores: int, options: argparse.Namespace) -> dict[str, Any]:
    from train.comparison.trainings import is_finished

    num_threads = max(1, cores // jobs)
    trainings = protocol.trainings(num_threads)
    speed = protocol.steps_a_second_and_core * min(num_threads, cores / jobs)
    hours = protocol.hours(jobs=jobs, steps_per_second=speed)
    return {
        "protocol": protocol.to_dict(),
        "trainings": len(trainings),
        "finished": sum(
            is_finished(Path(options.out), training.experiment) for training in trainings
        ),
        "at_a_time": jobs,
        "threads_each": num_threads,
        "steps_per_second": speed,
        "hours": hours,
        "cost": None if options.price is None else hours * options.price,
    }


def _how_known(protocol: Protocol) -> str:
    """How the speed of the plan is known."""
    measured = protocol.measured_experiment
    if measured == protocol.experiment and not protocol.overrides:
        return "as measured in docs/procgen.md"
    return f"the speed of {measured}, because these settings were not measured"


def _plan_in_words(protocol: Protocol, plan: Mapping[str, Any]) -> str:
    if protocol.seeds == 1:
        seeds = "the seed 0"
    else:
        seeds = f"the seeds 0 to {protocol.seeds - 1} each"
    if protocol.minutes:
        how = "by their minutes"
    else:
        how = f"at {plan['steps_per_second']:.0f} decisions per second each, {_how_known(protocol)}"
    lines = [
        f"{counted(plan['trainings'], 'training')}, {plan['finished']} finished:"
        f" {', '.join(protocol.games)}, with {seeds}",
        f"{plan['at_a_time']} in parallel, with {counted(plan['threads_each'], 'thread')} each",
        f"hours by the clock, for all trainings: {plan['hours']:.1f}"
        f" ({how}; measuring comes on top)",
    ]
    if plan["cost"] is not None:
        lines.append(f"cost of these hours: {plan['cost']:.2f}")
    return "\n".join(lines)
