"""Each rule of the competition, broken on purpose in a good entry."""

from __future__ import annotations

import json
import pickle
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import yaml

from envs.common.errors import ConfigError
from serve.aicrowd import check, export
from serve.aicrowd.competition import LOCAL, PLACEHOLDER
from tests.serve.aicrowd.entries import settings
from tests.serve.aicrowd.starter_kit import KIT, put_back


@pytest.fixture(scope="module")
def good(tmp_path_factory) -> Path:
    target = tmp_path_factory.mktemp("good") / "entry"
    export(settings("lars"), target, track="sample-efficiency", authors=["Ada"])
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
    content = pickle.dumps(np.zeros(2), protocol=3).replace(
        b"cnumpy.core.multiarray\n", b"cnumpy._core.multiarray\n"
    )
    (entry / "params.pkl").write_bytes(pickle.dumps({"worker": content}, protocol=3))


def huge(entry: Path) -> None:
    with open(entry / "notes.txt", "wb") as file:
        file.truncate(30_000_001)


def skipping(entry: Path) -> None:
    """With an environment of one's own that repeats actions."""
    (entry / "envs" / "skip.py").write_text("class Skip:\n    option = 'frame_skip'\n")
    set_key(entry, "config.env_config.frame_skip", 4)


def by_gym(entry: Path) -> None:
    old = "self.env = ProcgenEnvWrapper("
    change(entry, "envs/procsnake_env.py", old, 'self.env = gym.make("procgen:procgen-coinrun-v0",')


def option(key: str, value: object) -> Callable[[Path], None]:
    return lambda entry: set_key(entry, f"config.{key}", value)


def virtual_environment(entry: Path, name: str) -> None:
    """A folder as `python3.7 -m venv` makes it, with a module that no Python 3.7 reads."""
    packages = entry / name / "lib" / "python3.7" / "site-packages"
    packages.mkdir(parents=True)
    (entry / name / "pyvenv.cfg").write_text("version = 3.7.16\n")
    (packages / "new.py").write_text("if (n := 1):\n    pass\n")
    (packages / "weights.npz").write_bytes(b"")
    (packages / "python").symlink_to("/usr/bin/python3")


def image(text: str) -> Callable[[Path], object]:
    return lambda entry: (entry / "Dockerfile").write_text(text)


def link(target: str) -> Callable[[Path], None]:
    return lambda entry: (entry / "notes").symlink_to(target)


def pin(old: str, new: str) -> Callable[[Path], None]:
    return lambda entry: change(entry, "requirements.txt", old, new)


def without(path: str) -> Callable[[Path], None]:
    return lambda entry: (entry / path).unlink()


def emptied(path: str) -> Callable[[Path], object]:
    return lambda entry: (entry / path).write_text("")


