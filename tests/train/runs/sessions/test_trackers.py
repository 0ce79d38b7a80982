"""What Weights & Biases writes offline, and what a real server of MLflow on this machine has
got.
"""

from __future__ import annotations

import json
import os
import socket
import struct
import subprocess
import sys
import time
import urllib.request

import pytest

from envs.common.errors import ConfigError
from tests.train.experiments import toy
from train.run import train
from train.runs.folder import RunFolder
from train.runs.sessions.progress import Progress
from train.runs.sessions.trackers import Tracking, require_trackers

pytest.importorskip("mlflow", reason="the trackers are not installed")
pytest.importorskip("wandb", reason="the trackers are not installed")

pytestmark = [pytest.mark.long, pytest.mark.filterwarnings("default")]
ROWS = [
    {"iteration": n, "return_mean": 0.5 * n, "win rate (3 × flood)": 0.25, "nothing": float("nan")}
    for n in (1, 2, 3)
]


@pytest.fixture
def mlflow_server(tmp_path, monkeypatch):
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port = one.getsockname()[1]
    store = [
        f"--backend-store-uri=sqlite:///{tmp_path / 'mlflow.db'}",
        f"--default-artifact-root={tmp_path / 'artifacts'}",
    ]
    command = [
        sys.executable,
        "-m",
        "mlflow",
        "server",
        "--host=127.0.0.1",
        f"--port={port}",
        "--workers=1",
        *store,
    ]
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"http://127.0.0.1:{port}")
    with (tmp_path / "server.log").open("wb") as log:
        server = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)
        try:
            _wait_for(f"http://127.0.0.1:{port}/health", server)
            yield server
        finally:
            _kill(server)


def _wait_for(url, server):
    until = time.monotonic() + 120
    while time.monotonic() < until and server.poll() is None:
        try:
            with urllib.request.urlopen(url, timeout=2):
                return
        except OSError:
            time.sleep(0.5)
    raise AssertionError(f"the server never answered at {url}")


def _kill(server):
    if server.poll() is None:
        os.killpg(server.pid, 9)
        server.wait()


def tracking(folder, *trackers, first=1):
    folder.mkdir(exist_ok=True)
    progress = Progress(title="toy")
    return Tracking(folder, toy("identity"), first=first, trackers=trackers, progress=progress)


def histories(run_name):
    import mlflow

    client = mlflow.MlflowClient()
    (run,) = client.search_runs([client.get_experiment_by_name("procsnake").experiment_id])
    assert run.info.run_name == run_name
    return run, {
        name: client.get_metric_history(run.info.run_id, name) for name in run.data.metrics
    }


def test_mlflow_has_the_rows_of_a_run_and_goes_on_in_it(mlflow_server, one_ray, tmp_path):
    run = train(
        toy("identity", steps=6144),
        runs_dir=tmp_path,
        trackers=["mlflow"],
        on_iteration=lambda row: True,
    ).path
    train(resume=run, trackers=["mlflow"])
    curve = RunFolder(run).curve()
    known, told = histories(run.name)
    assert len(curve) > 1
    shown = [(metric.step, metric.value) for metric in told["entropy"]]
    assert shown == [(n, pytest.approx(float(row["entropy"]))) for n, row in enumerate(curve, 1)]
    assert (known.info.status, known.data.params["algorithm"], known.data.params["env.name"]) == (
        "FINISHED",
        "ppo",
        "identity",
    )


def test_names_that_mlflow_refuses_are_changed_and_values_that_are_no_numbers_left_out(
    mlflow_server, tmp_path
):
    sent = tracking(tmp_path / "run", "mlflow")
    for row in ROWS:
        sent.log(row)
    sent.close()
    _, told = histories("run")
    assert set(told) == {"iteration", "return_mean", "win rate _3 _ flood_"}
    assert [(metric.step, metric.value) for metric in told["return_mean"]] == [
        (1, 0.5),
        (2, 1.0),
        (3, 1.5),
    ]


def test_a_server_that_dies_is_said_once_and_the_run_goes_on(mlflow_server, tmp_path, capsys):
    sent = tracking(tmp_path / "run", "mlflow")
    sent.log(ROWS[0])
    _kill(mlflow_server)
    for row in ROWS[1:]:
        sent.log(row)
    sent.close()
    said = capsys.readouterr()
    assert (said.out + said.err).count("mlflow gets no more rows") == 1
    with pytest.raises(ConfigError, match="--mlflow can't begin"):
        tracking(tmp_path / "another", "mlflow")


def test_weights_and_biases_writes_the_rows_offline(tmp_path, monkeypatch):
    monkeypatch.setenv("WANDB_MODE", "offline")
    require_trackers(["wandb"])
    sent = tracking(tmp_path / "run", "wandb")
    for row in ROWS:
        sent.log(row)
    sent.close()
    (file,) = (tmp_path / "run").glob("wandb/offline-run-*/run-run.wandb")
    records = list(_records(file.read_bytes()))
    kept = [
        record.history.item for record in records if record.WhichOneof("record_type") == "history"
    ]
    rows = [
        {item.key or item.nested_key[0]: json.loads(item.value_json) for item in items}
        for items in kept
    ]
    own = [{name: value for name, value in row.items() if not name.startswith("_")} for row in rows]
    assert own == [{name: value for name, value in row.items() if value == value} for row in ROWS]
    updates = [
        item
        for record in records
        if record.WhichOneof("record_type") == "run"
        for item in record.run.config.update
    ]
    config = {item.key or item.nested_key[0]: json.loads(item.value_json) for item in updates}
    assert (config["algorithm"], config["env"]["name"]) == ("ppo", "identity")


def _records(content):
    """The records of a file in LevelDB's log format (github.com/google/leveldb, doc/log_format.md),
    behind a header of 7 bytes.

    Small files are one block, in which each record is a checksum, its length, the type FULL and the
    data."""
    from wandb.proto.wandb_internal_pb2 import Record

    assert (content[:4], len(content) < 1 << 15) == (b":W&B", True)
    place = 7
    while place + 7 <= len(content):
        _, length, kind = struct.unpack_from("<IHB", content, place)
        assert kind == 1
        yield Record.FromString(content[place + 7 : place + 7 + length])
        place += 7 + length
