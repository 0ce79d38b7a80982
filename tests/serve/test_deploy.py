"""What is deployed: templates and Dockerfiles by their linters, the SageMaker endpoint by its contract, and a clean install."""

from __future__ import annotations

import io
import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import time
import urllib.error
import urllib.request
from pathlib import Path
from types import ModuleType

import pytest
import yaml

import agents
from serve.arena import create_app
from serve.sagemaker_endpoint import Endpoint
from tests.envs.battlesnake.positions import board
from tests.envs.battlesnake.test_webhook import plain_request
from tests.serve.snakes import open_ways

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "serve" / "deploy"
SCRIPTS = Path(sysconfig.get_path("scripts"))
CORNER = plain_request(board(7, 7, [(0, 0), (1, 0), (2, 0)], [(5, 5), (5, 4), (5, 3)]))


def lint(tool, *files):
    program = SCRIPTS / tool
    if not program.is_file():
        pytest.skip(f"{tool} is not installed")
    return subprocess.run([program, *files], capture_output=True, text=True, timeout=300, check=False)


def test_the_templates_are_right_by_the_specification_of_cloudformation(tmp_path):
    done = lint("cfn-lint", *(DEPLOY / "aws").glob("*.yaml"))
    assert (done.returncode, done.stdout) == (0, "")
    broken = tmp_path / "broken.yaml"
    broken.write_text((DEPLOY / "aws" / "express.yaml").read_text().replace("HealthCheckPath", "HealthPath"))
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
    let_in = [line[1:] for line in (DEPLOY / "Dockerfile.dockerignore").read_text().split() if line.startswith("!")]
    text = (DEPLOY / "Dockerfile").read_text()
    copied = [
        name for line in re.findall(r"^COPY (?!--from)(.*) \S+$", text, re.M) for name in line.split() if "--" not in name
    ]
    assert copied
    for name in copied:
        assert (ROOT / name).exists()
        assert name.split("/")[0] in let_in
    for script in (DEPLOY / "image").iterdir():
        first = script.read_text().splitlines()[0]
        assert first.startswith("#!") == (script.name != "prepare-cache")


def test_compose_runs_the_image_without_rights_it_does_not_need():
    snake = yaml.safe_load((DEPLOY / "compose.yaml").read_text())["services"]["snake"]
    assert ((DEPLOY / snake["build"]["context"]).resolve(), snake["read_only"], snake["cap_drop"]) == (ROOT, True, ["ALL"])
    assert (ROOT / snake["build"]["dockerfile"]).is_file()


def test_the_images_scripts_are_shell(tmp_path):
    for name in ("start", "serve", "prepare-cache"):
        assert subprocess.run(["sh", "-n", DEPLOY / "image" / name], check=False).returncode == 0
    (tmp_path / "cache").mkdir()
    environment = {"PATH": f"{DEPLOY / 'image'}:/usr/bin:/bin", "PROCSNAKE_CACHE": str(tmp_path / "cache")}
    done = subprocess.run(
        ["sh", "-c", '. prepare-cache; echo "$PROCSNAKE_CACHE"'], env=environment, capture_output=True, text=True, check=True
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
    """The function inside the template, against our endpoint; AWS's client is all that isn't real."""
    template = (DEPLOY / "aws" / "sagemaker.yaml").read_text()
    source = template[template.index("          import base64") : template.index("  Address:")]

    class Runtime:
        def invoke_endpoint(self, *, EndpointName, ContentType, CustomAttributes, Body):
            headers = {"X-Amzn-SageMaker-Custom-Attributes": CustomAttributes, "Content-Type": ContentType}
            return {"Body": io.BytesIO(endpoint.post("/invocations", data=Body, headers=headers).data)}

    boto3, config = ModuleType("boto3"), ModuleType("botocore.config")
    boto3.client, config.Config = (lambda *args, **options: Runtime()), dict
    for module in (boto3, ModuleType("botocore"), config):
        monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.setenv("ENDPOINT", "snake")
    function: dict = {}
    exec("\n".join(line[10:] for line in source.splitlines()), function)
    call = lambda path, body=None: function["handler"]({"rawPath": path, "body": body}, None)  # noqa: E731
    assert json.loads(call("/")["body"])["apiversion"] == "1"
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
    """`pip install .[serve]` in a new environment, the four calls, and how long it takes to the first answer."""
    source, environment = tmp_path / "source", tmp_path / "environment"
    source.mkdir()
    for name in ("envs", "agents", "train", "serve"):
        shutil.copytree(ROOT / name, source / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("setup.py", "pyproject.toml", "constraints.txt", "README.md", "LICENSE", "procsnake.py"):
        shutil.copy(ROOT / name, source)
    subprocess.run([sys.executable, "-m", "venv", environment], check=True)
    python = environment / "bin" / "python"
    install = [python, "-m", "pip", "install", "--quiet", "--constraint", source / "constraints.txt", f"{source}[serve]"]
    subprocess.run(install, check=True, timeout=900)
    assert subprocess.run([python, "-c", CHECK], check=False, cwd=tmp_path).returncode == 0

    command = [environment / "bin" / "procsnake", "serve", "flood", "--port", "0"]
    variables = {**os.environ, "PROCSNAKE_CACHE": str(tmp_path / "cache"), "PYTHONUNBUFFERED": "1"}
    seconds = [first_answer(command, variables, tmp_path) for _ in range(2)]
    print(f"to the first answer: {seconds[0]:.1f} s with kernels to compile, {seconds[1]:.1f} s with none")
    assert seconds[1] < seconds[0]


def answer_soon(request):
    """The address is told a moment before connections are taken."""
    until = time.monotonic() + 60
    while True:
        try:
            return urllib.request.urlopen(request, timeout=60).read()
        except urllib.error.URLError:
            assert time.monotonic() < until
            time.sleep(0.01)


def first_answer(command, variables, folder):
    """Seconds from the command to an answer; then the four calls."""
    began = time.monotonic()
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=variables, cwd=folder) as process:
        try:
            url = next(found[0] for line in process.stdout if (found := re.findall(r"http://[\d.:]+", line)))
            move = json.loads(answer_soon(urllib.request.Request(f"{url}/move", json.dumps(CORNER).encode())))
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
