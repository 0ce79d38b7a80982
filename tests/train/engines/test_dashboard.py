"""Ray's dashboard and Prometheus of a job on two machines, as the head itself sees them at the end
of a tunnel.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.train.cluster.machines import machines, python, require_machines
from tests.train.sagemaker.jobs import TOKEN, prepare

pytestmark = pytest.mark.long

LOOK = """
import json, os, socket, time, urllib.error, urllib.request

def ask(port, path, token=None):
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", headers=headers)
    try:
        with urllib.request.urlopen(request, timeout=20) as answer:
            return json.load(answer)
    except urllib.error.HTTPError as error:
        return error.code

def targets():
    found = ask(9090, "/api/v1/targets")["data"]["activeTargets"]
    return {target["scrapeUrl"] for target in found if target["health"] == "up"}

token = open(os.environ["RAY_AUTH_TOKEN_PATH"]).read()
deadline = time.monotonic() + 120
while len([one for one in targets() if ":8080/" in one]) < 2 and time.monotonic() < deadline:
    time.sleep(1)
with socket.socket() as outside:
    reached = outside.connect_ex(("10.77.0.10", 8265))
cpus = ask(9090, "/api/v1/query?query=sum(ray_node_cpu_count)")
print("LOOK " + json.dumps({
    "stranger": ask(8265, "/nodes?view=summary"),
    "nodes": len(ask(8265, "/nodes?view=summary", token)["data"]["summary"]),
    "targets": sorted(targets()),
    "cpus": cpus["data"]["result"][0]["value"][1],
    "from outside": reached,
}))
"""


PAGE = (Path(__file__).parents[3] / "docs" / "sagemaker.md").read_text(encoding="utf-8")
(CONFIG,) = re.findall(
    r'^```yaml title="prometheus.yml"\n(.*?)^```$', PAGE, re.MULTILINE | re.DOTALL
)


@pytest.fixture(autouse=True)
def _needs():
    require_machines()
    if not find_spec("aiohttp") or not find_spec("opencensus"):
        pytest.skip("ray[default] is not installed")
    if not shutil.which("prometheus"):
        pytest.skip("prometheus is not installed")


def test_the_head_shows_all_machines_and_prometheus_reads_them(tmp_path):
    prometheus_folder = os.path.dirname(shutil.which("prometheus") or "")
    environment = {
        "PROCSNAKE_JOIN_SECONDS": "150",
        "PROCSNAKE_DASHBOARD": "1",
        "TRAINING_JOB_NAME": "procsnake-x",
        "PATH": f"{prometheus_folder}:/usr/sbin:/usr/bin:/sbin:/bin",
    }
    with machines(["algo-1", "algo-2"], tmp_path, environment) as (head, worker):
        prepare([head, worker])
        for machine in (worker, head):
            machine.start(python("-m", "tests.train.sagemaker.launch_command", *python("-c", LOOK)))
        assert head.wait(300) == 0, head.log[-3000:]
        assert worker.wait(30) == 0, worker.log[-3000:]
        (line,) = (line for line in head.log.splitlines() if line.startswith("LOOK "))
        seen = json.loads(line.removeprefix("LOOK "))
        # Whoever comes through the tunnel without the token of the job sees nothing; nobody comes
        # without a tunnel.
        assert seen["stranger"] == 401
        assert seen["from outside"] != 0
        assert seen["nodes"] == 2
        assert {"http://10.77.0.10:8080/metrics", "http://10.77.0.11:8080/metrics"} <= set(
            seen["targets"]
        )
        assert int(seen["cpus"]) == 2 * (os.cpu_count() or 1)
        assert "--target sagemaker-training-job:procsnake-x_algo-1 " in head.log
        assert "aws ssm" not in worker.log
        assert TOKEN not in head.log + worker.log


def test_prometheus_takes_the_pages_file(tmp_path):
    (tmp_path / "prometheus.yml").write_text(CONFIG)
    checked = subprocess.run(
        ["promtool", "check", "config", tmp_path / "prometheus.yml"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert checked.returncode == 0, checked.stderr