BROKEN: dict[str, tuple[Callable[[Path], object], str | None]] = {
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
    "no-checkpoint": (
        lambda e: change(e, "run.sh", "CHECKPOINT", "CHOSEN"),
        "doesn't know CHECKPOINT",
    ),
    "wrong-default": (
        lambda e: change(e, "run.sh", 'DEFAULT="experiments/', 'DEFAULT="nowhere/'),
        "isn't there",
    ),
    "exit": (lambda e: change(e, "run.sh", "# No exit", "exit 0\n# No exit"), "sources it"),
    "two-experiments": (
        lambda e: change(
            e, experiment_file(e), "\nprocgen-ppo-lars:", "\nanother:\n  a: 1\nprocgen-ppo-lars:"
        ),
        "holds 2 experiments",
    ),
    "name-after-document-mark": (
        lambda e: change(e, experiment_file(e), "\nprocgen-ppo-lars:", "\n---\nprocgen-ppo-lars:"),
        "reads the experiment's name from the line '---'",
    ),
    "run-twice": (
        lambda e: change(
            e, experiment_file(e), "  run: ProcsnakePPO", "  # once   run: PPO\n  run: ProcsnakePPO"
        ),
        "2 lines hold '  run:'",
    ),
    "quoted": (
        lambda e: change(e, experiment_file(e), "env: procsnake_env", 'env: "procsnake_env"'),
        "reads env as '\"procsnake_env\"'",
    ),
    "unknown-trainer": (
        lambda e: change(e, experiment_file(e), "run: ProcsnakePPO", "run: PP0"),
        "run is PP0",
    ),
    "unknown-env": (
        lambda e: change(e, experiment_file(e), "env: procsnake_env", "env: other"),
        "env is other",
    ),
    "unknown-model": (option("model.custom_model", "nature"), "custom_model is nature"),
    "no-gpus": (option("num_gpus", None), "config.num_gpus is None"),
    "workers": (
        lambda e: (
            set_key(e, "config.num_workers", 8) or set_key(e, "config.num_gpus_per_worker", 0)
        ),
        "8 workers",
    ),
    "gpu-share": (option("num_gpus_per_worker", 0.16), "1.040 of the one GPU"),
    "steps": (lambda e: set_key(e, "stop.timesteps_total", 8_000_001), "at most 8,000,000"),
    "no-steps": (lambda e: set_key(e, "stop", None), "timesteps_total is None"),
    "repeat": (option("env_config.action_repeat", 2), "at most 4,000,000"),
    "skip": (skipping, "at most 2,000,000"),
    "game": (option("env_config.env_name", "pong"), "'pong'"),
    "hard": (option("env_config.distribution_mode", "hard"), "'hard'"),
    "levels": (option("env_config.num_levels", 500), "num_levels is 500"),
    "no-env-config": (option("env_config", None), "train.py writes into it"),
    "weights": (lambda e: np.savez(e / "policy.npz", a=np.zeros(1)), "it holds weights"),
    "restore": (lambda e: set_key(e, "restore", "checkpoint/checkpoint-1"), "restore is"),
    "pickle-5": (pickled(5), "pickle protocol 5"),
    "numpy-2": (numpy_two, "numpy._core"),
    "cut-off-pickle": (
        lambda e: pickled(3)(e) or (e / "params.pkl").write_bytes(b"\x80\x03X"),
        "is not a complete pickle",
    ),
    "python-3.8": (
        lambda e: (e / "models" / "new.py").write_text("if (n := 1):\n    pass\n"),
        "Python 3.7 can't read it",
    ),
    "file-name": (lambda e: (e / "envs" / "own.py").write_text("print(__file__)\n"), "__file__"),
    "registry": (
        lambda e: change(e, "preprocessors/__init__.py", "CUSTOM", "OWN"),
        "CUSTOM_PREPROCESSORS",
    ),
    "callbacks": (
        lambda e: change(e, "callbacks.py", "CustomCallbacks", "Callbacks"),
        "CustomCallbacks",
    ),
    "moved-module": (
        lambda e: change(e, "run.sh", "python utils/rollout_on_ray_086.py", "python rollout.py"),
        "doesn't import on Ray 0.8.6",
    ),
    "ray": (
        lambda e: change(e, "requirements.txt", "ray[rllib]==0.8.6", "ray[rllib]==0.8.5"),
        "ray is 0.8.5",
    ),
    "protobuf": (
        lambda e: change(e, "requirements.txt", "protobuf==3.20.3", "protobuf==3.21.0"),
        "protobuf is 3.21.0",
    ),
    "numpy": (
        lambda e: change(e, "requirements.txt", "numpy==1.18.5\n", ""),
        "numpy is not pinned",
    ),
    # What an entry consists of.
    "no-trainer": (
        without("algorithms/procsnake_ppo.py"),
        "procsnake_ppo.py: it isn't there, and algorithms/registry.py",
    ),
    "no-algorithms-init": (
        without("algorithms/__init__.py"),
        "algorithms/__init__.py: it isn't there",
    ),
    "no-loader": (without("utils/loader.py"), "utils/loader.py: it isn't there"),
    "no-augment": (
        without("utils/augment.py"),
        "utils/augment.py: it isn't there, and envs/procsnake_env.py imports",
    ),
    "no-helpers": (without("aicrowd_helpers/config.py"), "imports EASY_GAME_RANGES from it"),
    "no-aligned": (
        without("algorithms/aligned_torch.py"),
        "algorithms/aligned_torch.py: it isn't there",
    ),
    "no-preprocessors-loader": (
        lambda e: change(e, "utils/loader.py", "def load_preprocessors", "def load_nothing"),
        "utils/loader.py: it has no load_preprocessors, and train.py imports",
    ),
    "trainer-without-class": (
        lambda e: change(e, "algorithms/procsnake_ppo.py", "ProcsnakePPO = ", "Another = "),
        "algorithms/procsnake_ppo.py: it has no ProcsnakePPO",
    ),
    "relative-import": (
        lambda e: (e / "models" / "own.py").write_text("from .procsnake_tf import Layers\n"),
        "imports relatively",
    ),
    "empty-train": (emptied("train.py"), "train.py: it is empty"),
    "empty-rollout": (emptied("rollout.py"), "rollout.py: it is empty"),
    "empty-requirements": (emptied("requirements.txt"), "requirements.txt: it is empty"),
    "comment-requirements": (lambda e: (e / "requirements.txt").write_text("# none\n\n"), None),
    "dangling-link": (link("nowhere"), "a link to nowhere, which isn't there"),
    "link-outside": (link("/etc/hostname"), "a link out of the repository"),
    "placeholder": (lambda e: edit_entry(e, authors=[PLACEHOLDER]), "names nobody"),
    "kits-author": (lambda e: edit_entry(e, authors=["aicrowd-bot"]), "names nobody"),
    "kits-maintainer": (
        lambda e: edit_entry(e, authors=["Sharada Mohanty <mohanty@aicrowd.com>"]),
        "names nobody of your team",
    ),
    "kits-description": (
        lambda e: edit_entry(e, description="Procgen test submission"),
        "the starter kit's sample text",
    ),
    "default-image": (
        lambda e: edit_entry(e, docker_build=False),
        "its own image, which has TensorFlow 1.14, Ray 0.8.5 and no torch",
    ),
    "environment-that-git-takes": (
        lambda e: virtual_environment(e, "mine"),
        "mine: it is a Python environment that git doesn't ignore",
    ),
    "json-list": (
        lambda e: (e / "aicrowd.json").write_text("[]"),
        "holds [] where an object is wanted",
    ),
    # Games and their options.
    "gym-make": (by_gym, "it makes games itself by gym.make"),
    "own-procgen": (
        lambda e: (e / "envs" / "own.py").write_text("from procgen import ProcgenEnv\n"),
        "it makes games itself by procgen.ProcgenEnv",
    ),
    "not-around": (
        lambda e: (e / "envs" / "procsnake_env.py").write_text(
            "registry.register_env('procsnake_env', print)\n"
        ),
        None,
    ),
    "mistyped-option": (
        option("env_config.gap_stak", 4),
        "gap_stak is not an option that anything reads. Did you",
    ),
    "option-of-a-wrong-type": (
        option("env_config.gap_stack", "4"),
        "gap_stack is '4', which it can't be",
    ),
    "switch-of-a-wrong-type": (option("env_config.center_agent", "yes"), "center_agent is 'yes'"),
    "mistyped-evaluation": (
        option("evaluation_config.env_config.shape_reward", False),
        "shape_reward is not an option",
    ),
    "unknown-augmentation": (option("env_config.augment", ["blur"]), "augment has 'blur'"),
    # The network.
    "pooling": (
        option("model.custom_options.pooling", "avg"),
        "pooling is 'avg', which it can't be",
    ),
    "depths": (option("model.custom_options.depths", []), "depths is []"),
    "mistyped-network": (
        option("model.custom_options.hiden", 9),
        "is not an option that anything reads. Did you mean hidden",
    ),
    "mistyped-model": (option("model.custom_option", {}), "custom_option is not an option"),
    "torch-under-tf": (
        option("model.custom_model", "procsnake_impala_torch"),
        "is for torch, and TensorFlow trains it",
    ),
    "tf-under-torch": (option("use_pytorch", True), "is for TensorFlow, and torch trains it"),
    # Workers.
    "negative-workers": (option("num_workers", -1), "num_workers is -1"),
    "half-a-worker": (option("num_workers", 1.5), "num_workers is 1.5"),
    "negative-gpus": (option("num_gpus", -1), "num_gpus is -1"),
    "no-games": (option("num_envs_per_worker", 0), "num_envs_per_worker is 0"),
    "negative-steps": (lambda e: set_key(e, "stop.timesteps_total", -5), "timesteps_total is -5"),
    # What is installed.
    "torch-2": (pin("torch==1.5.1", "torch==2.1.0"), "torch is 2.1.0"),
    "tensorflow-2.15": (pin("tensorflow-gpu==2.2.0", "tensorflow==2.15.0"), "tensorflow is 2.15.0"),
    "no-tensorflow": (
        pin("tensorflow-gpu==2.2.0\n", ""),
        "tensorflow isn't there, which trains the experiment",
    ),
    "numpy-open": (pin("numpy==1.18.5", "numpy>=1.18"), "numpy>=1.18 takes 1.21.6, too"),
    "gym-new": (pin("gym[atari]==0.17.2", "gym[atari]==0.21.0"), "gym is 0.21.0"),
    "procgen": (pin("procgen==0.10.4", "procgen==0.11.9"), "procgen is 0.11.9"),
    "redis": (pin("redis==3.4.1", "redis==5.0.0"), "redis is 5.0.0"),
    "twice": (pin("numpy==1.18.5", "numpy==1.18.5\nNumPy==1.19.0"), "numpy is there twice"),
    "no-version": (pin("redis==3.4.1", "redis=one"), "pip can't read"),
    "scipy": (pin("numpy==1.18.5", "numpy==1.18.5\nscipy==1.11.0"), "scipy is 1.11.0"),
    "python-3.11": (
        image("FROM python:3.11\nRUN pip install -r requirements.txt\n"),
        "Python 3.11",
    ),
    "python-3.11-by-apt": (
        lambda e: change(e, "Dockerfile", "python3.7", "python3.11"),
        "Python 3.11",
    ),
    "newest-python": (
        image("FROM python:3-slim\nRUN pip install -r requirements.txt\n"),
        "the newest Python",
    ),
    "installs-nothing": (image("FROM ubuntu:18.04\n"), "nothing else is installed"),
    "no-from": (emptied("Dockerfile"), "it has no FROM"),
}
"""From a name to (what breaks it, words of the one finding; `None`: there are several)."""


