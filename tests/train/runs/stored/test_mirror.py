"""Runs that are kept in S3: moto's server in AWS's place, by pyarrow and by boto3; in Google's, a
stand-in of its API.
"""

from __future__ import annotations

import json
import os
import threading
from contextlib import contextmanager
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, unquote, urlparse

import boto3
import pytest
from moto.server import ThreadedMotoServer

import train.runs.stored.lock
from envs.common.errors import ConfigError
from procsnake.begin_or_continue import words
from tests.train.experiments import toy
from train.config import Experiment
from train.run import train as train_run
from train.runs.folder import RunError, RunFolder
from train.runs.manifest import flaw
from train.runs.stored.lock import STALE_SECONDS, LostRunError, forget_stored_lock, stored_lock
from train.runs.stored.mirror import fetched, new_mirror
from train.runs.stored.object_store import GoogleFile, StoredFolder, is_address

RUNS = "s3://snakes/team/runs"
WORLD = {"name": "toy", "env": {"name": "battlesnake"}, "budget": {"max_minutes": 1}}
SECRET = "wJalrXUtnFEMI-of-this-test"


@pytest.fixture(scope="module")
def endpoint():
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    yield f"http://{host}:{port}"
    server.stop()


@pytest.fixture
def s3(endpoint, monkeypatch, tmp_path):
    """An empty bucket; returns boto3's client."""
    monkeypatch.setenv("AWS_ENDPOINT_URL", endpoint)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIDOFTHISTEST")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    client = boto3.session.Session().client("s3")
    client.create_bucket(Bucket="snakes")
    yield client
    for one in client.list_objects_v2(Bucket="snakes").get("Contents", []):
        client.delete_object(Bucket="snakes", Key=one["Key"])
    client.delete_bucket(Bucket="snakes")


def keys(client) -> list[str]:
    """All but the empty objects by which pyarrow keeps folders."""
    found = [one["Key"] for one in client.list_objects_v2(Bucket="snakes").get("Contents", [])]
    return [key for key in found if not key.endswith("/")]


def new_run(tmp_path: Path) -> RunFolder:
    return RunFolder.create(tmp_path / "here", Experiment.from_dict(WORLD), {})


def save(run: RunFolder, iteration: int) -> None:
    run.append({"iteration": iteration})
    run.save_checkpoint(
        lambda path: (path / "weights").write_text(f"w{iteration}"),
        {"iteration": iteration},
        keep=2,
    )


def test_a_run_goes_there_with_its_checkpoints_and_comes_back_on_another_machine(s3, tmp_path):
    run = new_run(tmp_path)
    with new_mirror(StoredFolder.at(RUNS), run.path) as mirror:
        for iteration in (1, 2, 3):
            save(run, iteration)
            mirror.send(run.path)
        (run.path / "checkpoints" / ".00000004.part").mkdir()
        (run.path / "checkpoints" / ".00000004.part" / "weights").write_text("half")
        mirror.send(run.path)
    stored = {key.removeprefix(f"team/runs/{run.path.name}/") for key in keys(s3)}
    assert {name.split("/")[1] for name in stored if name.startswith("checkpoints/")} == {
        "00000002",
        "00000003",
    }
    assert not [name for name in stored if "/." in name or name in (".lock", "lock.json")]
    with fetched(StoredFolder.at(f"{RUNS}/{run.path.name}")) as (folder, _):
        newest, counters = RunFolder(folder).newest_checkpoint()
        assert ((newest / "weights").read_text(), counters["iteration"], flaw(newest)) == (
            "w3",
            3,
            None,
        )
        assert (folder / "progress.csv").read_text() == "iteration\n1\n2\n3\n"
    assert not folder.exists()


