"""The source that a job carries."""

from __future__ import annotations

import io
import os
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from envs.common.errors import ConfigError
from train.sagemaker.source import pack

START = Path(__file__).parents[3] / "train" / "sagemaker" / "image" / "start"


def names(packed: bytes) -> set[str]:
    with tarfile.open(fileobj=io.BytesIO(packed)) as tar:
        return set(tar.getnames())


def test_it_holds_the_packages_the_experiment_and_no_rubbish():
    held = names(pack("name: x\n"))
    wanted = {
        "experiment.yaml",
        "procsnake_packages.py",
        "train/sagemaker/container/entry.py",
        "envs/battlesnake/state.py",
        "agents/bundle.py",
        "agents/champions/champion-duel/weights.safetensors",
    }
    assert wanted <= held
    assert not [
        name
        for name in held
        if "__pycache__" in name or name.startswith(("/", "tests", ".")) or ".." in name
    ]


def test_the_same_source_gives_the_same_bytes(light_source):
    assert pack("name: x\n") == pack("name: x\n")


def test_what_the_user_adds_lies_at_the_top(light_source, tmp_path):
    (tmp_path / "worlds").mkdir()
    (tmp_path / "worlds" / "mine.py").write_text("x = 1\n")
    (tmp_path / "worlds" / ".git").mkdir()
    (tmp_path / "worlds" / ".git" / "config").write_text("secret")
    (tmp_path / "rewards.py").write_text("y = 1\n")
    held = names(pack("", [tmp_path / "worlds", tmp_path / "rewards.py"]))
    assert {"worlds/mine.py", "rewards.py"} <= held
    assert not [name for name in held if ".git" in name]


@pytest.mark.parametrize("name", ["id_rsa", "server.pem", "credentials", "prod.env"])
def test_secrets_stay_at_home(tmp_path, name):
    (tmp_path / name).write_text("")
    with pytest.raises(ConfigError, match="looks like a secret"):
        pack("", [tmp_path])


def test_what_is_missing_or_too_large_is_named_before_it_is_read(tmp_path, monkeypatch):
    with pytest.raises(ConfigError, match="no such file"):
        pack("", [tmp_path / "nothing"])
    (tmp_path / "large.bin").write_bytes(bytes(51 * 2**20))
    monkeypatch.setattr(Path, "read_bytes", lambda path: pytest.fail(f"{path} is read"))
    with pytest.raises(ConfigError, match="50 is the most"):
        pack("", [tmp_path])


def test_what_would_lie_outside_or_is_no_file_is_refused(light_source, tmp_path, monkeypatch):
    (tmp_path / "project" / "scripts").mkdir(parents=True)
    (tmp_path / "project" / "rewards.py").touch()
    monkeypatch.chdir(tmp_path / "project" / "scripts")
    for upwards in ("..", "../scripts/.."):
        with pytest.raises(ConfigError, match=f"give it as {tmp_path}/project$"):
            pack("", [upwards])
    assert "rewards.py" in names(pack("", ["../rewards.py"]))
    os.mkfifo("pipe")
    with pytest.raises(ConfigError, match="neither a file nor a folder"):
        pack("", ["pipe"])


def test_a_container_runs_the_source_that_its_job_carries(light_source, tmp_path):
    code = tmp_path / "ml/input/data/code"
    code.mkdir(parents=True)
    (code / "source.tar.gz").write_bytes(pack("name: x\n"))
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "python").write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    (programs / "python").chmod(0o755)
    environment = {
        "PATH": f"{programs}:{os.environ['PATH']}",
        "SM_BASE_DIR": str(tmp_path / "ml"),
        "HOME": str(tmp_path),
    }
    done = subprocess.run(
        [START, "train"], env=environment, capture_output=True, text=True, timeout=120, check=False
    )
    # Nobody has written hyperparameters, which the entry point says in the way that SageMaker reads
    # it.
    assert done.returncode == 1
    assert (
        (tmp_path / "ml/output/failure")
        .read_text()
        .startswith(f"{tmp_path}/ml/input/config/hyperparameters.json can't be read")
    )
    assert (tmp_path / "ml/code/train/sagemaker/__pycache__").is_dir(), "another procsnake was run"
    done = subprocess.run(
        [START, "serve"], env=environment, capture_output=True, text=True, timeout=120, check=False
    )
    assert (done.returncode, "Call it with: train" in done.stderr) == (2, True)