def test_an_export_breaks_no_rule(good):
    assert check(good) == []


@pytest.mark.parametrize("rule", BROKEN)
def test_each_broken_rule_is_found_and_alone(entry, rule):
    break_it, words = BROKEN[rule]
    break_it(entry)
    findings = check(entry)
    assert findings
    assert all(finding.fix for finding in findings)
    if words is not None:
        assert len(findings) == 1, findings
        assert words in str(findings[0])


@pytest.mark.parametrize("is_repository", [True, False])
def test_what_git_ignores_is_not_looked_at(entry, is_repository):
    if is_repository:
        subprocess.run(["git", "init", "--quiet", entry], check=True)
    # The first is what README.md tells users to make.
    virtual_environment(entry, "legacy")
    virtual_environment(entry, "mine")
    with (entry / ".gitignore").open("a") as file:
        file.write("mine/\n")
    assert check(entry) == []


def test_no_program_is_run_that_a_strangers_repository_names(entry, tmp_path):
    subprocess.run(["git", "init", "--quiet", entry], check=True)
    watcher = tmp_path / "watcher"
    watcher.write_text(f"#!/bin/sh\ntouch {tmp_path / 'was-run'}\n")
    watcher.chmod(0o755)
    subprocess.run(["git", "-C", entry, "config", "core.fsmonitor", watcher], check=True)
    assert check(entry) == []
    assert not (tmp_path / "was-run").exists()