def test_a_checkpoint_counts_once_its_list_of_files_is_there(s3, tmp_path, monkeypatch):
    run = new_run(tmp_path)
    save(run, 1)
    order: list[str] = []
    send = StoredFolder.send
    monkeypatch.setattr(
        StoredFolder, "send", lambda self, file, name: (order.append(name), send(self, file, name))
    )
    with new_mirror(StoredFolder.at(RUNS), run.path) as mirror:
        mirror.send(run.path)
        save(run, 2)

        def cut_off(self, file, name):
            if name.endswith("00000002/files.json"):
                raise RunError("the machine is gone")
            send(self, file, name)

        monkeypatch.setattr(StoredFolder, "send", cut_off)
        with pytest.raises(RunError, match="gone"):
            mirror.send(run.path)
    assert order[-1] == "checkpoints/00000001/files.json"
    assert order.index("progress.csv") < order.index("checkpoints/00000001/weights")
    with fetched(StoredFolder.at(f"{RUNS}/{run.path.name}")) as (folder, _):
        assert [one.name for one in RunFolder(folder).checkpoints()] == ["00000001"]
        assert RunFolder(folder).curve()[-1] == {"iteration": "2"}


def test_of_two_writers_the_second_is_refused_and_a_dead_one_is_followed(s3, monkeypatch):
    run = StoredFolder.at(f"{RUNS}/toy")
    with stored_lock(run) as first:
        with (
            pytest.raises(RunError, match=rf"is being written by process {os.getpid()} on "),
            stored_lock(run),
        ):
            pass
        # The first one is silent for so long that it counts as gone; a second process takes over.
        monkeypatch.setattr(train.runs.stored.lock, "STALE_SECONDS", -1.0)
        with stored_lock(run) as second:
            second.require()
            with pytest.raises(
                LostRunError, match="another process continues s3://snakes/team/runs/toy"
            ):
                first.require()
        assert STALE_SECONDS > 0
    assert keys(s3) == []


def test_of_many_that_try_at_once_one_gets_it(s3):
    run = StoredFolder.at(f"{RUNS}/toy")
    got = []
    ready = threading.Barrier(4)
    done = threading.Event()

    def attempt():
        ready.wait()
        try:
            with stored_lock(run):
                got.append(True)
                done.wait(30)
        except RunError:
            got.append(False)
        if len(got) == 4:
            done.set()

    threads = [threading.Thread(target=attempt) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(got) == [False, False, False, True]


def test_a_lock_of_a_machine_that_is_known_to_be_gone_is_removed(s3):
    run = StoredFolder.at(f"{RUNS}/toy")
    with stored_lock(run) as held:
        forget_stored_lock(run)
        with stored_lock(run), pytest.raises(LostRunError):
            held.require()


def test_a_job_that_is_started_again_finds_the_run_of_its_earlier_start(s3, tmp_path):
    runs = f"{RUNS}/my-job"
    assert words("/etc/e.yaml", runs)[3:] == ["--config", "/etc/e.yaml", "--runs", runs]
    run = new_run(tmp_path)
    save(run, 1)
    with new_mirror(StoredFolder.at(runs), run.path) as mirror:
        mirror.send(run.path)
        # The head is lost here: it still holds the lock.
        assert words("/etc/e.yaml", runs)[3:] == ["--resume", f"{runs}/{run.path.name}", "--trust"]
        with fetched(StoredFolder.at(f"{runs}/{run.path.name}")) as (folder, _):
            assert RunFolder(folder).newest_checkpoint()[1] == {"iteration": 1}
        with pytest.raises(LostRunError):
            mirror.send(run.path)


@pytest.mark.parametrize(
    "address",
    [
        "s3://AKID:SECRET@snakes/runs",
        "s3://snakes/runs?secret_key=SECRET",
        "s3://Snakes/runs",
        "s3://",
        "http://snakes/runs",
    ],
)
def test_an_address_with_credentials_or_of_another_form_is_refused_without_being_repeated(address):
    with pytest.raises(ConfigError) as caught:
        StoredFolder.at(address)
    assert "SECRET" not in str(caught.value)


def test_what_cannot_be_reached_or_is_no_run_is_told_in_a_line(s3):
    with (
        pytest.raises(RunError, match=r"s3://nowhere-at-all/runs/x/lock.json can't be used"),
        fetched(StoredFolder.at("s3://nowhere-at-all/runs/x")),
    ):
        pass
    with (
        pytest.raises(RunError, match=r"is not a run: it has no config.yaml"),
        fetched(StoredFolder.at(f"{RUNS}/none")),
    ):
        pass
    with pytest.raises(ConfigError, match="is a bucket"), fetched(StoredFolder.at("s3://snakes")):
        pass
    assert keys(s3) == []


@pytest.mark.usefixtures("one_ray")
def test_a_training_goes_on_elsewhere_and_no_credentials_are_in_its_files(
    s3, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    experiment = toy("identity", steps=4096).override(["checkpoints.every_minutes=0"])
    first = train_run(experiment, runs_dir=RUNS, on_iteration=lambda row: True)
    assert (first.finished, first.path.exists(), is_address(first.address)) == (False, False, True)
    # Another machine has another key, by which runs are its own.
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "another"))
    with pytest.raises(RunError, match=rf"--resume {first.address}|--trust"):
        train_run(resume=first.address)
    second = train_run(resume=first.address, trust=True)
    assert (second.finished, second.address) == (True, first.address)
    bodies = {key: s3.get_object(Bucket="snakes", Key=key)["Body"].read() for key in keys(s3)}
    prefix = first.address.removeprefix("s3://snakes/")
    assert {
        f"{prefix}/{name}"
        for name in ("config.yaml", "bundle/card.json", "report.html", "progress.csv")
    } <= set(bodies)
    assert not [
        key for key, body in bodies.items() if SECRET.encode() in body or b"AKIDOFTHISTEST" in body
    ]
    rows = bodies[f"{prefix}/progress.csv"].decode().splitlines()[1:]
    assert [row.split(",")[0] for row in rows] == [str(k + 1) for k in range(len(rows))]
    assert not (tmp_path / "s3:").exists()


