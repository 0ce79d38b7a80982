"""The CloudFormation stack and the Dockerfile, by their linters and by what the code expects of
them.
"""

from __future__ import annotations

import fnmatch
import json
import os
import re
import shlex
import shutil
import stat
import subprocess
import zipfile
from pathlib import Path

import boto3
import moto
import pytest
import yaml

from serve.deploy.lock_requirements import training_requirements
from tests.linters import lint
from tests.train.sagemaker.specs import JOBS
from tests.waiting import until
from train.sagemaker import account
from train.sagemaker.job import requests
from train.sagemaker.tunnel import tunnel_lines

FOLDER = Path(account.__file__).parent
STACK = FOLDER / "stack.yaml"
DOCKERFILE = FOLDER / "image" / "Dockerfile"
ROOT = Path(__file__).parents[3]
SESSIONS = {"ssm:StartSession", "ssm:TerminateSession"}
"""Calls whose condition, and not their resource, says for what they are allowed."""


class Loader(yaml.SafeLoader):
    """Reads CloudFormation's short forms as {name: value}."""


def _short_form(loader, suffix, node):
    kinds = {yaml.ScalarNode: loader.construct_scalar, yaml.SequenceNode: loader.construct_sequence}
    construct = kinds.get(type(node), loader.construct_mapping)
    return {
        suffix: (
            construct(node) if construct == loader.construct_scalar else construct(node, deep=True)
        )
    }


Loader.add_multi_constructor("!", _short_form)


@pytest.fixture(scope="module")
def stack():
    return yaml.load(STACK.read_text(), Loader)


def test_the_stack_is_right_by_the_specification_of_cloudformation(tmp_path):
    done = lint("cfn-lint", STACK)
    assert (done.returncode, done.stdout) == (0, "")
    broken = tmp_path / "broken.yaml"
    broken.write_text(STACK.read_text().replace("BudgetType", "BudgetKind"))
    assert "BudgetKind" in lint("cfn-lint", broken).stdout


def test_the_dockerfile_is_right_by_hadolint():
    done = lint("hadolint", DOCKERFILE)
    assert (done.returncode, done.stdout) == (0, "")


def test_whatever_the_image_copies_is_there_and_gets_through_the_ignore_file():
    ignore = (FOLDER / "image" / "Dockerfile.dockerignore").read_text().split()
    copied = re.findall(r"^COPY (?:--chmod=\S+ )?(.+) \S+$", DOCKERFILE.read_text(), re.MULTILINE)
    for name in " ".join(copied).split():
        assert (ROOT / name).exists(), name
        assert f"!{name.split('/')[0]}" in ignore


def test_the_entry_point_has_no_shell_before_tini():
    lines = DOCKERFILE.read_text().splitlines()
    assert 'ENTRYPOINT ["tini", "--", "start"]' in lines
    assert shutil.which("sh")
    assert subprocess.run(["sh", "-n", FOLDER / "image" / "start"], check=False).returncode == 0


@pytest.mark.parametrize("with_source", [True, False])
def test_the_start_puts_the_files_of_the_channel_code_where_python_looks(tmp_path, with_source):
    channel = tmp_path / "ml" / "input" / "data" / "code"
    (channel / "parts").mkdir(parents=True)
    for name in ("my.yaml", "parts/mine.py"):
        (channel / name).write_text(name)
    if with_source:
        (tmp_path / "train.py").write_text("the source")
        subprocess.run(
            ["tar", "-czf", channel / "source.tar.gz", "-C", tmp_path, "train.py"], check=True
        )
    (tmp_path / "python").write_text(
        '#!/bin/sh\npwd; echo "$PYTHONPATH"; cat my.yaml parts/mine.py\n'
    )
    (tmp_path / "python").chmod(0o755)
    environment = {"PATH": f"{tmp_path}:{os.environ['PATH']}", "SM_BASE_DIR": str(tmp_path / "ml")}
    command = ["sh", FOLDER / "image" / "start", "train"]
    shown = subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=60, check=True
    ).stdout
    code = tmp_path / "ml" / "code"
    assert shown == f"{code}\n{code}\nmy.yamlparts/mine.py"
    assert (code / "train.py").exists() == with_source


def test_login_shells_find_what_the_image_installs(tmp_path):
    (line,) = (line for line in DOCKERFILE.read_text().splitlines() if "/etc/profile.d/" in line)
    written = tmp_path / "procsnake.sh"
    made = line.strip().removeprefix("&& ").replace("/etc/profile.d/procsnake.sh", str(written))
    subprocess.run(["sh", "-c", made], check=True)
    login = ["bash", "--login", "-c", f". {written}; echo $PATH"]
    shown = subprocess.run(
        login, capture_output=True, text=True, check=True, env={"HOME": str(tmp_path)}
    )
    assert shown.stdout.startswith("/opt/procsnake/bin:/usr/")


