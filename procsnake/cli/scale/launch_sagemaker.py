"""`procsnake launch sagemaker` explains, checks, prints or creates a training job on SageMaker."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

from envs.common.errors import ConfigError
from envs.common.shell_command import shell_command
from procsnake.cli.command_line import add_json, at_least, positive, print_json
from procsnake.cli.scale.job import add_following, follow_home, say

HELP = """\
The run is downloaded to runs/, like one trained here. --explain, --print-request and --dry-run
send nothing. Jobs cost money: see docs/sagemaker.md.

examples:
  procsnake launch sagemaker battlesnake-ppo --instances ml.c5.4xlarge --explain
  procsnake launch sagemaker battlesnake-ppo --instances ml.c5.4xlarge --explain \\
     --price ml.c5.4xlarge=0.82
  procsnake launch sagemaker battlesnake-ppo --price ml.c5.xlarge=0.2 \\
     --price ml.g5.xlarge=1.4 --compare
  procsnake launch sagemaker battlesnake-ppo --instances ml.c5.4xlarge --stack procsnake \\
     --print-request
  procsnake launch sagemaker battlesnake-ppo --instances ml.c5.4xlarge --stack procsnake --spot
  procsnake launch sagemaker battlesnake-apex --instances '3*ml.c5.4xlarge' --stack procsnake
  procsnake launch sagemaker battlesnake-apex --instances 'ml.g5.2xlarge+2*ml.c5.9xlarge' \\
     --stack procsnake --set seed=1
"""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    _add_training(parser)
    _add_time_and_money(parser)
    _add_instances(parser)
    _add_protection(parser)
    _add_watching(parser)
    _add_places(parser)
    _add_rehearsals(parser)
    add_json(parser)
    add_following(parser)


def _add_training(parser: argparse.ArgumentParser) -> None:
    """What is trained, and on which instances."""
    parser.add_argument("experiment", help="name of an experiment, or a YAML file")
    parser.add_argument(
        "--instances",
        metavar="TEXT",
        help="INSTANCE, N*INSTANCE or LEARNER+N*PLAYER: short for --set scale.…",
    )
    parser.add_argument(
        "--two-jobs", action="store_true", help="with two kinds of instances: two jobs in one VPC"
    )
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="override a value; may be repeated",
    )
    parser.add_argument("--minutes", type=float, help="short for --set budget.max_minutes=…")


def _add_time_and_money(parser: argparse.ArgumentParser) -> None:
    """How long the job may take, and what it may cost."""
    parser.add_argument(
        "--spot",
        action="store_true",
        help="use spot instances: cheaper, and continued automatically after an interruption",
    )
    parser.add_argument(
        "--max-hours",
        type=positive,
        default=24.0,
        help="hours until the job is stopped (default: %(default)s)",
    )
    parser.add_argument(
        "--max-wait-hours",
        type=positive,
        help="the same including the wait for --spot (default: twice --max-hours)",
    )
    parser.add_argument(
        "--max-cost",
        type=positive,
        metavar="DOLLARS",
        help="stop the job before it costs more",
    )
    parser.add_argument(
        "--speed",
        action="append",
        default=[],
        metavar="[INSTANCES=]DECISIONS",
        help="measured decisions per second",
    )


def _add_instances(parser: argparse.ArgumentParser) -> None:
    """What the instances have, and are called."""
    parser.add_argument(
        "--include",
        action="append",
        default=[],
        metavar="PATH",
        help="file or folder to send with the job",
    )
    parser.add_argument(
        "--volume",
        type=at_least(1),
        default=50,
        help="disk of each instance, GiB (default: %(default)s)",
    )
    parser.add_argument(
        "--keep-alive-minutes", type=positive, help="minutes that instances wait for the next job"
    )
    parser.add_argument(
        "--tag",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="tag of the job; may be repeated",
    )
    parser.add_argument(
        "--env",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="environment variable of the containers; not for secrets",
    )


def _add_protection(parser: argparse.ArgumentParser) -> None:
    """How the job's data are kept from others."""
    parser.add_argument(
        "--encrypt", action="store_true", help="encrypt traffic between the instances"
    )
    parser.add_argument(
        "--kms-key",
        default="",
        metavar="KEY",
        help="ID or ARN of the KMS key for source, token, output, disks",
    )
    parser.add_argument(
        "--isolate", action="store_true", help="let the containers reach only each other"
    )


