"""The commands `procsnake launch` and `procsnake job`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import Any

from envs.common.command_line import INTERRUPTED, Commands, add_json, at_least, print_json, shell_command
from envs.common.errors import ConfigError

LAUNCH_HELP = """\
The run comes back as a folder under runs/, like one that was trained here. Nothing is sent with --explain, --print-request or
--dry-run. Costs money: see docs/sagemaker.md.

examples:
  procsnake launch battlesnake-ppo --instances ml.c5.4xlarge --explain
  procsnake launch battlesnake-ppo --instances ml.c5.4xlarge --stack procsnake --print-request
  procsnake launch battlesnake-ppo --instances ml.c5.4xlarge --stack procsnake --spot
  procsnake launch battlesnake-apex --instances '3*ml.c5.4xlarge' --stack procsnake
  procsnake launch battlesnake-apex --instances 'ml.g5.2xlarge+2*ml.c5.9xlarge' --stack procsnake --set seed=1
"""
JOB_HELP = """\
examples:
  procsnake job list                            # the newest jobs
  procsnake job follow NAME                     # watch it, then bring its run home
  procsnake job stop NAME                       # save and end
  procsnake job resume NAME                     # go on from its last checkpoint, as a new job
  procsnake job download NAME                   # bring its run home as it is now