def test_the_image_sees_gpus_has_no_root_and_is_pinned():
    """What NVIDIA's runtime asks the image's environment for, and what cannot change behind a
    name.
    """
    text = DOCKERFILE.read_text()
    stages = re.split(r"^FROM .*$", text, flags=re.MULTILINE)
    assert re.search(r"NVIDIA_VISIBLE_DEVICES=all\b", stages[1])
    assert re.search(r"NVIDIA_DRIVER_CAPABILITIES=compute,utility\b", stages[1])
    assert re.findall(r"^USER (.*)", stages[1], re.MULTILINE) == ["10001"]
    for dockerfile in (DOCKERFILE, ROOT / "serve" / "deploy" / "Dockerfile"):
        assert re.search(
            r"^ARG PYTHON=python:3\.11\S+@sha256:[0-9a-f]{64}$",
            dockerfile.read_text(),
            re.MULTILINE,
        )
    installs = re.findall(r"pip install ((?:.|\\\n)*?)(?=\n(?!\s)|&&)", text)
    by_hash = ["--require-hashes" in one for one in installs]
    others = [
        one.replace("\\\n", "").split()[-1]
        for one, hashed in zip(installs, by_hash, strict=True)
        if not hashed
    ]
    assert (by_hash.count(True), others) == (2, ["torch==2.13.0", "$TRACKERS", "."])


def test_what_the_image_installs_is_locked_as_setup_asks():
    locked = set(
        re.findall(
            r"^([a-z0-9-]+)==\S+ \\$",
            (DOCKERFILE.with_name("requirements.txt")).read_text(),
            re.MULTILINE,
        )
    )
    asked = {
        re.match(r"[A-Za-z0-9_.-]+", one)[0].lower().replace("_", "-")
        for one in training_requirements()
    }
    assert asked - locked == set()
    assert {"gym3", "procgen-mirror"} <= locked
    assert "torch" not in locked


@pytest.mark.skipif(
    os.geteuid() != 0 or not shutil.which("setpriv"), reason="needs root and setpriv"
)
def test_the_start_hands_sagemakers_folders_over_and_is_root_no_more(tmp_path):
    """With `nobody` in the place of the image's user, who isn't here."""
    start = tmp_path / "start"
    start.write_text(
        (FOLDER / "image" / "start")
        .read_text()
        .replace("snake", "nobody")
        .replace("nobody:nobody", "nobody:")
    )
    start.write_text(start.read_text().replace("--regid=nobody", "--regid=nogroup"))
    start.chmod(0o755)
    (tmp_path / "ml").mkdir(mode=0o700)
    (tmp_path / "python").write_text("#!/bin/sh\nid -un\ntouch $SM_BASE_DIR/code/mine\n")
    (tmp_path / "python").chmod(0o755)
    tmp_path.chmod(0o755)
    # Pytest's own folders are their user's alone. What a folder allows already stays: without
    # xdist the third is /tmp.
    for parent in tmp_path.parents[:3]:
        parent.chmod(stat.S_IMODE(parent.stat().st_mode) | 0o055)
    environment = {"PATH": f"{tmp_path}:{os.environ['PATH']}", "SM_BASE_DIR": str(tmp_path / "ml")}
    done = subprocess.run(
        [start, "train"], env=environment, capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.stdout, done.returncode) == ("nobody\n", 0), done.stderr
    assert (tmp_path / "ml" / "code" / "mine").owner() == "nobody"


def test_the_stack_has_the_outputs_that_a_launch_reads(stack):
    assert set(account._OUTPUTS.values()) <= set(stack["Outputs"])