def _add_watching(parser: argparse.ArgumentParser) -> None:
    """What happens after a fault, and how the job can be looked into."""
    parser.add_argument(
        "--retries",
        type=at_least(0),
        default=0,
        help="restarts after AWS faults (default: %(default)s)",
    )
    parser.add_argument(
        "--remote-debug",
        action="store_true",
        help="allow a shell in the running containers (AWS SSM)",
    )
    parser.add_argument(
        "--dashboard",
        action="store_true",
        help="the same, with Ray's dashboard and metrics through an SSM tunnel",
    )
    parser.add_argument(
        "--experiment",
        dest="trial_of",
        default="",
        metavar="NAME",
        help="make the job a trial of this SageMaker Experiment",
    )
    parser.add_argument(
        "--mlflow", default="", metavar="ARN", help="also log to this managed MLflow server"
    )


def _add_places(parser: argparse.ArgumentParser) -> None:
    """Where in AWS the job runs and writes."""
    places = parser.add_argument_group(
        "account (or PROCSNAKE_ROLE, PROCSNAKE_IMAGE, …, or from a stack)"
    )
    places.add_argument("--stack", help="CloudFormation stack made from train/sagemaker/stack.yaml")
    for name, text in (
        ("role", "ARN of the job's role"),
        ("image", "URI of the image"),
        ("bucket", "S3 bucket"),
        ("subnets", "IDs, separated by commas"),
        ("security-groups", "IDs, separated by commas"),
    ):
        place: Any = places.add_argument(f"--{name}", help=text)
        # What is said of the form of a bucket's name is more to the point than that it is no path.
        place.schemes = ("s3",)
    places.add_argument(
        "--prefix", default="procsnake", help="folder in the bucket (default: %(default)s)"
    )


def _add_rehearsals(parser: argparse.ArgumentParser) -> None:
    """What is done instead of following a job."""
    show = parser.add_mutually_exclusive_group()
    show.add_argument(
        "--explain", action="store_true", help="show what would run on these instances, and exit"
    )
    show.add_argument(
        "--compare",
        nargs="*",
        metavar="TEXT",
        help="compare what a dollar buys on these instances and on each one with a --price",
    )
    show.add_argument(
        "--print-request", action="store_true", help="check and print the request, and exit"
    )
    show.add_argument("--dry-run", action="store_true", help="do everything but call AWS")
    show.add_argument("--no-follow", action="store_true", help="exit once the job is created")


def run(options: argparse.Namespace) -> int:
    """Run `procsnake launch sagemaker`. Returns the exit code."""
    from procsnake.cli.scale.launch_figures import compare, explain, max_seconds
    from train.cluster.sizes import require_processes
    from train.config import Experiment
    from train.sagemaker.costs.bill import parse_prices
    from train.sagemaker.hyperparameters import own_overrides
    from train.settings.instances import is_size
    from train.settings.scale import Local, machines
    from train.stages import require_one_stage

    if options.compare is not None:
        return compare(options)
    if options.max_wait_hours is not None and not options.spot:
        raise ConfigError(
            f"--max-wait-hours {options.max_wait_hours:g} needs --spot; add it, or leave both out"
        )
    overrides, notes = own_overrides(options.experiment, _overrides(options))
    for note in notes:
        print(f"note: {note}")
    experiment = Experiment.load(options.experiment, overrides)
    require_one_stage(experiment, "launch")
    require_processes(experiment, "jobs")
    if isinstance(experiment.scale, Local):
        raise ConfigError(
            "the experiment's scale is local; name instances, such as --instances ml.c5.4xlarge"
        )
    if size := next(
        (one.instance for one in machines(experiment.scale) if is_size(one.instance)), None
    ):
        raise ConfigError(
            "SageMaker takes instance types, such as --instances ml.c5.4xlarge, not the size"
            f" {size!r}; sizes are for procsnake launch kuberay and slurm"
        )
    prices = parse_prices(options.price)
    seconds = max_seconds(options, experiment, prices)
    if options.explain:
        explain(options, experiment, prices, seconds)
        return 0
    if options.json and not options.print_request:
        raise ConfigError("--json needs --explain, --compare or --print-request")
    return _launch(options, experiment, overrides, prices, seconds)


