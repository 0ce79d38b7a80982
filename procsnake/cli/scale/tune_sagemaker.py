"""The command `procsnake tune-sagemaker`: a search by SageMaker's tuner, with one training job per
trial.
"""

from __future__ import annotations

import argparse
import time

from envs.common.errors import ConfigError
from envs.common.shell_command import shell_command
from procsnake.cli.command_line import positive, print_json
from procsnake.cli.train.tune import add_search_options, overrides_of

HELP = """\
Each trial is a SageMaker training job, which costs money.

examples:
  procsnake tune-sagemaker battlesnake-ppo --search ppo.learning_rate=1e-4..3e-3:log \\
     --instances ml.c5.4xlarge \\
      --stack procsnake
"""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    parser.add_argument("experiment", help="name of an experiment, or a YAML file")
    add_search_options(parser)
    parser.add_argument(
        "--instances",
        metavar="TEXT",
        help="instances per trial: INSTANCE, N*INSTANCE or LEARNER+N*PLAYER",
    )
    parser.add_argument("--stack", help="CloudFormation stack made from train/sagemaker/stack.yaml")
    for name, text in (
        ("role", "ARN of the jobs' role"),
        ("image", "URI of the image"),
        ("bucket", "S3 bucket"),
    ):
        parser.add_argument(f"--{name}", help=text)
    parser.add_argument("--region", help="AWS region (default: that of aws configure)")
    parser.add_argument(
        "--max-hours",
        type=positive,
        default=24.0,
        help="hours until a trial is stopped (default: %(default)s)",
    )
    parser.add_argument(
        "--print-request", action="store_true", help="check and print the request, and exit"
    )


def run(options: argparse.Namespace) -> int:
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

    overrides = overrides_of(options)
    all_overrides = [*(scale_overrides(options.instances) if options.instances else []), *overrides]
    experiment = Experiment.load(options.experiment, all_overrides).search(options.search)
    require_processes(experiment, "jobs")
    if isinstance(experiment.scale, Local):
        raise ConfigError(
            "the experiment's scale is local; name instances, such as --instances ml.c5.4xlarge"
        )
    account = Account.of(options.region)
    named = {name: getattr(options, name) for name in ("role", "image", "bucket")}
    places = JobResources.find(
        account, {**named, "subnets": None, "security_groups": None}, options.stack
    )
    stem = f"{PREFIX}{experiment.algorithm.replace('_', '-')}"
    name = f"{stem[: LONGEST_NAME - 12]}-{time.strftime('%m%d-%H%M%S')}"
    own_overrides = [one for one in all_overrides if not one.startswith("tune.")]
    job = Job(
        name=name,
        image=places.image,
        role=places.role,
        bucket=places.bucket,
        prefix="procsnake",
        region=account.region,
        scale=experiment.scale,
        hyperparameters=encode_overrides(EXPERIMENT_FILE, own_overrides),
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
    describe = "aws sagemaker describe-hyper-parameter-tuning-job --hyper-parameter-tuning-job-name"
    print(
        f"created {name}: {experiment.tune.trials} trials\nits best trial so far: {describe} {name}"
    )
    print(
        "a trial's policy is the model.tar.gz of its training job; follow one:"
        f" {shell_command('job', 'follow', 'NAME')}"
    )
    return 0