def test_a_stack_can_be_made_again_after_it_failed_or_was_deleted(stack):
    """What stays has a name of its own, or its bucket is taken over. Everything else goes with the
    stack.
    """
    bucket = stack["Resources"]["Bucket"]
    assert (bucket["DeletionPolicy"], bucket["Condition"]) == (
        "RetainExceptOnCreate",
        "MakesBucket",
    )
    _, _, default = bucket["Properties"]["BucketName"]["If"]
    assert {"${AWS::AccountId}", "${AWS::Region}"} <= set(
        re.findall(r"\$\{[^}]+\}", default["Sub"])
    )
    staying = [
        name
        for name, one in stack["Resources"].items()
        if one.get("DeletionPolicy", "Delete") != "Delete"
    ]
    assert staying == ["Bucket"]
    # Without a bucket of the stack's own, nothing may ask for it outside an !If.
    text = re.sub(r"!If \[MakesBucket, !Ref Bucket, !Ref ExistingBucket\]", "", STACK.read_text())
    asking = [
        line
        for line in text.splitlines()
        if re.search(r"!Ref Bucket\b|!GetAtt Bucket\.|\$\{Bucket[.}]", line)
    ]
    policy = text[text.index("  OnlyEncrypted:") : text.index("  Repository:")]
    assert all(line in policy for line in asking)
    assert stack["Resources"]["OnlyEncrypted"]["Condition"] == "MakesBucket"


def in_long_forms(value):
    """A template of `Loader` with the functions as JSON has them."""
    if isinstance(value, list):
        return [in_long_forms(one) for one in value]
    if not isinstance(value, dict):
        return value
    if "GetAtt" in value:
        return {"Fn::GetAtt": value["GetAtt"].split(".")}
    functions = {"If", "Sub", "Equals", "Not", "And", "Or"}
    return {
        f"Fn::{key}" if key in functions else key: in_long_forms(one) for key, one in value.items()
    }


@pytest.mark.parametrize("existing", ["", "kept-by-an-earlier-stack"])
def test_roles_may_use_the_bucket_that_is_made_or_the_one_that_is_there(
    stack, existing, monkeypatch
):
    """The bucket and its role, made by moto's CloudFormation, which doesn't have all of the
    rest.
    """
    resources = {
        name: stack["Resources"][name] for name in ("Bucket", "Repository", "TrainingRole")
    }
    outputs = {name: stack["Outputs"][name] for name in ("Bucket", "TrainingRole")}
    body = json.dumps(
        in_long_forms({**stack, "Metadata": {}, "Resources": resources, "Outputs": outputs}),
        default=str,
    )
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "test")
    with moto.mock_aws():
        region = "eu-west-1"
        made = boto3.client("cloudformation", region)
        given = [{"ParameterKey": "ExistingBucket", "ParameterValue": existing}]
        made.create_stack(
            StackName="s", TemplateBody=body, Parameters=given, Capabilities=["CAPABILITY_IAM"]
        )
        (described,) = made.describe_stacks(StackName="s")["Stacks"]
        outputs = {one["OutputKey"]: one["OutputValue"] for one in described["Outputs"]}
        buckets = [one["Name"] for one in boto3.client("s3", region).list_buckets()["Buckets"]]
        iam = boto3.client("iam", region)
        role = outputs["TrainingRole"].rpartition("/")[2]
        policy = iam.get_role_policy(RoleName=role, PolicyName="train")["PolicyDocument"]
    assert outputs["Bucket"] == (existing or "procsnake-123456789012-eu-west-1")
    assert buckets == ([] if existing else [outputs["Bucket"]])
    assert f"arn:aws:s3:::{outputs['Bucket']}/*" in json.dumps(policy)


def test_every_resource_is_of_use(stack):
    """Each is named by another resource or an output, or does its work by being there."""
    text = STACK.read_text()
    by_being_there = {
        "OnlyEncrypted",
        "Budget",
        "SubnetRoutes",
        "Storage",
        "MachinesIn",
        "MachinesOut",
    }
    for name in stack["Resources"]:
        named = re.search(rf"!Ref {name}\b|!GetAtt {name}\.|\$\{{{name}[.}}]", text)
        assert (named is not None) != (name in by_being_there), name


def test_the_original_kits_parameters_are_kept(stack):
    kept = {
        "CreateSageMakerNotebook",
        "NotebookInstanceType",
        "SagemakerInstanceTypeCPU",
        "SagemakerInstanceTypeGPU",
        "BucketName",
    }
    assert kept <= set(stack["Parameters"])
    assert (
        stack["Parameters"]["BudgetAmount"]["Default"],
        stack["Parameters"]["BudgetThreshold"]["Default"],
    ) == (500, 90)


