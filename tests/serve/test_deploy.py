"""What is deployed: templates and Dockerfiles by their linters, the SageMaker endpoint by its
contract, and a clean install.
"""

from __future__ import annotations

import http.client
import io
import json
import os
import re
import shlex
import shutil
import socket
import ssl
import subprocess
import sys
import time
import urllib.error
import urllib.request
from contextlib import closing
from pathlib import Path
from types import ModuleType

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import agents
from serve.arena import create_app
from serve.deploy.lock_requirements import PYTHON, server_requirements
from serve.sagemaker_endpoint import Endpoint
from serve.server import running
from serve.transport.request_body import MAX_BODY_BYTES
from tests.envs.battlesnake.positions import board
from tests.envs.battlesnake.webhook.test_requests import plain_request
from tests.linters import lint
from tests.serve.snakes import open_ways
from tests.waiting import until

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "serve" / "deploy"
CORNER = plain_request(board(7, 7, [(0, 0), (1, 0), (2, 0)], [(5, 5), (5, 4), (5, 3)]))


def test_the_templates_are_right_by_the_specification_of_cloudformation(tmp_path):
    done = lint("cfn-lint", *(DEPLOY / "aws").glob("*.yaml"))
    assert (done.returncode, done.stdout) == (0, "")
    broken = tmp_path / "broken.yaml"
    broken.write_text(
        (DEPLOY / "aws" / "express.yaml").read_text().replace("HealthCheckPath", "HealthPath")
    )
    assert "HealthPath" in lint("cfn-lint", broken).stdout


def test_the_dockerfiles_are_right_by_hadolint(tmp_path):
    files = [DEPLOY / "Dockerfile", *DEPLOY.glob("*.Dockerfile")]
    assert len(files) == 3
    done = lint("hadolint", *files)
    assert (done.returncode, done.stdout) == (0, "")
    broken = tmp_path / "Dockerfile"
    broken.write_text("FROM python\nRUN cd /tmp && pip install flask\n")
    assert lint("hadolint", broken).returncode == 1


def test_whatever_the_image_copies_is_there_and_gets_through_the_ignore_file():
    let_in = [
        line[1:]
        for line in (DEPLOY / "Dockerfile.dockerignore").read_text().split()
        if line.startswith("!")
    ]
    text = (DEPLOY / "Dockerfile").read_text()
    copied = [
        name
        for line in re.findall(r"^COPY (?!--from)(.*) \S+$", text, re.M)
        for name in line.split()
        if "--" not in name
    ]
    assert copied
    for name in copied:
        assert (ROOT / name).exists()
        assert name.split("/")[0] in let_in
    for script in (DEPLOY / "image").iterdir():
        first = script.read_text().splitlines()[0]
        assert first.startswith("#!") == (script.name != "prepare-cache")


def test_what_the_image_installs_is_pinned_by_hash_and_is_what_setup_asks_for():
    text = (DEPLOY / "requirements.txt").read_text()
    locked = dict(re.findall(r"^([a-z0-9-]+)==(\S+) \\$", text, re.M))
    assert len(re.findall(r"--hash=sha256:[0-9a-f]{64}", text)) >= len(locked)
    assert all("--hash=" in entry for entry in text.split("==")[1:])
    lines = map(Requirement, re.findall(r"^[^#\n].*", (ROOT / "constraints.txt").read_text(), re.M))
    of_the_image = [
        line
        for line in lines
        if not line.marker or line.marker.evaluate({"python_version": PYTHON})
    ]
    constraints = {
        canonicalize_name(line.name): str(line.specifier).removeprefix("==")
        for line in of_the_image
    }
    assert {name: constraints[name] for name in locked if name in constraints} == {
        name: version for name, version in locked.items() if name in constraints
    }
    for requirement in server_requirements():
        name = re.match(r"[A-Za-z0-9_.-]+", requirement)[0].lower().replace("_", "-")
        assert name in locked, requirement
    docker = (DEPLOY / "Dockerfile").read_text()
    assert "--require-hashes" in docker
    assert not re.search(r"^FROM (?!\$\{)", docker, re.M)


