"""Starts, resumes, stops and lists jobs, and downloads their runs."""

from __future__ import annotations

import os
import re
import secrets
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain
from pathlib import Path, PurePosixPath
from typing import Any

from envs.common.errors import ConfigError
from envs.common.shell_command import shell_command
from train.config import Experiment
from train.runs.continuing.resizing import resized
from train.runs.folder import CHECKPOINTS, CONFIG, RunError, RunFolder, disk_errors
from train.runs.lock import locked
from train.sagemaker.account import Account, AWSError, aws_errors
from train.sagemaker.following import ENDINGS, describe
from train.sagemaker.hyperparameters import EXPERIMENT, decode, encode_overrides
from train.sagemaker.job import CODE, SECOND_JOB, TOKEN, Job, requests, resumed_requests
from train.sagemaker.request_rules import check_requests
from train.sagemaker.source import ARCHIVE

PREFIX = "procsnake-"
"""The beginning of the names of all jobs."""
_LONGEST_STEM = 20
_MOST_LISTED = 20

Say = Callable[[str], None]


def job_name(experiment: str) -> str:
    """Return a new name for a job of that experiment: at most 46 characters, with the current
    second in it.
    """
    stem = re.sub(r"[^a-zA-Z0-9]+", "-", experiment)[:_LONGEST_STEM].strip("-")
    return f"{PREFIX}{stem}-{time.strftime('%Y%m%d-%H%M%S')}"


def start(account: Account, job: Job, source: bytes, say: Say) -> list[str]:
    """Upload source and token, and create the job, or both jobs.

    Returns their names. Raises `RequestError` or `AWSError`."""
    new_requests = requests(job)
    check_requests(new_requests)
    if job.experiment:
        _ensure_trial(account, job.experiment, job.name)
    upload(account, job, source, say)
    return _create(account, new_requests, say)


def _ensure_trial(account: Account, experiment: str, trial: str) -> None:
    """Make the trial, and its experiment if there is none: a job may only name what exists."""
    with aws_errors(f"making the experiment {experiment}"):
        pages = account.sagemaker.get_paginator("list_experiments").paginate()
        summaries = chain.from_iterable(page["ExperimentSummaries"] for page in pages)
        if not any(summary["ExperimentName"] == experiment for summary in summaries):
            account.sagemaker.create_experiment(ExperimentName=experiment)
        account.sagemaker.create_trial(TrialName=trial, ExperimentName=experiment)


def upload(account: Account, job: Job, source: bytes, say: Say) -> None:
    """Put the source and a fresh token where the job's channels are. Raises `AWSError`."""
    # Without a key, the bucket's own default holds.
    encryption = _encryption(job.kms_key) if job.kms_key else {}
    with aws_errors(f"uploading to s3://{job.bucket}/{job.inputs_key}"):
        account.s3.put_object(
            Bucket=job.bucket,
            Key=f"{job.inputs_key}/{CODE}/{ARCHIVE}",
            Body=source,
            **encryption,
        )
    say(
        f"uploaded {len(source) / 2**20:.1f} MiB of source to"
        f" s3://{job.bucket}/{job.inputs_key}/{CODE}/"
    )
    _write_token(account, job.bucket, f"{job.inputs_key}/{TOKEN}/{TOKEN}", job.kms_key)


def resume(account: Account, name: str, say: Say, *, sizes: Sequence[str] = ()) -> list[str]:
    """Start a job that continues from the checkpoints of `name`, which must have ended.

    Returns the names of the new jobs. `sizes` are overrides such as "scale.workers=4". Raises
    `ConfigError` for any others, and for impossible sizes."""
    old = [describe(account, one) for one in together(account, name)]
    running = [one["TrainingJobName"] for one in old if one["TrainingJobStatus"] not in ENDINGS]
    if running:
        raise AWSError(
            f"{' and '.join(running)} still runs; it continues by itself after a spot"
            " interruption.",
            next_commands={"to stop it": ("job", "stop", name)},
        )
    _check_source(account, old[0])
    changed = _changed_sizes(account, old[0], sizes)
    fresh = _next_name(name)
    bucket, key = _split(_channel_uri(old[0], TOKEN))
    token_key = f"{key.rstrip('/').removesuffix(f'/{TOKEN}')}/{fresh}/{TOKEN}"
    new_requests = resumed_requests(
        old, fresh, f"s3://{bucket}/{token_key}/", tags=_tags(account, old[0]), sizes=changed
    )
    check_requests(new_requests)
    kms_key = old[0].get("OutputDataConfig", {}).get("KmsKeyId", "")
    _write_token(account, bucket, f"{token_key}/{TOKEN}", kms_key)
    return _create(account, new_requests, say)


