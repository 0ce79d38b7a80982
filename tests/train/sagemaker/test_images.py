"""Images: Docker's commands by their text, the build in AWS by what it calls, and what is sent
there against moto.
"""

from __future__ import annotations

import io
import json
import os
import re
import shlex
import subprocess
import zipfile
from pathlib import Path

import boto3
import moto
import pytest

from tests.command_line import run
from train.sagemaker.images import DOCKER_BUILD, ROOT, Image, shown, source

REGION = "eu-west-1"
PUSHED = f"123456789012.dkr.ecr.{REGION}.amazonaws.com/procsnake"
SCRIPT = ROOT / "train" / "sagemaker" / "image" / "build-in-aws"


def test_no_line_builds_an_index_with_provenance_or_for_another_machine():
    """CreateModel and Lambda refuse what `docker build` makes by default; pages, comments and
    scripts are alike.
    """
    files = [*ROOT.glob("docs/*.md"), ROOT / "README.md"]
    files += [
        path for room in ("serve", "train") for path in (ROOT / room).rglob("*") if path.is_file()
    ]
    text = "\n".join(
        path.read_text(errors="ignore") for path in files if path.suffix not in (".pyc", ".png")
    )
    lines = re.findall(r"docker (?:buildx )?build\b(?!`| project).*", text)
    assert len(lines) >= 8
    assert [line for line in lines if not line.startswith(shlex.join(DOCKER_BUILD))] == []


def built_in_aws(tmp_path: Path, source: Path, **variables: str) -> list[list[str]]:
    """What the build project's script calls Docker with."""
    docker = tmp_path / "docker"
    docker.write_text(
        '#!/bin/sh\nfor word in "$@"; do printf "%s\\t" "$word"; done >> calls; echo >> calls\n'
    )
    docker.chmod(0o755)
    (source / "calls").unlink(missing_ok=True)
    given = {
        "TRAINING": f"{PUSHED}-training",
        "SERVING": f"{PUSHED}-serving",
        "TAG": "7",
        **variables,
    }
    environment = {"PATH": f"{tmp_path}:{os.environ['PATH']}", **given}
    subprocess.run(["sh", SCRIPT], cwd=source, env=environment, check=True, timeout=30)
    return [line.rstrip("\t").split("\t") for line in (source / "calls").read_text().splitlines()]


def without_base(words: list[str]) -> list[str]:
    """A command without the names of its layers and without the base image, which in AWS is AWS's
    own copy.
    """
    text = re.sub(r" --build-arg PYTHON=\S+", "", " ".join(words).removeprefix("docker "))
    return re.sub(r"--tag \S+ \S+$|procsnake-layer:\d|layer\b", "", text).split()


@pytest.mark.parametrize(
    ("kind", "gpu", "with_bundle"),
    [("training", True, False), ("lambda", False, True)],
)
def test_aws_builds_what_docker_would_build_here(tmp_path, light_source, kind, gpu, with_bundle):
    (tmp_path / "run" / "bundle").mkdir(parents=True)
    (tmp_path / "run" / "bundle" / "card.json").write_text("{}")
    image = Image(
        kind=kind,
        tag="mine:1",
        gpu=gpu,
        mlflow=gpu,
        bundle=tmp_path / "run" if with_bundle else None,
    )
    unpacked = tmp_path / "source"
    zipfile.ZipFile(io.BytesIO(source(bundle=image.bundle))).extractall(unpacked)
    both = {
        "TORCH_INDEX": "https://download.pytorch.org/whl/cu126",
        "TRACKERS": "mlflow sagemaker-mlflow",
    }
    more = both if gpu else {}
    calls = built_in_aws(tmp_path, unpacked, KIND=kind, **more)
    here = [without_base(command) for command in image.commands()]
    assert [without_base(call) for call in calls if call[0] == "buildx"] == here
    repository = f"{PUSHED}-{'training' if kind == 'training' else 'serving'}"
    assert [call[1:] for call in calls if call[0] == "push"] == [
        [f"{repository}:7"],
        [f"{repository}:latest"],
    ]
    (base,) = [word for call in calls for word in call if word.startswith("PYTHON=")]
    assert re.fullmatch(
        r"PYTHON=public\.ecr\.aws/docker/library/python:3\.11\S+@sha256:[0-9a-f]{64}", base
    )
    assert (unpacked / "notebooks" / "1_quickstart.ipynb").is_file()
    assert (unpacked / "bundle" / "card.json").is_file() == with_bundle