def _overrides(options: argparse.Namespace) -> list[str]:
    from train.settings.scale import scale_overrides

    if options.two_jobs and not options.instances:
        raise ConfigError(
            "--two-jobs needs --instances; in an experiment, set scale.mode: two-jobs"
        )
    if options.instances:
        instances = scale_overrides(options.instances, two_jobs=options.two_jobs)
    else:
        instances = []
    if options.minutes is not None:
        minutes = [f"budget.max_minutes={options.minutes}"]
    else:
        minutes = []
    return [*instances, *options.set, *minutes]


def _launch(
    options: argparse.Namespace,
    experiment: Any,
    overrides: Sequence[str],
    prices: dict[str, float],
    max_seconds: int,
) -> int:
    from train.cluster.advice import warnings
    from train.cluster.sizes import sized
    from train.config import experiment_text
    from train.run import check
    from train.sagemaker.account import Account
    from train.sagemaker.job import requests
    from train.sagemaker.jobs import start
    from train.sagemaker.request_rules import check_requests
    from train.sagemaker.source import pack

    account = Account.of(options.region)
    job = _job(options, experiment, account, overrides, max_seconds)
    job_requests = requests(job)
    check_requests(job_requests)
    if options.print_request:
        print_json(job_requests if len(job_requests) > 1 else job_requests[0])
        return 0
    # Mistakes in the experiment show here, for nothing, rather than minutes later on instances that
    # are paid for.
    check(sized(experiment))
    for text in warnings(experiment):
        say(f"warning: {text}")
    source = pack(experiment_text(options.experiment), options.include)
    if options.dry_run:
        print(
            f"would upload {len(source) / 2**20:.1f} MiB of source and a token to"
            f" s3://{job.bucket}/{job.inputs_key}/"
        )
        print("\n".join(f"would create {request['TrainingJobName']}" for request in job_requests))
        return 0
    names = start(account, job, source, say)
    if options.no_follow:
        print(f"follow it: {shell_command('job', 'follow', names[0])}")
        return 0
    return follow_home(options, account, names, prices)


def _job(
    options: argparse.Namespace,
    experiment: Any,
    account: Any,
    overrides: Sequence[str],
    max_seconds: int,
) -> Any:
    from procsnake.cli.scale.launch_figures import keep_alive_seconds
    from train.sagemaker.account import JobResources
    from train.sagemaker.hyperparameters import encode_overrides
    from train.sagemaker.job import Job
    from train.sagemaker.jobs import job_name
    from train.sagemaker.source import EXPERIMENT_FILE

    places_by_name = {
        name: getattr(options, name)
        for name in ("role", "image", "bucket", "subnets", "security_groups")
    }
    places = JobResources.find(account, places_by_name, options.stack)
    return Job(
        name=job_name(experiment.name),
        image=places.image,
        role=places.role,
        bucket=places.bucket,
        prefix=options.prefix,
        region=account.region,
        scale=experiment.scale,
        hyperparameters=encode_overrides(EXPERIMENT_FILE, overrides),
        spot=options.spot,
        max_seconds=max_seconds,
        max_wait_seconds=round(3600 * options.max_wait_hours) if options.max_wait_hours else None,
        volume_gb=options.volume,
        subnets=places.subnets,
        security_groups=places.security_groups,
        keep_alive_seconds=keep_alive_seconds(options),
        tags=_pairs("tag", options.tag),
        environment=_pairs("variable", options.env),
        encrypt=options.encrypt,
        kms_key=options.kms_key,
        isolate=options.isolate,
        retries=options.retries,
        remote_debug=options.remote_debug,
        dashboard=options.dashboard,
        experiment=options.trial_of,
        mlflow=options.mlflow,
    )


def _pairs(what: str, texts: Sequence[str]) -> dict[str, str]:
    values: dict[str, str] = {}
    for text in texts:
        key, equals, value = text.partition("=")
        if not key or not equals:
            raise ConfigError(f"{what} {text!r} is not of the form KEY=VALUE")
        if key in values:
            raise ConfigError(f"{what} {key!r} is given twice: {values[key]!r} and {value!r}")
        values[key] = value
    return values