@contextmanager
def google():
    """What Google documents of two calls: an upload that depends on a generation, and a download.
    It refuses with 412.
    """
    stored: dict[str, tuple[int, bytes]] = {}

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            asked = {
                name: values[0] for name, values in parse_qs(urlparse(self.path).query).items()
            }
            body = self.rfile.read(int(self.headers["Content-Length"]))
            generation = stored.get(asked["name"], (0, b""))[0]
            if int(asked["ifGenerationMatch"]) != generation:
                return self.answer(412, b"{}")
            stored[asked["name"]] = (generation + 7, body)
            return self.answer(200, json.dumps({"generation": str(generation + 7)}).encode())

        def do_GET(self):
            name = unquote(urlparse(self.path).path.rpartition("/")[2])
            if name not in stored:
                return self.answer(404, b"")
            return self.answer(200, stored[name][1], {"x-goog-generation": str(stored[name][0])})

        def do_DELETE(self):
            gone = stored.pop(unquote(urlparse(self.path).path.rpartition("/")[2]), None)
            self.answer(204 if gone else 404, b"")

        def answer(self, status, body, headers=None):
            self.send_response(status)
            told = {
                "Last-Modified": formatdate(usegmt=True),
                "Content-Length": str(len(body)),
                **(headers or {}),
            }
            for name, value in told.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def test_googles_lock_has_the_same_shape(monkeypatch):
    with google() as address:
        monkeypatch.setenv("STORAGE_EMULATOR_HOST", address)
        file = GoogleFile("snakes", "runs/toy/lock.json")
        assert file.read() is None
        version = file.write(b"mine", None)
        assert file.write(b"theirs", None) is None
        newer = file.write(b"mine again", version)
        assert (file.write(b"late", version), file.read()[:2]) == (None, (b"mine again", newer))
        run = StoredFolder.at("gs://snakes/runs/other")
        with (
            stored_lock(run),
            pytest.raises(RunError, match="is being written by"),
            stored_lock(run),
        ):
            pass
        file.remove()
        assert file.read() is None