def test_roles_may_do_everything_on_nothing(stack):
    """No action is a wildcard, and only calls that know no resources have one for theirs."""
    without_resources = (
        "ecr:GetAuthorizationToken",
        "cloudwatch:PutMetricData",
        "sagemaker:ListExperiments",
        "sagemaker:ListTrainingJobs",
        "ec2:",
        "ssmmessages:",
    )
    for name in ("TrainingRole", "Launch"):
        properties = stack["Resources"][name]["Properties"]
        documents = [policy["PolicyDocument"] for policy in properties.get("Policies", [])] or [
            properties["PolicyDocument"]
        ]
        for statement in documents[0]["Statement"]:
            statement = statement["If"][1] if "If" in statement else statement
            actions = (
                [statement["Action"]]
                if isinstance(statement["Action"], str)
                else statement["Action"]
            )
            assert not [action for action in actions if "*" in action]
            if statement["Resource"] == "*":
                others = [action for action in actions if not action.startswith(without_resources)]
                assert not others or (set(others) == SESSIONS and statement["Condition"])


@pytest.mark.parametrize("kind", JOBS)
def test_those_who_train_may_open_the_tunnels_that_their_jobs_print_and_no_others(
    stack, kind, monkeypatch
):
    statements = stack["Resources"]["Launch"]["Properties"]["PolicyDocument"]["Statement"]
    sessions, documents = (one for one in statements if "ssm:StartSession" in one["Action"])
    # The tunnels' document is asked for, too, and it has no such tag.
    assert "Condition" not in documents
    opened = {one["Sub"].rpartition("/")[2] for one in documents["Resource"]}
    (pattern,) = sessions["Condition"]["StringLike"].values()
    for request in requests(JOBS[kind]):
        monkeypatch.setenv("TRAINING_JOB_NAME", request["TrainingJobName"])
        named = {
            found
            for line in tunnel_lines("algo-1")
            for found in re.findall(r"--document-name (\S+)", line)
        }
        assert named <= opened
        targets = [re.search(r"--target (\S+)", line).group(1) for line in tunnel_lines("algo-1")]
        assert targets
        assert all(fnmatch.fnmatchcase(target, pattern) for target in targets)
    assert not fnmatch.fnmatchcase("sagemaker-training-job:somebody-elses_algo-1", pattern)


@pytest.mark.parametrize("kind", JOBS)
def test_those_who_train_may_start_our_jobs_and_no_longer_ones(stack, kind):
    statements = stack["Resources"]["Launch"]["Properties"]["PolicyDocument"]["Statement"]
    (creating,) = (one for one in statements if "sagemaker:CreateTrainingJob" in one["Action"])
    condition = creating["Condition"]
    assert condition["NumericLessThanEquals"] == {
        "sagemaker:MaxRuntimeInSeconds": {"Ref": "LongestJobSeconds"}
    }
    for request in requests(JOBS[kind]):
        tags = {f"aws:RequestTag/{tag['Key']}": tag["Value"] for tag in request["Tags"]}
        assert condition["StringEquals"].items() <= tags.items()
        assert (
            request["StoppingCondition"]["MaxRuntimeInSeconds"]
            <= stack["Parameters"]["LongestJobSeconds"]["Default"]
        )
        assert request["TrainingJobName"].startswith("procsnake-")


@pytest.mark.parametrize("kind", JOBS)
def test_sources_and_tokens_expire_and_runs_stay(stack, kind):
    """A rule of S3 is for all keys that begin with its prefix. The longest job, of 28 days, needs
    its source to the end.
    """
    rules = stack["Resources"]["Bucket"]["Properties"]["LifecycleConfiguration"]["Rules"]
    (expiring,) = (rule for rule in rules if "ExpirationInDays" in rule)
    assert (expiring["Status"], expiring["ExpirationInDays"]) == ("Enabled", {"Ref": "SourceDays"})
    assert stack["Parameters"]["SourceDays"]["MinValue"] > 28
    for request in requests(JOBS[kind]):
        places = [
            channel["DataSource"]["S3DataSource"]["S3Uri"] for channel in request["InputDataConfig"]
        ]
        kept = [
            request["OutputDataConfig"]["S3OutputPath"],
            request.get("CheckpointConfig", {}).get("S3Uri", ""),
        ]
        begin = f"s3://{JOBS[kind].bucket}/{expiring['Prefix']}"
        assert [place.startswith(begin) for place in [*places, *kept]] == [True, True, False, False]


def test_a_role_is_only_asked_for_conditions_that_sagemaker_knows(stack):
    """AWS's list of features that say for whom they ask has training, inference and pipelines, and
    no notebook instances.
    """
    for name in ("TrainingRole", "EndpointRole"):
        (trust,) = stack["Resources"][name]["Properties"]["AssumeRolePolicyDocument"]["Statement"]
        assert trust["Condition"] == {
            "StringEquals": {"aws:SourceAccount": {"Ref": "AWS::AccountId"}}
        }
    (trust,) = stack["Resources"]["NotebookRole"]["Properties"]["AssumeRolePolicyDocument"][
        "Statement"
    ]
    assert "Condition" not in trust


