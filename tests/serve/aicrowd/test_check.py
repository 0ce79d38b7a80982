"""Each rule of the competition, broken on purpose in a good entry."""

from __future__ import annotations

import json
import pickle
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import yaml

from envs.errors import ConfigError
from serve.aicrowd import check, export
from serve.aicrowd.rules import LOCAL


@pytest.fixture(scope="module")
def good(bundle_of, tmp_path_factory) -> Path:
    target = tmp_path_factory.mktemp("good") / "entry"
    export(bundle_of("lars"), target, track="sample-efficiency")
    return target


@pytest.fixture
def entry(good, tmp_path) -> Path:
    return Path(shutil.copytree(good, tmp_path / "entry"))


def change(entry: Path, path: str, old: str, new: str) -> None:
    text = (entry / path).read_text()
    assert old in text
    (entry / path).write_text(text.replace(old, new))


def set_key(entry: Path, dotted: str, value: object) -> None:
    """Change the experiment; `None` removes the key."""
    (path,) = (entry / "experiments").glob("*.yaml")
    read = yaml.safe_load(path.read_text())
    *parents, last = dotted.split(".")
    section = next(iter(read.values()))
    for parent in parents:
        section = section[parent]
    if value is None:
        del section[last]
    else:
        section[last] = value
    path.write_text(yaml.safe_dump(read, sort_keys=False))


def edit_entry(entry: Path, **changes: object) -> None:
    path = entry / "aicrowd.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


def experiment_file(entry: Path) -> str:
    (path,) = (entry / "experiments").glob("*.yaml")
    return f"experiments/{path.name}"


def pickled(protocol: int, value: object = 1) -> Callable[[Path], None]:
    def write(entry: Path) -> None:
        edit_entry(entry, description=LOCAL)
        (entry / "params.pkl").write_bytes(pickle.dumps(value, protocol=protocol))

    return write


def numpy_two(entry: Path) -> None:
    edit_entry(entry, description=LOCAL)
    content = pickle.dumps(np.zeros(2), protocol=3).replace(b"cnumpy.core.multiarray\n", b"cnumpy._core.multiarray\n")
    (entry / "params.pkl").write_bytes(pickle.dumps({"worker": content}, protocol=3))


def huge(entry: Path) -> None:
    with open(entry / "notes.txt", "wb") as file:
        file.truncate(30_000_001)