@pytest.mark.long
def test_the_hashes_are_those_of_the_registry(tmp_path):
    command = [
        sys.executable,
        *shlex.split("-m pip download --quiet --require-hashes --no-deps --only-binary=:all:"),
    ]
    subprocess.run(
        [*command, "--dest", tmp_path, "-r", DEPLOY / "requirements.txt"], check=True, timeout=900
    )


@pytest.mark.parametrize("name", ["express", "lambda", "sagemaker"])
def test_a_template_takes_a_secret_and_allows_what_it_must(name):
    template = (DEPLOY / "aws" / f"{name}.yaml").read_text()
    assert "PROCSNAKE_SECRET" in template
    read = yaml.load(template, Loader=CloudFormation)
    assert read["Parameters"]["Secret"]["NoEcho"] is True
    for resource in read["Resources"].values():
        properties = resource.get("Properties", {})
        assert "AWSLambdaBasicExecutionRole" not in str(properties)
        assert "AmazonECSTaskExecutionRolePolicy" not in str(properties)
        for policy in properties.get("Policies", []):
            # With !If: the condition, the policy, nothing.
            policy = policy[1] if isinstance(policy, list) else policy
            for statement in policy["PolicyDocument"]["Statement"]:
                if statement["Resource"] == "*":
                    assert statement["Action"] == "ecr:GetAuthorizationToken"
        if resource["Type"] == "AWS::Lambda::Function":
            assert "MostAtOnce" in str(properties["ReservedConcurrentExecutions"])


def test_a_new_image_agent_or_secret_goes_live_on_lambda():
    """A version is made anew only if a property of its own changes that CloudFormation can't update
    in place.
    """
    manager = pytest.importorskip("cfnlint.schema.manager").PROVIDER_SCHEMA_MANAGER
    resources = yaml.load((DEPLOY / "aws" / "lambda.yaml").read_text(), Loader=CloudFormation)[
        "Resources"
    ]
    function, release, version = (resources[name] for name in ("Snake", "Release", "Version"))
    for resource, property_name in ((release, "Content"), (version, "Description")):
        schema = manager.get_resource_schema("us-east-1", resource["Type"]).schema
        assert f"/properties/{property_name}" in schema["createOnlyProperties"]
    followed = release["Properties"]["Content"][1]
    properties = function["Properties"]
    shown = [properties["Code"]["ImageUri"], *properties["Environment"]["Variables"].values()]
    assert sorted(followed) == sorted(shown) == ["Agent", "Image", "Secret"]
    assert "${Release.VersionNumber}" in version["Properties"]["Description"]
    assert resources["Live"]["Properties"]["FunctionVersion"] == "Version.Version"


def test_a_lambda_can_be_made_in_an_account_that_allows_ten_calls_at_once():
    template = yaml.load((DEPLOY / "aws" / "lambda.yaml").read_text(), Loader=CloudFormation)
    assert [template["Parameters"][name]["MinValue"] for name in ("Warm", "MostAtOnce")] == [0, 0]
    warm = template["Resources"]["Live"]["Properties"]["ProvisionedConcurrencyConfig"]
    assert (warm[0], warm[2]) == ("IsWarm", "AWS::NoValue")


def test_a_model_is_made_when_its_role_may_read_it():
    """The model waits for the role that it names. A policy of its own could come after the model,
    which then can't be read.
    """
    resources = yaml.load((DEPLOY / "aws" / "sagemaker.yaml").read_text(), Loader=CloudFormation)[
        "Resources"
    ]
    assert "AWS::IAM::Policy" not in {resource["Type"] for resource in resources.values()}
    policies = resources["ModelRole"]["Properties"]["Policies"]
    (reading,) = (policy for policy in policies if "s3:GetObject" in str(policy))
    assert reading[0] == "HasModel"
    assert resources["Model"]["Properties"]["ExecutionRoleArn"] == "ModelRole.Arn"


