"""`procsnake tune --on sagemaker`: has SageMaker's tuner search, each trial as a training job of
its own.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence

from envs.common.errors import ConfigError
from envs.common.shell_command import shell_command
from procsnake.cli.command_line import positive, print_json


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of a search on SageMaker."""
    parser.add_argument(
        "--on", choices=["here", "sagemaker"], default="here", help="where (default: %(default)s)"
    )
    there = parser.add_argument_group(
        "with --on sagemaker, where each trial is a job that costs money"
    )
    there.add_argument(
        "--instances",
        metavar="TEXT",
        help="of each trial: INSTANCE, N*INSTANCE or LEARNER+N*PLAYER",
    )
    there.add_argument("--stack", help="CloudFormation stack made from train/sagemaker/stack.yaml")
    for name, text in (
        ("role", "ARN of the jobs' role"),
        ("image", "URI of the image"),
        ("bucket", "S3 bucket"),
    ):
        there.add_argument(f"--{name}", help=text)
    there.add_argument("--region", help="AWS region (default: that of aws configure)")
    there.add_argument(
        "--max-hours",
        type=positive,
        default=24.0,
        help="hours until a trial is stopped (default: %(default)s)",
    )
    there.add_argument(
        "--print-request", action="store_true", help="check and print the request, and end"
    )


def run(options: argparse.Namespace, overrides: Sequence[str]) -> int:
    """Start the search, or print its request. Returns the exit code."""
    from train.cluster.sizes import require_processes, sized
    from train.config import Experiment, experiment_text
    from train.run import check
    from train.sagemaker.account import Account, JobResources, aws_errors
    from train.sagemaker.hyperparameters import encode_overrides
    from train.sagemaker.job import Job
    from train.sagemaker.jobs import PREFIX, upload
    from train.sagemaker.request_rules import check_tuning
    from train.sagemaker.source import EXPERIMENT_FILE, pack
    from train.sagemaker.tuner import LONGEST_NAME, tuning_request
    from train.settings.scale import Local, scale_overrides

    if options.cluster:
        raise ConfigError(
            "--cluster is for a search on a Ray cluster; SageMaker makes its own machines: leave"
            " one out"
        )
    given = [*(scale_overrides(options.instances) if options.instances else []), *overrides]
    experiment = Experiment.load(options.experiment, given).search(options.search)
    require_processes(experiment, "jobs")
    if isinstance(experiment.scale, Local):
        raise ConfigError(
            "the experiment's scale is local; name instances, e.g. --instances ml.c5.4xlarge"
        )
    account = Account.of(options.region)
    named = {name: getattr(options, name) for name in ("role", "image", "bucket")}
    places = JobResources.find(
        account, {**named, "subnets": None, "security_groups": None}, options.stack
    )
    stem = f"{PREFIX}{experiment.algorithm.replace('_', '-')}"
    name = f"{stem[: LONGEST_NAME - 12]}-{time.strftime('%m%d-%H%M%S')}"
    kept = [one for one in given if not one.startswith("tune.")]
    job = Job(
        name=name,
        image=places.image,
        role=places.role,
        bucket=places.bucket,
        prefix="procsnake",
        region=account.region,
        scale=experiment.scale,
        hyperparameters=encode_overrides(EXPERIMENT_FILE, kept),
        max_seconds=round(3600 * options.max_hours),
        subnets=places.subnets,
        security_groups=places.security_groups,
    )
    request = tuning_request(name, job, experiment.tune)
    check_tuning(request)
    if options.print_request:
        print_json(request)
        return 0
    check(sized(experiment))
    upload(
        account,
        job,
        pack(experiment_text(options.experiment)),
        lambda text: print(text, flush=True),
    )
    with aws_errors(f"creating the search {name}"):
        account.sagemaker.create_hyper_parameter_tuning_job(**request)
    told = "aws sagemaker describe-hyper-parameter-tuning-job --hyper-parameter-tuning-job-name"
    print(f"created {name}: {experiment.tune.trials} trials\nits best trial so far: {told} {name}")
    print(
        "a trial's policy is the model.tar.gz of its training job; follow one:"
        f" {shell_command('job', 'follow', 'NAME')}"
    )
    return 0
