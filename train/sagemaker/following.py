"""Follows a job: its statuses, its log, and its end."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Sequence
from typing import Any

from train.sagemaker.account import Account, AWSError, aws_errors, may_pass
from train.sagemaker.metric_lines import parse_metric_line
from train.sagemaker.tunnel import parse_tunnel_line

ENDINGS = ("Completed", "Failed", "Stopped")
LOG_GROUP = "/aws/sagemaker/TrainingJobs"
_PATIENCE_SECONDS = 600.0


def describe(account: Account, name: str) -> dict[str, Any]:
    """Return SageMaker's description of a job."""
    with aws_errors(f"asking about {name}"):
        return account.sagemaker.describe_training_job(TrainingJobName=name)


def follow(
    account: Account,
    names: Sequence[str],
    say: Callable[[str], None],
    *,
    poll_seconds: float = 15.0,
    log: bool = True,
) -> list[dict[str, Any]]:
    """Print every change, and the first job's metrics, until all jobs have ended.

    Returns the jobs' descriptions. Raises `AWSError` if AWS refuses to describe them, or can't
    be reached for ten minutes; the jobs then continue."""
    reported: set[Any] = set()
    tail = _Tail(account, names[0]) if log else None
    while True:
        described = _describe_all(account, names, say, poll_seconds)
        for name, one in zip(names, described, strict=True):
            label = name if len(names) > 1 else ""
            _say_changes(label, one, reported, say)
        if tail is not None:
            _say_lines(tail.lines(), say)
        if all(one["TrainingJobStatus"] in ENDINGS for one in described):
            return described
        time.sleep(poll_seconds)


def _describe_all(
    account: Account, names: Sequence[str], say: Callable[[str], None], poll_seconds: float
) -> list[dict[str, Any]]:
    began = time.monotonic()
    has_complained = False
    while True:
        try:
            return [describe(account, name) for name in names]
        except AWSError as error:
            if not may_pass(error) or time.monotonic() - began > _PATIENCE_SECONDS:
                raise
            if not has_complained:
                say(
                    f"{error}. The job continues; checking again for"
                    f" {_PATIENCE_SECONDS / 60:.0f} minutes"
                )
                has_complained = True
        time.sleep(poll_seconds)


def _say_lines(lines: Sequence[str], say: Callable[[str], None]) -> None:
    """Say the metrics and the tunnels in lines of a job's log."""
    for line in lines:
        if figures := parse_metric_line(line):
            say("  ".join(f"{key} {value:,.6g}" for key, value in figures.items()))
        elif tunnel := parse_tunnel_line(line):
            say(tunnel)


def _say_changes(
    name: str, described: dict[str, Any], reported: set[Any], say: Callable[[str], None]
) -> None:
    """Say a job's changes of status that aren't in `reported`, and add them to it."""
    for change in described.get("SecondaryStatusTransitions", []):
        key = (name, change["Status"], change["StartTime"])
        if key in reported:
            continue
        reported.add(key)
        text = change["Status"]
        if message := change.get("StatusMessage", ""):
            text += f": {message}"
        if change["Status"] == "Interrupted":
            text += (
                " (spot capacity was reclaimed; the job continues from its last checkpoint when"
                " there is some again)"
            )
        say(f"{change['StartTime']:%H:%M:%S} {name} {text}".replace("  ", " "))
    status = described["TrainingJobStatus"]
    if status in ENDINGS and (name, status) not in reported:
        reported.add((name, status))
        text = f"{name} {status}".strip()
        if reason := described.get("FailureReason"):
            text += f": {reason}"
        say(text)


class _Tail:
    """The log of a job's machines, of which the head alone prints metrics."""

    def __init__(self, account: Account, name: str) -> None:
        self._logs = account.logs
        self._name = name
        self._tokens: dict[str, str] = {}

    def lines(self) -> list[str]:
        """Return the lines since the last call; none if there is no log or it can't be read."""
        from botocore.exceptions import BotoCoreError, ClientError

        try:
            answer = self._logs.describe_log_streams(
                logGroupName=LOG_GROUP, logStreamNamePrefix=f"{self._name}/"
            )
            streams = [self._new(stream["logStreamName"]) for stream in answer["logStreams"]]
        except (BotoCoreError, ClientError):
            return []
        return list(itertools.chain.from_iterable(streams))

    def _new(self, stream: str) -> list[str]:
        lines: list[str] = []
        while True:
            at = {}
            if stream in self._tokens:
                at["nextToken"] = self._tokens[stream]
            page = self._logs.get_log_events(
                logGroupName=LOG_GROUP, logStreamName=stream, startFromHead=True, **at
            )
            lines += [event["message"] for event in page["events"]]
            # The token stays the same at the end.
            if page["nextForwardToken"] == self._tokens.get(stream):
                return lines
            self._tokens[stream] = page["nextForwardToken"]