def test_a_local_package_keeps_all_other_rules(bundle_of, tmp_path):
    export(
        bundle_of("ppo"),
        tmp_path / "local",
        track="generalization",
        with_weights=True,
        authors=["Ada"],
    )
    assert check(tmp_path / "local") == []
    edit_entry(tmp_path / "local", description="mine")
    where = {finding.where for finding in check(tmp_path / "local")}
    assert {
        "weights/policy.npz",
        "checkpoint/checkpoint_1/checkpoint-1",
        "experiments/procgen-ppo.yaml",
    } <= where


@pytest.mark.parametrize(
    "version", ["numpy<1.20", "numpy>=1.16,<1.20", "numpy~=1.18.0", "numpy==1.18.*"]
)
def test_bounded_ranges_will_do(entry, version):
    change(entry, "requirements.txt", "numpy==1.18.5", version)
    assert check(entry) == []


def test_lists_that_are_included_are_read(entry):
    (entry / "requirements.txt").rename(entry / "pins.txt")
    (entry / "requirements.txt").write_text("-r pins.txt\n")
    assert check(entry) == []
    change(entry, "pins.txt", "numpy==1.18.5", "numpy==1.24.0")
    assert [finding.where for finding in check(entry)] == ["pins.txt"]


def test_the_graders_files_break_no_rule(entry):
    assert check(put_back(entry)) == []