class CloudFormation(yaml.SafeLoader):
    """Its short forms of functions, as what they are given."""


CloudFormation.add_multi_constructor(
    "!",
    lambda loader, _, node: (
        loader.construct_scalar(node)
        if isinstance(node, yaml.ScalarNode)
        else (
            loader.construct_sequence(node, deep=True)
            if isinstance(node, yaml.SequenceNode)
            else loader.construct_mapping(node, deep=True)
        )
    ),
)


def test_no_page_asks_for_root():
    assert "RUN_UID=0" not in (ROOT / "docs" / "deploying.md").read_text()


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


# Waitress leaves the temporary file of a body that is broken off to the garbage collector.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.long
def test_caddy_brings_the_world_to_the_snake_by_tls_and_no_further(tmp_path):
    """The Caddyfile as it is, with ports of its own and a certificate that it makes itself."""
    caddy = shutil.which("caddy")
    if caddy is None:
        pytest.skip("caddy is not installed")
    with running(create_app(agents.make("flood"))) as url:
        plain = free_port()
        tls = free_port()
        variables = {
            "HTTP_PORT": plain,
            "HTTPS_PORT": tls,
            "PROCSNAKE_DOMAIN": "localhost",
            "PROCSNAKE_UPSTREAM": url[7:],
        }
        places = {
            "HOME": tmp_path,
            "XDG_DATA_HOME": tmp_path,
            "XDG_CONFIG_HOME": tmp_path,
            "PATH": os.environ["PATH"],
        }
        environment = {name: str(value) for name, value in {**variables, **places}.items()}
        command = [caddy, "run", "--adapter", "caddyfile", "--config", DEPLOY / "Caddyfile"]
        with subprocess.Popen(
            command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        ) as process:
            try:
                root = tmp_path / "caddy" / "pki" / "authorities" / "local" / "root.crt"
                until(
                    lambda: process.poll() is not None or (root.is_file() and is_open(tls)),
                    seconds=60,
                )
                assert process.poll() is None
                through_caddy(plain, tls, ssl.create_default_context(cafile=str(root)))
            finally:
                process.terminate()


def is_open(port):
    with socket.socket() as one:
        return one.connect_ex(("127.0.0.1", port)) == 0


def status_of(connection, method, path, body=None):
    """(status, headers, body) of a request; the connection is closed."""
    with closing(connection):
        connection.request(
            method, path, body, {"Host": "localhost", "Content-Type": "application/json"}
        )
        answer = connection.getresponse()
        return answer.status, answer.headers, answer.read()


def is_refused(connection, body):
    """Whether the answer says so, or the connection ends: who refuses a body doesn't wait for the
    rest of it.
    """
    try:
        return status_of(connection, "POST", "/move", body)[0] in (400, 413, 502)
    except (OSError, http.client.HTTPException):
        return True


def through_caddy(plain, tls, context):
    def ask(*request):
        return status_of(
            http.client.HTTPSConnection("localhost", tls, timeout=20, context=context), *request
        )

    deadline = time.monotonic() + 60
    while True:
        try:
            status, _, body = ask("POST", "/move", json.dumps(CORNER))
            break
        except ssl.SSLError:
            # The port is open before the certificate is there.
            assert time.monotonic() < deadline
            time.sleep(0.1)
    assert (status, json.loads(body)["move"]) == (200, "up")
    # Caddy is on this machine, those behind it aren't.
    assert ask("GET", "/metrics")[0] in (401, 403, 404)
    assert is_refused(
        http.client.HTTPSConnection("localhost", tls, timeout=20, context=context),
        bytes((5 << 20) + 1),
    )
    status, headers, _ = status_of(
        http.client.HTTPConnection("127.0.0.1", plain, timeout=20), "GET", "/"
    )
    assert (status, headers["Location"].partition(":")[0]) == (308, "https")
    with (
        socket.create_connection(("127.0.0.1", tls), timeout=60) as half,
        context.wrap_socket(half, server_hostname="localhost") as sent,
    ):
        sent.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\nX-Half:")
        # Without a limit nothing would come, and the timeout would be raised.
        assert b"200" not in sent.recv(1000)[:12]


