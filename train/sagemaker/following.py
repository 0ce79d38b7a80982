"""Follows a job: its statuses, its log, and its end."""

from __future__ import annotations

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
    """Tell every change, and the first job's metrics, until all jobs have ended. Returns the jobs'
    descriptions.

    Raises `AWSError` if AWS refuses to describe them, or can't be reached for ten minutes. The jobs
    go on then."""
    seen: set[Any] = set()
    tail = _Tail(account, names[0]) if log else None
    while True:
        described = _describe_all(account, names, say, poll_seconds)
        for name, one in zip(names, described, strict=True):
            _tell_changes(name if len(names) > 1 else "", one, seen, say)
        for line in tail.lines() if tail else []:
            if figures := parse_metric_line(line):
                say("  ".join(f"{key} {value:,.6g}" for key, value in figures.items()))
            elif way := parse_tunnel_line(line):
                say(way)
        if all(one["TrainingJobStatus"] in ENDINGS for one in described):
            return described
        time.sleep(poll_seconds)


def _describe_all(
    account: Account, names: Sequence[str], say: Callable[[str], None], poll_seconds: float
) -> list[dict[str, Any]]:
    began = time.monotonic()
    told = False
    while True:
        try:
            return [describe(account, name) for name in names]
        except AWSError as error:
            if not may_pass(error) or time.monotonic() - began > _PATIENCE_SECONDS:
                raise
            if not told:
                say(
                    f"{error}. The job goes on; looking again for {_PATIENCE_SECONDS / 60:.0f}"
                    " minutes"
                )
                told = True
        time.sleep(poll_seconds)


def _tell_changes(
    name: str, described: dict[str, Any], seen: set[Any], say: Callable[[str], None]
) -> None:
    for change in described.get("SecondaryStatusTransitions", []):
        key = (name, change["Status"], change["StartTime"])
        if key in seen:
            continue
        seen.add(key)
        text = change["Status"]
        if message := change.get("StatusMessage", ""):
            text += f": {message}"
        if change["Status"] == "Interrupted":
            text += (
                " (spot capacity was taken away; the job goes on from its last checkpoint when"
                " there is some again)"
            )
        say(f"{change['StartTime']:%H:%M:%S} {name} {text}".replace("  ", " "))
    status = described["TrainingJobStatus"]
    if status in ENDINGS and (name, status) not in seen:
        seen.add((name, status))
        if described.get("FailureReason"):
            reason = f": {described['FailureReason']}"
        else:
            reason = ""
        say(f"{name} {status}{reason}".strip())


class _Tail:
    """The lines that the head of a job has printed since the last look. The head is whichever
    machine prints metrics.
    """

    def __init__(self, account: Account, name: str) -> None:
        self._logs = account.logs
        self._name = name
        self._tokens: dict[str, str] = {}

    def lines(self) -> list[str]:
        """Return the new lines, which are none while there is no log. If the log can't be read,
        following continues.
        """
        from botocore.exceptions import BotoCoreError, ClientError

        try:
            found = self._logs.describe_log_streams(
                logGroupName=LOG_GROUP, logStreamNamePrefix=f"{self._name}/"
            )
            return [
                line
                for stream in found["logStreams"]
                for line in self._new(stream["logStreamName"])
            ]
        except (BotoCoreError, ClientError):
            return []

    def _new(self, stream: str) -> list[str]:
        lines: list[str] = []
        while True:
            at = {"nextToken": self._tokens[stream]} if stream in self._tokens else {}
            page = self._logs.get_log_events(
                logGroupName=LOG_GROUP, logStreamName=stream, startFromHead=True, **at
            )
            lines += [event["message"] for event in page["events"]]
            # The end is reached when the token stays what it was.
            if page["nextForwardToken"] == self._tokens.get(stream):
                return lines
            self._tokens[stream] = page["nextForwardToken"]