def test_an_entry_in_the_kit_breaks_no_rule(tmp_path):
    export(
        settings("ppo"),
        tmp_path / "entry",
        track="generalization",
        starter_kit=KIT,
        authors=["Ada"],
    )
    assert check(tmp_path / "entry") == []


JUNK = [
    b"",
    b"[]",
    b"{}",
    b"null",
    b"1",
    b"\xff\xfe\x00",
    b"a: [",
    b"a: {b: 2020-13-45}",
    b"[" * 3000,
    b"x" * 10,
    None,
]


FILES = (
    "aicrowd.json",
    "requirements.txt",
    "Dockerfile",
    "run.sh",
    "train.py",
    "envs/procsnake_env.py",
    ".gitignore",
    "experiments/procgen-ppo-lars.yaml",
    "algorithms/registry.py",
)


@pytest.mark.parametrize("path", FILES)
def test_whatever_is_in_a_file_it_is_told_without_a_traceback(entry, path):
    for content in JUNK:
        (entry / path).unlink()
        if content is None:
            (entry / path).symlink_to("nowhere")
        else:
            (entry / path).write_bytes(content)
        assert check(entry), content


VALUES = [[], {}, "x", -1, 1.5, True, float("nan"), [{}], {"a": []}]


KEYS = (
    "env",
    "run",
    "stop",
    "config",
    "config.env_config",
    "config.env_config.env_name",
    "config.env_config.num_levels",
    "config.env_config.augment",
    "config.env_config.action_repeat",
    "config.model",
    "config.model.custom_model",
    "config.model.custom_options",
    "config.num_workers",
    "config.evaluation_config",
)


@pytest.mark.parametrize("key", KEYS)
def test_whatever_is_set_it_is_told_without_a_traceback(entry, key):
    path = entry / experiment_file(entry)
    before = path.read_text()
    for value in VALUES:
        path.write_text(before)
        set_key(entry, key, value)
        for finding in check(entry):
            assert str(finding)


def test_no_folder(tmp_path):
    with pytest.raises(ConfigError, match="there is no folder"):
        check(tmp_path / "nothing")