def test_caddy_lets_in_whatever_the_server_takes():
    (mebibytes,) = re.findall(r"max_size (\d+)MiB", (DEPLOY / "Caddyfile").read_text())
    assert int(mebibytes) << 20 >= MAX_BODY_BYTES
    told = " ".join((ROOT / "docs" / "deploying.md").read_text().split())
    assert f"headers to 16 KiB and its body to {mebibytes} MiB" in told


def test_compose_keeps_the_log_small():
    logging = yaml.safe_load((DEPLOY / "compose.yaml").read_text())["services"]["snake"]["logging"]
    assert logging == {"driver": "json-file", "options": {"max-size": "10m", "max-file": "3"}}


def test_compose_runs_the_image_without_rights_it_does_not_need():
    services = yaml.safe_load((DEPLOY / "compose.yaml").read_text())["services"]
    snake = services["snake"]
    caddy = services["caddy"]
    assert (caddy["read_only"], caddy["cap_drop"], caddy["cap_add"]) == (
        True,
        ["ALL"],
        ["NET_BIND_SERVICE"],
    )
    assert "PROCSNAKE_BIND" in snake["ports"][0]
    assert (DEPLOY / caddy["volumes"][0].split(":")[0]).is_file()
    assert (
        (DEPLOY / snake["build"]["context"]).resolve(),
        snake["read_only"],
        snake["cap_drop"],
    ) == (ROOT, True, ["ALL"])
    assert (ROOT / snake["build"]["dockerfile"]).is_file()


