"""`procsnake image`: builds the images of training and serving, by Docker here or by the stack's
build project in AWS.
"""

from __future__ import annotations

import argparse
import shlex
import subprocess
import time
from pathlib import Path
from typing import Any

from envs.common.errors import ConfigError
from procsnake.cli.command_line import non_negative
from train.sagemaker.images import (
    CLUSTER,
    CUDA,
    KINDS,
    LAMBDA,
    MLFLOW,
    ROOT,
    SERVING,
    TRAINING,
    Image,
    shown,
    source,
)

HELP = """\
Without options it prints the Docker commands. With --stack, AWS builds and stores the image for
some cents, without Docker here. training is the image for SageMaker, cluster the one for
Kubernetes and EC2.

examples:
  procsnake image training       # print the commands
  # build it on AWS with CodeBuild
  procsnake image training --gpu --stack procsnake
  procsnake image lambda --bundle runs/my-run --stack procsnake
  procsnake image serving --run  # build it here
"""
_SOURCE_KEY = "procsnake/source/procsnake.zip"
_POLL_SECONDS = 10.0


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the command."""
    parser.add_argument("kind", choices=KINDS)
    parser.add_argument(
        "--tag",
        help="image name for docker, or with --stack the tag alone (default: the time)",
    )
    parser.add_argument(
        "--gpu", action="store_true", help="with torch for NVIDIA GPUs, in training images"
    )
    parser.add_argument(
        "--mlflow",
        action="store_true",
        help="with MLflow, for launch sagemaker --mlflow, in training images",
    )
    parser.add_argument("--bundle", metavar="RUN", help="trained snake to serve")
    where = parser.add_mutually_exclusive_group()
    where.add_argument(
        "--run", dest="runs_docker", action="store_true", help="build it here with Docker"
    )
    where.add_argument(
        "--stack", help="build and store it with this CloudFormation stack's build project"
    )
    parser.add_argument(
        "--region", help="with --stack: AWS region (default: that of aws configure)"
    )
    parser.add_argument(
        "--poll-seconds",
        type=non_negative,
        default=_POLL_SECONDS,
        help="seconds between status checks (default: %(default)s)",
    )


def run(options: argparse.Namespace) -> int:
    """Run `procsnake image`. Returns the exit code."""
    if options.stack:
        return _build_in_aws(options)
    image = _asked_for(options, tag=f"procsnake-{options.kind}")
    if not options.runs_docker:
        print("\n".join(shown(image)))
        return 0
    for command in image.commands():
        print(shlex.join(command), flush=True)
        try:
            done = subprocess.run(command, cwd=ROOT, check=False)
        except FileNotFoundError:
            raise ConfigError(
                "docker isn't installed; install it, or have AWS build the image: --stack NAME"
            ) from None
        if done.returncode:
            raise ConfigError(f"docker ended with {done.returncode}; what it said stands above")
    print(f"image: {image.tag}")
    return 0


def _asked_for(options: argparse.Namespace, *, tag: str) -> Image:
    """The image that the options describe, called `tag` unless they say otherwise."""
    return Image(
        kind=options.kind,
        tag=options.tag or tag,
        gpu=options.gpu,
        mlflow=options.mlflow,
        bundle=None if options.bundle is None else Path(options.bundle),
    )


def _build_in_aws(options: argparse.Namespace) -> int:
    from train.sagemaker.account import Account, AWSError, aws_errors

    if options.kind == CLUSTER:
        raise ConfigError(
            f"the stack keeps {TRAINING}, {SERVING} and {LAMBDA}; a cluster's registry gets its"
            " own: --run"
        )
    # What it refuses is refused before anything is uploaded.
    image = _asked_for(options, tag=time.strftime("%Y%m%d-%H%M%S"))
    account = Account.of(options.region)
    outputs = account.outputs(options.stack)
    if missing := [name for name in ("Bucket", "Builder") if name not in outputs]:
        raise ConfigError(
            f"the stack {options.stack} has no {missing[0]}; update it from"
            " train/sagemaker/stack.yaml"
        )
    packed = source(bundle=image.bundle)
    # The notebook instance takes its source from there, too, and has no use for a bundle.
    if image.bundle is None:
        key = _SOURCE_KEY
    else:
        key = _SOURCE_KEY.replace("procsnake.zip", f"{image.kind}-{image.tag}.zip")
    with aws_errors(f"uploading to s3://{outputs['Bucket']}/{key}"):
        account.s3.put_object(Bucket=outputs["Bucket"], Key=key, Body=packed)
    print(
        f"uploaded {len(packed) / 2**20:.1f} MiB of source to s3://{outputs['Bucket']}/{key}",
        flush=True,
    )
    arguments = [
        argument for argument, is_wanted in ((CUDA, image.gpu), (MLFLOW, image.mlflow)) if is_wanted
    ]
    variables = {
        "KIND": image.kind,
        "TAG": image.tag,
        **dict(argument.split("=", 1) for argument in arguments),
    }
    with aws_errors(f"starting a build of {outputs['Builder']}"):
        started = account.codebuild.start_build(
            projectName=outputs["Builder"],
            sourceTypeOverride="S3",
            sourceLocationOverride=f"{outputs['Bucket']}/{key}",
            environmentVariablesOverride=[
                {"name": name, "value": text} for name, text in variables.items()
            ],
        )["build"]
    print(f"building: {started['id']}", flush=True)
    ended = _followed(account, started["id"], options.poll_seconds)
    if ended["buildStatus"] != "SUCCEEDED":
        log = ended.get("logs", {}).get("deepLink", "in CodeBuild's console")
        raise AWSError(
            f"the build {started['id']} ended with {ended['buildStatus']}; its log: {log}"
        )
    output = "Image" if image.kind == TRAINING else "ServingImage"
    print(f"image: {outputs[output].rpartition(':')[0]}:{image.tag}")
    return 0


def _followed(account: Any, build: str, poll_seconds: float) -> dict[str, Any]:
    """The build once it has ended. Each of its phases is told."""
    from train.sagemaker.account import aws_errors

    printed_phases: set[str] = set()
    while True:
        with aws_errors(f"asking about {build}"):
            (now,) = account.codebuild.batch_get_builds(ids=[build])["builds"]
        for phase in now.get("phases", []):
            if phase["phaseType"] not in printed_phases:
                printed_phases.add(phase["phaseType"])
                print(f"  {phase['phaseType'].lower()}", flush=True)
        if now["buildStatus"] != "IN_PROGRESS":
            return dict(now)
        time.sleep(poll_seconds)
