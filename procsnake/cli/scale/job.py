"""`procsnake job`: lists, follows, stops, resumes and downloads jobs on SageMaker."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from envs.common.columns import in_columns
from envs.common.errors import ConfigError
from envs.common.shell_command import shell_command
from procsnake.cli.command_line import add_json, non_negative, print_json
from procsnake.cli.exit_codes import INTERRUPTED

HELP = """\
examples:
  procsnake job list                            # the newest jobs
  procsnake job follow NAME                     # watch it, then download its run
  procsnake job stop NAME                       # save and stop
  procsnake job resume NAME                     # continue from its last checkpoint, as a new job
  procsnake job resume NAME --set scale.workers=8    # with another number of env runners
  procsnake job download NAME                   # download its run as it is now
"""
_FAILED = 1


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the command."""
    parser.add_argument("action", choices=["list", "follow", "stop", "resume", "download"])
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="with resume: scale.workers=…",
    )
    parser.add_argument("name", nargs="?", help="name of the job; with two jobs, the learner's")
    add_json(parser)
    add_following(parser)


def add_following(parser: argparse.ArgumentParser) -> None:
    """Add the options of every command that follows a job."""
    parser.add_argument("--region", help="AWS region (default: that of aws configure)")
    parser.add_argument(
        "--price",
        action="append",
        default=[],
        metavar="INSTANCE=DOLLARS",
        help="price per hour; may be repeated",
    )
    parser.add_argument(
        "--poll-seconds",
        type=non_negative,
        default=15.0,
        help="seconds between status checks (default: %(default)s)",
    )
    parser.add_argument("--runs", default="runs", help="folder for runs (default: %(default)s)")


def run(options: argparse.Namespace) -> int:
    """Run `procsnake job`. Returns the exit code."""
    from train.sagemaker import jobs
    from train.sagemaker.account import Account
    from train.sagemaker.costs.bill import parse_prices
    from train.sagemaker.following import describe

    if options.set and options.action != "resume":
        raise ConfigError(f"--set works only with job resume, not with job {options.action}")
    if options.json and options.action != "list":
        raise ConfigError(f"--json works only with job list, not with job {options.action}")
    prices = parse_prices(options.price)
    account = Account.of(options.region)
    if options.action == "list":
        recent_jobs = jobs.recent(account)
        rows = [
            {
                "name": j["TrainingJobName"],
                "status": j["TrainingJobStatus"],
                "created": j["CreationTime"],
            }
            for j in recent_jobs
        ]
        if options.json:
            print_json(rows)
            return 0
        cells = [(row["name"], row["status"], f"{row['created']:%Y-%m-%d %H:%M}") for row in rows]
        print(
            in_columns(cells, ("job", "status", "began"))
            if cells
            else f"no jobs of procsnake in {account.region}"
        )
        return 0
    if not options.name:
        raise ConfigError(
            f"which job? Name it: {shell_command('job', options.action, 'NAME')}; list them:"
            f" {shell_command('job', 'list')}"
        )
    if options.action == "stop":
        jobs.stop(account, options.name, say)
        return 0
    if options.action == "download":
        print(f"run: {jobs.download(account, describe(account, options.name), options.runs)}")
        return 0
    resumed = options.action == "resume"
    if resumed:
        names = jobs.resume(account, options.name, say, sizes=options.set)
    else:
        names = jobs.together(account, options.name)
    return follow_home(options, account, names, prices)


def follow_home(
    options: argparse.Namespace, account: Any, names: list[str], prices: dict[str, float]
) -> int:
    """Follow the jobs until they have ended, then download their run.

    Returns the exit code: 0 if the job succeeded, 1 if it failed or was stopped. Before raising
    `AWSError` or `RunError`, it prints how to continue."""
    from train.sagemaker import jobs
    from train.sagemaker.account import AWSError
    from train.sagemaker.costs.bill import bill_lines
    from train.sagemaker.following import follow

    try:
        described = follow(account, names, say, poll_seconds=options.poll_seconds)
    except (KeyboardInterrupt, AWSError) as ending:
        print(
            "\nthe job continues",
            f"watch it again: {shell_command('job', 'follow', names[0])}",
            sep="\n",
        )
        print(f"stop it: {shell_command('job', 'stop', names[0])}", flush=True)
        if isinstance(ending, AWSError):
            raise
        return INTERRUPTED
    try:
        jobs.forget_token(account, described[0])
    except AWSError as error:
        # It is of no more use to anybody.
        print(f"the job's token stays in the bucket: {error}", file=sys.stderr)
    print("\n".join(bill_lines(described, prices)))
    completed = all(one["TrainingJobStatus"] == "Completed" for one in described)
    try:
        print(f"run: {jobs.download(account, described[0], options.runs)}")
    except jobs.RunError as error:
        if completed:
            raise
        problem = error.with_commands(shell_command)
        print(f"no run was downloaded: {problem}", file=sys.stderr)
    except AWSError:
        print(f"download its run: {shell_command('job', 'download', names[0])}", flush=True)
        raise
    if not completed:
        print(f"continue from its last checkpoint: {shell_command('job', 'resume', names[0])}")
    return 0 if completed else _FAILED


def say(text: str) -> None:
    """Print a line at once."""
    print(text, flush=True)