def test_the_images_scripts_are_shell(tmp_path):
    for name in ("start", "serve", "prepare-cache"):
        assert subprocess.run(["sh", "-n", DEPLOY / "image" / name], check=False).returncode == 0
    (tmp_path / "cache").mkdir()
    environment = {
        "PATH": f"{DEPLOY / 'image'}:/usr/bin:/bin",
        "PROCSNAKE_CACHE": str(tmp_path / "cache"),
    }
    done = subprocess.run(
        ["sh", "-c", '. prepare-cache; echo "$PROCSNAKE_CACHE"'],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == str(tmp_path / "cache")


@pytest.fixture(scope="module")
def endpoint():
    app = create_app(agents.make("flood"))
    app.wsgi_app = Endpoint(app.wsgi_app)
    return app.test_client()


def test_the_endpoint_is_well_and_answers_what_is_called_in_its_attributes(endpoint):
    assert endpoint.get("/ping").status_code == 200

    def invoke(call, body=CORNER):
        headers = {} if call is None else {"X-Amzn-SageMaker-Custom-Attributes": call}
        return endpoint.post("/invocations", json=body, headers=headers)

    assert invoke("move").get_json()["move"] == invoke(None).get_json()["move"] == "up"
    assert invoke("info", {}).get_json()["apiversion"] == "1"
    assert (invoke("start").status_code, invoke("end").status_code) == (200, 200)
    assert invoke("move", {}).status_code == 400
    assert invoke("../metrics").status_code == 404
    assert endpoint.get("/invocations").status_code == 404


def test_the_endpoints_gate_hands_on_the_four_calls(endpoint, monkeypatch):
    """The function inside the template, against our endpoint; AWS's client is all that isn't
    real.
    """
    template = (DEPLOY / "aws" / "sagemaker.yaml").read_text()
    source = template[template.index("          import base64") : template.index("  Address:")]

    class Runtime:
        def invoke_endpoint(self, *, EndpointName, ContentType, CustomAttributes, Body):
            headers = {
                "X-Amzn-SageMaker-Custom-Attributes": CustomAttributes,
                "Content-Type": ContentType,
            }
            return {
                "Body": io.BytesIO(endpoint.post("/invocations", data=Body, headers=headers).data)
            }

    boto3 = ModuleType("boto3")
    config = ModuleType("botocore.config")
    boto3.client = lambda *args, **options: Runtime()
    config.Config = dict
    for module in (boto3, ModuleType("botocore"), config):
        monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.setenv("ENDPOINT", "snake")
    function: dict = {}
    exec("\n".join(line[10:] for line in source.splitlines()), function)

    def call(path, body=None):
        return function["handler"]({"rawPath": path, "body": body}, None)

    assert json.loads(call("/")["body"])["apiversion"] == "1"
    monkeypatch.setenv("PROCSNAKE_SECRET", "0123456789abcdef")
    assert json.loads(call("/0123456789abcdef/")["body"])["apiversion"] == "1"
    assert json.loads(call("/0123456789abcdef/move", json.dumps(CORNER))["body"])["move"] == "up"
    assert {
        call(path)["statusCode"] for path in ("/", "/move", "/0123456789abcdeX/move", "/é/")
    } == {404}
    monkeypatch.setenv("PROCSNAKE_SECRET", "")
    assert json.loads(call("/move", json.dumps(CORNER))["body"])["move"] == "up"
    assert call("/elsewhere")["statusCode"] == 404


CHECK = """
import sys
for name in ("torch", "ray"):
    try:
        __import__(name)
    except ImportError:
        continue
    sys.exit(f"{name} is there")
"""


@pytest.mark.long
def test_a_clean_install_answers_without_torch_and_ray(tmp_path):
    """`pip install .[serve]` in a new environment, the four calls, and how long it takes to the
    first answer.
    """
    source = tmp_path / "source"
    environment = tmp_path / "environment"
    source.mkdir()
    for name in ("envs", "agents", "train", "serve", "procsnake"):
        shutil.copytree(ROOT / name, source / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in (
        "setup.py",
        "pyproject.toml",
        "constraints.txt",
        "README.md",
        "LICENSE",
        "procsnake_packages.py",
    ):
        shutil.copy(ROOT / name, source)
    subprocess.run([sys.executable, "-m", "venv", environment], check=True)
    python = environment / "bin" / "python"
    install = [
        python,
        *shlex.split("-m pip install --quiet --constraint"),
        source / "constraints.txt",
        f"{source}[serve]",
    ]
    subprocess.run(install, check=True, timeout=900)
    assert subprocess.run([python, "-c", CHECK], check=False, cwd=tmp_path).returncode == 0

    command = [environment / "bin" / "procsnake", "serve", "flood", "--port", "0"]
    variables = {**os.environ, "PROCSNAKE_CACHE": str(tmp_path / "cache"), "PYTHONUNBUFFERED": "1"}
    seconds = [first_answer(command, variables, tmp_path) for _ in range(2)]
    print(
        f"to the first answer: {seconds[0]:.1f} s with kernels to compile, {seconds[1]:.1f} s with"
        " none"
    )
    assert seconds[1] < seconds[0]


def answer_soon(request):
    """The address is told a moment before connections are taken."""
    deadline = time.monotonic() + 60
    while True:
        try:
            return urllib.request.urlopen(request, timeout=60).read()
        except urllib.error.URLError:
            assert time.monotonic() < deadline
            time.sleep(0.01)


def first_answer(command, variables, folder):
    """Seconds from the command to an answer; then the four calls."""
    began = time.monotonic()
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, env=variables, cwd=folder
    ) as process:
        try:
            url = next(
                found[0]
                for line in process.stdout
                if (found := re.findall(r"http://[\d.:]+", line))
            )
            move = json.loads(
                answer_soon(urllib.request.Request(f"{url}/move", json.dumps(CORNER).encode()))
            )
            took = time.monotonic() - began
            assert move["move"] in open_ways(CORNER)
            assert json.load(urllib.request.urlopen(url, timeout=20))["apiversion"] == "1"
            for call in ("start", "end"):
                answer = urllib.request.urlopen(
                    urllib.request.Request(f"{url}/{call}", json.dumps(CORNER).encode()), timeout=20
                )
                assert answer.status == 200
        finally:
            process.terminate()
    return took