"""
_STATUS_ORDER = "{name:<48} {status:<12} {created:%Y-%m-%d %H:%M}"
_FAILED = 1


def add_commands(command: Commands) -> None:
    """Add the two commands."""
    _add_launch(command("launch", run_launch, "Train on SageMaker: one instance, several, or two kinds.", LAUNCH_HELP))
    _add_job(command("job", run_job, "List, follow, stop and resume jobs on SageMaker.", JOB_HELP))


def _add_launch(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("experiment", help="name of an experiment, or a YAML file")
    parser.add_argument("--on", choices=["sagemaker"], default="sagemaker", help="where (default: %(default)s)")
    parser.add_argument("--instances", metavar="TEXT", help="INSTANCE, N*INSTANCE or LEARNER+N*PLAYER: short for --set scale.…")
    parser.add_argument("--two-jobs", action="store_true", help="with two kinds of instances: two jobs in one VPC")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="override a value; may be repeated")
    parser.add_argument("--minutes", type=float, help="short for --set budget.max_minutes=…")
    parser.add_argument("--spot", action="store_true", help="on spare capacity: cheaper; continues by itself if interrupted")
    parser.add_argument("--max-hours", type=float, default=24.0, help="hours until the job is stopped (default: %(default)s)")
    parser.add_argument("--max-wait-hours", type=float, help="the same with waiting for --spot (default: twice --max-hours)")
    parser.add_argument("--include", action="append", default=[], metavar="PATH", help="file or folder that the job needs")
    parser.add_argument("--volume", type=at_least(1), default=50, help="disk of each instance, GiB (default: %(default)s)")
    parser.add_argument("--keep-alive-minutes", type=float, default=0.0, help="how long instances wait for the next job")
    parser.add_argument("--tag", action="append", default=[], metavar="KEY=VALUE", help="may be repeated")
    places = parser.add_argument_group("places (or PROCSNAKE_ROLE, PROCSNAKE_IMAGE, …, or what a stack says)")
    places.add_argument("--stack", help="CloudFormation stack made from train/sagemaker/stack.yaml")
    for name, text in (("role", "ARN of the job's role"), ("image", "URI of the image"), ("bucket", "S3 bucket"),
                       ("subnets", "IDs, with commas"), ("security-groups", "IDs, with commas")):  # fmt: skip
        places.add_argument(f"--{name}", help=text)
    places.add_argument("--prefix", default="procsnake", help="folder in the bucket (default: %(default)s)")
    show = parser.add_mutually_exclusive_group()
    show.add_argument("--explain", action="store_true", help="show what follows from the instances, and end")
    show.add_argument("--print-request", action="store_true", help="check and print the request, and end")
    show.add_argument("--dry-run", action="store_true", help="do everything but call AWS")
    show.add_argument("--no-follow", action="store_true", help="end once the job is created")
    add_json(parser)
    _add_following(parser)


def _add_job(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("action", choices=["list", "follow", "stop", "resume", "download"])
    parser.add_argument("name", nargs="?", help="name of the job; of two jobs, the one that learns")
    add_json(parser)
    _add_following(parser)


def _add_following(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--region", help="AWS region (default: that of aws configure)")
    parser.add_argument("--price", action="append", default=[], metavar="INSTANCE=DOLLARS", help="per hour; may be repeated")
    parser.add_argument("--poll-seconds", type=float, default=15.0, help="seconds between two looks (default: %(default)s)")
    parser.add_argument("--runs", default="runs", help="where run folders are put (default: %(default)s)")


def run_launch(options: argparse.Namespace) -> int:
    """Run `procsnake launch`. Returns the exit code."""
    from train.cluster.scale import Local
    from train.cluster.sizes import explain, figures
    from train.config import Experiment

    overrides = _overrides(options)
    experiment = Experiment.load(options.experiment, overrides)
    if not experiment.uses_ray:
        raise ConfigError(f"{experiment.algorithm} is a single process, which jobs aren't made for: train it where you are")
    if isinstance(experiment.scale, Local):
        raise ConfigError("the experiment's scale is local; name instances, e.g. --instances ml.c5.4xlarge")
    if options.explain:
        print_json(figures(experiment)) if options.json else print(explain(experiment))
        return 0
    if options.json and not options.print_request:
        raise ConfigError("--json goes with --explain and --print-request; a job that runs is told as it goes")
    return _launch(options, experiment, overrides)


def _overrides(options: argparse.Namespace) -> list[str]:
    from train.cluster.scale import scale_overrides

    if options.two_jobs and not options.instances:
        raise ConfigError("--two-jobs goes with --instances; in an experiment it is scale.mode: two-jobs")
    overrides = scale_overrides(options.instances, two_jobs=options.two_jobs) if options.instances else []
    if options.minutes is not None:
        overrides.append(f"budget.max_minutes={options.minutes}")
    return overrides + options.set


def _launch(options: argparse.Namespace, experiment: Any, overrides: Sequence[str]) -> int:
    from train.cluster.sizes import sized
    from train.config import experiment_text
    from train.run import check
    from train.sagemaker.account import Account
    from train.sagemaker.costs import parse_prices
    from train.sagemaker.job import requests
    from train.sagemaker.jobs import start
    from train.sagemaker.request_rules import check_requests
    from train.sagemaker.source import pack

    prices, account = parse_prices(options.price), Account.of(options.region)
    job = _job(options, experiment, account, overrides)
    asked = requests(job)
    check_requests(asked)
    if options.print_request:
        print_json(asked if len(asked) > 1 else asked[0])
        return 0
    # Mistakes in the experiment show here, for nothing, rather than minutes later on instances that are paid for.
    check(sized(experiment))
    source = pack(experiment_text(options.experiment), options.include)
    if options.dry_run:
        print(f"would upload {len(source) / 2**20:.1f} MiB of source and a token to {job.place}/")
        print("\n".join(f"would create {request['TrainingJobName']}" for request in asked))
        return 0
    names = start(account, job, source, _say)
    if options.no_follow:
        print(f"follow it: {shell_command('job', 'follow', names[0])}")
        return 0
    return _follow(options, account, names, prices)


def _job(options: argparse.Namespace, experiment: Any, account: Any, overrides: Sequence[str]) -> Any:
    from train.sagemaker.account import JobResources
    from train.sagemaker.hyperparameters import encode_overrides
    from train.sagemaker.job import Job
    from train.sagemaker.jobs import job_name
    from train.sagemaker.source import EXPERIMENT_FILE

    given = {name: getattr(options, name) for name in ("role", "image", "bucket", "subnets", "security_groups")}
    places = JobResources.find(account, given, options.stack)
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
        max_seconds=round(3600 * options.max_hours),
        max_wait_seconds=round(3600 * options.max_wait_hours) if options.max_wait_hours else None,
        volume_gb=options.volume,
        subnets=places.subnets,
        security_groups=places.security_groups,
        keep_alive_seconds=round(60 * options.keep_alive_minutes),
        tags=_tags(options.tag),
    )


def _tags(texts: Sequence[str]) -> dict[str, str]:
    pairs = [text.partition("=") for text in texts]
    if wrong := next((text for text, (key, equals, _) in zip(texts, pairs, strict=True) if not key or not equals), None):
        raise ConfigError(f"tag {wrong!r} is not of the form KEY=VALUE")
    return {key: value for key, _, value in pairs}


def run_job(options: argparse.Namespace) -> int:
    """Run `procsnake job`. Returns the exit code."""
    from train.sagemaker import jobs
    from train.sagemaker.account import Account
    from train.sagemaker.costs import parse_prices
    from train.sagemaker.following import describe

    if options.json and options.action != "list":
        raise ConfigError(f"--json goes with job list; job {options.action} tells what happens as it goes")
    prices, account = parse_prices(options.price), Account.of(options.region)
    if options.action == "list":
        found = jobs.recent(account)
        rows = [{"name": j["TrainingJobName"], "status": j["TrainingJobStatus"], "created": j["CreationTime"]} for j in found]
        if options.json:
            print_json(rows)
            return 0
        print("\n".join(_STATUS_ORDER.format(**row) for row in rows) or f"no jobs of procsnake in {account.region}")
        return 0
    if not options.name:
        raise ConfigError(
            f"which job? Name it: {shell_command('job', options.action, 'NAME')}; list them: {shell_command('job', 'list')}"
        )
    if options.action == "stop":
        jobs.stop(account, options.name, _say)
        return 0
    if options.action == "download":
        print(f"run: {jobs.download(account, describe(account, options.name), options.runs)}")
        return 0
    resumed = options.action == "resume"
    names = jobs.resume(account, options.name, _say) if resumed else jobs.together(account, options.name)
    return _follow(options, account, names, prices)


def _follow(options: argparse.Namespace, account: Any, names: list[str], prices: dict[str, float]) -> int:
    """Until the job has ended; its run then lies here. Exit code 0 if it did what it should, 1 if it failed or was stopped."""
    from train.sagemaker import jobs
    from train.sagemaker.costs import bill_lines
    from train.sagemaker.following import follow

    try:
        described = follow(account, names, _say, poll_seconds=options.poll_seconds)
    except KeyboardInterrupt:
        print("\nthe job goes on", f"watch it again: {shell_command('job', 'follow', names[0])}", sep="\n")
        print(f"end it: {shell_command('job', 'stop', names[0])}")
        return INTERRUPTED
    jobs.forget_token(account, described[0])
    print("\n".join(bill_lines(described, prices)))
    completed = all(one["TrainingJobStatus"] == "Completed" for one in described)
    try:
        print(f"run: {jobs.download(account, described[0], options.runs)}")
    except jobs.RunError as error:
        if completed:
            raise
        print(f"nothing to bring home: {error}", file=sys.stderr)
    if not completed:
        print(f"go on from its last checkpoint: {shell_command('job', 'resume', names[0])}")
    return 0 if completed else _FAILED


def _say(text: str) -> None:
    print(text, flush=True)