def test_those_who_train_may_search_and_serve(stack):
    statements = stack["Resources"]["Launch"]["Properties"]["PolicyDocument"]["Statement"]
    allowed = {
        action
        for one in statements
        for action in ([one["Action"]] if isinstance(one["Action"], str) else one["Action"])
    }
    assert {
        f"sagemaker:Create{what}"
        for what in ("HyperParameterTuningJob", "Model", "EndpointConfig", "Endpoint")
    } <= allowed
    (passing,) = (one for one in statements if one["Action"] == "iam:PassRole")
    assert passing["Resource"] == [{"GetAtt": "TrainingRole.Arn"}, {"GetAtt": "EndpointRole.Arn"}]


def test_jobs_may_be_in_a_network_of_ones_own_and_in_a_chosen_zone(stack):
    assert stack["Outputs"]["Subnets"]["Value"] == {
        "If": ["HasNetwork", {"Ref": "Subnet"}, {"Ref": "Subnets"}]
    }
    statements = stack["Resources"]["TrainingRole"]["Properties"]["Policies"][0]["PolicyDocument"][
        "Statement"
    ]
    conditional = {one["If"][0]: one["If"][1] for one in statements if "If" in one}
    assert "ec2:CreateNetworkInterface" in conditional["UsesNetwork"]["Action"]
    assert stack["Conditions"]["UsesNetwork"] == {
        "Or": [{"Condition": "HasNetwork"}, {"Condition": "HasSubnets"}]
    }
    assert stack["Resources"]["Subnet"]["Properties"]["AvailabilityZone"]["If"][1] == {
        "Ref": "Zone"
    }


def test_the_budget_warns_of_what_is_spent_and_of_what_will_be(stack):
    notifications = stack["Resources"]["Budget"]["Properties"]["NotificationsWithSubscribers"]
    assert [one["Notification"]["NotificationType"] for one in notifications] == [
        "ACTUAL",
        "FORECASTED",
    ]


def test_the_notebook_instance_stops_itself_while_its_start_ends_at_once(stack, tmp_path):
    (start,) = stack["Resources"]["NotebookStart"]["Properties"]["OnStart"]
    script = start["Content"]["Fn::Base64"]["Sub"][0].replace(
        "/home/ec2-user/SageMaker", str(tmp_path)
    )
    given = {
        "NotebookHours": "12",
        "AWS::Region": "eu-west-1",
        "Prefix": "snakes",
        "AWS::StackName": "s",
        "Name": "bucket",
    }
    given["SourceRepository"] = ""
    script = re.sub(r"\$\{([^}]+)\}", lambda match: given.get(match[1], match[1]), script)
    waiting = (
        f'echo "$@" > {tmp_path}/slept; for k in $(seq 600); do test -e {tmp_path}/go && break;'
        " /bin/sleep 0.05; done"
    )
    # It holds the notebooks of the source that was sent when images were built.
    with zipfile.ZipFile(tmp_path / "source.zip", "w") as archive:
        archive.writestr("notebooks/1_quickstart.ipynb", "{}")
    fetching = f'echo "$3" > {tmp_path}/fetched; cp {tmp_path}/source.zip "$4"'
    aws = f'if [ "$1" = s3 ]; then {fetching}; else echo "$@" > {tmp_path}/said; fi'
    for name, body in (("chown", ""), ("sleep", waiting), ("aws", aws)):
        (tmp_path / name).write_text(f"#!/bin/sh\n{body}\n")
        (tmp_path / name).chmod(0o755)
    subprocess.run(
        ["sh", "-e", "-c", script],
        check=True,
        timeout=25,
        env={"PATH": f"{tmp_path}:{os.environ['PATH']}"},
    )
    assert not (tmp_path / "said").exists()
    assert (tmp_path / "procsnake" / "notebooks" / "1_quickstart.ipynb").is_file()
    assert (tmp_path / "fetched").read_text() == "s3://bucket/procsnake/source/procsnake.zip\n"
    (tmp_path / "go").touch()
    said = until(
        lambda: (tmp_path / "said").exists() and (tmp_path / "said").read_text(), seconds=30
    )
    assert (tmp_path / "slept").read_text() == "12h\n"
    name = stack["Resources"]["Notebook"]["Properties"]["NotebookInstanceName"]["Sub"].replace(
        "${Prefix}", "snakes"
    )
    assert said.split() == [
        *shlex.split(
            "sagemaker stop-notebook-instance --region eu-west-1 --notebook-instance-name"
        ),
        name,
    ]