@pytest.mark.parametrize(
    ("registry", "steps"),
    [
        ("", ["docker buildx"]),
        ("ghcr.io/me/", ["docker buildx", "docker push"]),
        (
            "123456789012.dkr.ecr.eu-west-1.amazonaws.com/",
            ["docker buildx", "aws ecr", "docker push"],
        ),
    ],
)
def test_only_amazons_registry_is_logged_in_to_before_a_push(registry, steps):
    lines = shown(Image(kind="training", tag=f"{registry}snake:1"))
    assert [" ".join(line.split()[:2]) for line in lines] == steps
    assert all("--region eu-west-1 " in line for line in lines if line.startswith("aws"))


@pytest.fixture
def aws(monkeypatch, light_source):
    """An AWS with a stack that has a build project; yields the builds that were asked for."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "test")
    asked: list[dict] = []
    with moto.mock_aws():
        boto3.setup_default_session()
        boto3.DEFAULT_SESSION.events.register(
            "provide-client-params.codebuild.StartBuild",
            lambda params, **_: asked.append(dict(params)),
        )
        stack = {
            "Resources": {
                "Bucket": {"Type": "AWS::S3::Bucket", "Properties": {"BucketName": "snakes"}}
            },
            "Outputs": {
                "Bucket": {"Value": "snakes"},
                "Builder": {"Value": "images"},
                "Image": {"Value": f"{PUSHED}-training:latest"},
                "ServingImage": {"Value": f"{PUSHED}-serving:latest"},
            },
        }
        boto3.client("cloudformation", REGION).create_stack(
            StackName="procsnake", TemplateBody=json.dumps(stack)
        )
        boto3.client("codebuild", REGION).create_project(
            name="images",
            source={"type": "S3", "location": "snakes/any.zip"},
            artifacts={"type": "NO_ARTIFACTS"},
            environment={
                "type": "LINUX_CONTAINER",
                "image": "any",
                "computeType": "BUILD_GENERAL1_SMALL",
            },
            serviceRole="arn:aws:iam::123456789012:role/service-role/builder",
        )
        yield asked
    boto3.setup_default_session()


def test_an_image_is_built_in_aws_without_docker(aws, capsys):
    words = (
        *shlex.split("image training --gpu --tag 1 --stack procsnake --region"),
        REGION,
        "--poll-seconds",
        "0",
    )
    code, out, error = run(capsys, *words)
    assert (code, error) == (0, "")
    (asked,) = aws
    bucket, _, key = asked["sourceLocationOverride"].partition("/")
    assert (asked["projectName"], asked["sourceTypeOverride"]) == ("images", "S3")
    variables = {one["name"]: one["value"] for one in asked["environmentVariablesOverride"]}
    assert variables == {
        "KIND": "training",
        "TAG": "1",
        "TORCH_INDEX": "https://download.pytorch.org/whl/cu126",
    }
    body = boto3.client("s3", REGION).get_object(Bucket=bucket, Key=key)["Body"].read()
    assert "train/sagemaker/image/build-in-aws" in zipfile.ZipFile(io.BytesIO(body)).namelist()
    assert out.splitlines()[-1] == f"image: {PUSHED}-training:1"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("serving", "--gpu"), "--gpu is for images that train"),
        (("training", "--bundle", "nowhere"), "--bundle is for images that serve"),
        (("serving", "--bundle", "nowhere"), "neither a bundle nor a run"),
        (("cluster", "--stack", "procsnake"), "a cluster's registry"),
        (("serving", "--run", "--stack", "procsnake"), "not allowed with"),
    ],
)
def test_what_cannot_be_built_is_refused_before_anything_is_sent(aws, capsys, words, message):
    code, _, error = run(capsys, "image", *words)
    assert (code, message in error, aws) == (2, True, []), error


def test_an_installed_procsnake_says_that_it_takes_a_clone(tmp_path):
    with pytest.raises(Exception, match="in a clone"):
        Image(kind="serving", tag="x").commands(tmp_path)