def _check_source(account: Account, described: dict[str, Any]) -> None:
    """Raise `RunError` if the source is no longer there. SageMaker would notice minutes later."""
    if _objects(account, *_split(_channel_uri(described, CODE))):
        return
    name = described["TrainingJobName"]
    raise RunError(
        f"the source of {name} is no longer at {_channel_uri(described, CODE)}; the stack's"
        " bucket keeps it for SourceDays.",
        next_commands={
            "download its run": ("job", "download", name),
            "then continue here": ("train", "--resume", "RUN", "--trust"),
        },
    )


def _changed_sizes(
    account: Account, described: dict[str, Any], sizes: Sequence[str]
) -> dict[str, str]:
    """The hyperparameters that these overrides change.

    Raises what the run would raise, before instances are paid for."""
    if wrong := [override for override in sizes if not override.startswith("scale.workers=")]:
        raise ConfigError(
            f"{wrong[0]!r} can't change: a job keeps its experiment and instances; only the"
            " number of env runners may change: --set scale.workers=4"
        )
    if not sizes:
        return {}
    with tempfile.TemporaryDirectory() as folder:
        config = Path(folder) / "config.yaml"
        bucket, key = _config_key(account, described)
        _fetch(account, bucket, key, config)
        resized(Experiment.load(config), sizes)
    return {key: text for key, text in encode_overrides("", sizes).items() if key != EXPERIMENT}


def _config_key(account: Account, described: dict[str, Any]) -> tuple[str, str]:
    """Bucket and key of the configuration of the job's newest run.

    Raises `RunError` if the job has left no run."""
    place = described.get("CheckpointConfig", {}).get("S3Uri", "")
    if not place:
        raise RunError(f"{described['TrainingJobName']} keeps no run; the job that learns does")
    bucket, prefix = _split(place)
    objects = _objects(account, bucket, f"{prefix.rstrip('/')}/")
    newest = max((path for path in objects if path.parts[1:] == (CONFIG,)), default=None)
    if newest is None:
        raise RunError(
            f"there is no run at {place}; the job ended before it began to train.",
            next_commands={"its reason": ("job", "follow", described["TrainingJobName"])},
        )
    return bucket, objects[newest]


def _tags(account: Account, described: dict[str, Any]) -> dict[str, str]:
    """The user's tags of a job. Those that begin with aws: are AWS's, and refused in requests."""
    with aws_errors(f"reading the tags of {described['TrainingJobName']}"):
        pages = account.sagemaker.get_paginator("list_tags").paginate(
            ResourceArn=described["TrainingJobArn"]
        )
        tags = list(chain.from_iterable(page["Tags"] for page in pages))
    return {tag["Key"]: tag["Value"] for tag in tags if not tag["Key"].lower().startswith("aws:")}


def stop(account: Account, name: str, say: Say) -> None:
    """Ask the job, or both jobs, to save and end.

    They get SIGTERM, and are killed after two minutes."""
    for one in together(account, name):
        if describe(account, one)["TrainingJobStatus"] in ENDINGS:
            say(f"{one} has already ended")
            continue
        with aws_errors(f"stopping {one}"):
            account.sagemaker.stop_training_job(TrainingJobName=one)
        say(f"{one} is asked to save and end")


def recent(account: Account) -> list[dict[str, Any]]:
    """Return summaries of the newest jobs of procsnake in the account."""
    with aws_errors("listing jobs"):
        pages = account.sagemaker.get_paginator("list_training_jobs").paginate(
            NameContains=PREFIX,
            SortBy="CreationTime",
            SortOrder="Descending",
            PaginationConfig={"MaxItems": _MOST_LISTED},
        )
        return list(chain.from_iterable(page["TrainingJobSummaries"] for page in pages))


def together(account: Account, name: str) -> list[str]:
    """Return `name`, and the job that plays for it if there is one."""
    role = decode(describe(account, name).get("HyperParameters", {}).get("rl_cluster_type", ""))
    if role == "primary":
        return [name, name + SECOND_JOB]
    return [name]


def forget_token(account: Account, described: dict[str, Any]) -> None:
    """Remove the secret of a job that has ended."""
    bucket, key = _split(_channel_uri(described, TOKEN))
    with aws_errors("removing the job's token"):
        account.s3.delete_object(Bucket=bucket, Key=f"{key.rstrip('/')}/{TOKEN}")


def download(account: Account, described: dict[str, Any], runs: str | os.PathLike[str]) -> Path:
    """Download the job's run as a folder under `runs`, in the form of a local run.

    An existing folder is replaced. Raises `RunError` if the job has left no run or if the folder
    has a newer checkpoint than the job, and `AWSError`."""
    bucket, config = _config_key(account, described)
    prefix, run, _ = config.rsplit("/", 2)
    objects = _objects(account, bucket, f"{prefix}/")
    with disk_errors(Path(runs)):
        target = Path(runs) / run
        if target.is_dir():
            names = [
                path.parts[2]
                for path in objects
                if path.parts[:2] == (run, CHECKPOINTS) and len(path.parts) > 3
            ]
            newest = max(filter(str.isdecimal, names), default="")
            _check_replaceable(target, newest, described["TrainingJobName"])
        part = target.with_name(f".{run}.part")
        shutil.rmtree(part, ignore_errors=True)
        for path, key in objects.items():
            if path.parts[0] == run:
                _fetch(account, bucket, key, part.joinpath(*path.parts[1:]))
        shutil.rmtree(target, ignore_errors=True)
        os.replace(part, target)
    return target