BROKEN: dict[str, tuple[Callable[[Path], object], str]] = {
    "challenge": (lambda e: edit_entry(e, challenge_id="procgen"), "challenge_id"),
    "grader": (lambda e: edit_entry(e, grader_id="procgen"), "grader_id"),
    "authors": (lambda e: edit_entry(e, authors="me"), "authors"),
    "description": (lambda e: edit_entry(e, description=None), "description"),
    "docker": (lambda e: (e / "Dockerfile").unlink(), "there is no Dockerfile"),
    "json": (lambda e: (e / "aicrowd.json").write_text("{"), "isn't JSON"),
    "large-file": (huge, "30,000,001"),
    "outputs": (lambda e: (e / ".gitignore").write_text("*.pyc\n"), "outputs/"),
    "missing-file": (lambda e: (e / "callbacks.py").unlink(), "callbacks.py: it isn't there"),
    "not-executable": (lambda e: (e / "run.sh").chmod(0o644), "isn't executable"),
    "no-checkpoint": (lambda e: change(e, "run.sh", "CHECKPOINT", "CHOSEN"), "doesn't know CHECKPOINT"),
    "wrong-default": (lambda e: change(e, "run.sh", 'DEFAULT="experiments/', 'DEFAULT="nowhere/'), "isn't there"),
    "exit": (lambda e: change(e, "run.sh", "# No exit", "exit 0\n# No exit"), "sources it"),
    "two-experiments": (
        lambda e: change(e, experiment_file(e), "\nprocgen-ppo-lars:", "\nanother:\n  a: 1\nprocgen-ppo-lars:"),
        "holds 2 experiments",
    ),
    "name-after-document-mark": (
        lambda e: change(e, experiment_file(e), "\nprocgen-ppo-lars:", "\n---\nprocgen-ppo-lars:"),
        "reads the experiment's name from the line '---'",
    ),
    "run-twice": (
        lambda e: change(e, experiment_file(e), "  run: ProcsnakePPO", "  # once   run: PPO\n  run: ProcsnakePPO"),
        "2 lines hold '  run:'",
    ),
    "quoted": (
        lambda e: change(e, experiment_file(e), "env: procsnake_env", 'env: "procsnake_env"'),
        "reads env as '\"procsnake_env\"'",
    ),
    "unknown-trainer": (lambda e: change(e, experiment_file(e), "run: ProcsnakePPO", "run: PP0"), "run is PP0"),
    "unknown-env": (lambda e: change(e, experiment_file(e), "env: procsnake_env", "env: other"), "env is other"),
    "unknown-model": (lambda e: set_key(e, "config.model.custom_model", "nature"), "custom_model is nature"),
    "no-gpus": (lambda e: set_key(e, "config.num_gpus", None), "config.num_gpus is None"),
    "workers": (lambda e: set_key(e, "config.num_workers", 8) or set_key(e, "config.num_gpus_per_worker", 0), "8 workers"),
    "gpu-share": (lambda e: set_key(e, "config.num_gpus_per_worker", 0.16), "1.040 of the one GPU"),
    "steps": (lambda e: set_key(e, "stop.timesteps_total", 8_000_001), "at most 8,000,000"),
    "no-steps": (lambda e: set_key(e, "stop", None), "timesteps_total is None"),
    "repeat": (lambda e: set_key(e, "config.env_config.action_repeat", 2), "at most 4,000,000"),
    "skip": (lambda e: set_key(e, "config.env_config.frame_skip", 4), "at most 2,000,000"),
    "game": (lambda e: set_key(e, "config.env_config.env_name", "pong"), "'pong'"),
    "hard": (lambda e: set_key(e, "config.env_config.distribution_mode", "hard"), "'hard'"),
    "levels": (lambda e: set_key(e, "config.env_config.num_levels", 500), "num_levels is 500"),
    "no-env-config": (lambda e: set_key(e, "config.env_config", None), "train.py writes into it"),
    "weights": (lambda e: np.savez(e / "policy.npz", a=np.zeros(1)), "it holds weights"),
    "restore": (lambda e: set_key(e, "restore", "checkpoint/checkpoint-1"), "restore is"),
    "pickle-5": (pickled(5), "pickle protocol 5"),
    "numpy-2": (numpy_two, "numpy._core"),
    "cut-off-pickle": (lambda e: pickled(3)(e) or (e / "params.pkl").write_bytes(b"\x80\x03X"), "no whole pickle"),
    "python-3.8": (lambda e: (e / "models" / "new.py").write_text("if (n := 1):\n    pass\n"), "Python 3.7 can't read it"),
    "file-name": (lambda e: (e / "envs" / "own.py").write_text("print(__file__)\n"), "__file__"),
    "registry": (lambda e: change(e, "preprocessors/__init__.py", "CUSTOM", "OWN"), "CUSTOM_PREPROCESSORS"),
    "callbacks": (lambda e: change(e, "callbacks.py", "CustomCallbacks", "Callbacks"), "CustomCallbacks"),
    "moved-module": (
        lambda e: (e / "rollout.py").write_text("from ray.rllib.utils.space_utils import flatten_to_single_ndarray\n"),
        "doesn't import on Ray 0.8.6",
    ),
    "ray": (lambda e: change(e, "requirements.txt", "ray[rllib]==0.8.6", "ray[rllib]==0.8.5"), "ray is 0.8.5"),
    "protobuf": (lambda e: change(e, "requirements.txt", "protobuf==3.20.3", "protobuf==3.21.0"), "protobuf is 3.21.0"),
    "numpy": (lambda e: change(e, "requirements.txt", "numpy==1.18.5\n", ""), "numpy is not pinned"),
}


def test_an_export_breaks_no_rule(good):
    assert check(good) == []


@pytest.mark.parametrize("rule", BROKEN)
def test_each_broken_rule_is_found_and_alone(entry, rule):
    break_it, words = BROKEN[rule]
    break_it(entry)
    findings = check(entry)
    assert len(findings) == 1, findings
    assert words in str(findings[0])
    assert findings[0].fix


def test_a_local_package_keeps_all_other_rules(bundle_of, tmp_path):
    export(bundle_of("ppo"), tmp_path / "local", track="generalization", with_weights=True)
    assert check(tmp_path / "local") == []
    edit_entry(tmp_path / "local", description="mine")
    where = {finding.where for finding in check(tmp_path / "local")}
    assert {"weights/policy.npz", "checkpoint/checkpoint_1/checkpoint-1", "experiments/procgen-ppo.yaml"} <= where


def test_no_folder(tmp_path):
    with pytest.raises(ConfigError, match="there is no folder"):
        check(tmp_path / "nothing")