def _check_replaceable(target: Path, newest: str, job: str) -> None:
    """Raise `RunError` if the run here is being written, or has a newer checkpoint than the job's
    `newest` ("" for none).
    """
    elsewhere = {"another folder takes the job's run": ("job", "download", job, "--runs", "OTHER")}
    try:
        with locked(target):
            pass
    except RunError as error:
        commands = {**error.next_commands, **elsewhere}
        raise RunError(f"{error.message.rstrip('.')}.", next_commands=commands) from None
    here = max((path.name for path in RunFolder(target).checkpoints()), default="")
    if here > newest:
        raise RunError(
            f"{target} continued here until checkpoint {here}, the job until {newest or 'none'}.",
            next_commands=elsewhere,
        )


def _fetch(account: Account, bucket: str, key: str, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with aws_errors(f"downloading s3://{bucket}/{key}"):
        account.s3.download_file(bucket, key, str(path))


def _objects(account: Account, bucket: str, prefix: str) -> dict[PurePosixPath, str]:
    """The keys of the objects below `prefix`, by their paths there.

    Hidden files are left out, which a killed session left half-written."""
    paginator = account.s3.get_paginator("list_objects_v2")
    with aws_errors(f"listing s3://{bucket}/{prefix}"):
        pages = list(paginator.paginate(Bucket=bucket, Prefix=prefix))
    objects = {}
    for entry in chain.from_iterable(page.get("Contents", []) for page in pages):
        path = PurePosixPath(entry["Key"].removeprefix(prefix))
        is_hidden = any(part.startswith(".") for part in path.parts)
        if path.parts and not path.is_absolute() and not is_hidden:
            objects[path] = entry["Key"]
    return objects


def _create(account: Account, new_requests: Sequence[dict[str, Any]], say: Say) -> list[str]:
    with all_or_none(account, say) as names:
        for request in new_requests:
            names.append(request["TrainingJobName"])
            with aws_errors(f"creating {names[-1]}"):
                account.sagemaker.create_training_job(**request)
            say(f"created {names[-1]}")
    return names


@contextmanager
def all_or_none(account: Account, say: Say) -> Iterator[list[str]]:
    """Yield a list for the names of jobs that are being created. If the block fails or Ctrl-C
    interrupts it, those jobs are stopped again.

    Otherwise one of two jobs could run, and cost money, while it waits for the other.
    """
    names: list[str] = []
    try:
        yield names
    except BaseException as error:
        # If AWS refused to create the last one, a job of that name is somebody else's. After any
        # other error it may be ours.
        created = names[:-1] if _is_refusal(error) else names
        for name in created:
            try:
                with aws_errors(f"stopping {name}"):
                    account.sagemaker.stop_training_job(TrainingJobName=name)
            except AWSError as failure:
                say(
                    f"{failure}. If it runs, it costs money until it is stopped:"
                    f" {shell_command('job', 'stop', name)}"
                )
        raise


def _is_refusal(error: BaseException) -> bool:
    from botocore.exceptions import ClientError

    return (
        isinstance(error.__cause__, ClientError)
        and error.__cause__.operation_name == "CreateTrainingJob"
    )


def _write_token(account: Account, bucket: str, key: str, kms_key: str) -> None:
    with aws_errors(f"writing the token to s3://{bucket}/{key}"):
        account.s3.put_object(
            Bucket=bucket, Key=key, Body=secrets.token_hex(32).encode(), **_encryption(kms_key)
        )


def _encryption(kms_key: str) -> dict[str, str]:
    if not kms_key:
        return {"ServerSideEncryption": "AES256"}
    return {"ServerSideEncryption": "aws:kms", "SSEKMSKeyId": kms_key}


def _channel_uri(described: dict[str, Any], name: str) -> str:
    for channel in described.get("InputDataConfig", []):
        if channel["ChannelName"] == name:
            return channel["DataSource"]["S3DataSource"]["S3Uri"]
    raise AWSError(
        f"{described['TrainingJobName']} is not a job of procsnake: it has no channel {name!r}"
    )


def _split(uri: str) -> tuple[str, str]:
    bucket, _, key = uri.removeprefix("s3://").partition("/")
    return bucket, key


def _next_name(name: str) -> str:
    match = re.fullmatch(r"(.*)-r(\d+)", name)
    if match:
        return f"{match[1]}-r{int(match[2]) + 1}"
    return f"{name}-r2"
